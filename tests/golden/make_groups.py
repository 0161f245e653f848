#!/usr/bin/env python3
"""Writes results/groups-NAME.json and .safetensors: twenty steps of torch.optim.AdamW on models of
make_models.py with groups of parameters: the Hugging Face Trainer's, layer-wise decay of the rate,
and patterns of names; and the average of the weights of
torch.optim.swa_utils. The data is that of make_steps.py, the form that of make_optimizers.py.

    pip install torch transformers accelerate
    python make_groups.py
"""
import fnmatch
import hashlib
import os
import re

import torch
from safetensors.torch import save_file
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import Trainer

import make_models as m
import make_steps as s

STRIDE = 64
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


def train(model, data, settings):
    """As make_models.train, with groups."""
    dtype = next(model.parameters()).dtype
    decayed = set(Trainer.get_decay_parameter_names(None, model))
    groups = []
    for name, p in model.named_parameters():
        scale, decay = settings_of(model, name, decayed, settings)
        groups.append({"params": [p], "weight_decay": decay, "scale": scale})
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=tuple(PARAMS["betas"]),
                                  eps=PARAMS["eps"], foreach=False)
    averaged = None
    if "ema_decay" in settings:
        averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(settings["ema_decay"]))
    losses, norms, rates = [], [], []
    for step in range(m.STEPS):
        loss, _, g = m.gradients(model, data[step], dtype)
        size = m.norm(g)
        for n, p in model.named_parameters():
            p.grad = g[n] / max(1.0, (size + 1e-6) / m.CLIPPING)
        rate = m.rate(s.SCHEDULE, step - 1)
        for group in optimizer.param_groups:
            group["lr"] = rate * group["scale"]
        optimizer.step()
        if averaged:
            averaged.update_parameters(model)
        losses.append(loss), norms.append(size), rates.append(rate)
    return losses, norms, rates, averaged


def results_of(case, name, settings, data, tensors):
    m.use_float64(True)
    model = m.build(case, torch.float64)
    zero = m.zero_ranges(model, case["config"])
    start = {n: p.data.clone() for n, p in model.named_parameters()}
    losses, norms, rates, averaged = train(model, data, settings)
    update = s.updates(model, start, zero)
    size = m.norm(update)
    m.use_float64(False)
    single = m.build(case, torch.float32)
    losses32, norms32, _, _ = train(single, data, settings)
    own32 = {"step_loss": max(abs(a / b - 1) for a, b in zip(losses32, losses)),
             "step_norm": max(abs(a / b - 1) for a, b in zip(norms32, norms)),
             "update": m.distance(s.updates(single, start, zero), update) / size}
    print(f"{case['name']} {name}: loss {losses[0]:.4f} to {losses[-1]:.4f}, update {size:.4f}, "
          f"fp32 {own32}")
    for n, u in update.items():
        tensors[f"{name}/{n}"] = u.reshape(-1)[::STRIDE].float().contiguous()
    if averaged:
        for n, u in s.updates(averaged.module, start, zero).items():
            tensors[f"{name}/average/{n}"] = u.reshape(-1)[::STRIDE].float().contiguous()
    return {"name": name, "from": "torch.optim.AdamW", "type": "AdamW", "params": PARAMS,
            **settings, "step_loss": losses, "step_gradient_norm": norms, "step_lr": rates,
            "update_norm": size, "torch_fp32_error": own32}


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    m.transformers.logging.set_verbosity_error()
    for model_name in s.NAMES:
        case = {**next(c for c in m.CASES if c["name"] == model_name), "schedule": s.SCHEDULE}
        data, tensors = s.steps_of(case), {}
        cases = [results_of(case, *c, data, tensors) for c in CASES]
        model = m.build(case, torch.float32)
        save_file(tensors, os.path.join(m.RESULTS, f"groups-{model_name}.safetensors"))
        m.write_json(os.path.join(m.RESULTS, f"groups-{model_name}.json"), {
            "model": model_name,
            "script": "make_groups.py",
            "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
            "versions": {"torch": torch.__version__, "transformers": m.transformers.__version__},
            "length": m.LENGTH, "micro_batches": s.MICRO_BATCHES, "steps": m.STEPS,
            "stride": STRIDE, "gradient_clipping": m.CLIPPING,
            "zero_gradient": [{"tensor": n, "begin": a, "end": b}
                              for n, a, b in m.zero_ranges(model, case["config"])],
            "cases": cases})


if __name__ == "__main__":
    main()
