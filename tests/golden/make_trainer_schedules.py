#!/usr/bin/env python3
"""Writes trainer_schedules.json: learning rates of transformers' own schedulers.

    python3 -m venv venv && venv/bin/pip install torch transformers==5.24.0
    venv/bin/python make_trainer_schedules.py

Each case is what TrainingArguments would hold: lr_scheduler_type, lr_scheduler_kwargs and
warmup_steps (below 1: a share of the run). Values are those that the optimizer holds when the step
that follows iteration t begins; t = -1 is the first step of a run.
"""
import json
import math
import os
import warnings

import torch
import transformers
from transformers import get_scheduler

CASES = [
    ("linear", {}, 0, 40, 5e-5),
    ("linear", {}, 7, 40, 5e-5),
    ("linear", {}, 0.1, 93, 3e-4),
    ("linear", {}, 12, 8, 1e-3),
    ("cosine", {}, 0, 64, 2e-5),
    ("cosine", {}, 0.03, 64, 2e-5),
    ("cosine", {"num_cycles": 1.5}, 5, 50, 1e-3),
    ("cosine_with_restarts", {}, 3, 41, 1e-4),
    ("cosine_with_restarts", {"num_cycles": 3}, 4, 61, 1e-4),
    ("polynomial", {}, 0, 50, 5e-5),
    ("polynomial", {"lr_end": 1e-5, "power": 2.5}, 6, 50, 1e-3),
    ("constant", {}, 0, 20, 3e-5),
    ("constant_with_warmup", {}, 9, 20, 3e-5),
    ("constant_with_warmup", {}, 0.5, 21, 3e-5),
    ("inverse_sqrt", {}, 10, 80, 1e-3),
    ("inverse_sqrt", {}, 0, 80, 1e-3),
    ("inverse_sqrt", {"timescale": 33}, 8, 80, 1e-3),
    ("cosine_with_min_lr", {"min_lr": 1e-6}, 5, 60, 1e-4),
    ("cosine_with_min_lr", {"min_lr_rate": 0.1, "num_cycles": 1.5}, 0.05, 60, 1e-4),
    ("cosine_warmup_with_min_lr", {"min_lr_rate": 0.1}, 6, 60, 1e-4),
    ("cosine_warmup_with_min_lr", {"min_lr": 2e-5, "warmup_lr_rate": 0.2}, 6, 60, 1e-4),
    ("cosine_warmup_with_min_lr", {"min_lr_rate": 0, "warmup_lr_rate": 0.5}, 1, 30, 1e-4),
    ("warmup_stable_decay", {"num_decay_steps": 20}, 5, 60, 1e-3),
    ("warmup_stable_decay", {"num_decay_steps": 15, "num_stable_steps": 10, "min_lr_ratio": 0.1,
                             "warmup_type": "cosine", "decay_type": "linear"}, 8, 60, 1e-3),
    ("warmup_stable_decay", {"num_decay_steps": 30, "warmup_type": "1-sqrt",
                             "decay_type": "1-sqrt"}, 10, 60, 1e-3),
    ("warmup_stable_decay", {"num_decay_steps": 70, "num_cycles": 1.5}, 10, 60, 1e-3),
]


def warmup(steps, total):
    """As TrainingArguments.get_warmup_steps."""
    return int(steps) if steps >= 1 else math.ceil(total * steps)


def main():
    warnings.simplefilter("ignore")
    cases = []
    for kind, kwargs, warm, total, lr in CASES:
        optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=lr)
        scheduler = get_scheduler(kind, optimizer, warmup(warm, total), total, kwargs)
        rates = []
        for _ in range(total + 6):
            rates.append(optimizer.param_groups[0]["lr"])
            scheduler.step()
        cases.append({"type": kind, "kwargs": kwargs, "warmup_steps": warm, "max_steps": total,
                      "lr": lr, "rates": rates})
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "trainer_schedules.json"), "w") as file:
        json.dump({"transformers": transformers.__version__, "cases": cases}, file)
        file.write("\n")


main()
