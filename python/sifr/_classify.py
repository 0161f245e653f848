"""Classes of texts, pairs and words, and scores of tokens."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Union

from . import _sifr
from ._base import UsageError
from ._config import Config, ConfigLike

Path = Union[str, "os.PathLike[str]"]
#: What a classifier reads: a text, two texts, or the words of a text.
Row = Union[str, tuple[str, str], Sequence[str]]

_KINDS = ("one", "many", "numbers")


class Classified(NamedTuple):
    row: int  #: from 0
    #: Of a text one; of words one for each that the model has read: a long text is cut.
    labels: list[str]
    scores: list[list[float]]  #: of each, by `Classifier.labels`
    words: list[str] | None

    @property
    def label(self) -> str:
        """Of a text: the class with the highest score."""
        return self.labels[0]


def _fspath(path: Path | None) -> str | None:
    return None if path is None else os.fspath(path)


class Classifier:
    """A model that gives texts, pairs of texts, or words their classes, as `sifr classify`. `model`
    is a model folder, a checkpoint or the output folder of a run. Used by one thread at a time.
    """

    def __init__(
        self,
        model: Path,
        *,
        adapter: Path | None = None,
        precision: str | None = None,
        device: str | None = None,
        threads: int = 0,
        seq_length: int = 0,
        text_column: str | None = None,
        pair_column: str | None = None,
    ) -> None:
        self._classifier = _sifr.classifier(
            model, _fspath(adapter), precision, device, threads, seq_length, text_column, pair_column
        )
        self._labels, self._tags, self._kind = self._classifier.facts()

    @property
    def labels(self) -> list[str]:
        return list(self._labels)

    @property
    def reads_words(self) -> bool:
        """Whether each word of a text gets a class; else a text does, or a pair."""
        return self._tags

    @property
    def scores_are(self) -> str:
        """"one": probabilities of classes of which one is right; "many": of classes that may each be
        right; "numbers": of a regression."""
        return _KINDS[self._kind]

    def _add(self, row: Row) -> None:
        if self._tags:
            self._classifier.add_words(tuple(row))
        elif isinstance(row, str):
            self._classifier.add(row, None)
        else:
            self._classifier.add(row[0], row[1])

    def _check(self, number: int, row: Row) -> Row:
        several = isinstance(row, Sequence) and not isinstance(row, (str, bytes))
        texts: tuple[Any, ...] = tuple(row) if several else (row,)
        fits = several if self._tags else not several or len(texts) == 2
        if not fits or not all(isinstance(text, str) for text in texts):
            wanted = "a list of words" if self._tags else "a text, or a tuple of two"
            raise UsageError(f"row {number}: is {row!r}; give {wanted}")
        for text in texts:
            text.encode()  # a lone surrogate is none of the library's business
            if "\0" in text and self._tags:
                raise UsageError(f"row {number}: {text!r}: a word with a NUL in it")
        return row

    def _run(self) -> list[Classified]:
        return [
            Classified(row, [self._labels[best] for best, _ in found], [s for _, s in found], words)
            for row, words, found in self._classifier.run()
        ]

    def classify(self, rows: Iterable[Row]) -> list[Classified]:
        """What it makes of texts, tuples of two texts, or lists of words."""
        checked = [self._check(number, row) for number, row in enumerate(rows)]
        for row in checked:
            self._add(row)
        return self._run() if checked else []

    def classify_files(self, *paths: Path) -> list[Classified]:
        """Of rows in files (CSV, TSV, JSON lines), which need no label."""
        self._classifier.read(tuple(os.fspath(path) for path in paths))
        return self._run()

    def close(self) -> None:
        self._classifier.close()

    def __enter__(self) -> Classifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def classify(model: Path, rows: Iterable[Row], **options: Any) -> list[Classified]:
    """Opens a `Classifier`, and closes it."""
    with Classifier(model, **options) as classifier:
        return classifier.classify(rows)


class Scored(NamedTuple):
    rows: int
    tokens: int  #: learned ones, each of which has a score
    ran_in: str  #: the precision; on a GPU also its code


def score(
    model: Path,
    config: ConfigLike | None = None,
    *,
    output: Path,
    top_k: int = 0,
    temperature: float | None = None,
    adapter: Path | None = None,
    precision: str | None = None,
    device: str | None = None,
    threads: int = 0,
    batch_size: int = 0,
    **flags: Any,
) -> Scored:
    """Writes the log-probabilities that a model gives the learned tokens of the config's data, as
    `sifr score`: the reference of preferences, or what another model is distilled from (with
    `top_k`). `config` and flags are those of the run that reads the file."""
    return Scored(
        *_sifr.score(
            Config(config, **flags)._config,
            model,
            output,
            _fspath(adapter),
            precision,
            device,
            threads,
            top_k,
            temperature,
            batch_size,
        )
    )
