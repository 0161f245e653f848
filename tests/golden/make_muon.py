#!/usr/bin/env python3
"""Writes results/muon-NAME.json and .safetensors: five steps of Muon by DeepSpeed's own class
(MuonWithAuxAdam of deepspeed/runtime/zero/muon). optimizer_steps.py makes the steps. DeepSpeed
iterates in fp16 or bf16 where it can; here it is told to do so in the type of the gradients, float64
for the truth and float32 for the error of that.

    pip install torch transformers deepspeed==0.19.8
    python make_muon.py
"""
import os

os.environ["TORCHDYNAMO_DISABLE"] = "1"
os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed
import torch
from deepspeed.runtime.zero.muon import original_muon
from deepspeed.runtime.zero.muon.muon_optimizer import MuonWithAuxAdam

import optimizer_steps as o

STEPS = 5
CASES = {
    "llama3": [
        ("gram", {"momentum": 0.95, "betas": [0.9, 0.95], "eps": 1e-10, "weight_decay": 0.1,
                  "ns_method": "gram", "muon_scale": 1.0, "adam_scale": 0.1}),
        ("standard", {"momentum": 0.9, "betas": [0.9, 0.99], "eps": 1e-8, "weight_decay": 0.0,
                      "ns_method": "standard", "muon_scale": 2.5, "adam_scale": 0.1}),
    ],
    "gpt2": [
        ("gram", {"momentum": 0.95, "betas": [0.9, 0.95], "eps": 1e-10, "weight_decay": 0.1,
                  "ns_method": "gram", "muon_scale": 2.0, "adam_scale": 0.5}),
    ],
}


def is_muon(name, p):
    """As deepspeed.set_optimizer_flags has it."""
    return p.dim() >= 2 and not any(word in name.lower() for word in ("embed", "lm_head"))


def optimizer_of(model, params):
    flags = {n: is_muon(n, p) for n, p in model.named_parameters()}
    halves = [[p for n, p in model.named_parameters() if flags[n] is muon] for muon in (True, False)]
    decay = params["weight_decay"]
    groups = [dict(params=halves[0], use_muon=True, momentum=params["momentum"],
                   ns_method=params["ns_method"], weight_decay=decay),
              dict(params=halves[1], use_muon=False, betas=params["betas"], eps=params["eps"],
                   weight_decay=decay)]
    return MuonWithAuxAdam(groups)


def beginning(params):
    def begin(model):
        dtype = next(model.parameters()).dtype
        original_muon.ns_compute_dtype = lambda method="gram": dtype
        optimizer = optimizer_of(model, params)
        for group, scale in zip(optimizer.param_groups, ("muon_scale", "adam_scale")):
            group["scale"] = params[scale]
        return o.Run(optimizer, 10)

    return begin


def main():
    versions = {"torch": torch.__version__, "deepspeed": deepspeed.__version__}
    for model, cases in CASES.items():
        o.write("muon-" + model, __file__, versions, model,
                [(name, {"from": "deepspeed", "type": "Muon", "params": params}, beginning(params))
                 for name, params in cases], STEPS)


if __name__ == "__main__":
    main()
