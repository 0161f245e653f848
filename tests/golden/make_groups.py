#!/usr/bin/env python3
"""Writes results/groups-NAME.json and .safetensors: twenty steps of torch.optim.AdamW on models of
make_models.py with groups of parameters: the Hugging Face Trainer's, layer-wise decay of the rate,
and patterns of names; and the average of the weights of torch.optim.swa_utils. optimizer_steps.py
makes the steps.

    pip install torch transformers accelerate
    python make_groups.py
"""
import fnmatch
import re

import torch
import transformers
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import Trainer

import make_steps as s
import optimizer_steps as o

PARAMS = {"betas": [0.9, 0.98], "eps": 1e-8, "weight_decay": 0.1}
GLOBS = [{"match": "*attn*", "weight_decay": 0.3, "lr_scale": 0.5},
         {"match": "*.0.*", "lr_scale": 3.0},
         {"match": "*.1.*", "lr_scale": 2.0},
         {"match": "*e*", "weight_decay": 0.0}]
CASES = [("trainer", {"no_decay": True}),
         ("layers", {"no_decay": True, "layer_decay": 0.6}),
         ("globs", {"groups": GLOBS}),
         ("ema", {"ema_decay": 0.8}),
         ("all", {"no_decay": True, "layer_decay": 0.8, "groups": GLOBS})]


def layer_of(name, layers):
    """BEiT's numbers: 0 the embeddings, then the layers, then the head."""
    if re.search(r"\b(wte|wpe|embed_tokens)\b", name):
        return 0
    found = re.search(r"\b(?:h|layers)\.(\d+)\.", name)
    return int(found[1]) + 1 if found else layers + 1


def settings_of(model, name, decayed, settings):
    """Factor of the rate, and decay."""
    layers = model.config.num_hidden_layers
    scale = settings.get("layer_decay", 1.0) ** (layers + 1 - layer_of(name, layers))
    decay = PARAMS["weight_decay"]
    if settings.get("no_decay") and name not in decayed:
        decay = 0.0
    for group in settings.get("groups", []):
        if fnmatch.fnmatchcase(name, group["match"]):
            return scale * group.get("lr_scale", 1.0), group.get("weight_decay", decay)
    return scale, decay


class Averaged(o.Run):
    def __init__(self, optimizer, model, decay):
        super().__init__(optimizer)
        self.model = model
        self.averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))

    def step(self, step, rate):
        rate = super().step(step, rate)
        self.averaged.update_parameters(self.model)
        return rate

    def end(self):
        return {"average/": self.averaged.module}


def beginning(settings):
    def begin(model):
        decayed = set(Trainer.get_decay_parameter_names(None, model))
        groups = []
        for name, p in model.named_parameters():
            scale, decay = settings_of(model, name, decayed, settings)
            groups.append({"params": [p], "weight_decay": decay, "scale": scale})
        optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=tuple(PARAMS["betas"]),
                                      eps=PARAMS["eps"], foreach=False)
        if "ema_decay" in settings:
            return Averaged(optimizer, model, settings["ema_decay"])
        return o.Run(optimizer)

    return begin


def main():
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    for model in s.NAMES:
        o.write("groups-" + model, __file__, versions, model,
                [(name, {"from": "torch.optim.AdamW", "type": "AdamW", "params": PARAMS,
                         **settings}, beginning(settings)) for name, settings in CASES])


if __name__ == "__main__":
    main()
