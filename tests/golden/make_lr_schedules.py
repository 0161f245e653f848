#!/usr/bin/env python3
"""Writes lr_schedules.json: learning rates and first betas of DeepSpeed's own schedulers.

    pip download --no-deps --no-binary :all: deepspeed==0.19.8 && tar xzf deepspeed-0.19.8.tar.gz
    python make_lr_schedules.py deepspeed-0.19.8/deepspeed/runtime/lr_schedules.py

The one file of DeepSpeed is run, on stand-ins for the four names that it takes from torch and
deepspeed, so neither needs to be installed. Values are those that the optimizer holds when the
step that follows iteration t begins; t = -1 is the first step of a run.
"""
import hashlib
import json
import os
import sys
import types


class Optimizer:
    def __init__(self, lr, betas):
        self.defaults = {"betas": betas}
        self.param_groups = [{"lr": lr, "betas": betas}]


class Quiet:
    def warning(self, *_):
        pass


def load(path):
    torch, optim = types.ModuleType("torch"), types.ModuleType("torch.optim")
    torch.is_tensor = lambda _: False
    optim.Optimizer = Optimizer
    deepspeed, utils = types.ModuleType("deepspeed"), types.ModuleType("deepspeed.utils")
    utils.logger = Quiet()
    sys.modules.update({"torch": torch, "torch.optim": optim, "deepspeed": deepspeed,
                        "deepspeed.utils": utils})
    module = types.ModuleType("lr_schedules")
    with open(path) as file:
        source = file.read()
    exec(compile(source, path, "exec"), module.__dict__)
    return module, hashlib.sha256(source.encode()).hexdigest()


CASES = [
    ("WarmupLR", {}, 5e-5),
    ("WarmupLR", {"warmup_max_lr": 1e-3, "warmup_num_steps": 10}, 5e-5),
    ("WarmupLR", {"warmup_min_lr": 1e-5, "warmup_max_lr": 3e-4, "warmup_num_steps": 7,
                  "warmup_type": "linear"}, 5e-5),
    ("WarmupLR", {"warmup_num_steps": 1}, 2e-4),
    ("WarmupDecayLR", {"total_num_steps": 100, "warmup_num_steps": 10}, 5e-5),
    ("WarmupDecayLR", {"total_num_steps": 60, "warmup_num_steps": 9, "warmup_min_lr": 1e-6,
                       "warmup_max_lr": 6e-4, "warmup_type": "linear"}, 5e-5),
    ("WarmupDecayLR", {"total_num_steps": 5, "warmup_num_steps": 10}, 5e-5),
    ("WarmupCosineLR", {"total_num_steps": 100, "warmup_num_steps": 10}, 3e-4),
    ("WarmupCosineLR", {"total_num_steps": 64, "warmup_num_steps": 1, "cos_min_ratio": 0.1,
                        "warmup_min_ratio": 0.2, "warmup_type": "linear"}, 1e-3),
    ("WarmupCosineLR", {"total_num_steps": 8, "warmup_num_steps": 12, "warmup_min_ratio": 0.3},
     1e-3),
    ("OneCycle", {"cycle_min_lr": 1e-5, "cycle_max_lr": 1e-3, "cycle_first_step_size": 20}, 5e-5),
    ("OneCycle", {"cycle_min_lr": 1e-4, "cycle_max_lr": 6e-3, "cycle_first_step_size": 12,
                  "cycle_second_step_size": 33, "decay_step_size": 4, "decay_lr_rate": 0.3,
                  "decay_mom_rate": 0.01, "cycle_min_mom": 0.75, "cycle_max_mom": 0.85}, 5e-5),
    ("OneCycle", {"cycle_min_lr": 1e-4, "cycle_max_lr": 6e-3, "cycle_first_step_size": 21,
                  "cycle_second_step_size": 35, "cycle_first_stair_count": 3,
                  "cycle_second_stair_count": 5, "cycle_momentum": False}, 5e-5),
    ("LRRangeTest", {}, 5e-5),
    ("LRRangeTest", {"lr_range_test_min_lr": 1e-4, "lr_range_test_step_size": 9,
                     "lr_range_test_step_rate": 2.5, "lr_range_test_staircase": True}, 5e-5),
]
STEPS = list(range(-1, 131)) + [500, 999, 1000, 1001, 5000]


def main():
    module, digest = load(sys.argv[1])
    cases = []
    for kind, params, lr in CASES:
        optimizer = Optimizer(lr, (0.9, 0.999))
        scheduler = getattr(module, kind)(optimizer, **params)
        rates, betas = [], []
        for t in STEPS:
            if t >= 0:
                scheduler.step(t)
            rates.append(optimizer.param_groups[0]["lr"])
            betas.append(list(optimizer.param_groups[0]["betas"]))
        moves = any(b != [0.9, 0.999] for b in betas)
        cases.append({"type": kind, "params": params, "lr": lr, "rates": rates,
                      "betas": betas if moves else None})
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "lr_schedules.json"), "w") as file:
        json.dump({"source": "deepspeed/runtime/lr_schedules.py", "sha256": digest,
                   "steps": STEPS, "cases": cases}, file)
        file.write("\n")


main()
