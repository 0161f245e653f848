"""The engine's optimizer and schedule, as Trainer and callbacks see torch's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.optim.lr_scheduler import LRScheduler

from .._base import UsageError
from ._param_groups import ParamGroups

if TYPE_CHECKING:
    from .._engine import Engine, StepResult


class SifrOptimizer(torch.optim.Optimizer):
    """The engine updates within `training_step`; what is left here are the learning rate, which a
    callback may set for the next step, and whether the last step changed anything."""

    def __init__(self, groups: list[dict[str, Any]], rate: float) -> None:
        super().__init__(groups, {"lr": rate, "weight_decay": 0.0})
        self.result: StepResult | None = None
        self._made = ParamGroups(self.param_groups, "sifr=")

    def step(self, closure: Any = None) -> Any:
        if closure is not None:
            raise UsageError("optimizer.step: a closure is not called: the engine has its own loss")

    @property
    def step_was_skipped(self) -> bool:
        return self.result is not None and not self.result.updated

    def show(self, rate: float) -> None:
        for group in self.param_groups:
            group["lr"] = rate

    @property
    def rate(self) -> float:
        """Of the next step. What else is changed would have no effect."""
        return self._made.rate(self.param_groups)

    def state_dict(self) -> Any:
        raise UsageError(
            "optimizer.state_dict: the state is in the engine, and in checkpoint-N/sifr"
        )


class EngineSchedule(LRScheduler):
    """The config's schedule, which the engine computes; it counts updates by itself."""

    def __init__(self, optimizer: SifrOptimizer, engine: Engine) -> None:
        self.engine = engine
        super().__init__(optimizer)

    def get_lr(self) -> list[float | torch.Tensor]:
        rate = self.engine.learning_rate
        return [rate for _ in self.optimizer.param_groups]

    def refresh(self) -> None:
        """After the engine went on from a checkpoint."""
        rate = self.engine.learning_rate
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self._last_lr = [rate for _ in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.refresh()
