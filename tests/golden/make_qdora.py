#!/usr/bin/env python3
"""Writes results/qdora.json and .safetensors: five steps of the adapter lora/dora of make_dora.py,
which has magnitudes, over a base whose products are in NF4, with and without double quantisation.
As make_qlora.py, whose functions it uses. README.md says what the files hold.

    pip install torch transformers peft bitsandbytes accelerate
    python make_qdora.py
"""
import hashlib
import os

import bitsandbytes
import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

import make_dora as d
import make_lora as l
import make_models as m
import make_qlora as q

CASES = [("dora-double", "dora", True), ("dora-plain", "dora", False)]


def wrap(case, config, dtype):
    """The magnitudes of the folder, not such as the base in 4 bits would have."""
    model = d.wrap(case, config, dtype)
    stored = load_file(os.path.join(l.FOLDERS, "dora", "adapter_model.safetensors"))
    for name, p in model.named_parameters():
        if p.requires_grad:
            key = name.replace(".default.", ".").replace("lora_magnitude_vector.weight",
                                                         "lora_magnitude_vector")
            p.data = stored[key].to(dtype)
    return model


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    m.transformers.logging.set_verbosity_error()
    l.wrap, l.weights, l.CASES = wrap, d.weights, d.CASES
    tensors = {}
    cases = [q.result_of(name, adapter, double, tensors) for name, adapter, double in CASES]
    path = os.path.join(m.RESULTS, "qdora")
    save_file({k: v.contiguous() for k, v in tensors.items()}, path + ".safetensors")
    m.write_json(path + ".json", {
        "script": "make_qdora.py",
        "script_sha256": hashlib.sha256(open(__file__, "rb").read()).hexdigest(),
        "packages": {"torch": torch.__version__, "peft": peft.__version__,
                     "transformers": transformers.__version__,
                     "bitsandbytes": bitsandbytes.__version__},
        "length": m.LENGTH, "micro_batches": l.MICRO_BATCHES, "steps": l.STEPS, "lr": l.RATE,
        "betas": [m.BETA1, m.BETA2], "eps": m.EPSILON, "weight_decay": m.WEIGHT_DECAY,
        "gradient_clipping": m.CLIPPING, "cases": cases})


if __name__ == "__main__":
    main()
