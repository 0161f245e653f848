"""Follows the links of a built site: site_follows.py SITE. Each leads to a file of it, and to an
anchor that is there; nothing is fetched from elsewhere; the search finds what pages say.
"""
import json
import pathlib
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

site = pathlib.Path(sys.argv[1])
FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.anchors, self.away = [], {"", "top"}, []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors.update(given[name] for name in ("id", "name") if given.get(name))
        link = given.get("href") or given.get("src")
        if not link:
            return
        elsewhere = bool(urlsplit(link).netloc)
        if elsewhere and tag in FETCHED and given.get("rel") != "canonical":
            self.away.append(link)
        if not elsewhere and not link.startswith(("mailto:", "data:", "javascript:")):
            self.links.append(link)


pages = {}
for path in site.rglob("*.html"):
    pages[path] = Page()
    pages[path].feed(path.read_text(encoding="utf-8"))
wrong, count = [], 0
for path, page in pages.items():
    wrong += ["%s: is fetched from elsewhere: %s" % (path, link) for link in page.away]
    for link in page.links if path.name != "404.html" else []:
        count += 1
        parts = urlsplit(link)
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file():
            wrong.append("%s: no such file: %s" % (path, link))
        elif target.suffix == ".html":
            there = next((pages[p] for p in pages if p.resolve() == target.resolve()), None)
            if there and unquote(parts.fragment) not in there.anchors:
                wrong.append("%s: no such anchor: %s" % (path, link))
index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
texts = {entry["location"].partition("#")[0]: "" for entry in index["docs"]}
for entry in index["docs"]:
    texts[entry["location"].partition("#")[0]] += entry["title"] + " " + entry["text"]
for words, where in (("no known form: its fields are", "errors.html"),
                     ("begin with a config that fits", "quickstart.html")):
    if words not in " ".join(texts.get(where, "").lower().split()):
        wrong.append("the search of %s does not have: %s" % (where, words))
if len(pages) < 40 or count < 1000:
    wrong.append("only %d pages and %d links" % (len(pages), count))
print("\n".join(wrong))
print("%d pages, %d links, %d parts to search" % (len(pages), count, len(index["docs"])))
sys.exit(1 if wrong else 0)
