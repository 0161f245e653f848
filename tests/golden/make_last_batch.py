#!/usr/bin/env python3
"""Writes last_batch/: how transformers' Trainer cuts epochs into steps, and what it learns in them
where the last batch of an epoch is not full.

counts.json: for numbers of rows, batches and epochs, the rows of each step and the epoch that its log
shows. rows.jsonl, losses.txt: twelve rows in batches of eight for three epochs, by Trainer, and the
four pairs of preference/ in batches of three for two, by TRL's DPOTrainer, in the order in which
`sifr train` with seed 42 draws them.

    pip install torch transformers accelerate trl        # versions: see counts.json
    python make_last_batch.py                            # after make_preferences.py
"""
import itertools
import json
import os
import tempfile

import torch
import transformers
import trl
from datasets import Dataset
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast, Trainer, TrainerCallback, \
    TrainingArguments

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "last_batch")
PREFERENCE = os.path.join(HERE, "../preference")
SEED, RATE, LENGTH, BETA = 42, 3e-3, 64, 0.5
M32, M64 = (1 << 32) - 1, (1 << 64) - 1


# The order of rows: src/base/random.h and src/data/permutation.c.
def philox(key, low, high):
    k, c = [key & M32, key >> 32], [low & M32, low >> 32, high & M32, high >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & M32, (a >> 32) ^ c[3] ^ k[1], a & M32]
        k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
    return c[0] | c[1] << 32


def permute(seed, epoch, count, index):
    half = 1
    while 1 << (2 * half) < count:
        half += 1
    mask, key = (1 << half) - 1, philox(seed, epoch, 0x6F72646572)
    while True:
        left, right = index >> half, index & mask
        for r in range(8):
            left, right = right, (left ^ philox(key, right, r)) & mask
        index = left << half | right
        if index < count:
            return index


class Order(torch.utils.data.Sampler):
    def __init__(self, count):
        self.count, self.epoch = count, 0

    def __len__(self):
        return self.count

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        return iter([permute(SEED, self.epoch, self.count, i) for i in range(self.count)])


class Ordered:
    def _get_train_sampler(self, dataset=None):
        return Order(len(dataset if dataset is not None else self.train_dataset))


class OrderedTrainer(Ordered, Trainer):
    pass


class OrderedDPOTrainer(Ordered, trl.DPOTrainer):
    pass


def arguments(kind, micro, accumulation, **more):
    return kind(output_dir=tempfile.mkdtemp(), per_device_train_batch_size=micro,
                gradient_accumulation_steps=accumulation, logging_steps=1, logging_strategy="steps",
                save_strategy="no", report_to=[], use_cpu=True, bf16=False, fp16=False,
                disable_tqdm=True, optim="adamw_torch", weight_decay=0.0, max_grad_norm=1.0,
                learning_rate=RATE, **more)


# --- how many rows ---

class Sum(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.rows = 0

    def forward(self, x, **_):
        self.rows += len(x)
        return {"loss": (self.weight * x).mean()}


class Count(TrainerCallback):
    def __init__(self):
        self.steps, self.seen = [], 0

    def on_step_end(self, args, state, control, model=None, **_):
        self.steps.append([model.rows - self.seen, state.epoch])
        self.seen = model.rows


def count(rows, micro, accumulation, drop_last, **length):
    counter = Count()
    trainer = Trainer(model=Sum(), train_dataset=[{"x": torch.tensor([1.0])}] * rows,
                      args=arguments(TrainingArguments, micro, accumulation,
                                     dataloader_drop_last=drop_last, **length),
                      callbacks=[counter])
    trainer.train()
    assert trainer.state.global_step == trainer.state.max_steps == len(counter.steps)
    return {"rows": rows, "micro": micro, "accumulation": accumulation, "drop_last": drop_last,
            **length, "steps": counter.steps}


def counts():
    shapes = [(12, 8, 1), (12, 2, 4), (13, 2, 4), (16, 2, 4), (3, 2, 4), (7, 3, 1), (9, 1, 4), (5, 4, 2)]
    lengths = [{"num_train_epochs": 3.0}, {"num_train_epochs": 1.0}, {"num_train_epochs": 0.5},
               {"num_train_epochs": 2.3}, {"max_steps": 5}]
    return [count(*shape, drop, **length)
            for shape, drop, length in itertools.product(shapes, (False, True), lengths)]


# --- what is learned ---

def make_rows():
    words = "the cat sat on a mat and saw that dog run over my big red house".split()
    texts = [" ".join(words[(i * 5 + j * 3) % len(words)] for j in range(2 + i * 7 % 9)) + f" {i}"
             for i in range(12)]
    with open(os.path.join(HERE, "rows.jsonl"), "w") as f:
        f.writelines(json.dumps({"text": t}) + "\n" for t in texts)
    return texts


def collate(rows):
    longest = max(len(r["input_ids"]) for r in rows)

    def fill(key, by):
        return torch.tensor([r[key] + [by] * (longest - len(r[key])) for r in rows])
    return {"input_ids": fill("input_ids", 0), "attention_mask": fill("attention_mask", 0),
            "labels": fill("labels", -100)}


def model():
    return LlamaForCausalLM.from_pretrained(os.path.join(PREFERENCE, "model"), dtype=torch.float32)


def texts(tokenizer, micro, accumulation, drop_last):
    rows = []
    for text in make_rows():
        ids = tokenizer(text)["input_ids"] + [tokenizer.eos_token_id]
        rows.append({"input_ids": ids, "attention_mask": [1] * len(ids), "labels": ids})
    trainer = OrderedTrainer(
        model=model(), train_dataset=rows, data_collator=collate,
        args=arguments(TrainingArguments, micro, accumulation, num_train_epochs=3,
                       lr_scheduler_type="linear", warmup_steps=2, dataloader_drop_last=drop_last))
    return logged(trainer, ("loss", "grad_norm", "learning_rate", "epoch"))


def pairs(tokenizer):
    with open(os.path.join(PREFERENCE, "pairs.jsonl")) as f:
        data = Dataset.from_list([json.loads(line) for line in f])
    trainer = OrderedDPOTrainer(
        model=model(), train_dataset=data, processing_class=tokenizer,
        args=arguments(trl.DPOConfig, 3, 1, num_train_epochs=2, lr_scheduler_type="constant",
                       beta=BETA, loss_type=["sigmoid"], max_length=48,
                       gradient_checkpointing=False))
    return logged(trainer, ("loss", "grad_norm", "learning_rate", "epoch", "rewards/chosen",
                            "rewards/margins"))


def logged(trainer, keys):
    trainer.train()
    return [{k: float(x[k]) for k in keys} for x in trainer.state.log_history if "loss" in x]


def main():
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    os.makedirs(HERE, exist_ok=True)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=os.path.join(PREFERENCE, "model/tokenizer.json"), eos_token="</s>",
        pad_token="<s>")
    versions = {m.__name__: m.__version__ for m in (torch, transformers, trl)}
    lines = ",\n".join(" " + json.dumps(c) for c in counts())
    with open(os.path.join(HERE, "counts.json"), "w") as f:
        f.write(f'{{"versions": {json.dumps(versions)}, "cases": [\n{lines}\n]}}\n')
    cases = {"whole": texts(tokenizer, 8, 1, False), "accumulated": texts(tokenizer, 2, 4, False),
             "dropped": texts(tokenizer, 8, 1, True), "pairs": pairs(tokenizer)}
    with open(os.path.join(HERE, "losses.txt"), "w") as f:
        for name, steps in cases.items():
            for i, step in enumerate(steps):
                f.writelines(f"{name} {i + 1} {k} {v:.9g}\n" for k, v in step.items())


if __name__ == "__main__":
    main()
