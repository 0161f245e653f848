#!/usr/bin/env python3
"""Writes lora/NAME and results/dora.json and .safetensors: as make_lora.py, whose functions it uses,
with magnitudes (use_dora). README.md says what the files hold.

    pip install torch transformers peft
    python make_dora.py
"""
import hashlib
import math
import os

import peft
import torch
from safetensors.torch import save_file

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
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    m.transformers.logging.set_verbosity_error()
    l.wrap, l.weights = wrap, weights
    tensors = {}
    cases = [l.result_of(name, model, config, tensors) for name, model, config in CASES]
    path = os.path.join(m.RESULTS, "dora")
    save_file({k: v.contiguous() for k, v in tensors.items()}, path + ".safetensors")
    m.write_json(path + ".json", {
        "script": "make_dora.py",
        "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
        "packages": {"torch": torch.__version__, "peft": peft.__version__,
                     "transformers": m.transformers.__version__},
        "length": m.LENGTH, "micro_batches": l.MICRO_BATCHES, "steps": l.STEPS, "lr": l.RATE,
        "betas": [m.BETA1, m.BETA2], "eps": m.EPSILON, "weight_decay": m.WEIGHT_DECAY,
        "gradient_clipping": m.CLIPPING, "cases": cases})


if __name__ == "__main__":
    main()
