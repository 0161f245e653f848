"""sifr: a ZeRO training engine. `sifr.train(config)` is `sifr train`; docs/python.md explains it."""

from __future__ import annotations

from . import _sifr
from ._base import Error, LostRankError, NoMemoryError, StoppedError, UsageError
from ._config import Config, Flag, flags
from ._ranks import rank, size
from ._train import Callbacks, Evaluation, Outcome, Progress, Saved, Step, train

__version__: str = _sifr.version()

__all__ = [
    "Callbacks",
    "Config",
    "Error",
    "Evaluation",
    "Flag",
    "LostRankError",
    "NoMemoryError",
    "Outcome",
    "Progress",
    "Saved",
    "Step",
    "StoppedError",
    "UsageError",
    "flags",
    "rank",
    "size",
    "train",
]
