#!/usr/bin/env python3
"""Writes hjson.json: what hjson, with which DeepSpeed reads its config, makes of each text.

    python3 -m venv venv && venv/bin/pip install hjson==3.1.0 && venv/bin/python make_hjson.py

"value" is missing where hjson raises.
"""
import json
import os

import hjson

CASES = [
    "{a: 1}", "a: 1", "a: 1\nb: two words\n", "{a: 1, b: 2,}", "{\n a: 1\n b: 2\n}", "{}", "[1, 2]",
    "# c\na: 1 # one\n// d\nb: 2 // two\n/* e\n f */ c: 3 /* three */\n",
    "{a: text # no comment\n}", "{a: text // no comment\n}", "{a: x, y\n}", "{a: true, b: false, c: null}",
    "{a: true x\n}", "{a: nul\n}", "{a: 1e3, b: -2.5, c: 5e8}", "{a: 1 x\n}", "{a: 01\n}", "{a: .5\n}",
    "{a: 1.\n}", "{a: -\n}", "{a: 1e400x\n}", "{a: 'single'}", "{a: 'it\\'s'}", "{'a b': 1}",
    "{\"a\\u00e9\\ud83d\\ude00\\n\": \"\\t\\\"\"}", "{a: '''\n  one\n  two\n  '''}",
    "{\n  a:\n    '''\n    one\n      two\n    '''\n}", "{a: [1 2\n3]\n}",
    "{a: [\n 1\n 2\n x y\n]}", "{a: {b: {c: 1}}}", "a: {b: 1}\nc: [1, 2]\n", "{a : 1}", "{a b: 1}", "{: 1}",
    "{a: 1", "{a 1}", "{a: }", "{a: ]}", "{a: 1}}", "{a: 1} b", "{a: [1}", "{a: \"x}", "{a: '''x}",
    "{a: \"\\x\"}", "{a: \"\\u12\"}", "{a: 1, a: 2}", "zero_optimization: {\n  stage: 3\n  overlap_comm: true\n}",
    "{a: /local/nvme#1\n}", "{a: C:\\path\n}", "{a: 0x10\n}", "{a: NaN\n}", "{a: 1 /* x */, b: 2}",
    "{a: 1// x\n}", "{a: https://host/x\n}", "{a:b\n}", "{a:1,b:2}", "\ufeff{a: 1}", "{a: é\n}",
    "{a: x \t \n}", "{a: [true, false\n null]}", "{\"a\": 1\n \"b\": 2}", "{a: [[], {}]}", "{a: 1 2\n}",
]


def unique(pairs):
    """As deepspeed.runtime.config_utils.dict_raise_error_on_duplicate_keys."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("duplicate keys")
    return result


def main():
    rows = []
    for text in CASES:
        row = {"text": text}
        try:
            row["value"] = hjson.loads(text, object_pairs_hook=unique)
        except (ValueError, IndexError):
            pass
        rows.append(row)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "hjson.json"), "w") as file:
        json.dump(rows, file, indent=0)
        file.write("\n")


main()
