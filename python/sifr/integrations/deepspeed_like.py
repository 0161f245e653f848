"""Loops that were written for DeepSpeed's three calls: `engine(batch)`, `engine.backward(loss)`,
`engine.step()`.

    engine, _, _, _ = initialize(model="Llama-3.2-1B", config="ds_config.json", total_steps=1000)
    for batch in loader:
        loss = engine(batch)
        engine.backward(loss)
        engine.step()
        if engine.global_steps % 10 == 0: print(engine.loss)

It has the shape of `deepspeed.initialize`, and these limits:

- `model` is a model folder, not a module. There is no `engine.module`, and torch holds no weights.
- The loss is the config's (a decoder's: the mean cross entropy of its labelled tokens). A loss that
  is computed outside cannot be honoured: `backward` takes a handle of `engine(batch)` as it is, and
  arithmetic with a handle raises.
- `engine(batch)` queues a micro batch, `backward(handle)` marks it, `step()` runs forward pass,
  backward pass and update at the boundary of the accumulation (`gradient_accumulation_steps`), all
  at once; before it does nothing. Gradients are never visible.
- A handle's own loss (the mean over the labelled tokens of its micro batch, on this rank) is known
  after that step; to read it earlier raises. So `print(loss.item())` stands behind the step.
- A step's loss is the mean over all labelled tokens of the global batch, not the mean of the micro
  batches' means.
- `optimizer`, `training_data`, `lr_scheduler` and the other arguments are refused: the config says
  the optimizer and its schedule, a loader is the caller's.
- The number of steps of a schedule comes from `total_steps` or the config's `sifr.max_steps`.
- `save_checkpoint` writes sifr's checkpoint; `sifr import` reads DeepSpeed's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NoReturn

from .. import _ranks
from .._base import UsageError
from .._config import Config, ConfigLike
from .._engine import Engine, StepResult
from ._among_ranks import check_launcher
from ._micro_batches import MicroBatches, one_stage

__all__ = ["Loss", "ThreeCalls", "initialize"]


class Loss:
    """The loss of a micro batch, which is known after its step."""

    def __init__(self) -> None:
        self._value: float | None = None
        self.marked = False  #: `backward` has got it

    def item(self) -> float:
        if self._value is None:
            raise UsageError(
                "loss: it is not known before the step that its micro batch belongs to; read it "
                "behind engine.step() at the boundary"
            )
        return self._value

    __float__ = item

    def detach(self) -> Loss:
        return self

    def __repr__(self) -> str:
        return f"Loss({'of a step to come' if self._value is None else self._value})"

    def _refuse(self, *_: Any) -> NoReturn:
        raise UsageError(
            "loss: a loss computed outside of sifr cannot be honoured; give backward() what "
            "engine(batch) gave (numbers: loss.item(), behind the step)"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __neg__ = __pow__ = backward = _refuse


class ThreeCalls:
    """What `initialize` makes. Of all ranks, each with its own batches."""

    def __init__(self, batches: MicroBatches) -> None:
        self._batches = batches
        self._handles: list[tuple[Loss, int]] = []
        self._training = True
        self.last: StepResult | None = None  #: of the last step

    @property
    def engine(self) -> Engine:
        return self._batches.engine

    # --- the three calls ---

    def __call__(self, batch: Any = None, **named: Any) -> Loss:
        """Queues a micro batch: a dict, (tokens, labels), or its parts by name. After eval(): its
        loss, at once."""
        if (batch is None) == (not named):
            raise UsageError("engine(…): one batch is wanted, or its parts by name")
        given = named if batch is None else batch
        loss = Loss()
        if not self._training:
            total, count = self._batches.evaluate(given)
            loss._value = total / count if count else float("nan")
            return loss
        if self._handles and not self._handles[-1][0].marked:
            raise UsageError(
                "engine(batch): the micro batch before has no backward(loss); for a loss alone "
                "call eval() first"
            )
        self._handles.append((loss, self._batches.add(given)))
        return loss

    def backward(self, loss: Any) -> Any:
        """Marks a micro batch; its gradients are made in the step."""
        if not isinstance(loss, Loss):
            Loss()._refuse()
        if not any(loss is handle for handle, _ in self._handles):
            raise UsageError("backward: this loss is of no micro batch that waits for a step")
        loss.marked = True
        return loss

    def step(self) -> None:
        """At the boundary a step with all micro batches, before it nothing."""
        if self._handles and not self._handles[-1][0].marked:
            raise UsageError("step: the last micro batch has no backward(loss)")
        if not self.is_gradient_accumulation_boundary():
            return
        handles, self._handles = self._handles, []
        self.last = self._batches.step()
        for (loss, count), total in zip(handles, self.last.micro_losses):
            loss._value = total / count if count else float("nan")

    # --- questions ---

    def is_gradient_accumulation_boundary(self) -> bool:
        """Whether the step behind the last micro batch updates the weights."""
        return len(self._handles) == self._batches.per_step

    @property
    def loss(self) -> float:
        """Of the last step: the mean over its labelled tokens, of all ranks."""
        return float("nan") if self.last is None else self.last.loss

    @property
    def global_steps(self) -> int:
        return self.engine.steps

    @property
    def skipped_steps(self) -> int:
        return self.engine.steps - self.engine.updates

    def gradient_accumulation_steps(self) -> int:
        return self._batches.per_step

    def train_micro_batch_size_per_gpu(self) -> int:
        return self._batches.sequences

    def train_batch_size(self) -> int:
        return self._batches.sequences * self._batches.per_step * _ranks.size()

    def get_lr(self) -> list[float]:
        """Of the next step."""
        return [self.engine.learning_rate]

    def get_global_grad_norm(self) -> float | None:
        return None if self.last is None else self.last.gradient_norm

    def train(self, mode: bool = True) -> ThreeCalls:
        self._training = mode
        return self

    def eval(self) -> ThreeCalls:
        return self.train(False)

    # --- files ---

    def save_checkpoint(
        self,
        save_dir: str | os.PathLike[str],
        tag: str | None = None,
        client_state: Mapping[str, Any] | None = None,
        *,
        keep: int = 0,
    ) -> None:
        """SAVE_DIR/checkpoint-<steps>, with `client_state` (what JSON can hold)."""
        _no_tag(tag)
        self._nothing_waits("save_checkpoint")
        self.engine.save_checkpoint(save_dir, client_state, keep=keep)

    def load_checkpoint(
        self, load_dir: str | os.PathLike[str], tag: str | None = None
    ) -> tuple[str | None, dict[str, Any] | None]:
        """The newest intact one: its path and the client's state, or twice None."""
        _no_tag(tag)
        self._nothing_waits("load_checkpoint")
        state = self.engine.load_checkpoint(load_dir)
        if state is None:
            return None, None
        return os.path.join(load_dir, f"checkpoint-{self.engine.steps}"), state

    def save_16bit_model(self, save_dir: str | os.PathLike[str]) -> None:
        """Writes a model folder, in the types of the one that is trained."""
        self.engine.save(save_dir)

    def _nothing_waits(self, name: str) -> None:
        if self._handles:
            raise UsageError(f"{name}: micro batches wait for a step; call it behind a boundary")

    def __getattr__(self, name: str) -> Any:
        why = "torch holds no weights" if name == "module" else "DeepSpeed's engine may have it"
        raise AttributeError(f"{name}: is not supported by {type(self).__name__}: {why}")


def _no_tag(tag: str | None) -> None:
    if tag is not None:
        raise UsageError(f"tag: {tag!r} is not supported; a checkpoint is named by its step")


def initialize(
    args: Any = None,
    model: str | os.PathLike[str] | None = None,
    *,
    config: ConfigLike | None = None,
    total_steps: int | None = None,
    **others: Any,
) -> tuple[ThreeCalls, None, None, None]:
    """An engine for the model folder `model`, by a config as DeepSpeed takes it (or
    `args.deepspeed_config`), and three times None, where DeepSpeed returns optimizer, loader and
    schedule. The head of this module says what differs."""
    check_launcher()
    for name, value in others.items():
        if value is not None:
            raise UsageError(
                f"initialize: {name} is not supported: the config or the loop has its place"
            )
    if not isinstance(model, (str, os.PathLike)):
        raise UsageError("initialize: model is a folder's path; modules of torch are not taken")
    if config is None:
        config = getattr(args, "deepspeed_config", None)
    own = Config(config, model=model)
    one_stage(own.resolve(_ranks.size()))
    engine = Engine(own)
    if total_steps is not None:
        engine.set_steps(total_steps)
    return ThreeCalls(MicroBatches(engine, model)), None, None, None
