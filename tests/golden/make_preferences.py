#!/usr/bin/env python3
"""Writes preference/: a tiny model with pairs of answers, and five steps of TRL's DPOTrainer (sigmoid,
hinge, ipo) and ORPOTrainer on them. Every step has all pairs, so that their order plays no part.

    pip install torch transformers trl        # versions: see expected.json
    python make_preferences.py
"""
import json
import os
import shutil
import tempfile

import torch
import transformers
import trl
from datasets import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "preference")
MODEL = os.path.join(HERE, "model")
STEPS, BETA, RATE, LENGTH = 5, 0.5, 3e-3, 48
KEYS = ("loss", "grad_norm", "rewards/chosen", "rewards/rejected", "rewards/accuracies",
        "rewards/margins")
PAIRS = [
    {"prompt": "Say a colour:", "chosen": " red", "rejected": " seven and eight"},
    {"prompt": "Two and two is", "chosen": " four, I think", "rejected": " red"},
    {"prompt": "Greet me.", "chosen": "\nGood day", "rejected": "\nNo"},
    {"prompt": "What is the capital of France?\n", "chosen": "Paris", "rejected": "I do not know"},
]


def make_model():
    torch.manual_seed(7)
    config = LlamaConfig(vocab_size=400, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
                         num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64,
                         initializer_range=0.2, pad_token_id=0, eos_token_id=1, bos_token_id=None)
    LlamaForCausalLM(config).float().save_pretrained(MODEL)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=os.path.join(HERE, "../finetune/byte.json"),
                                        eos_token="</s>", pad_token="<s>")
    shutil.copy(os.path.join(HERE, "../finetune/byte.json"), os.path.join(MODEL, "tokenizer.json"))
    with open(os.path.join(MODEL, "tokenizer_config.json"), "w") as f:
        json.dump({"eos_token": "</s>"}, f)
    with open(os.path.join(HERE, "pairs.jsonl"), "w") as f:
        f.writelines(json.dumps(p) + "\n" for p in PAIRS)
    return tokenizer


def arguments(kind, micro, **more):
    return kind(output_dir=tempfile.mkdtemp(), per_device_train_batch_size=micro,
                gradient_accumulation_steps=len(PAIRS) // micro, max_steps=STEPS, learning_rate=RATE,
                lr_scheduler_type="constant", optim="adamw_torch", weight_decay=0.0,
                max_grad_norm=1.0, logging_steps=1, logging_strategy="steps", save_strategy="no",
                report_to=[], beta=BETA, max_length=LENGTH, use_cpu=True, bf16=False, fp16=False,
                gradient_checkpointing=False, **more)


def run(trainer):
    trainer.train()
    logs = [x for x in trainer.state.log_history if "loss" in x]
    assert len(logs) == STEPS
    steps = [{k: float(x[k]) for k in KEYS} for x in logs]
    weights = {n: p.detach().double().sum().item() for n, p in trainer.model.named_parameters()}
    return {"steps": steps, "weights": weights}


def main():
    os.makedirs(HERE, exist_ok=True)
    tokenizer = make_model()
    out = {"versions": {m.__name__: m.__version__ for m in (torch, transformers, trl)},
           "beta": BETA, "learning_rate": RATE, "seq_length": LENGTH, "cases": {}}
    for loss in ("sigmoid", "hinge", "ipo"):
        model = LlamaForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
        trainer = trl.DPOTrainer(model=model, args=arguments(trl.DPOConfig, len(PAIRS),
                                                             loss_type=[loss]),
                                 train_dataset=Dataset.from_list(PAIRS), processing_class=tokenizer)
        out["cases"][loss] = run(trainer)
    from trl.experimental.orpo import ORPOConfig, ORPOTrainer
    model = LlamaForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
    # The cross entropy is a mean over a micro batch's tokens: with one pair in each it is the pair's.
    trainer = ORPOTrainer(model=model, args=arguments(ORPOConfig, 1),
                          train_dataset=Dataset.from_list(PAIRS),
                          processing_class=tokenizer)
    out["cases"]["orpo"] = run(trainer)
    with open(os.path.join(HERE, "expected.json"), "w") as f:
        json.dump(out, f, indent=1)
        f.write("\n")
    with open(os.path.join(HERE, "steps.txt"), "w") as f:  # for scripts: case, step, key, value
        for case, result in out["cases"].items():
            for i, step in enumerate(result["steps"]):
                f.writelines(f"{case} {i + 1} {k} {v:.9g}\n" for k, v in step.items())


if __name__ == "__main__":
    main()
