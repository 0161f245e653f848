"""Reads a page of `sifr report` and compares it with the runs: report_reads.py PAGE RUN... Fails
for tags that do not close, an id twice, anything that a browser would fetch or run beside the one
script, a policy that does not forbid the network, and figures that are not those of metrics.jsonl."""
import base64
import hashlib
import html.parser
import json
import sys

VOID = {"meta", "input", "br", "link", "img", "hr"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.problems = [], set(), []
        self.tables, self.table, self.row, self.policy = {}, None, None, None
        self.scripts, self.styles, self.text, self.tags = [], [], [], {}

    def handle_starttag(self, tag, attrs):
        at = dict(attrs)
        self.tags[tag] = self.tags.get(tag, 0) + 1
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):
            self.open.append(tag)
        if at.get("id") in self.ids:
            self.problems.append("id twice: " + at["id"])
        if "id" in at:
            self.ids.add(at["id"])
        for name, value in attrs:
            if name in ("src", "href", "style", "srcset", "action", "data") or name.startswith("on"):
                self.problems.append(f"{tag} has {name}={value!r}")
        if at.get("http-equiv") == "Content-Security-Policy":
            self.policy = at["content"]
        if tag == "table":
            self.table = self.tables.setdefault(at.get("data-key") or at.get("id"), [])
        if tag == "tr":
            self.row = []
            if self.table is not None:
                self.table.append(self.row)
        if tag in ("td", "th") and self.row is not None:
            self.row.append([at.get("data-v"), ""])
        if tag == "script":
            self.scripts.append("")
        if tag == "style":
            self.styles.append("")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing at {self.getpos()}")
        if tag in ("td", "th", "p", "summary", "caption"):
            self.text.append(" ")
        if tag == "table":
            self.table = self.row = None

    def handle_data(self, data):
        inside = self.open[-1] if self.open else ""
        if inside == "script":
            self.scripts[-1] += data
        elif inside == "style":
            self.styles[-1] += data
        else:
            self.text.append(data)
            if self.row:
                self.row[-1][1] += data


def fail(text):
    sys.exit("report_reads.py: " + text)


def hashed(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def check_form(page):
    if page.open:
        page.problems.append("left open: " + " ".join(page.open))
    if page.problems:
        fail("; ".join(page.problems[:5]))
    if len(page.scripts) != 1 or len(page.styles) != 1:
        fail(f"{len(page.scripts)} scripts and {len(page.styles)} styles")
    want = ("default-src 'none'; base-uri 'none'; form-action 'none'; script-src "
            f"{hashed(page.scripts[0])}; style-src {hashed(page.styles[0])}")
    if page.policy != want:
        fail(f"the policy is {page.policy}, not {want}")
    for tag in ("iframe", "object", "embed", "img", "link", "form", "base"):
        if tag in page.tags:
            fail(f"a <{tag}> is in the page")


def records(run):
    for line in open(run + "/metrics.jsonl", errors="replace"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if line.endswith("\n") and isinstance(record, dict):
            yield record


def check_figures(page, runs):
    for key in ("loss", "grad_norm", "learning_rate", "tokens_per_second", "eval_loss"):
        want = [(r["step"], r[key]) for run in runs for r in records(run)
                if isinstance(r.get(key), (int, float))]
        got = [(int(row[-2][0]), float(row[-1][0])) for row in page.tables.get(key, [])[1:]]
        if sorted(got) != sorted(want):
            fail(f"{key}: the page has {got[:3]}, the logs {want[:3]}")
    rows = page.tables["runs"][1:]
    if len(rows) != len(runs):
        fail(f"{len(rows)} rows, not {len(runs)}")
    for row, run in zip(rows, runs):
        every = list(records(run))
        loss = [r["loss"] for r in every if "loss" in r]
        want = [every[-1]["step"], len(every), loss[-1], min(loss)]
        got = [float(cell[0]) for cell in row[1:5]]
        if got != want:
            fail(f"the row of {run} has {got}, not {want}")


page = Page()
page.feed(open(sys.argv[1], encoding="utf-8").read())
page.close()
check_form(page)
if len(sys.argv) > 2:
    check_figures(page, sys.argv[2:])
print(" ".join("".join(page.text).split()))
