#!/usr/bin/env python3
"""Training steps of an adapter folder by transformers and PEFT on one rank: the base frozen in the
training type, bf16 by autocast, fused AdamW, with or without torch.compile; --4-bits: the base in
bitsandbytes' NF4, doubly quantised (QLoRA)."""
import peft
import torch

import shared


def load(a):
    dtype = torch.bfloat16 if a.precision == "bf16" else torch.float32
    more = {}
    if a.four_bits:
        from transformers import BitsAndBytesConfig
        more["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=dtype)
    base = shared.load(a.model, dtype, **more)
    if a.recompute:
        base.gradient_checkpointing_enable({"use_reentrant": False})
    return peft.PeftModel.from_pretrained(base, a.adapter, is_trainable=True).train()


def versions(a):
    said = {"peft": peft.__version__}
    if a.four_bits:
        import bitsandbytes
        said["bitsandbytes"] = bitsandbytes.__version__
    return said


def main():
    parser = shared.arguments(__doc__)
    parser.add_argument("--adapter", required=True)
    parser.add_argument("--4-bits", dest="four_bits", action="store_true")
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--compile", action="store_true")
    a = parser.parse_args()
    model = load(a)
    trained = [p for p in model.parameters() if p.requires_grad]
    shared.timed_steps(a, shared.steps_of(a, model, trained),
                       {"compiled": a.compile, **versions(a),
                        "trained": sum(p.numel() for p in trained)})


if __name__ == "__main__":
    main()
