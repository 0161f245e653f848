#!/usr/bin/env python3
"""Greedy generation by transformers at batch 1: generate.py MODEL TOKENS bf16|fp32 RUNS."""
import sys
import time

import torch
from transformers import AutoModelForCausalLM

import shared


def main():
    kind = torch.bfloat16 if sys.argv[3] == "bf16" else torch.float32
    model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=kind).eval()
    ids, count, seconds = torch.arange(8).view(1, 8), int(sys.argv[2]), []
    with torch.inference_mode():
        for run in range(int(sys.argv[4]) + 1):
            new = count if run else 4       # the first warms up
            start = time.perf_counter()
            out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False,
                                 min_new_tokens=new, max_new_tokens=new, pad_token_id=0)
            seconds.append(time.perf_counter() - start)
    shared.show({"seconds": seconds[1:], "tokens": out.shape[1] - ids.shape[1],
                 **shared.settings()})


if __name__ == "__main__":
    main()
