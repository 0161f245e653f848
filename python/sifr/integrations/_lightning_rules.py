"""What sifr's strategy refuses of a Trainer of Lightning, each by its name: what the engine does
itself, or what reads torch's weights and gradients, of which there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lightning.pytorch.callbacks import (
    BaseFinetuning,
    BatchSizeFinder,
    Callback,
    GradientAccumulationScheduler,
    LearningRateFinder,
    ModelCheckpoint,
    ModelPruning,
    OnExceptionCheckpoint,
    StochasticWeightAveraging,
    WeightAveraging,
)
from torchmetrics import Metric

from .._base import UsageError
from ._trainer_rules import TRAINERS

if TYPE_CHECKING:
    from lightning.pytorch import Trainer

    from .._config import Config

#: Hooks of a module that would compute, and why they are not the user's.
HOOKS = {
    "training_step": "the engine computes the loss; log in on_train_batch_end",
    "backward": "the engine has the backward pass",
    "optimizer_step": "the engine updates the weights",
    "optimizer_zero_grad": "the engine has the gradients",
    "configure_optimizers": "the config says the optimizer and its schedule",
    "configure_gradient_clipping": "the config says gradient_clipping",
    "lr_scheduler_step": "the config says the schedule",
    "predict_step": "sifr.Generator makes texts",
}
#: Hooks that are there to read or change gradients.
GRADIENT_HOOKS = ("on_before_backward", "on_after_backward")
CALLBACKS: dict[type, str] = {
    StochasticWeightAveraging: "sifr.ema keeps an average of the weights",
    WeightAveraging: "sifr.ema keeps an average of the weights",
    GradientAccumulationScheduler: "an engine's steps have one number of micro batches",
    BaseFinetuning: "sifr.freeze says which weights are trained",
    ModelPruning: "it changes torch's weights, of which there are none",
    LearningRateFinder: "it sets the rate, which the config's schedule has",
    BatchSizeFinder: "an engine's batches have one size; `sifr plan --fit` finds one that fits",
}


def _fail(name: str, why: str) -> None:
    raise UsageError(f'{name}: is not supported by strategy="sifr": {why}')


def _is_other(of: object, name: str, base: type) -> bool:
    own = getattr(of, name, None)
    return getattr(own, "__func__", own) is not getattr(base, name, None)


def check_module(module: Any, base: type) -> None:
    if not isinstance(module, base):
        _fail(type(module).__name__, "it trains a SifrModule(model_dir)")
    if not module.automatic_optimization:
        _fail("automatic_optimization=False", "the engine steps by itself")
    for name, why in HOOKS.items():
        if _is_other(module, name, base):
            _fail(f"{type(module).__name__}.{name}", why)
    for name in GRADIENT_HOOKS:
        if _is_other(module, name, base):
            _fail(f"{type(module).__name__}.{name}", "no gradient is visible")
    for name, parameter in module.named_parameters():
        if parameter.requires_grad and not name.startswith("place."):
            _fail(
                f"{type(module).__name__}.{name}",
                "a layer of torch is neither trained nor saved; set requires_grad = False, or leave "
                "it out",
            )


def check_strategy(strategy: Any, kind: type) -> None:
    if not isinstance(strategy, kind):
        raise UsageError(
            f"strategy: is {type(strategy).__name__}, and a SifrModule is trained by sifr's: give "
            'Trainer(strategy="sifr")'
        )


def check_config(config: Config, ranks: int) -> None:
    """What the Trainer says is not read from the config, and what is read has to be there."""
    section = config.resolve(ranks).get("sifr", {})
    for line in config.explain(ranks):
        said = line.split(": ")[0]
        key = said.split(" = ")[0].removeprefix("sifr.")
        if key.split(".")[0] in TRAINERS and " = " in said and "(default" not in said:
            raise UsageError(
                f"sifr.{key}: is the Trainer's business here: its arguments and loaders say it; "
                "leave it out of the config"
            )
    if not section.get("seq_length"):
        raise UsageError("seq_length: give it: rows are filled to so many tokens")


def _check_callback(callback: Callback, ranks: int) -> None:
    name = type(callback).__name__
    for kind, why in CALLBACKS.items():
        if isinstance(callback, kind):
            _fail(name, why)
    for hook in GRADIENT_HOOKS:
        if _is_other(callback, hook, Callback):
            _fail(f"{name}.{hook}", "no gradient is visible")
    alone = "a rank that fails by itself cannot save, which is of all ranks"
    if ranks > 1 and isinstance(callback, OnExceptionCheckpoint):
        _fail(name, alone)
    if ranks > 1 and isinstance(callback, ModelCheckpoint) and callback.save_on_exception:
        _fail("save_on_exception", alone)


def check_trainer(trainer: Trainer, ranks: int) -> None:
    """What needs no config."""
    connector = trainer._accelerator_connector
    strategy = trainer.strategy
    if trainer.predicting:
        _fail("Trainer.predict", HOOKS["predict_step"])
    if connector._layer_sync is not None:
        _fail("sync_batchnorm", "torch computes nothing")
    if trainer._detect_anomaly:
        _fail("detect_anomaly", "torch has no backward pass to look at")
    if connector._cluster_environment_flag is not None:
        _fail(type(connector._cluster_environment_flag).__name__, "mpirun or srun starts the ranks")
    if strategy._checkpoint_io is not None:
        _fail(type(strategy._checkpoint_io).__name__, "a checkpoint is a folder that sifr writes")
    for logger in trainer.loggers:
        if getattr(logger, "_log_model", False):
            _fail(
                f"{type(logger).__name__}(log_model)",
                "Lightning's loggers keep checkpoints that are files, and pass over folders; log the "
                "folder with logger.experiment",
            )
    callbacks: list[Callback] = trainer.callbacks  # type: ignore[attr-defined]
    for callback in callbacks:
        _check_callback(callback, ranks)
    if ranks > 1 and any(isinstance(m, Metric) for m in trainer.lightning_module.modules()):
        _fail("torchmetrics on several ranks", "they meet through torch.distributed, which is off")


def check_devices(asked: int, ranks: int) -> None:
    if asked not in (1, ranks):
        _fail(
            f"{asked} devices (devices, num_nodes)",
            f"its ranks are the processes that mpirun started, which are {ranks}; "
            f"use mpirun -n {asked}",
        )


#: What a Trainer's `precision` asks of the config. Its own default, 32-true, asks nothing.
_PRECISIONS = {"16-mixed": "fp16.enabled", "bf16-mixed": "bf16.enabled"}


def _at(effective: Any, path: str) -> Any:
    for name in path.split("."):
        effective = effective.get(name) if isinstance(effective, dict) else None
    return effective


def check_arithmetic(trainer: Trainer, effective: dict[str, Any]) -> None:
    """Precision and clipping, which the engine's config says; a Trainer may repeat it."""
    precision = str(trainer.precision)
    key = _PRECISIONS.get(precision)
    if precision != "32-true" and (key is None or not _at(effective, key)):
        half = [name for name in ("bf16", "fp16") if _at(effective, f"{name}.enabled")]
        _fail(
            f"precision={precision}",
            f"the engine's is {half[0] if half else 'fp32'}; the config says it "
            "(bf16.enabled, fp16.enabled), and the Trainer may leave it out",
        )
    clip = trainer.gradient_clip_val
    own = effective.get("gradient_clipping", 1.0)
    if clip is not None and float(clip) != float(own):
        _fail(f"gradient_clip_val={clip}", f"the engine clips at {own} (gradient_clipping)")
    how = trainer.gradient_clip_algorithm
    if clip and how is not None and str(getattr(how, "value", how)) != "norm":
        _fail(f"gradient_clip_algorithm={how.value}", "the engine clips the norm")
