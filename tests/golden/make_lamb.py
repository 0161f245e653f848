#!/usr/bin/env python3
"""Writes results/lamb-llama3.json and .safetensors: twenty steps of LAMB by the formula of DeepSpeed
(csrc/lamb/fused_lamb_cuda_kernel.cu), which only GPUs run there. The data is that of make_steps.py,
the form that of make_optimizers.py.

    pip install torch transformers
    python make_lamb.py
"""
import hashlib
import os

import torch
from safetensors.torch import save_file

import make_models as m
import make_steps as s

STRIDE = 64
CASES = [
    ("lamb", {"betas": [0.9, 0.999], "eps": 1e-6, "weight_decay": 0.1, "max_coeff": 10.0,
              "min_coeff": 0.01}),
    ("lamb-bounded", {"betas": [0.9, 0.98], "eps": 1e-6, "weight_decay": 0.0, "max_coeff": 0.4,
                      "min_coeff": 0.3}),
]


class Lamb(torch.optim.Optimizer):
    def __init__(self, params, betas, eps, weight_decay, max_coeff, min_coeff):
        super().__init__(params, {"lr": 1e-3})
        self.betas, self.eps, self.decay = betas, eps, weight_decay
        self.most, self.least = max_coeff, min_coeff
        self.ratios = []

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                state["t"] = 0
                state["m"], state["v"] = torch.zeros_like(p), torch.zeros_like(p)
            state["t"] += 1
            b1, b2 = self.betas
            state["m"].mul_(b1).add_(p.grad, alpha=1 - b1)
            state["v"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            m_hat = state["m"] / (1 - b1 ** state["t"])
            v_hat = state["v"] / (1 - b2 ** state["t"])
            update = m_hat / (v_hat.sqrt() + self.eps) + self.decay * p
            w, u = p.norm(), update.norm()
            ratio = 1.0
            if w != 0 and u != 0:
                ratio = min(max(float(w / u), self.least), self.most)
            self.ratios.append(ratio)
            p.sub_(update, alpha=self.param_groups[0]["lr"] * ratio)


def train(model, data, params):
    """As make_models.train, with LAMB."""
    dtype = next(model.parameters()).dtype
    optimizer = Lamb(list(model.parameters()), **params)
    losses, norms, rates = [], [], []
    for step in range(m.STEPS):
        loss, _, g = m.gradients(model, data[step], dtype)
        size = m.norm(g)
        for n, p in model.named_parameters():
            p.grad = g[n] / max(1.0, (size + 1e-6) / m.CLIPPING)
        rate = m.rate(s.SCHEDULE, step - 1) * 10
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        losses.append(loss), norms.append(size), rates.append(rate)
    return losses, norms, rates, optimizer.ratios


def results_of(case, name, params, data, tensors):
    m.use_float64(True)
    model = m.build(case, torch.float64)
    zero = m.zero_ranges(model, case["config"])
    start = {n: p.data.clone() for n, p in model.named_parameters()}
    losses, norms, rates, ratios = train(model, data, params)
    update = s.updates(model, start, zero)
    size = m.norm(update)
    m.use_float64(False)
    single = m.build(case, torch.float32)
    losses32, norms32, _, _ = train(single, data, params)
    own32 = {"step_loss": max(abs(a / b - 1) for a, b in zip(losses32, losses)),
             "step_norm": max(abs(a / b - 1) for a, b in zip(norms32, norms)),
             "update": m.distance(s.updates(single, start, zero), update) / size}
    print(f"{name}: loss {losses[0]:.4f} to {losses[-1]:.4f}, update {size:.4f}, ratios "
          f"{min(ratios):.3f} to {max(ratios):.3f}, fp32 {own32}")
    for n, u in update.items():
        tensors[f"{name}/{n}"] = u.reshape(-1)[::STRIDE].float().contiguous()
    return {"name": name, "from": "DeepSpeed's formula", "type": "Lamb", "params": params,
            "step_loss": losses, "step_gradient_norm": norms, "step_lr": rates,
            "update_norm": size, "torch_fp32_error": own32}


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    m.transformers.logging.set_verbosity_error()
    case = {**next(c for c in m.CASES if c["name"] == "llama3"), "schedule": s.SCHEDULE}
    data, tensors = s.steps_of(case), {}
    cases = [results_of(case, *c, data, tensors) for c in CASES]
    model = m.build(case, torch.float32)
    save_file(tensors, os.path.join(m.RESULTS, "lamb-llama3.safetensors"))
    m.write_json(os.path.join(m.RESULTS, "lamb-llama3.json"), {
        "model": case["name"],
        "script": "make_lamb.py",
        "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
        "versions": {"torch": torch.__version__},
        "length": m.LENGTH, "micro_batches": s.MICRO_BATCHES, "steps": m.STEPS, "stride": STRIDE,
        "gradient_clipping": m.CLIPPING,
        "zero_gradient": [{"tensor": n, "begin": a, "end": b}
                          for n, a, b in m.zero_ranges(model, case["config"])],
        "cases": cases})


if __name__ == "__main__":
    main()
