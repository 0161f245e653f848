"""The hook of mkdocs.yml. Pages of docs/ link to files beside docs/: the site has those too, below
tree/, with what these link to in turn, so that it needs no other address.
"""
import os
import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def in_tree(src_uri):
    """A page's path in the repository."""
    return src_uri[len("tree/"):] if src_uri.startswith("tree/") else "docs/" + src_uri


def in_site(path):
    return path[len("docs/"):] if path.startswith("docs/") else "tree/" + path


def target(page, link):
    """The repository's path that a link of a page leads to, and its anchor; None: an address."""
    if re.match(r"[a-z]+:|#", link):
        return None, ""
    path, sign, anchor = link.partition("#")
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path)), sign + anchor


def text_lines(markdown):
    """Each line, and whether it is text rather than code."""
    fenced = False
    for line in markdown.split("\n"):
        if line.startswith("```"):
            fenced = not fenced
        yield line, not fenced and not line.startswith(("    ", "```"))


def linked(page):
    for line, is_text in text_lines((ROOT / page).read_text(encoding="utf-8")):
        for found in LINK.finditer(line) if is_text else ():
            path, _ = target(page, found.group(2))
            if path and (ROOT / path).is_file():
                yield path


def on_files(files, config):
    """Adds what is linked to and lies outside of docs/."""
    seen = {in_tree(file.src_uri) for file in files}
    waiting = [path for path in seen if path.endswith(".md")]
    while waiting:
        for path in linked(waiting.pop()):
            if path in seen:
                continue
            seen.add(path)
            files.append(File.generated(config, in_site(path), abs_src_path=os.fspath(ROOT / path)))
            if path.endswith(".md"):
                waiting.append(path)
    return files


def on_page_markdown(markdown, page, config, files):
    here = in_tree(page.file.src_uri)

    def rewritten(found):
        path, anchor = target(here, found.group(2))
        if path is None or not (ROOT / path).is_file():
            return found.group(0)
        at = posixpath.relpath(in_site(path), posixpath.dirname(page.file.src_uri) or ".")
        return found.group(1) + at + anchor + found.group(3)

    out, before = [], ""
    for line, is_text in text_lines(markdown):
        if is_text:
            line = LINK.sub(rewritten, line)
            # GitHub's lists need no empty line before them, Python-Markdown's do.
            item = re.match(r"([-*]|\d+\.) ", line)
            if item and before.strip() and not re.match(r"([-*]|\d+\.) | ", before):
                out.append("")
        out.append(line)
        before = line
    return "\n".join(out)
