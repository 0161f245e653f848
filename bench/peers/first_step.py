#!/usr/bin/env python3
"""A training script as people write it, up to the end of its first step on one short sequence:
first_step.py MODEL. Prints `step 1` then."""
import sys

import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
ids = torch.arange(8).view(1, 8)
with torch.autocast("cpu", torch.bfloat16):
    loss = model(input_ids=ids, labels=ids).loss
loss.backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
optimizer.step()
print("step 1", float(loss), flush=True)
