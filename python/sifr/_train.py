"""Whole runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from . import _sifr
from ._base import StoppedError, UsageError
from ._config import Config, ConfigLike
from ._loss import Loss, with_arrays
from ._ranks import ranks, try_together


class Progress(NamedTuple):
    """Before each step, and between the micro batches of an evaluation."""

    begins: bool  #: true once, before the first step
    step: int  #: steps that are done, with those before a resume
    total_steps: int


class Step(NamedTuple):
    """A step that is done."""

    step: int  #: from 1
    total_steps: int
    loss: float  #: mean over the labelled tokens of all ranks
    labelled: int
    gradient_norm: float  #: before clipping
    loss_scale: float  #: 1 in fp32 and bf16
    learning_rate: float
    seconds: float
    updated: bool  #: False: skipped, the weights are as before


class Evaluation(NamedTuple):
    """An evaluation that is done."""

    step: int
    windows: int
    tokens: int  #: that have a label; of pairs of answers the pairs
    loss: float
    seconds: float
    scores: dict[str, float]  #: of labels, or rewards; NaN: not defined


class Saved(NamedTuple):
    """A folder that is written."""

    model: bool  #: the trained model, which comes last; else a checkpoint
    step: int
    path: str


class Callbacks:
    """What a run tells of. Overwrite what is wanted. A callback is called between two steps, on the
    thread that called `train`, on every rank (`line`: on the first). One that returns true, on any
    rank, has the run save a checkpoint and stop. One that raises does so too, and the exception
    comes out of `train` after the save."""

    def progress(self, event: Progress) -> Any:
        """A place to ask for a stop."""

    def step(self, event: Step) -> Any: ...

    def evaluation(self, event: Evaluation) -> Any: ...

    def saved(self, event: Saved) -> Any: ...

    def line(self, text: str) -> Any:
        """A line for a person to read."""


class Outcome(NamedTuple):
    """How a run ended."""

    ranks: int
    stopped: bool  #: by a callback
    first_step: int  #: of a resumed run: the steps that were done before
    steps: int
    total_steps: int
    tokens: int  #: of this run's steps
    skipped: int  #: steps that changed nothing, with those before a resume
    loss: float  #: of the last record of the metrics; NaN: none
    eval_loss: float  #: NaN: none
    has_perplexity: bool  #: e^eval_loss means something
    seconds: float  #: of steps, evaluations and saves
    step_seconds: float
    planned_bytes: int  #: of a rank's engine
    measured_bytes: int  #: of a rank at most, in all
    baseline_bytes: int  #: of a rank before the engine took its memory
    report: dict[str, Any] | None  #: what `sifr train --json` prints, on the first rank


_NAMES = ("progress", "step", "evaluation", "saved", "line")
_EVENTS: dict[str, Any] = {
    "progress": Progress,
    "step": Step,
    "evaluation": Evaluation,
    "saved": Saved,
    "line": str,
}


def _one(callbacks: Any) -> dict[str, Callable[[Any], Any]]:
    """What is there of a dict, or of an object's methods. What would never be called is refused."""
    if isinstance(callbacks, Mapping):
        for name in callbacks:
            if name not in _NAMES:
                raise UsageError(f"callbacks: {name!r} is none of {', '.join(_NAMES)}")
        found = dict(callbacks)
    else:
        found = {n: getattr(callbacks, n) for n in _NAMES if hasattr(callbacks, n)}
        found = {n: c for n, c in found.items() if getattr(c, "__func__", c) is not _empty(n)}
        if not found and not isinstance(callbacks, Callbacks):
            raise UsageError(f"callbacks: {callbacks!r} has none of {', '.join(_NAMES)}")
    for name, callback in found.items():
        if not callable(callback):
            raise UsageError(f"callbacks: {name} cannot be called: {callback!r}")
    return found


def _empty(name: str) -> Any:
    return getattr(Callbacks, name)


def _gather(callbacks: Any) -> dict[str, list[Callable[[Any], Any]]]:
    out: dict[str, list[Callable[[Any], Any]]] = {name: [] for name in _NAMES}
    several = isinstance(callbacks, (list, tuple))
    for one in callbacks if several else [callbacks]:
        for name, callback in ({} if one is None else _one(one)).items():
            out[name].append(callback)
    return out


def train(
    config: ConfigLike | None = None,
    *,
    callbacks: Callbacks | Mapping[str, Callable[[Any], Any]] | Iterable[Any] | None = None,
    loss: Loss | None = None,
    **flags: Any,
) -> Outcome:
    """Trains from a config, as `sifr train` does, and with the same bits: the config's output folder
    gets the trained model, checkpoints and metrics.

    `config` is a path, a dict or a Config, and flags of `sifr train` go over it: `max_steps=100`.
    `callbacks` is an object with methods as Callbacks has, a dict of such functions, or a list of
    either. Under mpirun the processes are the ranks of one run, and each makes the same call.

    `loss` is trained by in place of the labels' cross entropy, as that of an Engine, but its arrays
    are copies. Each rank gives the same one, and so does a run that goes on: a checkpoint of one
    with a loss is refused without, and without one with. What it raises ends the run on all ranks;
    no checkpoint is saved then.

    Log lines go to the logger "sifr". Ctrl-C saves a checkpoint, then KeyboardInterrupt comes out.
    """
    called, own, compute = try_together(
        lambda: (_gather(callbacks), Config(config, **flags), with_arrays(loss))
    )

    def tell(kind: str, *values: Any) -> bool:
        event = _EVENTS[kind](*values)
        answers = [callback(event) for callback in called[kind]]
        return any(answers)

    found = _sifr.train(
        own._config, ranks(), tell, bool(called["progress"]), bool(called["line"]), True, compute
    )
    if found["stopped"] > 1:
        raise StoppedError(
            f"the run stopped after step {found['steps']}, and saved: a callback of another rank "
            "raised an exception"
        )
    report = found.pop("report")
    found["stopped"] = bool(found["stopped"])
    return Outcome(report=json.loads(report) if report else None, **found)
