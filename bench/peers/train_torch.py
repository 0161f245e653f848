#!/usr/bin/env python3
"""Training steps of PyTorch on one rank: bf16 by autocast over fp32 weights, fused AdamW, with or
without torch.compile."""
import shared


def main():
    parser = shared.arguments(__doc__)
    parser.add_argument("--compile", action="store_true")
    a = parser.parse_args()
    model = shared.load(a.model)
    shared.timed_steps(a, shared.steps_of(a, model, list(model.parameters())),
                       {"compiled": a.compile})


if __name__ == "__main__":
    main()
