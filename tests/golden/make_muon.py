#!/usr/bin/env python3
"""Writes results/muon-NAME.json and .safetensors: five steps of Muon by DeepSpeed's own class
(MuonWithAuxAdam of deepspeed/runtime/zero/muon). The data is that of make_steps.py, the form that of
make_optimizers.py. DeepSpeed iterates in fp16 or bf16 where it can; here it is told to do so in the
type of the gradients, float64 for the truth and float32 for the error of that.

    pip install torch transformers deepspeed==0.19.8
    python make_muon.py
"""
import hashlib
import os

os.environ["TORCHDYNAMO_DISABLE"] = "1"
os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed
import torch
from deepspeed.runtime.zero.muon import original_muon
from deepspeed.runtime.zero.muon.muon_optimizer import MuonWithAuxAdam
from safetensors.torch import save_file

import make_models as m
import make_steps as s

STRIDE, STEPS = 64, 5
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


def train(model, data, params):
    """As make_models.train, with Muon."""
    dtype = next(model.parameters()).dtype
    original_muon.ns_compute_dtype = lambda method="gram": dtype
    optimizer = optimizer_of(model, params)
    losses, norms, rates = [], [], []
    for step in range(STEPS):
        loss, _, g = m.gradients(model, data[step], dtype)
        size = m.norm(g)
        for n, p in model.named_parameters():
            p.grad = g[n] / max(1.0, (size + 1e-6) / m.CLIPPING)
        rate = m.rate(s.SCHEDULE, step - 1) * 10
        for group, scale in zip(optimizer.param_groups, ("muon_scale", "adam_scale")):
            group["lr"] = rate * params[scale]
        optimizer.step()
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
    print(f"{case['name']} {name}: loss {losses[0]:.4f} to {losses[-1]:.4f}, update {size:.4f}, "
          f"fp32 {own32}")
    for n, u in update.items():
        tensors[f"{name}/{n}"] = u.reshape(-1)[::STRIDE].float().contiguous()
    return {"name": name, "from": "deepspeed", "type": "Muon", "params": params,
            "step_loss": losses, "step_gradient_norm": norms, "step_lr": rates,
            "update_norm": size, "torch_fp32_error": own32}


def write(case, cases):
    data, tensors = s.steps_of(case), {}
    cases = [results_of(case, *c, data, tensors) for c in cases]
    model = m.build(case, torch.float32)
    name = os.path.join(m.RESULTS, "muon-" + case["name"])
    save_file(tensors, name + ".safetensors")
    m.write_json(name + ".json", {
        "model": case["name"],
        "script": "make_muon.py",
        "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
        "versions": {"torch": torch.__version__, "deepspeed": deepspeed.__version__},
        "length": m.LENGTH, "micro_batches": s.MICRO_BATCHES, "steps": STEPS, "stride": STRIDE,
        "gradient_clipping": m.CLIPPING,
        "zero_gradient": [{"tensor": n, "begin": a, "end": b}
                          for n, a, b in m.zero_ranges(model, case["config"])],
        "cases": cases})


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    m.transformers.logging.set_verbosity_error()
    for case in m.CASES:
        if case["name"] in CASES:
            write({**case, "schedule": s.SCHEDULE}, CASES[case["name"]])


if __name__ == "__main__":
    main()
