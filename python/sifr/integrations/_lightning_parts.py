"""What Lightning finds where it looks for torch's: processes, an optimizer, weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
from torch import Tensor
from torch.optim import Optimizer

from .. import _ranks
from .._base import UsageError
from .._engine import Weight
from . import _among_ranks
from ._param_groups import ParamGroups


class SifrEnvironment(ClusterEnvironment):
    """The processes that mpirun or srun started."""

    def __init__(self) -> None:
        self._local, self._node = _among_ranks.places()

    @property
    def creates_processes_externally(self) -> bool:
        return True

    @property
    def main_address(self) -> str:
        raise UsageError("main_address: the ranks meet through MPI, not through an address")

    @property
    def main_port(self) -> int:
        raise UsageError("main_port: the ranks meet through MPI, not through a port")

    @staticmethod
    def detect() -> bool:
        return True

    def world_size(self) -> int:
        return _ranks.size()

    def set_world_size(self, size: int) -> None:
        """Nothing: the launcher said it."""

    def global_rank(self) -> int:
        return _ranks.rank()

    def set_global_rank(self, rank: int) -> None:
        """Nothing: the launcher said it."""

    def local_rank(self) -> int:
        return self._local

    def node_rank(self) -> int:
        return self._node


class Place(torch.nn.Module):
    """The names and shapes of weights, on torch's meta device: a callback that reads a value gets
    torch's own error."""

    def __init__(self, weights: Mapping[str, Weight]) -> None:
        super().__init__()
        for name, weight in weights.items():
            at: torch.nn.Module = self
            *path, last = name.split(".")
            for part in path:
                if part not in at._modules:
                    at.add_module(part, torch.nn.Module())
                at = at.get_submodule(part)
            empty = torch.empty(weight.shape, device="meta")
            at.register_parameter(last, torch.nn.Parameter(empty, requires_grad=weight.trained))


class SifrOptimizer(Optimizer):
    """Stands for the engine's: it has the rate of the next step, and no state."""

    def __init__(self, place: torch.nn.Module, rate: float, forget: Callable[[], None]) -> None:
        super().__init__([p for p in place.parameters() if p.requires_grad], {"lr": rate})
        self._forget = forget
        self._made = ParamGroups(self.param_groups, "the config")
        self._shown = rate

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        raise UsageError("optimizer.step: the engine updates the weights, when the Trainer steps")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Micro batches that wait for a step are forgotten, but for the newest."""
        self._forget()

    def state_dict(self) -> dict[str, Any]:
        return {}

    @property
    def own_rate(self) -> float | None:
        """What a callback set for the next step. None: the schedule's counts."""
        rate = self._made.rate(self.param_groups)
        return None if rate == self._shown else rate

    def set_rate(self, rate: float) -> None:
        self._shown = rate
        for group in self.param_groups:
            group["lr"] = rate


def gather(tensor: Tensor) -> Tensor:
    """A tensor of all ranks, stacked in their order."""
    mine = tensor.detach().cpu().contiguous()
    bits = mine.flatten().view(torch.uint8) if mine.dim() else mine[None].view(torch.uint8)
    every = [bytearray(one) for one in _among_ranks.gather(bits.numpy().tobytes())]
    if mine.numel() == 0:
        return mine.expand(len(every), *mine.shape)
    parts = [torch.frombuffer(one, dtype=mine.dtype).reshape(mine.shape) for one in every]
    return torch.stack(parts)


_REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda every: every.sum(0),
    "min": lambda every: every.amin(0),
    "max": lambda every: every.amax(0),
    "product": lambda every: every.prod(0),
    "mean": lambda every: (every if every.is_floating_point() else every.double()).mean(0),
}


def reduce(tensor: Any, how: Any) -> Any:
    if not isinstance(tensor, Tensor):
        return tensor
    name = str(how if how is not None else "mean").rsplit(".", 1)[-1].lower()
    name = {"avg": "mean"}.get(name, name)
    if name not in _REDUCTIONS:
        known = ", ".join(_REDUCTIONS)
        raise UsageError(f"reduce: {how} is not supported yet (supported: {known})")
    return _REDUCTIONS[name](gather(tensor))
