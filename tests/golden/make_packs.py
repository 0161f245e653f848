#!/usr/bin/env python3
"""Which rows TRL's packing ("bfd") puts into which sequence -> packs.json.

Needs: pip install --no-deps trl==1.16.0; pip install datasets pyarrow transformers numpy
"""
import json
import pathlib
import random

import pyarrow
from trl.data_utils import _pack_bfd  # what pack_dataset(…, strategy="bfd") maps

random.seed(5)
CASES = [
    (16, [5, 5, 5, 5, 6, 6, 11, 16, 1, 10]),
    (64, [random.randint(1, 64) for _ in range(150)]),
    (100, [random.randint(2, 40) for _ in range(150)]),
    (7, [7] * 5),
    (130, [min(130, int(random.expovariate(1 / 30)) + 2) for _ in range(200)]),
]


def packs(room, lengths):
    rows = pyarrow.table({"input_ids": [[i] * n for i, n in enumerate(lengths)]})
    out = []
    for row in _pack_bfd(rows, room).to_pylist():
        ids, at = [], 0
        for n in row["seq_lengths"]:
            ids.append(row["input_ids"][at])
            at += n
        out.append(ids)
    return out


cases = [{"room": room, "lengths": lengths, "packs": packs(room, lengths)} for room, lengths in CASES]
path = pathlib.Path(__file__).parent / "packs.json"
path.write_text(json.dumps({"cases": cases}, separators=(",", ":")).replace('},{', '},\n{') + "\n")
