#!/usr/bin/env python3
"""Writes results/optimizers.json and .safetensors: twenty steps of training of gpt2 of
make_models.py by each optimizer, from the library that it comes from: torch, lion-pytorch,
schedulefree, bitsandbytes. optimizer_steps.py makes the steps. README.md says what the files hold.

    pip install torch transformers lion-pytorch schedulefree bitsandbytes
    python make_optimizers.py
"""
from importlib.metadata import version

import bitsandbytes
import bitsandbytes.backends.cpu.ops as cpu
import lion_pytorch
import schedulefree
import torch

import optimizer_steps as o

RATE = {"SGD": 20.0, "Adagrad": 2.0, "Lion": 0.2}  # times the rates of make_steps.py; others: 1
DECAY = 0.1


def quantize(values, code, absmax, out, blocksize):
    """bitsandbytes' CPU code finds codes of fp32 in a table of 2^16 steps, which moves 0 and what is
    near it; for other types it takes the nearest code, as its GPU code does."""
    found, largest = torch.ops.bitsandbytes.quantize_blockwise(values.double(), code, blocksize)
    out.copy_(found), absmax.copy_(largest)


cpu._quant_blockwise_fp32_direct = quantize

CASES = [
    ("sgd", torch.optim.SGD, {"weight_decay": DECAY}),
    ("momentum", torch.optim.SGD, {"momentum": 0.9, "dampening": 0.25, "weight_decay": DECAY}),
    ("nesterov", torch.optim.SGD, {"momentum": 0.8, "nesterov": True, "weight_decay": DECAY}),
    ("adagrad", torch.optim.Adagrad, {"lr_decay": 0.05, "eps": 1e-10, "weight_decay": DECAY}),
    ("amsgrad", torch.optim.AdamW,
     {"amsgrad": True, "betas": [0.9, 0.7], "eps": 1e-8, "weight_decay": DECAY}),
    ("amsgrad-l2", torch.optim.Adam,
     {"amsgrad": True, "betas": [0.9, 0.7], "eps": 1e-8, "weight_decay": DECAY}),
    ("lion", lion_pytorch.Lion, {"betas": [0.9, 0.99], "weight_decay": DECAY}),
    ("schedule-free", schedulefree.AdamWScheduleFree,
     {"betas": [0.9, 0.99], "eps": 1e-8, "weight_decay": DECAY, "warmup_steps": 4, "r": 0.5,
      "weight_lr_power": 2.0}),
    ("adam-8bit", bitsandbytes.optim.AdamW8bit,
     {"betas": [0.9, 0.99], "eps": 1e-8, "weight_decay": DECAY, "min_8bit_size": 1024}),
]


class ScheduleFree(o.Run):
    def __init__(self, optimizer):
        super().__init__(optimizer)
        optimizer.train()

    def end(self):
        self.optimizer.eval()  # the averaged weights
        return {}


def beginning(kind, params):
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in params.items()}
    if kind.__module__.startswith("torch") or kind.__module__.startswith("schedulefree"):
        given["foreach"] = False

    def begin(model):
        optimizer = kind(list(model.parameters()), lr=1e-3, **given)
        if kind is schedulefree.AdamWScheduleFree:
            return ScheduleFree(optimizer)
        return o.Run(optimizer, RATE.get(kind.__name__, 1.0))

    return begin


def main():
    versions = {"torch": torch.__version__, **{package: version(package) for package in (
        "lion-pytorch", "schedulefree", "bitsandbytes")}}
    o.write("optimizers", __file__, versions, "gpt2",
            [(name, {"from": f"{kind.__module__}.{kind.__name__}", "type": kind.__name__,
                     "params": params}, beginning(kind, params)) for name, kind, params in CASES])


if __name__ == "__main__":
    main()
