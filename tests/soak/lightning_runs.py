"""Runs of Lightning's real Trainer on sifr; test_soak_lightning.sh trained the same by the program."""

import json
import os
import warnings

import lightning as L
import sifr
import torch
from lightning.fabric.plugins.environments import LightningEnvironment
from lightning.pytorch import callbacks as cb
from lightning.pytorch.loggers import CSVLogger, MLFlowLogger, TensorBoardLogger
from lightning.pytorch.plugins import AsyncCheckpointIO
from sifr.integrations import _lightning_rules
from sifr.integrations.lightning import SifrModule
from torch.utils.data import DataLoader

warnings.filterwarnings("ignore")
ids = [j * 7 % 50 for j in [*range(32), 0]]
row = {"tokens": torch.tensor(ids[:32]), "labels": torch.tensor(ids[1:])}
#: The same window in transformers' words, whose labels stand beside their own tokens: it has 31.
theirs = {"input_ids": row["tokens"], "labels": row["tokens"], "attention_mask": torch.ones(32).long()}


def loader(rows=40, of=row, batch=2):
    return DataLoader([of] * rows, batch_size=batch)


def trainer(**given):
    usual = {
        "strategy": "sifr", "accumulate_grad_batches": 2, "max_steps": 5, "logger": False,
        "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False,
    }  # fmt: skip
    return L.Trainer(**{**usual, **given})


def new(config="ds.json", **flags):
    return SifrModule("llama", config, **flags)


def same(a, b, name="model"):
    a, b = (open(f"{folder}/{name}.safetensors", "rb").read() for folder in (a, b))
    return a == b


def raises(words, call, kind=sifr.UsageError):
    try:
        call()
    except kind as error:
        assert words in str(error), f"{error} lacks {words}"
        return
    raise AssertionError(f"no {kind.__name__} with {words}")


def refuses(words, module=None, **given):
    made = new() if module is None else module
    raises(words, lambda: trainer(**given).fit(made, loader()))


class Watch(cb.Callback):
    def __init__(self):
        self.losses, self.rates, self.before = [], [], 0

    def on_before_optimizer_step(self, trainer, module, optimizer):
        self.before += 1
        assert all(p.grad is None for p in module.parameters())
        self.rates.append(optimizer.param_groups[0]["lr"])

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        self.losses.append(outputs["loss"].item())


# --- the bits of the program; a step's loss at its last micro batch; checkpoints in folders ---
watch = Watch()
keep = cb.ModelCheckpoint(
    dirpath="ck", every_n_train_steps=2, save_top_k=-1, save_last=True, monitor="train_loss"
)
module = new()
first = trainer(enable_checkpointing=True, callbacks=[keep, watch])
first.fit(module, loader(), loader())
assert first.global_step == module.engine.steps == watch.before == 5
module.save("by_lightning")
assert same("by_lightning", "by_program"), "other bits"
assert watch.losses[::2] == [0.0] * 5 and watch.losses[9] < watch.losses[1]
assert watch.losses[9] == module.last_step.loss == first.callback_metrics["train_loss"].item()
assert watch.rates[0] == 0.0 and max(watch.rates) == 3e-3  # of the config's schedule
names = ["epoch=0-step=2.ckpt", "epoch=0-step=4.ckpt", "last.ckpt"]
assert sorted(os.listdir("ck")) == names, os.listdir("ck")
assert keep.best_model_path.endswith(names[1])
raises("Cannot copy out of meta tensor", lambda: next(module.parameters()).cpu(), Exception)

# --- rows that differ, shuffled: the bits of an engine that is given the same ---
several = [{n: (v + i) % 300 for n, v in row.items()} for i in range(20)]
micro = []
take = cb.LambdaCallback(on_train_batch_start=lambda t, m, batch, i: micro.append(batch))
module = new()
trainer(max_steps=7, callbacks=[take]).fit(module, DataLoader(several, batch_size=2, shuffle=True))
module.save("by_rows")
assert module.last_step.labelled == 128 and len(micro) == 14
with sifr.Engine("ds.json", model="llama", gradient_accumulation_steps=2, max_steps=7) as engine:
    for at in range(0, 14, 2):
        given = {n: torch.cat([m[n] for m in micro[at : at + 2]]) for n in row}
        engine.step(**given)
    engine.save("by_engine")
assert same("by_rows", "by_engine"), "other bits of rows that differ"

# --- on from a checkpoint: the same bits, its callbacks' state; with the weights alone ---
for name in names:
    found = cb.ModelCheckpoint(dirpath="ck", monitor="train_loss")
    on = trainer(enable_checkpointing=True, callbacks=[found])
    module = new()
    on.fit(module, loader(), ckpt_path=f"ck/{name}")
    assert on.global_step == module.engine.steps == 5
    module.save(f"on_{name}")
    assert same(f"on_{name}", "by_program"), f"other bits after {name}"
    module.close()
loaded = SifrModule.load_from_checkpoint("ck/last.ckpt")
assert loaded.hparams.config == "ds.json" and loaded.model_dir.endswith("last.ckpt/model")
(of_folder,) = trainer().validate(loaded, loader())
(of_engine,) = trainer().validate(new(), loader(), ckpt_path="ck/last.ckpt")
(of_test,) = trainer().test(new(), loader(), ckpt_path="ck/last.ckpt")
assert of_folder == of_engine == {"val_loss": of_test["test_loss"]}
last = trainer()
last.fit(loaded, loader())  # with a new optimizer, from there
assert last.callback_metrics["train_loss"] < of_folder["val_loss"]
last.save_checkpoint("weights.ckpt", weights_only=True)
assert sorted(os.listdir("weights.ckpt")) == ["lightning.pt", "model"]
refusal = lambda: trainer().fit(new(), loader(), ckpt_path="weights.ckpt")  # noqa: E731
raises("weights alone", refusal)
(of_weights,) = trainer().validate(new(), loader(), ckpt_path="weights.ckpt")
(of_trained,) = trainer().validate(loaded, loader())
assert of_weights == of_trained
raises("has trained 5 steps", lambda: trainer().fit(loaded, loader()))
raises("with other batches", lambda: trainer(accumulate_grad_batches=1).fit(loaded, loader()))

# --- a linked last one, loaders with processes; adapters; a module of one's own ---
link = cb.ModelCheckpoint(dirpath="links", every_n_train_steps=2, save_last="link")
run = trainer(enable_checkpointing=True, callbacks=[link])
run.fit(new(), DataLoader([row] * 40, batch_size=2, num_workers=2))
assert os.readlink("links/last.ckpt") == "epoch=0-step=4.ckpt" and len(os.listdir("links")) == 2
module = new()
trainer().fit(module, loader(), ckpt_path="links/last.ckpt")
module.save("by_link")
assert same("by_link", "by_program"), "other bits after a link"
inside = lambda: trainer().fit(new(), loader(), ckpt_path="ck/last.ckpt/engine")  # noqa: E731
raises("last.ckpt is one", inside)
config = json.load(open("ds.json"))
config["sifr"]["lora"] = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}
keep = cb.ModelCheckpoint(dirpath="lora", every_n_train_steps=2)
module = new(config)
trainer(enable_checkpointing=True, callbacks=[keep]).fit(module, loader())
module.save("adapter")
on = new(config)
trainer().fit(on, loader(), ckpt_path=keep.best_model_path)
on.save("adapter_on")
assert same("adapter", "adapter_on", "adapter_model"), "other bits of adapters"
raises("has adapters", lambda: SifrModule.load_from_checkpoint(keep.best_model_path))


class Mine(SifrModule):
    def __init__(self, model_dir, extra):
        super().__init__(model_dir, "ds.json", seed=extra)
        self.extra = extra

    def on_save_checkpoint(self, checkpoint):
        checkpoint["said"] = self.extra

    def on_load_checkpoint(self, checkpoint):
        self.loaded = checkpoint["said"]


run = trainer()
run.fit(Mine("llama", 7), loader())
run.save_checkpoint("mine.ckpt")
mine = Mine.load_from_checkpoint("mine.ckpt")
assert (mine.extra, mine.loaded, mine._flags) == (7, 7, {"seed": 7})

# --- epochs: what is left of one is a step; validation, early stopping, the best of them ---
best = cb.ModelCheckpoint(dirpath="best", monitor="val_loss", filename="{epoch}")
stop = cb.EarlyStopping("val_loss", patience=1, min_delta=10.0)
epochs = trainer(
    max_steps=-1, max_epochs=9, enable_checkpointing=True, callbacks=[best, stop, Watch()],
    logger=CSVLogger("csv"), log_every_n_steps=1,
)  # fmt: skip
module = new()
epochs.fit(module, loader(9), loader(9))  # 4 whole micro batches and one row
assert epochs.global_step == module.engine.steps == 6 and stop.stopped_epoch == 1
assert best.best_model_path.endswith("epoch=1.ckpt") and os.listdir("best") == ["epoch=1.ckpt"]
metrics = open("csv/lightning_logs/version_0/metrics.csv").read()
assert "train_loss" in metrics and "val_loss" in metrics and "grad_norm" in metrics
total, count = module.batches.evaluate(next(iter(loader(2))))
assert abs(epochs.callback_metrics["val_loss"].item() - total / count) < 1e-12
few = trainer(max_steps=2)
few.fit(new(), loader(40, theirs))  # in transformers' words
assert few.callback_metrics["train_loss"] > 0
sized = trainer(max_steps=2)
module = new({"sifr": {"seq_length": 32, "threads": 1}})
sized.fit(module, loader(batch=4))  # a loader says the micro batch where no config does
assert module.batches.sequences == 4

# --- loggers; mlflow-skinny keeps files, and no data base ---
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
for logger in (TensorBoardLogger("tb"), MLFlowLogger(save_dir="ml")):
    rates = cb.LearningRateMonitor()
    run = trainer(logger=logger, log_every_n_steps=1, callbacks=[rates], enable_checkpointing=True)
    run.fit(new(), loader())
    assert set(rates.lrs["lr-SifrOptimizer"]) == set(watch.rates), rates.lrs
history = logger.experiment.get_metric_history(logger.run_id, "train_loss")
assert len(history) == 5 and history[4].value < history[0].value
assert [n for n in os.listdir("tb/lightning_logs/version_0") if n.startswith("events")]

# --- what is refused, by its name ---
trainer(gradient_clip_val=1.0).fit(new(), loader())  # says what the config says
refuses("gradient_clip_val=0.5", gradient_clip_val=0.5)
refuses("gradient_clip_algorithm=value", gradient_clip_val=1.0, gradient_clip_algorithm="value")
half = {"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True},
        "sifr": {"seq_length": 32, "threads": 1}}  # fmt: skip
trainer(precision="bf16-mixed").fit(new(half), loader())
trainer().fit(new(half), loader())
for precision in ("bf16-mixed", "16-mixed", "bf16-true", "16-true", "64-true"):
    refuses("precision=", precision=precision)
refuses("precision=bf16-true", new(half), precision="bf16-true")
refuses("4 devices", devices=4)
refuses("2 devices", num_nodes=2)
refuses("sync_batchnorm", sync_batchnorm=True)
refuses("detect_anomaly", detect_anomaly=True)
refuses("AsyncCheckpointIO", plugins=[AsyncCheckpointIO()])
refuses("MLFlowLogger(log_model)", logger=MLFlowLogger(save_dir="ml", log_model=True))
refuses("LightningEnvironment", plugins=[LightningEnvironment()])
for made in (
    cb.StochasticWeightAveraging(1e-2), cb.EMAWeightAveraging(), cb.BackboneFinetuning(),
    cb.GradientAccumulationScheduler({0: 2}), cb.ModelPruning("l1_unstructured"),
    cb.LearningRateFinder(), cb.BatchSizeFinder(),
):  # fmt: skip
    refuses(type(made).__name__, callbacks=[made])
for name in _lightning_rules.GRADIENT_HOOKS:
    nothing = lambda *_: None  # noqa: E731
    refuses(f"Mine.{name}", callbacks=[type("Mine", (cb.Callback,), {name: nothing})()])
for name in (*_lightning_rules.HOOKS, *_lightning_rules.GRADIENT_HOOKS):
    mine = type("Mine", (SifrModule,), {name: lambda *_, **__: None})
    refuses(f"Mine.{name}", mine("llama", "ds.json"))
refuses("LightningModule", L.LightningModule())
module = new()
module.automatic_optimization = False
refuses("automatic_optimization=False", module)
refuses("4 in the config, 2", new(gradient_accumulation_steps=4))
refuses("sifr.data: is the Trainer", new(data="text"))
refuses("seq_length: give it", new({}))
own = new()
own.extra = torch.nn.Linear(2, 2)
refuses("SifrModule.extra.weight", own)
refuses('strategy="sifr"', new(), strategy="auto", accelerator="cpu")
own = new()
trainer(max_steps=1).fit(own, loader())
own.close()
refuses("was closed", own)
refuses("sifr.model: other", new({"sifr": {"model": "other"}}))
refuses("steps: a schedule", max_steps=-1, max_epochs=-1)
raises("a path or a dict", lambda: new(sifr.Config("ds.json")))
raises("Trainer.predict", lambda: trainer().predict(new(), loader()))
torch.save({}, "plain.ckpt")
raises("is a file", lambda: trainer().fit(new(), loader(), ckpt_path="plain.ckpt"))
absent = lambda: trainer().fit(new(), loader(), ckpt_path="none.ckpt")  # noqa: E731
raises("no such checkpoint", absent, FileNotFoundError)
raises("map_location", lambda: SifrModule.load_from_checkpoint("ck", map_location="cpu"))
raises("forward", lambda: new()(1))
raises("engine: the Trainer makes it", lambda: new().engine)
raises("a micro batch 2", lambda: trainer().fit(new(), loader(batch=4)))
raises("optimizer.step", first.optimizers[0].step)
raises("storage_options", lambda: first.save_checkpoint("q.ckpt", storage_options=1))
print(f"lightning {L.__version__}, torch {torch.__version__}")
