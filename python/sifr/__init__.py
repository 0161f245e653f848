"""sifr: a ZeRO training engine. `sifr.train(config)` is `sifr train`; docs/python.md explains it."""

from __future__ import annotations

from . import _sifr
from ._base import Error, LostRankError, NoMemoryError, StoppedError, UsageError
from ._classify import Classified, Classifier, Scored, classify, score
from ._config import Config, Flag, flags
from ._data import Batch, Data, Evaluated
from ._engine import Engine, StepResult, Weight, next_tokens
from ._loss import Loss
from ._plan import MemoryClass, Plan, plan
from ._ranks import rank, size
from ._text import Chat, Generated, Generator, Tokenizer, generate
from ._train import Callbacks, Evaluation, Outcome, Progress, Saved, Step, train
from ._weights import Exported, export, new_folder, state_dict

__version__: str = _sifr.version()

__all__ = [
    "Batch",
    "Callbacks",
    "Chat",
    "Classified",
    "Classifier",
    "Config",
    "Data",
    "Engine",
    "Error",
    "Evaluated",
    "Evaluation",
    "Exported",
    "Flag",
    "Generated",
    "Generator",
    "Loss",
    "LostRankError",
    "MemoryClass",
    "NoMemoryError",
    "Outcome",
    "Plan",
    "Progress",
    "Saved",
    "Scored",
    "Step",
    "StepResult",
    "StoppedError",
    "Tokenizer",
    "UsageError",
    "Weight",
    "classify",
    "export",
    "flags",
    "generate",
    "new_folder",
    "next_tokens",
    "plan",
    "rank",
    "score",
    "size",
    "state_dict",
    "train",
]
