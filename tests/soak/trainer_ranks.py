"""SifrTrainer on this process's ranks, one or two: the same folders of both. `trainer_ranks.py OUTPUT
STAGE` writes them into OUTPUT."""

import json
import os
import sys

import sifr
import torch
import transformers
from trainer_base import arguments, read_rows, trainer
from trainer_refusals import OF_RANKS, raises
from transformers import TrainerCallback

output, stage = sys.argv[1], int(sys.argv[2])
ranks = sifr.size()
more = dict(
    gradient_accumulation_steps=2 // ranks,
    sifr={"zero_optimization": {"stage": stage}, "sifr": {"threads": 1}},
)


class Stop(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop = state.global_step == 3


def accuracy(found):
    right = found.predictions[:, :-1].argmax(-1) == found.label_ids[:, 1:]
    return {"right": int(right[found.label_ids[:, 1:] != -100].sum()), "rows": len(right)}


transformers.logging.set_verbosity_error()
held = read_rows("held.jsonl")  # 21 rows, which two ranks cannot share evenly
t = trainer(
    f"{output}/run",
    of={"eval_dataset": held, "compute_metrics": accuracy},
    eval_strategy="steps",
    eval_steps=6,
    per_device_eval_batch_size=4,
    **more,
)
assert t.args.world_size == ranks and t.args.process_index == sifr.rank()
assert t.args.should_save == (sifr.rank() == 0) and not torch.distributed.is_initialized()
t.train()
t.save_model()
metrics = t.evaluate()
# Epochs of 18 rows: the last step has two rows, of one rank.
t = trainer(
    f"{output}/epochs",
    of={"train_dataset": read_rows()[:18], "callbacks": [Stop()]},
    max_steps=-1,
    num_train_epochs=3,
    save_strategy="steps",
    save_steps=2,
    **more,
)
t.train()
t = trainer(
    f"{output}/epochs",
    of={"train_dataset": read_rows()[:18]},
    max_steps=-1,
    num_train_epochs=3,
    save_strategy="steps",
    save_steps=2,
    dataloader_num_workers=1 if ranks > 1 else 0,
    **more,
)
t.train(resume_from_checkpoint=f"{output}/epochs/checkpoint-2")
assert t.engine.steps == 9, t.engine.steps
t.save_model()
with t.args.main_process_first():
    if sifr.rank() == 0:
        with open(f"{output}/metrics.json", "w") as file:
            names = ("eval_token_loss", "eval_right", "eval_rows")
            json.dump({name: metrics[name] for name in names}, file)
    assert os.path.exists(f"{output}/metrics.json")
names = [name for name, _ in t.materialise().named_parameters()]
assert names and not any(one.is_meta for one in t.model.parameters())
if ranks > 1:
    for name, value in OF_RANKS.items():
        raises(lambda name=name, value=value: arguments("out", **{name: value}), name)
    gathered = t.accelerator.gather(torch.full((2,), sifr.rank()))
    assert gathered.tolist() == [0, 0, 1, 1], gathered
    padded = t.accelerator.pad_across_processes(torch.ones(1, 1 + sifr.rank()), dim=1)
    assert padded.shape == (1, 2), padded
    # What one rank fails in is known to all.
    bad = [dict(row, input_ids=[1] * 40, labels=[1] * 40) for row in read_rows()[:8]]
    t = trainer(f"{output}/bad", of={"train_dataset": read_rows()[:4] + bad[4:]}, **more)
    raises(t.train, "seq_length is 32")
sys.stdout.write(f"rank {sifr.rank()} is done\n")
