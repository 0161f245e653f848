#!/usr/bin/env python3
"""Writes formats/: what transformers and safetensors make of the file formats that sifr reads.

    pip install torch transformers safetensors numpy
    python make_formats.py

config_*.json: every key of a default GPT2Config and LlamaConfig (test_model_config.c).
types.safetensors: a tensor of each type, as the reference writer lays it out; byte k of tensor
"t<i>" is (7 i + k) mod 251, of BOOL mod 2 (test_safetensors.c).
index.json and its shards: a small model saved by transformers in shards (test_weights.c).
"""
import os

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "formats")
os.makedirs(here, exist_ok=True)

for name, config in (("gpt2", GPT2Config()), ("llama", LlamaConfig())):
    with open(os.path.join(here, f"config_{name}.json"), "w") as f:
        f.write(config.to_json_string(use_diff=False))

types = [torch.float16, torch.uint8, torch.float32, torch.bfloat16, torch.int64, torch.bool,
         torch.float64, torch.int32, torch.int8, torch.int16, torch.float8_e4m3fn,
         torch.float8_e5m2, torch.float32, torch.bfloat16, torch.uint16, torch.uint32,
         torch.uint64]
tensors = {}
for i, dtype in enumerate(types):
    shape = [(), (3,), (2, 2), (1, 0, 4)][i % 4]
    count = torch.Size(shape).numel()
    size = torch.empty((), dtype=dtype).element_size()
    top = 2 if dtype == torch.bool else 251
    raw = torch.tensor([(7 * i + k) % top for k in range(count * size)], dtype=torch.uint8)
    empty = torch.empty(shape, dtype=dtype)
    tensors[f"t{i}"] = raw.view(dtype).reshape(shape).clone() if count else empty
save_file(tensors, os.path.join(here, "types.safetensors"), metadata={"format": "pt"})

torch.manual_seed(1)
model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=1, n_head=2))
model.to(torch.bfloat16).save_pretrained(os.path.join(here, "sharded"), max_shard_size="4KB")
os.remove(os.path.join(here, "sharded", "generation_config.json"))
