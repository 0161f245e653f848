#!/usr/bin/env python3
"""Writes results/optimizers.json and .safetensors: twenty steps of training of gpt2 of
make_models.py by each optimizer, from the library that it comes from: torch, lion-pytorch,
schedulefree, bitsandbytes. The data is that of make_steps.py. README.md says what the files hold.

    pip install torch transformers lion-pytorch schedulefree bitsandbytes
    python make_optimizers.py

The truth is computed in float64. "torch_fp32_error" is what the same libraries miss in float32.
"""
import hashlib
import os

import bitsandbytes
import bitsandbytes.backends.cpu.ops as cpu
import lion_pytorch
import schedulefree
import torch
from safetensors.torch import save_file

import make_models as m
import make_steps as s

STRIDE = 64  # every 64th element of the updates is stored
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


def train(case, model, data, kind, params):
    """As make_models.train, with another optimizer."""
    dtype = next(model.parameters()).dtype
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in params.items()}
    if kind.__module__.startswith("torch") or kind.__module__.startswith("schedulefree"):
        given["foreach"] = False
    optimizer = kind(list(model.parameters()), lr=1e-3, **given)
    free = hasattr(optimizer, "train")
    if free:
        optimizer.train()
    losses, norms, rates = [], [], []
    for step in range(m.STEPS):
        loss, _, g = m.gradients(model, data[step], dtype)
        size = m.norm(g)
        for n, p in model.named_parameters():
            p.grad = g[n] / max(1.0, (size + 1e-6) / m.CLIPPING)
        rate = m.rate(s.SCHEDULE, step - 1) * RATE.get(kind.__name__, 1.0)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        losses.append(loss), norms.append(size), rates.append(rate)
    if free:
        optimizer.eval()  # the averaged weights
    return losses, norms, rates


def results_of(case, name, kind, params, data, tensors):
    m.use_float64(True)
    model = m.build(case, torch.float64)
    zero = m.zero_ranges(model, case["config"])
    start = {n: p.data.clone() for n, p in model.named_parameters()}
    losses, norms, rates = train(case, model, data, kind, params)
    update = s.updates(model, start, zero)
    size = m.norm(update)
    m.use_float64(False)
    single = m.build(case, torch.float32)
    losses32, norms32, _ = train(case, single, data, kind, params)
    own32 = {"step_loss": max(abs(a / b - 1) for a, b in zip(losses32, losses)),
             "step_norm": max(abs(a / b - 1) for a, b in zip(norms32, norms)),
             "update": m.distance(s.updates(single, start, zero), update) / size}
    print(f"{name}: loss {losses[0]:.4f} to {losses[-1]:.4f}, update {size:.4f}, fp32 {own32}")
    for n, u in update.items():
        tensors[f"{name}/{n}"] = u.reshape(-1)[::STRIDE].float().contiguous()
    return {"name": name, "from": f"{kind.__module__}.{kind.__name__}", "type": kind.__name__,
            "params": params, "step_loss": losses, "step_gradient_norm": norms, "step_lr": rates,
            "update_norm": size, "torch_fp32_error": own32}


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    m.transformers.logging.set_verbosity_error()
    case = {**next(c for c in m.CASES if c["name"] == "gpt2"), "schedule": s.SCHEDULE}
    data, tensors = s.steps_of(case), {}
    cases = [results_of(case, *c, data, tensors) for c in CASES]
    model = m.build(case, torch.float32)
    save_file(tensors, os.path.join(m.RESULTS, "optimizers.safetensors"))
    m.write_json(os.path.join(m.RESULTS, "optimizers.json"), {
        "model": case["name"],
        "script": "make_optimizers.py",
        "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
        "versions": {"torch": torch.__version__, "lion-pytorch": version("lion-pytorch"),
                     "schedulefree": version("schedulefree"), "bitsandbytes": version("bitsandbytes")},
        "length": m.LENGTH, "micro_batches": s.MICRO_BATCHES, "steps": m.STEPS, "stride": STRIDE,
        "gradient_clipping": m.CLIPPING,
        "zero_gradient": [{"tensor": n, "begin": a, "end": b}
                          for n, a, b in m.zero_ranges(model, case["config"])],
        "cases": cases})


def version(package):
    from importlib.metadata import version as of
    return of(package)


if __name__ == "__main__":
    main()
