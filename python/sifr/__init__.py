"""sifr: a ZeRO training engine. `sifr.train(config)` is `sifr train`; docs/python.md explains it."""

from __future__ import annotations

from . import _sifr
from ._base import Error, LostRankError, NoMemoryError, StoppedError, UsageError
from ._config import Config, Flag, flags
from ._engine import Engine, StepResult, Weight, next_tokens
from ._ranks import rank, size
from ._text import Chat, Generated, Generator, Tokenizer, generate
from ._train import Callbacks, Evaluation, Outcome, Progress, Saved, Step, train

__version__: str = _sifr.version()

__all__ = [
    "Callbacks",
    "Chat",
    "Config",
    "Engine",
    "Error",
    "Evaluation",
    "Flag",
    "Generated",
    "Generator",
    "LostRankError",
    "NoMemoryError",
    "Outcome",
    "Progress",
    "Saved",
    "Step",
    "StepResult",
    "StoppedError",
    "Tokenizer",
    "UsageError",
    "Weight",
    "flags",
    "generate",
    "next_tokens",
    "rank",
    "size",
    "train",
]
