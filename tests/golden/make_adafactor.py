#!/usr/bin/env python3
"""Writes results/adafactor-llama3.json and .safetensors: twenty steps of transformers' Adafactor. The
data is that of make_steps.py, the form that of make_optimizers.py.

    pip install torch transformers
    python make_adafactor.py
"""
import hashlib
import os

import torch
import transformers
from safetensors.torch import save_file
from transformers.optimization import Adafactor

import make_models as m
import make_steps as s

STRIDE = 64
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


def train(model, data, params):
    """As make_models.train, with Adafactor."""
    dtype = next(model.parameters()).dtype
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in params.items()}
    relative = params.get("relative_step", True)
    optimizer = Adafactor(list(model.parameters()), lr=None if relative else 1e-3, **given)
    losses, norms, rates = [], [], []
    for step in range(m.STEPS):
        loss, _, g = m.gradients(model, data[step], dtype)
        size = m.norm(g)
        for n, p in model.named_parameters():
            p.grad = g[n] / max(1.0, (size + 1e-6) / m.CLIPPING)
        rate = m.rate(s.SCHEDULE, step - 1)
        if not relative:
            optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        if relative:  # that of weights whose rate is not scaled by their size
            rate = Adafactor._get_lr({**optimizer.param_groups[0], "scale_parameter": False},
                                     {"step": step + 1})
        losses.append(loss), norms.append(size), rates.append(rate)
    return losses, norms, rates


def results_of(case, name, params, data, tensors):
    m.use_float64(True)
    model = m.build(case, torch.float64)
    zero = m.zero_ranges(model, case["config"])
    start = {n: p.data.clone() for n, p in model.named_parameters()}
    losses, norms, rates = train(model, data, params)
    update = s.updates(model, start, zero)
    size = m.norm(update)
    m.use_float64(False)
    single = m.build(case, torch.float32)
    losses32, norms32, _ = train(single, data, params)
    own32 = {"step_loss": max(abs(a / b - 1) for a, b in zip(losses32, losses)),
             "step_norm": max(abs(a / b - 1) for a, b in zip(norms32, norms)),
             "update": m.distance(s.updates(single, start, zero), update) / size}
    print(f"{name}: loss {losses[0]:.4f} to {losses[-1]:.4f}, update {size:.4f}, fp32 {own32}")
    for n, u in update.items():
        tensors[f"{name}/{n}"] = u.reshape(-1)[::STRIDE].float().contiguous()
    return {"name": name, "from": "transformers.optimization.Adafactor", "type": "Adafactor",
            "params": {**DEFAULTS, **params}, "step_loss": losses, "step_gradient_norm": norms,
            "step_lr": rates, "update_norm": size, "torch_fp32_error": own32}


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    m.transformers.logging.set_verbosity_error()
    case = {**next(c for c in m.CASES if c["name"] == "llama3"), "schedule": s.SCHEDULE}
    data, tensors = s.steps_of(case), {}
    cases = [results_of(case, *c, data, tensors) for c in CASES]
    model = m.build(case, torch.float32)
    save_file(tensors, os.path.join(m.RESULTS, "adafactor-llama3.safetensors"))
    m.write_json(os.path.join(m.RESULTS, "adafactor-llama3.json"), {
        "model": case["name"],
        "script": "make_adafactor.py",
        "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
        "versions": {"torch": torch.__version__.split("+")[0],
                     "transformers": transformers.__version__},
        "length": m.LENGTH, "micro_batches": s.MICRO_BATCHES, "steps": m.STEPS, "stride": STRIDE,
        "gradient_clipping": m.CLIPPING,
        "zero_gradient": [{"tensor": n, "begin": a, "end": b}
                          for n, a, b in m.zero_ranges(model, case["config"])],
        "cases": cases})


if __name__ == "__main__":
    main()
