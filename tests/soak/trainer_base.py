"""What the files of the Trainer's tests share: rows of a small model, and a trainer for them."""

import json

import sifr
import torch
from sifr.integrations.transformers import SifrTrainer, SifrTrainingArguments

LENGTH = 32


def read_rows(path="rows.jsonl"):
    """As `sifr train` makes them of rows of text."""
    with sifr.Tokenizer("llama") as tokenizer, open(path) as file:
        texts = [json.loads(line)["text"] for line in file]
        ids = [(tokenizer.encode(text) + [tokenizer.eos])[:LENGTH] for text in texts]
    return [{"input_ids": row, "labels": list(row)} for row in ids]


def collate(features):
    longest = max(len(one["input_ids"]) for one in features)

    def pad(name, filler):
        rows = [list(one[name]) + [filler] * (longest - len(one[name])) for one in features]
        return torch.tensor(rows)

    mask = [
        [1] * len(one["input_ids"]) + [0] * (longest - len(one["input_ids"])) for one in features
    ]
    return {
        "input_ids": pad("input_ids", 0),
        "labels": pad("labels", -100),
        "attention_mask": torch.tensor(mask),
    }


def arguments(output, cls=SifrTrainingArguments, **more):
    given = dict(
        seq_length=LENGTH,
        max_steps=12,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        learning_rate=3e-3,
        weight_decay=0.01,
        warmup_steps=2,
        logging_steps=1,
        train_sampling_strategy="sifr",
        report_to="none",
        disable_tqdm=True,
        save_strategy="no",
        sifr={"sifr": {"threads": 1}},
    )
    return cls(output, **{**given, **more})


def trainer(output="made", model="llama", cls=SifrTrainer, of=None, **more):
    """`of`: keywords of the trainer; the others are arguments."""
    given = dict(train_dataset=read_rows(), data_collator=collate)
    return cls(model, arguments(output, **more), **{**given, **(of or {})})
