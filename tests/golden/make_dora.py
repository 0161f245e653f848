#!/usr/bin/env python3
"""Writes lora/NAME and results/dora.json and .safetensors: as make_lora.py, whose functions it uses,
with magnitudes (use_dora). README.md says what the files hold.

    pip install torch transformers peft
    python make_dora.py
"""
import math

import peft
import torch

import make_lora as l
import make_models as m

CASES = [
    ("dora", "llama-bias", {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "down_proj"],
                            "use_dora": True}),
    ("dora-conv1d", "gpt2", {"r": 3, "lora_alpha": 6, "target_modules": ["c_attn", "mlp.c_proj"],
                             "use_dora": True, "use_rslora": True}),
]


def wrap(case, config, dtype):
    """Magnitudes are not the norms, or their gradients would be all that shows them."""
    model = peft.get_peft_model(m.build(case, dtype), peft.LoraConfig(task_type="CAUSAL_LM", **config),
                                autocast_adapter_dtype=False)
    g = m.generator(case["name"], "dora")
    for name, p in model.named_parameters():
        if "lora_" not in name:
            continue
        draw = torch.randn(p.shape, generator=g, dtype=torch.float64)
        if "magnitude" in name:
            value = p.data.float().double() * (1 + 0.2 * draw)
        else:
            value = draw * (0.05 if "lora_B" in name else 1 / math.sqrt(p.shape[1]))
        p.data = value.float().to(dtype)
    return model.eval()


def weights(model):
    """As save_pretrained names them."""
    names = {k: k.replace(".default.", ".") for k, v in model.named_parameters() if v.requires_grad}
    own = dict(model.named_parameters())
    return {v.replace("lora_magnitude_vector.weight", "lora_magnitude_vector"):
            own[k].detach().double().clone() for k, v in names.items()}


def main():
    l.wrap, l.weights = wrap, weights
    l.write("dora", __file__, CASES, l.result_of)


if __name__ == "__main__":
    main()
