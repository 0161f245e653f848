#!/usr/bin/env python3
"""Writes results/qdora.json and .safetensors: five steps of the adapter lora/dora of make_dora.py,
which has magnitudes, over a base whose products are in NF4, with and without double quantisation.
As make_qlora.py, whose functions it uses. README.md says what the files hold.

    pip install torch transformers peft bitsandbytes accelerate
    python make_qdora.py
"""
import os

import bitsandbytes
from safetensors.torch import load_file

import make_dora as d
import make_lora as l
import make_qlora as q

CASES = [("dora-double", "dora", True), ("dora-plain", "dora", False)]


def wrap(case, config, dtype):
    """The magnitudes of the folder, not such as the base in 4 bits would have."""
    model = d.wrap(case, config, dtype)
    stored = load_file(os.path.join(l.FOLDERS, "dora", "adapter_model.safetensors"))
    for name, p in model.named_parameters():
        if p.requires_grad:
            key = name.replace(".default.", ".").replace("lora_magnitude_vector.weight",
                                                         "lora_magnitude_vector")
            p.data = stored[key].to(dtype)
    return model


def main():
    l.wrap, l.weights, l.CASES = wrap, d.weights, d.CASES
    l.write("qdora", __file__, CASES, q.result_of, bitsandbytes=bitsandbytes.__version__)


if __name__ == "__main__":
    main()
