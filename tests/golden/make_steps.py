#!/usr/bin/env python3
"""Writes results/NAME-steps.json and .safetensors: twenty steps of training of some of the models of
make_models.py, with a global batch of several micro batches that ranks can share. README.md says
what the files hold.

    pip install torch transformers        # versions: see models.json
    python make_steps.py

Needs the models' folders to be there; changes none of them. The truth is computed in float64, as in
make_models.py.
"""
import hashlib
import json
import math
import os

import torch
from safetensors.torch import save_file

import make_models as m

NAMES = ("gpt2", "llama3")
MICRO_BATCHES, STEPS = 8, 20  # micro batches of one sequence
STRIDE = 16                   # every 16th element of the final weights is stored
m.STEPS = STEPS               # what its train() goes by
SCHEDULE = {"type": "WarmupLR", "params": {"warmup_min_lr": 2e-4, "warmup_max_lr": 2e-3,
                                           "warmup_num_steps": 6, "warmup_type": "linear"}}


def steps_of(case):
    """By step, its micro batches. Where labels are masked, they have different numbers of them."""
    data = []
    for s in range(STEPS):
        tokens, labels = m.batch(case, f"steps{s}", MICRO_BATCHES)
        data.append([(tokens[i: i + 1], labels[i: i + 1]) for i in range(MICRO_BATCHES)])
    return data


def rms(values, truth):
    return math.sqrt(sum((a / b - 1) ** 2 for a, b in zip(values, truth)) / len(truth))


def updates(model, start, zero):
    """Final minus initial weights, 0 where no gradient is: Adam makes steps of noise there."""
    out = {n: p.data.double() - start[n] for n, p in model.named_parameters()}
    for n, first, end in zero:
        out[n][first:end] = 0
    return out


def results_of(case):
    data = steps_of(case)
    m.use_float64(True)
    model = m.build(case, torch.float64)
    zero = m.zero_ranges(model, case["config"])
    start = {n: p.data.clone() for n, p in model.named_parameters()}
    losses, norms, rates = m.train(case, model, data)
    update = updates(model, start, zero)
    size = m.norm(update)

    # transformers as it is: the same function, and what rounding to float32 costs.
    m.use_float64(False)
    single = m.build(case, torch.float32)
    losses32, norms32, _ = m.train(case, single, data)
    own32 = {"step_loss": max(abs(a / b - 1) for a, b in zip(losses32, losses)),
             "step_norm": max(abs(a / b - 1) for a, b in zip(norms32, norms)),
             "update": m.distance(updates(single, start, zero), update) / size}
    assert own32["step_loss"] < 1e-5 and own32["step_norm"] < 1e-4, own32
    assert own32["update"] < 1e-3, own32

    master, low = m.build(case, torch.float32), m.build(case, torch.bfloat16)
    losses16, norms16, _ = m.train(case, master, data, compute=low)
    torch16 = {"step_loss_rms": rms(losses16, losses), "step_norm_rms": rms(norms16, norms),
               "update": m.distance(updates(master, start, zero), update) / size}

    name = os.path.join(m.RESULTS, case["name"] + "-steps")
    tensors = {"step_tokens": torch.stack([torch.cat([t for t, _ in s]) for s in data]).int(),
               "step_labels": torch.stack([torch.cat([l for _, l in s]) for s in data]).int()}
    for n, u in update.items():
        tensors["sample/" + n] = u.reshape(-1)[::STRIDE].float()
    save_file({k: v.contiguous() for k, v in tensors.items()}, name + ".safetensors")
    m.write_json(name + ".json", {
        "model": case["name"],
        "script": "make_steps.py",
        "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
        "sequences": 1, "length": m.LENGTH, "micro_batches": MICRO_BATCHES, "steps": STEPS,
        "stride": STRIDE,
        "optimizer": {"type": "AdamW", "betas": [m.BETA1, m.BETA2], "eps": m.EPSILON,
                      "weight_decay": m.WEIGHT_DECAY},
        "gradient_clipping": m.CLIPPING,
        "scheduler": case["schedule"],
        "step_loss": losses, "step_gradient_norm": norms, "step_lr": rates,
        "update_norm": size,
        "update": {n: {"norm": float(u.norm()), "sum": float(u.sum())} for n, u in update.items()},
        "zero_gradient": [{"tensor": n, "begin": a, "end": b} for n, a, b in zero],
        "torch_fp32_error": own32,
        "torch_bf16_error": torch16,
        "bf16_bound": {"step_loss": 4 * torch16["step_loss_rms"],
                       "step_norm": 4 * torch16["step_norm_rms"],
                       "update": 2 * torch16["update"]},
    })
    clipped = sum(n > m.CLIPPING for n in norms)
    print(f"{case['name']}: loss {losses[0]:.4f} to {losses[-1]:.4f}, {clipped} steps clipped, "
          f"fp32 {own32}, bf16 {torch16}")


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    m.transformers.logging.set_verbosity_error()
    for case in m.CASES:
        if case["name"] in NAMES:
            torch.manual_seed(m.seed_of(case["name"], "torch"))
            results_of({**case, "schedule": SCHEDULE})


if __name__ == "__main__":
    main()
