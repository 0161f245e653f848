"""transformers' Trainer on sifr, on one rank: training, evaluation, folders, callbacks."""

import filecmp
import json
import logging
import math
import os
import subprocess
import sys

import sifr
import torch
import transformers
from trainer_base import collate, read_rows, trainer
from transformers import EarlyStoppingCallback, TrainerCallback

SIFR = os.environ["SIFR"]


def same(folder, other="by_program"):
    assert filecmp.cmp(f"{folder}/model.safetensors", f"{other}/model.safetensors", False), folder


def raises(call, *words):
    try:
        call()
    except sifr.UsageError as error:
        assert all(word in str(error) for word in words), error
        return
    raise AssertionError(f"nothing is said of {words}")


def bits_of_the_program():
    t = trainer()
    result = t.train()
    logs = [log for log in t.state.log_history if "loss" in log]
    assert result.global_step == 12 and len(logs) == 12, t.state.log_history
    with open("by_program/metrics.jsonl") as file:
        for log, line in zip(logs, map(json.loads, file), strict=True):
            assert math.isclose(log["loss"], line["loss"], rel_tol=1e-6), (log, line)
            assert math.isclose(log["grad_norm"], line["grad_norm"], rel_tol=1e-6), (log, line)
            assert math.isclose(log["learning_rate"], line["learning_rate"], rel_tol=1e-8)
    t.save_model("by_trainer")
    same("by_trainer")
    assert torch.load("by_trainer/training_args.bin", weights_only=False).seq_length == 32
    raises(t.train, "train", "a second call")


def modules():
    """A module on the meta device, and one with values, train as their folder does."""
    config = transformers.AutoConfig.from_pretrained("llama")
    with torch.device("meta"):
        empty = transformers.LlamaForCausalLM(config)
    empty.name_or_path = ""
    raises(lambda: trainer(model=empty), "meta device", "no folder")
    empty.name_or_path = "llama"
    t = trainer("by_meta", empty)
    t.train()
    t.save_model()
    same("by_meta")
    try:
        float(empty.lm_head.weight[0, 0])
        raise AssertionError("a value of a module on the meta device")
    except (RuntimeError, NotImplementedError) as error:
        assert "meta" in str(error), error
    assert t.materialise() is empty
    whole = transformers.LlamaForCausalLM.from_pretrained("by_meta")
    found = empty(torch.tensor([[1, 2, 3]])).logits
    assert torch.equal(found, whole(torch.tensor([[1, 2, 3]])).logits)

    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("sifr").addHandler(handler)
    real = transformers.LlamaForCausalLM.from_pretrained("llama", dtype=torch.float32)
    before = real.lm_head.weight.detach().clone()
    t = trainer("by_module", real)
    assert any("stale" in line for line in said), said
    t.train()
    t.save_model()
    same("by_module")
    assert torch.equal(before, real.lm_head.weight)  # no step has changed it
    t.materialise()
    assert torch.equal(real.lm_head.weight, whole.lm_head.weight)
    logging.getLogger("sifr").removeHandler(handler)


def frozen_weights():
    """What the module does not train the engine does not either; other configs are refused."""
    real = transformers.LlamaForCausalLM.from_pretrained("llama", dtype=torch.float32)
    real.model.embed_tokens.weight.requires_grad_(False)
    more = dict(save_strategy="steps", save_steps=2, max_steps=4)
    t = trainer("frozen", real, **more)
    t.train()
    t.save_model()
    before, after = sifr.state_dict("llama"), sifr.state_dict("frozen")
    names = [name for name in before if (before[name] == after[name]).all()]
    assert names == ["model.embed_tokens.weight"], names
    assert not t.engine.weights[names[0]].trained
    again = trainer("frozen", real, **more)
    again.train(resume_from_checkpoint="frozen/checkpoint-2")
    again.save_model("frozen_again")
    same("frozen_again", "frozen")
    config = transformers.AutoConfig.from_pretrained("llama", attention_dropout=0.5)
    with torch.device("meta"):
        other = transformers.LlamaForCausalLM(config)
    raises(lambda: trainer(model=other), "config.attention_dropout", "0.5")


class Watch(TrainerCallback):
    """What callbacks are told, and that gradients are never there."""

    def __init__(self):
        self.seen = []

    def on_substep_end(self, args, state, control, **kwargs):
        self.seen.append("substep")

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        assert all(parameter.grad is None for parameter in model.parameters())
        self.seen.append("pre")

    def on_step_end(self, args, state, control, optimizer=None, lr_scheduler=None, **kwargs):
        self.rate = lr_scheduler.get_last_lr()[0]
        assert self.rate == optimizer.param_groups[0]["lr"]
        self.seen.append("step")


class Faster(TrainerCallback):
    """Sets a rate of its own."""

    def on_step_begin(self, args, state, control, optimizer=None, **kwargs):
        for group in optimizer.param_groups:
            group["lr"] = 0.0 if state.global_step < 3 else 1e-2


def callbacks():
    watch = Watch()
    trainer(of={"callbacks": [watch]}, max_steps=2).train()
    assert watch.seen == ["substep", "pre", "step"] * 2, watch.seen
    t = trainer("rates", of={"callbacks": [Faster()]}, max_steps=3)
    t.train()
    t.save_model()
    with open("llama/model.safetensors", "rb") as file, open("rates/model.safetensors", "rb") as own:
        assert file.read()[-256:] == own.read()[-256:]  # by a rate of 0


def evaluations():
    """eval_token_loss is `sifr eval`'s; eval_loss is Trainer's own, as transformers has it."""
    rows = read_rows("held.jsonl")
    t = trainer(
        "evaluated",
        of={"eval_dataset": rows},
        eval_strategy="steps",
        eval_steps=4,
        per_device_eval_batch_size=8,
    )
    t.train()
    t.save_model()
    metrics = t.evaluate()
    text = subprocess.run(
        [SIFR, "eval", "--model", "evaluated", "--data", "held.jsonl", "--seq-length", "32", "--json"],
        check=True,
        capture_output=True,
    ).stdout
    found = json.loads(text)
    assert math.isclose(metrics["eval_token_loss"], found["loss"], rel_tol=1e-9), (metrics, found)
    plain = transformers.Trainer(
        transformers.LlamaForCausalLM.from_pretrained("evaluated", dtype=torch.float32),
        transformers.TrainingArguments("plain", per_device_eval_batch_size=8, use_cpu=True, report_to="none"),
        eval_dataset=rows,
        data_collator=collate,
    )
    want = plain.evaluate()["eval_loss"]
    assert math.isclose(metrics["eval_loss"], want, rel_tol=1e-5), (metrics, want)
    logged = [log["eval_loss"] for log in t.state.log_history if "eval_loss" in log]
    assert len(logged) == 4 and logged[0] > logged[-2], logged
    wanted = plain.predict(rows).predictions
    own = t.predict(rows)
    assert own.predictions.shape == wanted.shape, (own.predictions.shape, wanted.shape)
    real = own.label_ids != -100
    assert abs(own.predictions - wanted)[real].max() < 1e-3
    assert math.isclose(own.metrics["test_token_loss"], found["loss"], rel_tol=1e-9)


def metrics_and_the_best():
    """compute_metrics gets logits; early stopping and the best model are Trainer's own."""

    def accuracy(found):
        right = found.predictions[:, :-1].argmax(-1) == found.label_ids[:, 1:]
        counted = found.label_ids[:, 1:] != -100
        return {"accuracy": float(right[counted].mean())}

    t = trainer(
        "best",
        of={
            "eval_dataset": read_rows("held.jsonl"),
            "compute_metrics": accuracy,
            "callbacks": [EarlyStoppingCallback(early_stopping_patience=2)],
        },
        max_steps=40,
        learning_rate=0.3,  # gets worse soon
        lr_scheduler_type="constant",
        warmup_steps=0,
        eval_strategy="steps",
        save_strategy="steps",
        eval_steps=2,
        save_steps=2,
        load_best_model_at_end=True,
        save_total_limit=1,
    )
    result = t.train()
    assert result.global_step < 40, result
    best = t.state.best_model_checkpoint
    found = t.evaluate()
    assert math.isclose(found["eval_loss"], t.state.best_metric, rel_tol=1e-6), found
    assert 0 <= found["eval_accuracy"] <= 1
    t.save_model("the_best")
    same("the_best", best)
    # The best of checkpoints without an optimizer: their model alone.
    t = trainer(
        "only_models",
        of={"eval_dataset": read_rows("held.jsonl")},
        eval_strategy="steps",
        save_strategy="steps",
        eval_steps=6,
        save_steps=6,
        load_best_model_at_end=True,
        save_only_model=True,
    )
    t.train()
    t.save_model("the_last")
    same("the_last", t.state.best_model_checkpoint)
    raises(
        lambda: trainer("only_models").train(resume_from_checkpoint="only_models/checkpoint-6"),
        "resume_from_checkpoint",
        "another Trainer",
    )


def resumed():
    """A run that goes on has the bits of one that was never stopped."""
    more = dict(save_strategy="steps", save_steps=5)
    trainer("resumed", of={"callbacks": [Stop()]}, **more).train()
    assert not os.path.exists("resumed/checkpoint-10")
    for name in ("sifr", "config.json", "tokenizer.json", "trainer_state.json", "rng_state.pth"):
        assert os.path.exists(f"resumed/checkpoint-5/{name}"), name
    assert not os.path.exists("resumed/checkpoint-5/optimizer.pt")
    t = trainer("resumed", **more)
    assert t.train(resume_from_checkpoint=True).global_step == 12
    t.save_model("went_on")
    same("went_on")
    plain = transformers.Trainer(
        transformers.LlamaForCausalLM.from_pretrained("llama", dtype=torch.float32),
        transformers.TrainingArguments("plain", max_steps=1, use_cpu=True, report_to="none"),
        train_dataset=read_rows(),
        data_collator=collate,
    )
    plain.train()
    plain._save_checkpoint(plain.model, None)
    raises(
        lambda: trainer("other").train(resume_from_checkpoint="plain/checkpoint-1"),
        "resume_from_checkpoint",
        "another Trainer",
    )
    raises(lambda: trainer("other").train(resume_from_checkpoint="nowhere"), "is no folder")


class Stop(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop = state.global_step == 6


def schedules():
    """Those that follow evaluations set the rate from outside; others are the config's."""
    t = trainer(
        "plateau",
        of={"eval_dataset": read_rows("held.jsonl")[:8]},
        lr_scheduler_type="reduce_lr_on_plateau",
        lr_scheduler_kwargs={"patience": 0, "threshold": 1.0, "factor": 0.5},
        warmup_steps=0,
        eval_strategy="steps",
        save_strategy="steps",
        eval_steps=2,
        save_steps=4,
        metric_for_best_model="loss",
        max_steps=8,
    )
    t.train()
    rates = [log["learning_rate"] for log in t.state.log_history if "learning_rate" in log]
    assert rates[0] == 3e-3 and rates[-1] <= 3e-3 / 4, rates
    again = trainer(
        "plateau",
        of={"eval_dataset": read_rows("held.jsonl")[:8]},
        lr_scheduler_type="reduce_lr_on_plateau",
        lr_scheduler_kwargs={"patience": 0, "threshold": 1.0, "factor": 0.5},
        warmup_steps=0,
        eval_strategy="steps",
        eval_steps=2,
        metric_for_best_model="loss",
        max_steps=8,
    )
    again.train(resume_from_checkpoint="plateau/checkpoint-4")
    found = [log["learning_rate"] for log in again.state.log_history if "learning_rate" in log]
    assert found == rates, (found, rates)
    plain = transformers.TrainingArguments("plain", use_cpu=True, report_to="none")
    for kind, more in (
        ("cosine", {}),
        ("polynomial", {"power": 2.0}),
        ("cosine_with_min_lr", {"min_lr": 1e-4}),
    ):
        t = trainer(lr_scheduler_type=kind, lr_scheduler_kwargs=more, max_steps=5)
        t.train()
        own = [log["learning_rate"] for log in t.state.log_history if "learning_rate" in log]
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=3e-3)
        want = transformers.get_scheduler(kind, optimizer, 2, 5, dict(more))
        for rate in own:
            assert math.isclose(rate, want.get_last_lr()[0], rel_tol=1e-9, abs_tol=1e-15), (kind, own)
            optimizer.step()
            want.step()
    assert plain.lr_scheduler_type


def epochs():
    """The last step of an epoch has what is left."""
    t = trainer(
        "epochs", of={"train_dataset": read_rows()[:21]}, max_steps=-1, num_train_epochs=2
    )
    result = t.train()
    assert result.global_step == 6, result
    assert t.engine.steps == 6


def a_run_that_skips():
    """Where nothing is learned nothing changes, and the schedule does not step."""
    rows = read_rows()[:8]
    for row in rows:
        row["labels"] = [-100] * len(row["labels"])
    t = trainer("skipped", of={"train_dataset": rows}, max_steps=2, warmup_steps=0)
    t.train()
    rates = [log["learning_rate"] for log in t.state.log_history if "learning_rate" in log]
    assert rates == [3e-3, 3e-3], rates
    assert t.engine.updates == 0


ALL = [
    bits_of_the_program,
    modules,
    frozen_weights,
    callbacks,
    evaluations,
    metrics_and_the_best,
    resumed,
    schedules,
    epochs,
    a_run_that_skips,
]
if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    for test in ALL:
        if test.__name__ in sys.argv[1:] or len(sys.argv) == 1:
            test()
            print(test.__name__)
