"""Loops of one's own."""

from __future__ import annotations

import array
import contextlib
import json
import math
import os
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _sifr
from ._base import UsageError
from ._config import Config, ConfigLike
from ._loss import Loss, with_arrays
from ._ranks import closes, ranks, try_together

if TYPE_CHECKING:
    import numpy

Path = Union[str, "os.PathLike[str]"]
#: int32 or int64: an array of numpy, or anything with a buffer or DLPack.
Ids = Any
#: float32 or float64, likewise.
Numbers = Any

_READ, _WRITE, _AVERAGE = range(3)
_STEP, _EVALUATE, _LOGITS = range(3)  # sifr_engine_call


class StepResult(NamedTuple):
    loss: float  #: mean over the labelled tokens of the step
    labelled: int
    gradient_norm: float  #: before clipping, without the loss scale
    loss_scale: float  #: 1 in fp32 and bf16
    updated: bool  #: False: a loss or gradient was not finite, or no token had a label
    micro_losses: list[float]  #: of each micro batch the sum over its labelled tokens


class Weight(NamedTuple):
    shape: tuple[int, ...]  #: as files have it
    trained: bool


def _array(value: Any, name: str) -> Any:
    """What has a buffer; other arrays by DLPack, without a copy where they lie on the CPU."""
    if value is None:
        return None
    try:
        memoryview(value).release()
        return value
    except TypeError:
        if not hasattr(value, "__dlpack__"):
            raise TypeError(f"{name}: an array is wanted, not {type(value).__name__}") from None
    except ValueError as error:
        raise UsageError(f"{name}: no array that sifr can read: {error}") from None
    import numpy

    try:
        return numpy.from_dlpack(value)
    except Exception as error:  # of the library whose array it is
        raise UsageError(f"{name}: no array that sifr can read: {error}") from None


def _state(state: Mapping[str, Any] | None) -> str:
    try:
        return json.dumps(dict(state or {}), allow_nan=False)
    except TypeError as error:
        raise TypeError(f"state: JSON cannot hold it: {error}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"state: JSON cannot hold it: {error}") from None


class Engine:
    """A run whose loop is the caller's: the model folder of a config with an engine, as `train` would
    have it. The caller gives the batches, and decides when to evaluate, save and stop. With the run's
    batches it gives the bits of the run.

    `config` and the flags are those of `train`; data and output may be missing. All memory is taken
    here. Under mpirun the processes are the ranks of one engine, and each makes the same calls, with
    its own batches. An engine is used by one thread at a time; a step leaves the interpreter to other
    threads. Ctrl-C comes out after the step that runs.

    `loss` is trained by in place of the labels' cross entropy (`Loss`), on the CPU. It is called
    for some rows at a time: as many as keep logits and gradient within own_loss_memory (64 MiB),
    1024 at most; rows without a label are not among them. What it raises comes out of `step` and
    `evaluate`, and nothing has changed; on the other ranks sifr.Error does. It must not use the
    engine. The same bits hold while it is a function of what it is given.
    """

    def __init__(
        self, config: ConfigLike | None = None, *, loss: Loss | None = None, **flags: Any
    ) -> None:
        own, self._loss = try_together(lambda: (Config(config, **flags), with_arrays(loss)))
        itself = weakref.ref(self)

        def ask(logits: Any, labels: Any, gradient: Any) -> float:
            """The engine's own hold on a loss that has the engine would be no cycle of Python's."""
            engine = itself()
            assert engine is not None and engine._loss is not None  # a call of it is running
            return engine._loss(logits, labels, gradient)

        self._engine = _sifr.engine(own._config, ranks(), None if loss is None else ask)
        closes(self)
        self._weights = {n: Weight(s, t) for n, s, t in self._engine.weights()}

    def step(
        self,
        tokens: Ids,
        labels: Ids | None = None,
        *,
        learning_rate: float | None = None,
        token_types: Ids | None = None,
        segments: Ids | None = None,
        positions: Ids | None = None,
        targets: Numbers | None = None,
    ) -> StepResult:
        """One step: forward and backward pass of all micro batches, clipping, update. Arrays have
        `batch_shape`; they are copied. The label of a token is the id that follows it, -100: none
        (`next_tokens`). A model that reads numbers beside labels (regression, several labels) takes
        `targets`, `targets_of_token` for each token; those of tokens without a label are not read.
        Without a rate, that of the config's schedule, which has to know how many
        steps there are (max_steps, or `set_steps`)."""
        given = self._arrays(_STEP, tokens, labels, token_types, segments, positions, targets)
        return StepResult(*self._engine.step(given, learning_rate))

    def set_steps(self, total: int) -> None:
        """How many steps there will be, where max_steps does not say it. Before the first; once."""
        self._engine.set_steps(total)

    @property
    def learning_rate(self) -> float:
        """Of the next step, by the config's schedule."""
        return self._engine.rate()

    def evaluate(
        self,
        tokens: Ids,
        labels: Ids | None = None,
        *,
        token_types: Ids | None = None,
        segments: Ids | None = None,
        positions: Ids | None = None,
        targets: Numbers | None = None,
    ) -> tuple[float, int]:
        """The sum of the losses of one micro batch (`micro_batch_shape`), and of how many tokens."""
        return self._engine.evaluate(
            self._arrays(_EVALUATE, tokens, labels, token_types, segments, positions, targets)
        )

    def evaluate_logits(
        self,
        tokens: Ids,
        labels: Ids | None = None,
        *,
        out: Any = None,
        token_types: Ids | None = None,
        segments: Ids | None = None,
        positions: Ids | None = None,
    ) -> tuple[float, int, Any]:
        """The same, and the logits of each token: as fp32 into `out` (contiguous float32, of
        `logits_shape`) if it is given, else into a new array of numpy. They take as much memory
        again in the engine, beyond its plan, from the first call on."""
        given = self._arrays(_LOGITS, tokens, labels, token_types, segments, positions, None)
        if out is None:
            import numpy

            out = numpy.empty(self.logits_shape, numpy.float32)
        out_array = _array(out, "out")
        return (*self._engine.evaluate_logits(given, out_array), out)

    def _arrays(
        self, call: int, tokens: Ids, labels: Any, types: Any, segments: Any, positions: Any, targets: Any
    ) -> tuple[Any, Any, Any, Any, Any, Any]:
        try:
            return (
                _array(tokens, "tokens"),
                _array(labels, "labels"),
                _array(types, "token_types"),
                _array(segments, "segments"),
                _array(positions, "positions"),
                _array(targets, "targets"),
            )
        except Exception as error:  # the other ranks' call ends, too
            self._engine.fail(call, str(error))
            raise

    # --- weights ---

    @property
    def weights(self) -> dict[str, Weight]:
        """All weights by name, in the order of the model."""
        return dict(self._weights)

    def _find(self, name: str) -> Weight:
        found = self._weights.get(name)
        if found is None:
            raise UsageError(f"weight {name}: the model has no weight of that name")
        return found

    def _read(self, what: int, name: str, first: int, make: Callable[[], Any]) -> Any:
        """`make` gives the buffer. Where it fails, the call of the other ranks ends, too."""
        try:
            out = make()
        except Exception:
            with contextlib.suppress(Exception):
                self._engine.move(what, name, 0, array.array("f"))
            raise
        self._engine.move(what, name, first, out)
        return out

    def _room(self, name: str, out: Any) -> Any:
        weight = self._find(name)
        if out is None:
            import numpy

            out = numpy.empty(weight.shape, numpy.float32)
        return self._whole(name, weight, out)

    @staticmethod
    def _whole(name: str, weight: Weight, values: Any) -> Any:
        values = _array(values, f"weight {name}")
        if values is None:
            raise TypeError(f"weight {name}: an array is wanted, not None")
        with memoryview(values) as view:
            shape = view.shape or ()
        if shape not in (weight.shape, (math.prod(weight.shape),)):
            raise UsageError(f"weight {name}: has shape {weight.shape}, the buffer {shape}")
        return values

    def read_weight(self, name: str, out: Any = None) -> Any:
        """A weight's values as fp32, into `out` (contiguous float32) if it is given, else into a new
        array of numpy."""
        made = self._read(_READ, name, 0, lambda: self._room(name, out))
        return made if out is None else out

    def write_weight(self, name: str, values: Any) -> None:
        """Copies contiguous float32 values into a weight. All other state stays as it is."""
        self._engine.move(_WRITE, name, 0, self._whole(name, self._find(name), values))

    def read_piece(self, name: str, first: int, out: Any) -> None:
        """Elements first, first + 1, … of a weight, row-major, as many as `out` has room for: for
        weights that would not fit into memory twice."""
        self._read(_READ, name, first, lambda: _array(out, f"weight {name}"))

    def write_piece(self, name: str, first: int, values: Any) -> None:
        """The same in the other direction."""
        self._engine.move(_WRITE, name, first, _array(values, f"weight {name}"))

    def read_average(self, name: str, out: Any = None) -> Any:
        """The average of a trained weight, where the config keeps one (sifr.ema)."""
        made = self._read(_AVERAGE, name, 0, lambda: self._room(name, out))
        return made if out is None else out

    def view(self, name: str) -> numpy.ndarray:
        """A weight's values where the engine has them, without a copy: to read, as they are after
        each step. Only where they lie so: fp32 master weights on the CPU, none of them on disk, coded
        or with a delayed update, on one rank; elsewhere UsageError says why. The engine can be closed
        when no view is left. Other libraries read it by DLPack: torch.from_dlpack(view)."""
        import numpy

        shape = self._find(name).shape
        return numpy.asarray(self._engine.view(name, math.prod(shape))).reshape(shape)

    def initialise(self, seed: int = 42) -> None:
        """Sets every weight to random values by its rule."""
        self._engine.initialise(seed)

    def save(self, folder: Path) -> None:
        """Writes a model folder, with the files and types of the one that is trained; of a model with
        adapters the adapters. It must be absent or empty."""
        self._engine.save(folder)

    def save_checkpoint(
        self, output: Path, state: Mapping[str, Any] | None = None, *, keep: int = 0
    ) -> None:
        """Saves all that is needed to go on, as OUTPUT/checkpoint-<steps>, whole and verified, with
        `state` of the caller's (what JSON can hold). `keep`: so many of the newest stay; 0: all."""
        text = try_together(lambda: _state(state))
        self._engine.save_checkpoint(output, text, keep)

    def load_checkpoint(self, output: Path) -> dict[str, Any] | None:
        """Goes on from the newest intact checkpoint in `output`, of any number of ranks, and gives the
        state that was saved with it. None: there is no checkpoint, and the engine is as it was."""
        text = self._engine.load_checkpoint(output)
        if text is None:
            return None
        state: dict[str, Any] = json.loads(text)
        return state

    # --- the rest ---

    def set_betas(self, beta1: float, beta2: float) -> None:
        """Adam's betas from the next step on."""
        self._engine.set_betas(beta1, beta2)

    @property
    def batch_shape(self) -> tuple[int, int]:
        """Of a step: sequences and tokens, all micro batches one behind the other."""
        facts = self._engine.facts()
        return facts[6], facts[8]

    @property
    def micro_batch_shape(self) -> tuple[int, int]:
        """Of an evaluation."""
        facts = self._engine.facts()
        return facts[7], facts[8]

    @property
    def targets_of_token(self) -> int:
        """How many numbers a batch gives for each token beside its label; usually 0."""
        return self._engine.facts()[9]

    @property
    def logits_shape(self) -> tuple[int, int, int]:
        """Of an evaluation: sequences, tokens, and the words or classes of the model's head."""
        facts = self._engine.facts()
        return facts[7], facts[8], facts[10]

    @property
    def micro_batches(self) -> list[int]:
        """Which micro batches of a step's global batch are this rank's. Given in this order, rows
        have the bits of one rank that gets all micro batches one after the other."""
        found, numbers = self._engine.micro_batch(0), []
        while found >= 0:
            numbers.append(found)
            found = self._engine.micro_batch(len(numbers))
        return numbers

    @property
    def steps(self) -> int:
        return self._engine.facts()[0]

    @property
    def updates(self) -> int:
        """Steps that changed the weights."""
        return self._engine.facts()[1]

    @property
    def loss_scale(self) -> float:
        """Of the next step; 1 in fp32 and bf16."""
        return self._engine.facts()[2]

    @property
    def planned_bytes(self) -> int:
        """All memory of the engine, at its peak."""
        return self._engine.facts()[3]

    @property
    def parameters(self) -> int:
        return self._engine.facts()[4]

    @property
    def trained_parameters(self) -> int:
        return self._engine.facts()[5]

    def close(self) -> None:
        """Gives its memory back."""
        self._engine.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()


def next_tokens(tokens: Ids) -> numpy.ndarray:
    """Labels of decoders: of each token the id that follows it in its sequence; of the last -100."""
    import numpy

    ids = numpy.asarray(tokens)
    labels = numpy.full_like(ids, -100)
    labels[..., :-1] = ids[..., 1:]
    return labels
