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


class Ask(TrainerCallback):
    """Asks on the second rank alone, whose collective the first would never reach."""

    def __init__(self, name):
        self.name = name

    def on_step_end(self, args, state, control, **kwargs):
        if sifr.rank() == 1 and state.global_step == 1:
            setattr(control, self.name, True)


class OwnRate(TrainerCallback):
    def on_step_begin(self, args, state, control, optimizer=None, **kwargs):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * (1 + sifr.rank())


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
    # What one rank's callback asks for, all do: it hung, or the other rank was lost.
    for name in ("should_save", "should_evaluate", "should_training_stop"):
        of = {"callbacks": [Ask(name)], "eval_dataset": held[:3]}
        t = trainer(f"{output}/{name}", of=of, **{**more, "max_steps": 2})
        t.train()
        assert t.state.global_step == (1 if name == "should_training_stop" else 2)
        assert os.path.isdir(f"{output}/{name}/checkpoint-1") == (name == "should_save")
        told = [one["step"] for one in t.state.log_history if "eval_loss" in one]
        assert told == ([1] if name == "should_evaluate" else []), told
    # What they do not give alike is refused: each trained and evaluated by its own.
    t = trainer(f"{output}/rate", of={"callbacks": [OwnRate()]}, **more)
    raises(t.train, "learning_rate: differs on rank 1")
    second = sifr.rank()
    raises(trainer(f"{output}/n", **{**more, "max_steps": 2 + second}).train, "max_steps", "rank 1")
    raises(trainer(f"{output}/n", of={"train_dataset": read_rows()[: 8 + second]}, **more).train,
           "train_dataset", "8", "9")
    t = trainer(f"{output}/n", of={"eval_dataset": held[: 3 + second]}, **more)
    raises(t.evaluate, "rows", "3", "4")
    t.close()
sys.stdout.write(f"rank {sifr.rank()} is done\n")
