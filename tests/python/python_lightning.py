"""sifr's strategy for Lightning, on stubs; test_python_integrations.sh trained the same."""

import os
import types

import sifr
import stub_lightning
from sifr.integrations import deepspeed_like


def raises(kind, words, call, *args, **named):
    try:
        call(*args, **named)
    except kind as error:
        assert words in str(error), f"{error} lacks {words}"
        return
    raise AssertionError(f"no {kind.__name__} with {words}")


def trainer(**given):
    """What the strategy reads of a Trainer, with the loops of one that fits."""
    usual = {
        "state": types.SimpleNamespace(fn="fit"), "fit_loop": types.SimpleNamespace(
            setup_data=lambda: None), "train_dataloader": types.SimpleNamespace(batch_size=2),
        "accumulate_grad_batches": 2, "estimated_stepping_batches": 5, "ckpt_path": None,
        "precision": "32-true", "gradient_clip_val": None, "gradient_clip_algorithm": None,
        "predicting": False, "interrupted": False, "_detect_anomaly": False, "logged": {},
        "callbacks": [], "loggers": [], "_accelerator_connector": types.SimpleNamespace(
            _layer_sync=None, _cluster_environment_flag=None),
    }  # fmt: skip
    made = types.SimpleNamespace(**{**usual, **given})
    made.strategy = stub_lightning.registry["sifr"]()
    return made


def begin(module, **given):
    made = trainer(**given)
    module.trainer = made
    made.lightning_module = module
    made.strategy.set_world_ranks()
    made.strategy.connect(module)
    made.strategy.setup_environment()
    made.strategy.setup(made)
    return made


def steps(made, count):
    """As Lightning's loop of automatic optimization goes."""
    module, strategy = made.lightning_module, made.strategy
    for _ in range(count):
        losses = [module.training_step(batch, 0), None]
        made.optimizers[0].zero_grad()  # Lightning does, behind the first training_step
        assert strategy.backward(losses[0], made.optimizers[0]) is losses[0]

        def closure():
            losses[1] = module.training_step(batch, 1)
            return losses[1]

        strategy.optimizer_step(made.optimizers[0], closure, module)
        assert module.last_step.labelled == 128 and losses[0].value == 0
        assert losses[1].value == made.logged["train_loss"]


ids = [j * 7 % 50 for j in [*range(32), 0]]
batch = ([ids[:32]] * 2, [ids[1:]] * 2)
with stub_lightning.in_place():
    from sifr.integrations.lightning import SifrModule

new = lambda config="ds_lightning.json": SifrModule("llama", config)  # noqa: E731
module = new()
made = begin(module)
strategy = made.strategy
assert not strategy.handles_gradient_accumulation and not strategy.lightning_restore_optimizer
assert strategy.restore_checkpoint_after_setup and not strategy.is_distributed
assert strategy.distributed_sampler_kwargs == {"num_replicas": 1, "rank": 0}
assert strategy.reduce_boolean_decision(True) and not strategy.reduce_boolean_decision(False)
assert strategy.broadcast({"a": 1}) == {"a": 1}
assert len(module.place.parameters()) == len(module.engine.weights)
steps(made, 3)
state = {"optimizer_states": [], "hyper_parameters": module.hparams}
strategy.save_checkpoint(state, "light.ckpt")
steps(made, 2)
assert made.optimizers[0].param_groups[0]["lr"] == module.engine.learning_rate
module.save("by_strategy")
module.validation_step(batch, 0)
module.close()
raises(sifr.UsageError, "was closed", begin, module)
raises(sifr.UsageError, "was closed", module.save, "after_close")
on = new()
made = begin(on, ckpt_path="light.ckpt")
assert made.strategy.load_checkpoint("light.ckpt") == state
steps(made, 2)
on.save("by_checkpoint")
for folder in ("by_strategy", "by_checkpoint"):
    files = [open(f"{name}/model.safetensors", "rb").read() for name in (folder, "by_program")]
    assert files[0] == files[1], f"{folder}: other bits"
raises(sifr.UsageError, "has trained 5 steps", begin, on)
on.close()
loaded = SifrModule.load_from_checkpoint("light.ckpt")
assert os.path.samefile(loaded.model_dir, "light.ckpt/model")
with open("light.ckpt/lightning.pt", "rb") as file:
    whole = file.read()
with open("light.ckpt/lightning.pt", "wb") as file:
    file.write(whole[: len(whole) // 2])
raises(sifr.UsageError, "light.ckpt/lightning.pt: ", SifrModule.load_from_checkpoint, "light.ckpt")
made.strategy.remove_checkpoint("light.ckpt")
assert not os.path.exists("light.ckpt")

# --- what is refused, by its name ---
os.environ["WORLD_SIZE"] = "2"
raises(sifr.UsageError, "mpirun -n 2", stub_lightning.registry["sifr"])
raises(sifr.UsageError, "mpirun -n 2", deepspeed_like.initialize, model="llama")
del os.environ["WORLD_SIZE"]
cb = stub_lightning.names["lightning.pytorch.callbacks"]
for words, given in {
    "gradient_clip_val=0.5": {"gradient_clip_val": 0.5},
    "precision=bf16-mixed": {"precision": "bf16-mixed"},
    "precision=64-true": {"precision": "64-true"},
    "detect_anomaly": {"_detect_anomaly": True},
    "Trainer.predict": {"predicting": True},
    "steps: a schedule": {"estimated_stepping_batches": float("inf")},
    "MLFlowLogger(log_model)": {"loggers": [type("MLFlowLogger", (), {"_log_model": "all"})()]},
    "Own.on_after_backward": {
        "callbacks": [type("Own", (cb.Callback,), {"on_after_backward": lambda self: None})()]
    },
    **{n: {"callbacks": [getattr(cb, n)()]} for n in stub_lightning.callbacks if "Ch" not in n},
}.items():
    raises(sifr.UsageError, words, begin, new(), **given)
for name in ("training_step", "backward", "optimizer_step", "configure_optimizers"):
    own = type("Own", (SifrModule,), {name: lambda self: None})("llama")
    raises(sifr.UsageError, f"Own.{name}", begin, own)
raises(sifr.UsageError, "LightningModule", begin, stub_lightning.LightningModule())
own = {"sifr": {"seq_length": 32}}
for config in (
    {"gradient_accumulation_steps": 4, **own},
    {"sifr": {"seq_length": 32, "gradient_accumulation_steps": 4}},
):
    raises(sifr.UsageError, "4 in the config, 2", begin, new(config))
flags = SifrModule("llama", own, gradient_accumulation_steps=4)
raises(sifr.UsageError, "4 in the config, 2", begin, flags)
for name, value in {
    "output": "made", "data": "store", "resume": True, "eval_steps": 3, "max_steps": 7,
    "validation_split": 0.5, "num_train_epochs": 3,
}.items():  # fmt: skip
    given = SifrModule("llama", own, **{name: value})
    raises(sifr.UsageError, f"sifr.{name}: is the Trainer", begin, given)
raises(sifr.UsageError, "seq_length: give it", begin, new({}))
own = new()
own.extra = stub_lightning.Module()
own.add_module("extra", own.extra)
own.extra.register_parameter("weight", stub_lightning.Parameter(None))
raises(sifr.UsageError, "SifrModule.extra.weight", begin, own)
own = new()
own.trainer = own._trainer = types.SimpleNamespace(strategy=object())
raises(sifr.UsageError, 'strategy="sifr"', own.configure_optimizers)
made = begin(new())  # a callback's rate counts, and what has no effect is refused
made.optimizers[0].param_groups[0]["lr"] = 0.25
rates = []
step, made.lightning_module.engine.__class__.step = sifr.Engine.step, lambda self, *a, **k: (
    rates.append(k["learning_rate"]), step(self, *a, **k))[1]  # fmt: skip
steps(made, 2)
sifr.Engine.step = step
assert rates == [0.25, None], rates
made.optimizers[0].param_groups[0]["weight_decay"] = 3
raises(sifr.UsageError, "weight_decay was changed", steps, made, 1)
made.lightning_module.close()
made = trainer()
made.lightning_module = module = new()
module.trainer = made
made.strategy.connect(module)
made.strategy.parallel_devices = [types.SimpleNamespace(type="cpu")] * 4
raises(sifr.UsageError, "mpirun -n 4", made.strategy.setup_environment)
