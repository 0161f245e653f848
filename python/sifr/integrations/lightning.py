"""sifr as a strategy of Lightning: `Trainer(strategy="sifr")` trains a `SifrModule(model_dir)`.
docs/lightning.md explains it."""

from __future__ import annotations

import inspect
import os
import pickle
import re
from collections.abc import Callable, Mapping
from typing import Any

try:
    import lightning.pytorch as pl
    import torch
except ImportError as error:
    raise ImportError(f"sifr.integrations.lightning needs PyPI's lightning: {error}") from error
from lightning.fabric.utilities.rank_zero import rank_zero_only
from lightning.pytorch.strategies import ParallelStrategy, StrategyRegistry
from lightning.pytorch.trainer import call
from lightning.pytorch.trainer.states import TrainerFn
from lightning_utilities.core.rank_zero import rank_zero_warn
from torch import Tensor

from .. import _ranks
from .._base import UsageError
from .._config import Config
from .._engine import Engine, StepResult
from . import _among_ranks, _checkpoint_folder, _lightning_parts, _lightning_rules
from ._micro_batches import MicroBatches, one_stage

__all__ = ["SifrModule", "SifrStrategy"]


def _given(config: Config, ranks: int) -> set[str]:
    """The keys of a batch's size that are given, under any of their names: neither a default nor
    worked out of others."""
    lines = (re.match(r"(\w+) = \d+( \(from [^)]*\))?: ", line) for line in config.explain(ranks))
    return {line[1] for line in lines if line}


class SifrModule(pl.LightningModule):
    """A model folder that sifr trains. `config` is a config of `sifr train`, as a path or a dict,
    and flags go over it: `SifrModule("model", "ds.json", seq_length=128)`. The Trainer says how many
    steps there are, and how many micro batches each has (`accumulate_grad_batches`); a loader's
    batch is a micro batch.

    It logs `train_loss` (the mean over the labelled tokens of a step, of all ranks), `grad_norm`,
    `val_loss` and `test_loss` (the mean over labelled tokens)."""

    def __init__(
        self,
        model_dir: str | os.PathLike[str],
        config: Mapping[str, Any] | str | os.PathLike[str] | None = None,
        **flags: Any,
    ) -> None:
        super().__init__()
        if isinstance(config, Config):
            raise UsageError("config: give a path or a dict, which a checkpoint can keep")
        self.save_hyperparameters()
        self.model_dir = os.fspath(model_dir)
        self._source, self._flags = config, flags
        self._batches: MicroBatches | None = None
        self._wants: tuple[Any, ...] = ()
        self._closed = False
        self._touched = False  # its weights are no more those of the folder
        self.last_step: StepResult | None = None

    # --- the engine ---

    @property
    def engine(self) -> Engine:
        """From the first fit, validate or test on."""
        return self.batches.engine

    @property
    def batches(self) -> MicroBatches:
        self._check_open()
        trainer = getattr(self, "_trainer", None)
        if self._batches is None and trainer is not None:
            _lightning_rules.check_strategy(trainer.strategy, SifrStrategy)
        if self._batches is None:
            raise UsageError("engine: the Trainer makes it, in fit, validate or test")
        return self._batches

    def _check_open(self) -> None:
        """Nothing begins anew with the folder's weights in silence."""
        if self._closed:
            raise UsageError(
                "this module was closed, and its weights are gone; save() before close(), and make a "
                "SifrModule of that folder"
            )

    def close(self) -> None:
        """Gives the engine's memory back. Its weights are gone, and every later use is refused."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        if self._batches is not None:
            self._batches.engine.close()
            self._batches = None

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the model, as it is now, as a model folder. Of all ranks."""
        self.engine.save(folder)

    def _config(self) -> Config:
        config = Config(self._source, **self._flags)
        own = config.value("sifr.model", _ranks.size())
        if own is not None and os.path.abspath(own) != os.path.abspath(self.model_dir):
            raise UsageError(f"sifr.model: {own} in the config, {self.model_dir} as model_dir")
        config.set("model", self.model_dir)
        return config

    def _open(self, trainer: pl.Trainer, micro_batches: int | None, rows: int | None) -> None:
        """Makes the engine, or takes the one that is there. None: of a run that does not train."""
        self._check_open()
        config, ranks = self._config(), _ranks.size()
        _lightning_rules.check_config(config, ranks)
        given = _given(config, ranks)
        if not given & {"train_batch_size", "train_micro_batch_size_per_gpu"} and rows:
            config.set("train_micro_batch_size_per_gpu", rows)
        if micro_batches is not None:
            _set_micro_batches(config, given, micro_batches)
        effective = config.resolve(ranks)
        _lightning_rules.check_arithmetic(trainer, effective)
        one_stage(effective)
        wants = (micro_batches, effective.get("train_micro_batch_size_per_gpu"))
        if self._batches is not None and (micro_batches is None or self._wants == wants):
            return
        if self._batches is not None and self._touched:
            raise UsageError(
                "this module's engine has trained, or read a checkpoint, with other batches; save "
                "it, and train SifrModule.load_from_checkpoint(…) or SifrModule(model_dir)"
            )
        self._drop()
        self._batches, self._wants = MicroBatches(Engine(config), self.model_dir), wants
        self.place = _lightning_parts.Place(self.engine.weights)

    # --- what the Trainer calls ---

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """Queues a micro batch. Its loss is not known yet: it is zero, and of the last micro batch
        of a step it becomes the step's."""
        self.batches.add(batch)
        return torch.zeros((), dtype=torch.float64)

    def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        self._evaluate("val_loss", batch)

    def test_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        self._evaluate("test_loss", batch)

    def _evaluate(self, name: str, batch: Any) -> None:
        total, count = self.batches.evaluate(batch)
        loss = torch.tensor(total / max(count, 1), dtype=torch.float64)
        self.log(name, loss, batch_size=count, on_epoch=True, sync_dist=True, prog_bar=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        forget = lambda: self.batches.drop(keep=1)  # noqa: E731
        rate = self.engine.learning_rate
        return _lightning_parts.SifrOptimizer(self.place, rate, forget)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise UsageError("forward: torch has no weights; sifr.Generator and sifr.Engine do")

    @classmethod
    def load_from_checkpoint(  # type: ignore[override]
        cls, checkpoint_path: str | os.PathLike[str], **kwargs: Any
    ) -> SifrModule:
        """A module with the weights of a checkpoint, and a new optimizer. `kwargs` go over what the
        module was made with. The folder has to stay until the engine is made."""
        for name in ("map_location", "hparams_file", "strict"):
            if kwargs.pop(name, None) is not None:
                raise UsageError(f"load_from_checkpoint: {name} means nothing here; leave it out")
        found = _checkpoint_folder.find(checkpoint_path)
        _no_adapters(found.model)
        kept = _read(found.state, kwargs.pop("weights_only", None))
        made = _taken(cls, kept.get(cls.CHECKPOINT_HYPER_PARAMS_KEY) or {})
        module = cls(**{**made, "model_dir": found.model, **kwargs})
        module.on_load_checkpoint(kept)
        return module


def _read(path: str, weights_only: bool | None) -> Any:
    """What Lightning keeps in a checkpoint."""
    try:
        return torch.load(path, weights_only=weights_only)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        why = str(error).split("\n")[0]
        raise UsageError(f"{path}: cannot be read: {why}; give another checkpoint") from error


def _taken(cls: type[SifrModule], made: Mapping[str, Any]) -> dict[str, Any]:
    """What a class's `__init__` takes of hyperparameters: those of its bases are among them."""
    takes = inspect.signature(cls.__init__).parameters
    all_ = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in takes.values())
    own = {n: v for n, v in made.items() if not n.startswith("_")}  # those are LightningCLI's
    return own if all_ else {n: v for n, v in own.items() if n in takes}


def _no_adapters(folder: str) -> None:
    if os.path.exists(os.path.join(folder, "adapter_config.json")):
        raise UsageError(
            f"{folder}: has adapters, no whole model: go on with fit(ckpt_path=…), or merge them "
            "(sifr merge) and take the merged folder as model_dir"
        )


def _set_micro_batches(config: Config, given: set[str], micro_batches: int) -> None:
    name = "gradient_accumulation_steps"
    if name in given:
        own = config.resolve(_ranks.size())[name]
        if own != micro_batches:
            raise UsageError(
                f"{name}: {own} in the config, {micro_batches} in "
                "Trainer(accumulate_grad_batches=…); leave it out of the config"
            )
    config.set(name, micro_batches)


class SifrStrategy(ParallelStrategy):
    """The engine under a Trainer. `backward` does nothing; `optimizer_step` runs the closure, which
    queues the last micro batch, and then the engine: both passes, clipping, update."""

    strategy_name = "sifr"

    def __init__(self) -> None:
        _among_ranks.check_launcher()
        super().__init__(cluster_environment=_lightning_parts.SifrEnvironment())
        self.num_nodes = 1

    @property
    def module(self) -> SifrModule:
        assert isinstance(self.lightning_module, SifrModule)
        return self.lightning_module

    # --- ranks ---

    @property
    def root_device(self) -> torch.device:
        return torch.device("cpu")  # of batches; the engine's is sifr.device

    @property
    def is_distributed(self) -> bool:
        return self.world_size > 1

    @property
    def distributed_sampler_kwargs(self) -> dict[str, Any]:
        return {"num_replicas": self.world_size, "rank": self.global_rank}

    def set_world_ranks(self) -> None:
        setattr(rank_zero_only, "rank", self.global_rank)

    def reduce(self, tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
        return _lightning_parts.reduce(tensor, reduce_op)

    def all_gather(self, tensor: Tensor, group: Any = None, sync_grads: bool = False) -> Tensor:
        return _lightning_parts.gather(tensor)

    def reduce_boolean_decision(self, decision: bool, all: bool = True) -> bool:
        every = [one != b"\0" for one in _among_ranks.gather(bytes([bool(decision)]))]
        return False not in every if all else True in every

    def broadcast(self, obj: Any, src: int = 0) -> Any:
        return _among_ranks.broadcast(obj, src)

    def barrier(self, name: str | None = None) -> None:
        _among_ranks.barrier()

    # --- set-up ---

    def connect(self, model: pl.LightningModule) -> None:
        _lightning_rules.check_module(model, SifrModule)
        super().connect(model)

    def setup_environment(self) -> None:
        devices = self.parallel_devices or [self.root_device]
        if devices[0].type == "cpu":
            _lightning_rules.check_devices(len(devices) * self.num_nodes, self.world_size)
        _lightning_rules.check_trainer(self.module.trainer, self.world_size)

    def setup(self, trainer: pl.Trainer) -> None:
        if trainer.state.fn != TrainerFn.FITTING:
            self.module._open(trainer, None, None)
            return
        steps = _steps(trainer)
        trainer.fit_loop.setup_data()
        rows = getattr(trainer.train_dataloader, "batch_size", None)
        self.module._open(trainer, trainer.accumulate_grad_batches, rows)
        if self.module.engine.steps and not trainer.ckpt_path:
            raise UsageError(
                f"fit: this module has trained {self.module.engine.steps} steps; go on with "
                "fit(ckpt_path=…), or train SifrModule.load_from_checkpoint(…)"
            )
        self.module.engine.set_steps(steps)
        self.module._touched = True
        self.setup_optimizers(trainer)

    def model_to_device(self) -> None:
        """Nothing: torch has no weights."""

    def teardown(self) -> None:
        batches = getattr(self._lightning_module, "_batches", None)
        if batches is not None:
            batches.drop()

    # --- steps ---

    def backward(self, closure_loss: Tensor, optimizer: Any, *args: Any, **kwargs: Any) -> Tensor:
        return closure_loss

    def optimizer_step(
        self,
        optimizer: torch.optim.Optimizer,
        closure: Callable[[], Any],
        model: Any = None,
        **kwargs: Any,
    ) -> Any:
        module = self.module
        loss = closure()
        for hook in (call._call_callback_hooks, call._call_lightning_module_hook):
            hook(module.trainer, "on_before_optimizer_step", optimizer)
        ours = optimizer if isinstance(optimizer, _lightning_parts.SifrOptimizer) else None
        rate = ours.own_rate if ours is not None else None
        result = module.last_step = module.batches.step(rate)
        if isinstance(loss, Tensor):
            loss.fill_(result.loss)  # what hooks get as the batch's outputs
        if ours is not None:
            ours.set_rate(module.engine.learning_rate)
        for name, value in (("train_loss", result.loss), ("grad_norm", result.gradient_norm)):
            shown = torch.tensor(value, dtype=torch.float64)
            module.log(name, shown, on_step=True, on_epoch=False, prog_bar=name == "train_loss")
        return loss

    @property
    def handles_gradient_accumulation(self) -> bool:
        return False  # so that global_step counts updates

    # --- checkpoints ---

    @property
    def lightning_restore_optimizer(self) -> bool:
        return False

    @property
    def restore_checkpoint_after_setup(self) -> bool:
        return True

    def lightning_module_state_dict(self) -> dict[str, Any]:
        return {}

    def optimizer_state(self, optimizer: Any) -> dict[str, Any]:
        return {}

    def save_checkpoint(
        self, checkpoint: dict[str, Any], filepath: Any, storage_options: Any = None
    ) -> None:
        if storage_options is not None:
            raise UsageError("storage_options: a checkpoint is a folder that sifr writes")
        if self.module._batches is None and self.module.trainer.interrupted:
            rank_zero_warn(f"{filepath}: is not saved: the run ended before it had an engine")
            return
        weights_only = "optimizer_states" not in checkpoint
        put = lambda path: torch.save(checkpoint, path)  # noqa: E731
        _checkpoint_folder.write(self.module.engine, filepath, put, weights_only=weights_only)

    def load_checkpoint(self, checkpoint_path: Any, weights_only: bool | None = None) -> Any:
        found = _checkpoint_folder.find(checkpoint_path)
        fitting = self.module.trainer.state.fn == TrainerFn.FITTING
        if found.engine is None and fitting:
            raise UsageError(
                f"{found.path}: has weights alone (save_weights_only), so a fit cannot go on from "
                "it; train SifrModule.load_from_checkpoint(…)"
            )
        kept = _read(found.state, weights_only)
        self.module._touched = True
        if found.engine is None:
            self._read_weights(found.model)
        elif self.module.engine.load_checkpoint(found.engine) is None:
            raise UsageError(f"{found.engine}: has no checkpoint of an engine")
        return kept

    def _read_weights(self, folder: str) -> None:
        from .._weights import state_dict

        _no_adapters(folder)
        values = state_dict(folder)
        for name in self.module.engine.weights:
            if name not in values:
                raise UsageError(f"{folder}: has no weight {name}")
            self.module.engine.write_weight(name, values[name].astype("float32"))

    def load_model_state_dict(self, checkpoint: Mapping[str, Any], strict: bool = True) -> None:
        """Nothing: load_checkpoint has read the weights."""

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        """Nothing: load_checkpoint has read them with the weights."""

    def remove_checkpoint(self, filepath: Any) -> None:
        _checkpoint_folder.remove(filepath)


def _steps(trainer: pl.Trainer) -> int:
    """How many updates a fit has at most, which schedules need."""
    steps = trainer.estimated_stepping_batches
    if steps == float("inf") or steps < 1:
        raise UsageError(
            "steps: a schedule needs their number; set max_steps, or max_epochs and a loader "
            "whose length is known"
        )
    return int(steps)


StrategyRegistry.register(
    SifrStrategy.strategy_name, SifrStrategy, description="sifr's ZeRO engine, of docs/lightning.md"
)
