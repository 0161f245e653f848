#!/usr/bin/env python3
"""Writes no_decay.json: of each folder of a model here, the parameters that the Hugging Face Trainer
leaves out of weight decay, under transformers' present names.

    pip install torch transformers accelerate
    python make_no_decay.py
"""
import glob
import json
import os

import torch
import transformers
from transformers import AutoConfig, Trainer

HERE = os.path.dirname(os.path.abspath(__file__))


def undecayed(folder):
    config = AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        model = getattr(transformers, config.architectures[0])(config)
    decayed = set(Trainer.get_decay_parameter_names(None, model))
    return sorted(n for n, _ in model.named_parameters() if n not in decayed)


def main():
    transformers.logging.set_verbosity_error()
    folders = sorted(glob.glob(os.path.join(HERE, "**", "models", "*"), recursive=True))
    out = {os.path.relpath(f, HERE): undecayed(f) for f in folders}
    lines = [f"  {json.dumps(f)}:\n    {json.dumps(n)}" for f, n in out.items()]
    with open(os.path.join(HERE, "no_decay.json"), "w") as file:
        file.write("{\n  \"transformers\": " + json.dumps(transformers.__version__) + ",\n" +
                   ",\n".join(lines) + "\n}\n")
    print(len(out), "folders")


if __name__ == "__main__":
    main()
