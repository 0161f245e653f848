#!/usr/bin/env python3
"""Training steps of PyTorch on one rank: bf16 by autocast over fp32 weights, fused AdamW, with or
without torch.compile."""
import torch

import shared


def main():
    parser = shared.arguments(__doc__)
    parser.add_argument("--compile", action="store_true")
    a = parser.parse_args()
    model = shared.load(a.model)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True, **shared.OPTIMIZER)
    forward = torch.compile(model) if a.compile else model

    def one_step(step):
        ids = shared.batch(a, step)
        with torch.autocast("cpu", torch.bfloat16, enabled=a.precision == "bf16"):
            loss = forward(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    shared.timed_steps(a, one_step, {"compiled": a.compile})


if __name__ == "__main__":
    main()
