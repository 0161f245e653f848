#!/usr/bin/env python3
"""Writes results/adafactor-llama3.json and .safetensors: twenty steps of transformers' Adafactor.
optimizer_steps.py makes the steps.

    pip install torch transformers
    python make_adafactor.py
"""
import torch
import transformers
from transformers.optimization import Adafactor

import optimizer_steps as o

TRAINER = {"scale_parameter": False, "relative_step": False}  # its optim: adafactor
CASES = [
    ("adafactor", {**TRAINER, "weight_decay": 0.1}),
    ("adafactor-relative", {"weight_decay": 0.1}),
    ("adafactor-warmup", {"warmup_init": True, "scale_parameter": False, "clip_threshold": 0.6}),
    ("adafactor-moment", {"relative_step": False, "beta1": 0.9, "weight_decay": 0.05,
                          "decay_rate": -0.6, "eps": [1e-6, 0.5], "clip_threshold": 0.8}),
]
DEFAULTS = {"eps": [1e-30, 1e-3], "clip_threshold": 1.0, "decay_rate": -0.8, "beta1": None,
            "weight_decay": 0.0, "scale_parameter": True, "relative_step": True,
            "warmup_init": False}


class Relative(o.Run):
    """The optimizer's own rate."""

    def step(self, step, rate):
        self.optimizer.step()
        # that of weights whose rate is not scaled by their size
        return Adafactor._get_lr({**self.optimizer.param_groups[0], "scale_parameter": False},
                                 {"step": step + 1})


def beginning(params):
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in params.items()}
    relative = params.get("relative_step", True)

    def begin(model):
        optimizer = Adafactor(list(model.parameters()), lr=None if relative else 1e-3, **given)
        return Relative(optimizer) if relative else o.Run(optimizer)

    return begin


def main():
    versions = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
    o.write("adafactor-llama3", __file__, versions, "llama3",
            [(name, {"from": "transformers.optimization.Adafactor", "type": "Adafactor",
                     "params": {**DEFAULTS, **params}}, beginning(params))
             for name, params in CASES])


if __name__ == "__main__":
    main()
