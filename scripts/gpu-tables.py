#!/usr/bin/env python3
"""Tables of a run of scripts/gpu-check.sh, for bench/results/gpu.md:
    gpu-tables.py [--page PAGE] RESULTS…
RESULTS: folders with gpu-check.json or gpu-figures.json, or such files. Prints the tables by the
page's headings, with GPU, date and commit, then a line for each row of the page that was "not yet
run on a GPU": filled, or why not. A later run of a part counts in place of an earlier one."""
import argparse
import json
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "bench/results/gpu.md"
EMPTY = "not yet run on a GPU"
NOTHING = ("not run", "failed", "no end", "cut off", "nothing")  # what a row says without a figure
FAKE = "none: a driver that a test plays"


def read_runs(places):
    files = []
    for place in map(pathlib.Path, places):
        found = sorted(place.glob("gpu-*.json")) if place.is_dir() else [place]
        if not found:
            sys.exit(f"gpu-tables.py: {place}: no gpu-check.json or gpu-figures.json in it")
        files += found
    runs = []
    for file in files:
        try:
            run = json.loads(file.read_text(encoding="utf-8", errors="replace"))
            run = {key: run[key] for key in ("gpu", "date", "sifr", "commit", "seconds", "parts")}
            for part in run["parts"]:
                if not {"part", "result", "seconds", "ran", "why", "answer", "rows"} <= set(part):
                    raise ValueError(f"a part has only {', '.join(part)}")
        except (OSError, ValueError, KeyError, TypeError) as error:
            sys.exit(f"gpu-tables.py: {file}: not written by gpu-check.sh: {error}")
        runs.append(run)
    return runs


def read_page(page):
    """Of each table: its heading, the parts that its text names, its head and its rows."""
    tables = []
    for section in page.read_text(encoding="utf-8").split("\n## ")[1:]:
        heading, text = section.split("\n", 1)
        lines = [cells(line) for line in text.splitlines() if line.startswith("|")]
        if lines:
            parts = re.findall(r"`([a-z]+)`", text[: text.index("|")])
            tables.append({"heading": heading, "parts": parts, "head": lines[0], "rows": lines[2:]})
    return tables


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows_of(table, parts):
    """The rows that the run has for a table of the page."""
    if table["heading"] == "Parts":
        for name in table["parts"]:
            if name in parts:
                p = parts[name]
                why = "; ".join(text for text in (p["why"], p["answer"]) if text)
                yield [name, p["result"], str(p["seconds"]), p["ran"], why]
        return
    width = len(table["head"])
    for name in table["parts"]:
        rows = parts[name]["rows"] if name in parts else []
        at = [i for i, row in enumerate(rows) if row == table["head"]]
        for row in rows[at[0] + 1 :] if at else []:
            if len(row) != width:
                break
            if not set("".join(row)) <= set("-: "):
                yield row


def key_of(row):
    """The cells of a row of the page in front of what is measured."""
    return row[: row.index(EMPTY)]


def state_of(table, row, rows, parts):
    key = key_of(row)
    for found in rows:
        if found[: len(key)] == key:
            value = found[len(key)]
            nothing = ("not run",) if table["head"][len(key)] == "result" else NOTHING
            measured = value and not value.startswith(nothing)
            return "filled" if measured else f"not filled ({value or 'nothing was measured'})"
    names = key if table["heading"] == "Parts" else table["parts"]
    return "not filled (" + ", ".join(
        f"{n}: {parts[n]['result'] if n in parts else 'not in this run'}" for n in names) + ")"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--page", type=pathlib.Path, default=PAGE)
    parser.add_argument("results", nargs="+")
    options = parser.parse_args()
    runs, parts = read_runs(options.results), {}
    for run in runs:
        print(f"{run['gpu']}, {run['date']}, {run['sifr']}"
              + (f", commit {run['commit']}" if run["commit"] else "") + f": {run['seconds']} s")
        parts.update({part["part"]: part for part in run["parts"]
                      if part["result"] != "not run" or part["part"] not in parts})
    states = []
    for table in read_page(options.page):
        rows = list(rows_of(table, parts))
        if rows:
            print(f"\n## {table['heading']}")
            for line in [table["head"], ["---"] * len(table["head"])] + rows:
                print("| " + " | ".join(line) + " |")
        states += [(table["heading"], ", ".join(key_of(row)) or "all rows",
                    state_of(table, row, rows, parts))
                   for row in table["rows"] if EMPTY in row]
    print()
    if any(run["gpu"] == FAKE for run in runs):
        print(f"{options.page.name}: nothing is filled: this is no run on a GPU. It would be:")
    for heading, key, state in states:
        print(f"{options.page.name}, {heading}: {key}: {state}")


if __name__ == "__main__":
    main()
