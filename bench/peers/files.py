#!/usr/bin/env python3
"""safetensors by the Python library: files.py FOLDER OUTPUT RUNS. Loading counts until every value
lies in memory of the process; saving is timed with and without bringing the file to the disk."""
import os
import sys
import time

import safetensors
import torch
from safetensors.torch import load_file, save_file

import shared


def main():
    source = os.path.join(sys.argv[1], "model.safetensors")
    target, runs = sys.argv[2], int(sys.argv[3])
    result = {"open": [], "load": [], "save": [], "save_synced": []}
    for run in range(runs + 1):
        start = time.perf_counter()
        tensors = load_file(source)
        opened = time.perf_counter()
        tensors = {name: tensor.clone() for name, tensor in tensors.items()}
        loaded = time.perf_counter()
        save_file(tensors, target)
        saved = time.perf_counter()
        with open(target, "rb") as f:
            os.fsync(f.fileno())
        synced = time.perf_counter()
        if run:
            result["open"].append(opened - start)
            result["load"].append(loaded - start)
            result["save"].append(saved - loaded)
            result["save_synced"].append(synced - loaded)
        del tensors
    shared.show({**result, "bytes": os.path.getsize(source),
                 "safetensors": safetensors.__version__, "torch": torch.__version__})


if __name__ == "__main__":
    main()
