#!/usr/bin/env python3
"""Writes rope.json: angles and attention factors of transformers' rotary positions.

    pip install torch transformers
    python make_rope.py

A case has a config.json and, for some lengths of a sequence, what the model's own rotary embedding
holds after a forward call for that many positions: inv_freq and attention_scaling
(tests/model/test_rope.c).
"""
import json
import os
import sys

import torch
import transformers
from transformers import AutoConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

HERE = os.path.dirname(os.path.abspath(__file__))
EMBEDDINGS = {"llama": LlamaRotaryEmbedding}
BASE = dict(hidden_size=64, num_attention_heads=4, max_position_embeddings=256)
LONG = dict(short_factor=[1.0, 1.1, 1.2, 1.35, 1.5, 1.5, 2.0, 2.25],
            long_factor=[1.0, 1.5, 2.0, 3.0, 4.5, 6.0, 9.5, 16.0])


def rope(kind, **more):
    return dict(rope_parameters=dict(rope_type=kind, **more))


CASES = [
    ("default", "llama", {}),
    ("default theta", "llama", dict(rope_theta=500000.0)),
    ("linear", "llama", rope("linear", factor=4.0, rope_theta=20000.0)),
    ("dynamic", "llama", rope("dynamic", factor=3.0)),
    ("dynamic, older", "llama", dict(rope_scaling=dict(type="dynamic", factor=2.0),
                                     rope_theta=30000.0)),
    ("llama3", "llama", rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                             original_max_position_embeddings=64, rope_theta=500000.0)),
    ("yarn", "llama", rope("yarn", factor=4.0, original_max_position_embeddings=64)),
    ("yarn, betas", "llama", rope("yarn", factor=16.0, original_max_position_embeddings=128,
                                  beta_fast=24.0, beta_slow=2.0, truncate=False)),
    ("yarn, mscale", "llama", rope("yarn", factor=40.0, original_max_position_embeddings=32,
                                   mscale=0.7, mscale_all_dim=1.3)),
    ("yarn, attention_factor", "llama", rope("yarn", factor=2.0, attention_factor=1.75,
                                             original_max_position_embeddings=128)),
    ("yarn, no factor", "llama", rope("yarn", factor=None, original_max_position_embeddings=50)),
    ("longrope", "llama", rope("longrope", original_max_position_embeddings=64, **LONG)),
    ("longrope, factor", "llama", rope("longrope", factor=12.0,
                                       original_max_position_embeddings=100, **LONG)),
    ("longrope, top", "llama", dict(original_max_position_embeddings=32,
                                    **rope("longrope", attention_factor=1.5,
                                             original_max_position_embeddings=99, **LONG))),
]
LENGTHS = [1, 64, 65, 256, 257, 700]


def main():
    transformers.logging.set_verbosity_error()
    made = []
    for name, model_type, keys in CASES:
        written = {"model_type": model_type, **BASE, **keys}
        config = AutoConfig.for_model(**json.loads(json.dumps(written)))
        results = []
        for length in LENGTHS:
            embedding = EMBEDDINGS[model_type](config)  # anew: transformers remembers lengths
            embedding(torch.zeros(1, 1), torch.arange(length)[None])
            inv_freq, factor = embedding.inv_freq, embedding.attention_scaling
            results.append({"length": length, "inv_freq": [float(f) for f in inv_freq],
                            "attention_factor": float(factor)})
        kept = [r for i, r in enumerate(results)
                if i == 0 or r["inv_freq"] != results[i - 1]["inv_freq"]
                or i == len(results) - 1]
        made.append({"name": name, "config": written, "results": kept})
    with open(os.path.join(HERE, "rope.json"), "w") as file:
        file.write('{"versions": %s,\n"cases": [\n' % json.dumps(
            {"python": sys.version.split()[0], "torch": torch.__version__,
             "transformers": transformers.__version__}))
        file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in made))
        file.write("\n]}\n")


if __name__ == "__main__":
    main()
