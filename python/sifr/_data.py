"""The data of a config, read as a run reads them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple, Union

from . import _sifr
from ._base import StoppedError
from ._config import Config, ConfigLike
from ._engine import Engine
from ._ranks import closes, size, try_together


class Batch(NamedTuple):
    """Sequences x tokens, int32: arrays of numpy, or memoryviews where there is none. None: the model
    does not read it. `engine.step(**batch._asdict())` takes all of it."""

    tokens: Any
    labels: Any
    token_types: Any
    segments: Any
    positions: Any
    targets: Any  #: float32, sequences x tokens x numbers of a token


class Evaluated(NamedTuple):
    windows: int
    tokens: int  #: that have a label; of pairs of answers the pairs
    loss: float  #: mean over them
    seconds: float
    scores: dict[str, float]


def _shaped(values: bytes | None, whole: bool, shape: tuple[int, ...]) -> Any:
    if values is None:
        return None
    try:
        import numpy
    except ImportError:
        view = memoryview(values)
        return view.cast("i", shape) if whole else view.cast("f", shape)
    return numpy.frombuffer(values, numpy.int32 if whole else numpy.float32).reshape(shape)


class Data:
    """What the config's data, dataset or eval_data name, read as `train` reads them: tokenised, cut
    or packed, and shuffled by its seed. `step` gives the batches of the run, whose bits an `Engine`
    of the same config then has.

    `evaluation` opens what is held out. `cache` is a folder for token stores that are made of text,
    to be found there the next time. Where targets come from a model (preferences, distillation),
    give the `engine` of the same config; all ranks do so together. Each rank opens its own data.
    """

    def __init__(
        self,
        config: ConfigLike | None = None,
        *,
        evaluation: bool = False,
        cache: Union[str, "os.PathLike[str]", None] = None,
        engine: Engine | None = None,
        **flags: Any,
    ) -> None:
        own = try_together(lambda: Config(config, **flags))
        own.clear("own-loss-memory")  # of the engine's loss, which changes no row
        self._data = _sifr.data(
            own._config, size(), evaluation, cache, engine._engine if engine else None
        )
        if engine:
            closes(self)

    def _batch(self, found: tuple[Any, ...]) -> Batch:
        length, columns = self._data.facts()[3], self._data.facts()[8]
        shape = (len(found[0]) // 4 // length, length)
        ids = [_shaped(values, True, shape) for values in found[:5]]
        return Batch._make([*ids, _shaped(found[5], False, (*shape, columns))])

    def step(self, engine: Engine, step: int) -> Batch:
        """The batch of this rank in step `step` of the run, from 0. Not of held-out data."""
        return self._batch(self._data.step(engine._engine, step))

    def read(self, windows: Iterable[int]) -> Batch:
        """Sequences by their numbers, from 0 to below `windows`."""
        return self._batch(self._data.read(list(windows)))

    def evaluate(self, engine: Engine, windows: int = 0) -> Evaluated:
        """Loss and scores over the first so many sequences, 0: all; as the run evaluates, the same on
        any number of ranks. Of all ranks."""
        found = self._data.evaluate(engine._engine, windows)
        if found[5]:
            raise StoppedError("the evaluation ended: another rank was interrupted")
        return Evaluated._make(found[:5])

    @property
    def windows(self) -> int:
        """Sequences of an epoch: windows of text, rows, packs, examples."""
        return self._data.facts()[0]

    @property
    def tokens(self) -> int:
        """In all, without padding."""
        return self._data.facts()[1]

    @property
    def documents(self) -> int:
        """Or rows, or examples."""
        return self._data.facts()[2]

    @property
    def seq_length(self) -> int:
        return self._data.facts()[3]

    @property
    def vocab_size(self) -> int:
        return self._data.facts()[4]

    @property
    def batch_size(self) -> int:
        """Sequences of a step of all ranks."""
        return self._data.facts()[5]

    @property
    def total_steps(self) -> int:
        """Of the run: max_steps, or by epochs; 0: held-out data."""
        return self._data.facts()[6]

    @property
    def hash(self) -> int:
        """Of the contents."""
        return self._data.facts()[7]

    def close(self) -> None:
        self._data.close()

    def __enter__(self) -> Data:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
