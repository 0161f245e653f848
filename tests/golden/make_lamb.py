#!/usr/bin/env python3
"""Writes results/lamb-llama3.json and .safetensors: twenty steps of LAMB by the formula of DeepSpeed
(csrc/lamb/fused_lamb_cuda_kernel.cu), which only GPUs run there. optimizer_steps.py makes the
steps.

    pip install torch transformers
    python make_lamb.py
"""
import torch

import optimizer_steps as o

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
            p.sub_(update, alpha=self.param_groups[0]["lr"] * ratio)


def beginning(params):
    return lambda model: o.Run(Lamb(list(model.parameters()), **params), 10)


def main():
    o.write("lamb-llama3", __file__, {"torch": torch.__version__}, "llama3",
            [(name, {"from": "DeepSpeed's formula", "type": "Lamb", "params": params},
              beginning(params)) for name, params in CASES])


if __name__ == "__main__":
    main()
