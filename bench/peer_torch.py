#!/usr/bin/env python3
"""Tokens per second of PyTorch on the bench's model: GPT-2 124M with random weights, batch 4,
length 1024, AdamW, clipping at 1, on the CPU.

    python peer_torch.py [--threads 2] [--steps 3] [--precision bf16|fp32] [--batch 4]

bf16 is torch.autocast over fp32 weights, which is what transformers' Trainer does with bf16=True.
The first step is not counted.
"""
import argparse
import json
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=1024)
    a = parser.parse_args()

    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
    model.train()
    times, loss = [], None
    for _ in range(a.steps + 1):
        ids = torch.randint(0, model.config.vocab_size, (a.batch, a.length))
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=a.precision == "bf16"):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - start)
    best = min(times[1:])
    c = model.config
    # As in the bench: 6 x (parameters in products) + 12 x layers x length x width, a token.
    products = 12 * c.n_layer * c.n_embd ** 2 + c.vocab_size * c.n_embd
    flops = 6 * products + 12 * c.n_layer * a.length * c.n_embd
    rate = a.batch * a.length / best
    print(json.dumps({"peer": "torch " + torch.__version__, "precision": a.precision,
                      "threads": a.threads, "batch": a.batch, "length": a.length,
                      "seconds": [round(t, 3) for t in times], "tokens_per_second": round(rate, 1),
                      "gflops": round(rate * flops / 1e9, 1), "loss": round(float(loss), 4)}))


if __name__ == "__main__":
    main()
