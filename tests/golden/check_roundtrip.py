#!/usr/bin/env python3
"""Does a model folder that sifr wrote hold what the folder that it read held?

    python check_roundtrip.py WRITTEN ORIGINAL

Loads both in transformers and compares every parameter and the logits of some random ids; compares
all files but the weights byte for byte. For a folder that was read and written without a step in
between, everything must agree. Prints what differs; exit code 1 if anything does.
"""
import filecmp
import os
import sys

import torch
import transformers
from transformers import AutoModelForCausalLM


def is_weights(name):
    return name.endswith(".safetensors") or name == "model.safetensors.index.json"


def main():
    written, original = sys.argv[1:3]
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    wrong = []
    have = {n for n in os.listdir(written) if not is_weights(n)}
    want = {n for n in os.listdir(original) if not is_weights(n)}
    wrong += [f"{n}: not in {written}" for n in sorted(want - have)]
    for name in sorted(want & have):
        if not filecmp.cmp(os.path.join(written, name), os.path.join(original, name), False):
            wrong.append(f"{name}: the bytes differ")

    models = []
    for folder in (written, original):
        model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                           output_loading_info=True)
        wrong += [f"{folder}: missing {key}" for key in info["missing_keys"]]
        models.append(model.eval())
    for (name, a), b in zip(models[0].named_parameters(), models[1].parameters()):
        if not torch.equal(a, b):
            wrong.append(f"{name}: largest difference {float((a - b).detach().abs().max()):.3g}")
    torch.manual_seed(1)
    ids = torch.randint(0, models[0].config.vocab_size, (2, 32))
    with torch.no_grad():
        a, b = (m(input_ids=ids).logits for m in models)
    difference = float((a - b).abs().max() / b.abs().max())
    if not difference <= 1e-6:
        wrong.append(f"logits: relative difference {difference:.3g}")
    print("\n".join(wrong) if wrong else
          f"same: {len(want)} files, {sum(1 for _ in models[0].parameters())} parameters, "
          f"logits within {difference:.1g}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
