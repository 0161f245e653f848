"""Rows of figures, and the pages and JSON that are made of them."""
import json
import os
import platform
import subprocess
import time
from dataclasses import asdict, dataclass, field

from harness import CACHE, ROOT, cores


@dataclass
class Row:
    """One figure. ratio is sifr's beside the other's, as the mark wants it read."""
    figure: str
    ours: str = ""
    beside: str = ""        # what sifr's figure is compared with: a limit, or a peer
    theirs: str = ""
    ratio: float = None
    mark: str = ""          # "0.60", or "<0.6": at most that
    note: str = ""

    def reached(self):
        if self.ratio is None or not self.mark:
            return None
        bound = float(self.mark.lstrip("<"))
        return self.ratio <= bound if self.mark[0] == "<" else self.ratio >= bound


@dataclass
class Part:
    name: str
    title: str
    rows: list = field(default_factory=list)
    data: dict = field(default_factory=dict)    # whatever was measured, for the JSON
    notes: list = field(default_factory=list)
    seconds: float = 0
    stolen: float = 0       # share of the processors that other machines took meanwhile
    load: str = ""          # load average when it began


def number(value, digits=3):
    """With so many digits that count."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    if abs(value) >= 10 ** digits:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}" if abs(value) >= 1e-3 else f"{value:.{digits - 1}e}"


def seconds(value):
    if value is None:
        return ""
    return f"{number(value)} s" if value >= 1 else f"{number(value * 1e3)} ms"


def spread(value):
    return f" ±{value * 50:.0f} %" if value is not None else ""


def gigabytes(value):
    return f"{value / 1e9:.2f} GB" if value else ""


def turns(runs, steps=lambda r: len(r["seconds"]) - 1):
    """How much a median stands on: "2 turns, 3 steps"; steps that are counted, of all turns."""
    count = sum(steps(r) for r in runs)
    return (f"{len(runs)} turn{'s' * (len(runs) != 1)}, {count} step{'s' * (count != 1)}")


def first_line(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=30,
                              check=False)
        return (done.stdout or done.stderr).strip().splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return "?"


def cpu_name():
    with open("/proc/cpuinfo") as f:
        lines = f.read().splitlines()
    name = next((l.split(":")[1].strip() for l in lines if l.startswith("model name")), "?")
    flags = next((l.split(":")[1].split() for l in lines if l.startswith("flags")), [])
    known = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
    return name, [f for f in known if f in flags]


def huge_pages():
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as f:
            return f.read().split("[")[1].split("]")[0]
    except (OSError, IndexError):
        return "?"


def describe_machine(inputs):
    name, flags = cpu_name()
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) * 1024
    # What a run writes itself is no change of the tree.
    changed = first_line(["git", "status", "--porcelain", "--", ".", ":!bench/results"])
    return {"processor": name, "instructions": flags, "cores": len(cores()),
            "memory_bytes": memory, "kernel": platform.release(), "huge_pages": huge_pages(),
            "compiler": first_line(["cc", "--version"]), "mpi": first_line(["mpirun", "--version"]),
            "python": platform.python_version(),
            "sifr": first_line([inputs.sifr, "--version"]),
            "commit": first_line(["git", "rev-parse", "--short=12", "HEAD"]) +
            ("" if changed == "?" else ", with changes that are not committed"),
            "begun": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())}


def table(rows):
    out = ["| figure | sifr | beside | its figure | ratio | mark | |",
           "|---|---|---|---|---|---|---|"]
    for r in rows:
        reached = {None: "", True: "reached", False: "**short**"}[r.reached()]
        mark = r.mark.replace("<", "at most ")
        cells = [r.figure, r.ours, r.beside, r.theirs, number(r.ratio), mark,
                 "; ".join(t for t in (reached, r.note) if t)]
        cells = [c.replace("|", "\\|").replace("\n", " ") for c in cells]
        out.append("| " + " | ".join(cells) + " |")
    return out


def summary(parts):
    marks = [r.reached() for p in parts for r in p.rows if r.mark]
    return (f"Marks: {marks.count(True)} reached, {marks.count(False)} short, "
            f"{marks.count(None)} not measured.")


def page(machine, parts, command):
    flags = " ".join(machine["instructions"]) or "none of AVX2 and later"
    out = [f"# Measured by `{command}`", "",
           f"{machine['begun']}, commit {machine['commit']}, {machine['sifr']}.",
           f"{machine['processor']} ({flags}), {machine['cores']} cores, "
           f"{machine['memory_bytes'] / 2 ** 30:.0f} GiB, Linux {machine['kernel']}, transparent "
           f"huge pages: {machine['huge_pages']}; {machine['compiler']}; {machine['mpi']}; "
           f"Python {machine['python']}.", ""]
    if machine.get("peers"):
        out += ["Peers: " + ", ".join(f"{k} {v}" for k, v in machine["peers"].items()) + ".", ""]
    if machine.get("peer_settings"):
        settings = {k: os.path.basename(v) if k == "LD_PRELOAD" else v
                    for k, v in machine["peer_settings"].items()}
        out += ["Their settings: " + ", ".join(f"`{k}={v}`" for k, v in settings.items()
                                               if not v.startswith("/")) + ".", ""]
    out += ["Medians over turns A B A B; ± is half of largest less least, of the median. A ratio "
            "is sifr's figure beside the other one's; over 1 is quicker, but for memory, where "
            "less is better.", ""]
    out += [summary(parts), ""]
    for part in parts:
        out += [f"## {part.title}", "", *table(part.rows), ""]
        out += [note + "\n" for note in part.notes]
        out += [f"{part.seconds:.0f} s; load {part.load} when it began; {part.stolen * 100:.1f} % "
                "of the processors' time went to other machines meanwhile.", ""]
    return "\n".join(out).rstrip() + "\n"


def compact(data):
    """JSON with a line for each row: a diff of two reports shows the figures that changed."""
    def line(value):
        return json.dumps(value, ensure_ascii=False)
    parts = []
    for part in data["parts"]:
        head = "".join(f"{line(k)}: {line(v)}, " for k, v in part.items() if k != "rows")
        parts.append("{" + head + '"rows": [\n' + ",\n".join(line(r) for r in part["rows"]) + "]}")
    head = f'"machine": {line(data["machine"])},\n"command": {line(data["command"])}'
    return "{" + head + ',\n"parts": [\n' + ",\n".join(parts) + "]}\n"


def write(name, machine, parts, command):
    """NAME.md and NAME.json in bench/results (where NAME is no path): the page and its rows. What
    was measured beneath them, NAME-raw.json, goes to the cache. Again after each part: what ends
    early is not lost."""
    raw = os.path.join(CACHE, os.path.basename(name) + "-raw.json")
    name = os.path.join(ROOT, "bench", "results", name) if os.sep not in name else name
    os.makedirs(os.path.dirname(os.path.abspath(name)), exist_ok=True)
    os.makedirs(CACHE, exist_ok=True)
    whole = {"machine": machine, "command": command,
             "parts": [{**asdict(p), "rows": [{**asdict(r), "reached": r.reached()}
                                              for r in p.rows]} for p in parts]}
    rows = {**whole, "parts": [{k: v for k, v in p.items() if k != "data"} for p in whole["parts"]]}
    # Where the tree is, and its cache, says nothing.
    rows = compact(rows).replace(CACHE + "/", "cache/").replace(ROOT + "/", "")
    for path, text in ((raw, json.dumps(whole, indent=1) + "\n"), (name + ".json", rows),
                       (name + ".md", page(machine, parts, command))):
        with open(path + ".new", "w") as f:
            f.write(text)
        os.rename(path + ".new", path)
    return os.path.relpath(name + ".md", ROOT)
