"""SifrTrainer by the data set's own order, and masked LM, on this process's ranks; checkpoints that
other numbers of ranks go on from. `trainer_orders.py OUTPUT [FROM]` writes the same folders on any
number of ranks; FROM: that of a run whose checkpoints it goes on from."""

import sys

import sifr
import torch
import transformers
from trainer_base import collate, read_rows, trainer
from transformers import AutoConfig

output, others = sys.argv[1], (sys.argv[2:] or [None])[0]
ranks = sifr.size()
HALF = dict(save_strategy="steps", save_steps=4, gradient_accumulation_steps=2 // ranks)


def module():
    """A BERT of random values, the same in each process."""
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=300, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=64, pad_token_id=0,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return transformers.BertForMaskedLM(config)


def masked(features):
    """A mask by ids and places, so that no rank's random numbers decide."""
    batch = collate(features)
    ids = batch["input_ids"]
    hidden = ((ids * 5 + torch.arange(ids.shape[1])) % 7 == 3) & (batch["labels"] >= 0)
    batch["labels"] = torch.where(hidden, ids, -100)
    batch["input_ids"] = torch.where(hidden, 4, ids)
    return batch


def losses(t):
    return [log["loss"] for log in t.state.log_history if "loss" in log]


def run(name, steps, model, of):
    more = {**HALF, "max_steps": steps, "train_sampling_strategy": "sequential"}
    t = trainer(f"{output}/{name}", model, of=of, **more)
    t.train(resume_from_checkpoint=f"{others}/{name}/checkpoint-4" if others else None)
    t.save_model(f"{output}/{name}_model")
    assert t.engine.steps == steps, t.engine.steps
    return losses(t)


transformers.logging.set_verbosity_error()
rows = read_rows()
# The rows as `sifr train` takes them in its first epoch: then one after the other has its bits.
with_order = trainer(f"{output}/order", train_sampling_strategy="sifr", **HALF)
order = list(with_order._get_train_sampler())
assert sorted(order) == list(range(len(rows))) and order != sorted(order)
of = {"train_dataset": [rows[i] for i in order]}
run("sequential", 9, "llama", of)
found = run("masked", 8, module(), {"train_dataset": rows, "data_collator": masked})
if ranks == 1 and not others:  # beside torch's own
    plain = transformers.Trainer(
        module(),
        transformers.TrainingArguments(
            f"{output}/plain", max_steps=8, per_device_train_batch_size=8, learning_rate=3e-3,
            weight_decay=0.01, warmup_steps=2, logging_steps=1, use_cpu=True, report_to="none",
            disable_tqdm=True, save_strategy="no", train_sampling_strategy="sequential",
        ),
        train_dataset=rows,
        data_collator=masked,
    )  # fmt: skip
    plain.train()
    want = losses(plain)
    assert all(abs(a - b) < 2e-3 for a, b in zip(found, want, strict=True)), (found, want)
assert AutoConfig.from_pretrained(f"{output}/masked_model").model_type == "bert"
sys.stdout.write(f"rank {sifr.rank()} is done\n")
