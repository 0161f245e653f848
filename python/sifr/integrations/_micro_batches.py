"""Micro batches of other programs' loaders as an engine takes them: of one shape, all of a step
together. A loader's are queued; the last one of a step sets the engine going."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Mapping
from typing import Any

from .._base import UsageError
from .._engine import Engine, StepResult, _array

NONE = -100  #: the label of a token without one

#: A batch in the words of Engine.step: the label of a token is the id that follows it.
_OWN = ("tokens", "labels", "token_types", "segments", "positions")
#: A batch in the words of transformers: a label is the id of its own token.
_THEIRS = ("input_ids", "labels", "attention_mask", "token_type_ids")

def _integers(code: str, data: bytes, name: str) -> array[int]:
    values = array("b" if code == "?" else code)
    values.frombytes(data)
    return _narrow(values, name)


def _narrow(values: Any, name: str) -> array[int]:
    try:
        return array("i", values)
    except OverflowError:
        raise UsageError(f"{name}: an id is beyond 32 bits") from None
    except TypeError:
        raise UsageError(f"{name}: whole numbers are wanted, in rows") from None


def _rows(value: Any, name: str) -> list[array[int]]:
    """The rows of an array of two dimensions, or of a list of rows."""
    if isinstance(value, (list, tuple)):
        return [row for one in value for row in _rows_of(one, name, 1)]
    return _rows_of(value, name, 2)


def _rows_of(value: Any, name: str, dimensions: int) -> list[array[int]]:
    if isinstance(value, (list, tuple)):
        return [_narrow(value, name)]
    with memoryview(_array(value, name)) as view:
        code = (view.format or "B").lstrip("@=<")
        if code not in ("i", "l", "q", "?", "b"):
            raise UsageError(f"{name}: has elements of type '{code}'; give int32 or int64")
        if view.ndim != dimensions:
            raise UsageError(f"{name}: has {view.ndim} dimensions; a batch has rows of tokens")
        length = view.shape[-1] if view.shape else 0
        flat = _integers(code, view.tobytes(), name)
    return [flat[at : at + length] for at in range(0, len(flat), length)] if length else []


def _named(batch: Any) -> dict[str, Any]:
    """A batch by names, of whatever a loader gives."""
    if isinstance(batch, Mapping) or hasattr(batch, "items"):
        return {n: v for n, v in batch.items() if v is not None}
    if isinstance(batch, (list, tuple)) and len(batch) in (1, 2):
        return dict(zip(_OWN, batch))
    if isinstance(batch, (list, tuple)):
        raise UsageError(f"batch: has {len(batch)} parts; give tokens, (tokens, labels) or a dict")
    return {"tokens": batch}


def follows(folder: str | os.PathLike[str]) -> bool | None:
    """Whether a model folder's labels are the ids that follow (decoders). None: it says neither."""
    try:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            names = json.load(file).get("architectures") or [""]
    except (OSError, ValueError, AttributeError):
        return None
    if names[0].endswith(("ForCausalLM", "LMHeadModel")):
        return True
    return False if names[0].endswith("ForMaskedLM") else None


def one_stage(effective: Mapping[str, Any]) -> None:
    """Of a resolved config. Ranks of a pipeline share their batches, and the last stage has the
    losses."""
    stages = (effective.get("pipeline") or {}).get("stages") or 1
    if stages != 1:
        raise UsageError(f"pipeline.stages: {stages} is not supported here yet (supported: 1)")


class MicroBatches:
    """An engine with a queue. `folder`: of its model, which says what labels mean."""

    def __init__(self, engine: Engine, folder: str | os.PathLike[str]) -> None:
        self.engine = engine
        self.decoder = follows(folder)
        self._folder = os.fspath(folder)
        self.sequences, self.length = engine.micro_batch_shape
        self.per_step = engine.batch_shape[0] // self.sequences
        self._queue: list[dict[str, array[int]]] = []

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, batch: Any) -> int:
        """Queues a micro batch, and says how many of its tokens have a label."""
        if len(self._queue) == self.per_step:
            raise UsageError(
                f"a step has {self.per_step} micro batches (gradient_accumulation_steps), and no "
                "step came after them"
            )
        filled = self._fill(batch)
        self._queue.append(filled)
        return len(filled["labels"]) - filled["labels"].count(NONE)

    def drop(self, keep: int = 0) -> None:
        """Forgets what is queued, but for the last `keep`."""
        del self._queue[: len(self._queue) - keep]

    def step(self, rate: float | None = None) -> StepResult:
        """A step with what is queued, and the schedule's rate where none is given. Micro batches that are missing have no labels, so they add
        nothing: a step's loss is the mean over its labelled tokens."""
        if not self._queue:
            raise UsageError("a step without a micro batch: none was queued")
        queue, self._queue = self._queue, []
        while len(queue) < self.per_step:
            queue.append(self._fill({"tokens": [], "labels": []}))
        return self.engine.step(learning_rate=rate, **self._join(queue))

    def evaluate(self, batch: Any) -> tuple[float, int]:
        """The sum of a micro batch's losses, and of how many tokens."""
        return self.engine.evaluate(**self._join([self._fill(batch)]))

    def _join(self, queue: list[dict[str, array[int]]]) -> dict[str, array[int]]:
        given = {name for one in queue for name in one}
        out = {}
        for name in (n for n in _OWN if n in given):
            out[name] = array("i")
            for one in queue:
                out[name].extend(one[name] if name in one else self._default(name))
        return out

    def _default(self, name: str) -> array[int]:
        row = range(self.length) if name == "positions" else bytes(self.length)
        return array("i", row) * self.sequences

    def _fill(self, batch: Any) -> dict[str, array[int]]:
        named = _named(batch)
        theirs = "input_ids" in named
        words = _THEIRS if theirs else _OWN
        for name in named:
            if name not in words:
                raise UsageError(f"batch: {name!r} is none of {', '.join(words)}")
        rows = {name: _rows(value, name) for name, value in named.items()}
        self._same_shape(rows, words[0])
        if theirs:
            rows = self._from_theirs(rows)
        elif "labels" not in rows:
            rows["labels"] = [self._next(row) for row in rows["tokens"]]
        return {name: self._pad(name, rows[name]) for name in rows}

    def _same_shape(self, rows: dict[str, list[array[int]]], first: str) -> None:
        if first not in rows:
            raise UsageError(f"batch: has no {first}")
        wanted = [len(row) for row in rows[first]]
        for name, those in rows.items():
            if [len(row) for row in those] != wanted:
                raise UsageError(f"batch: {name} has another shape than {first}")
        if len(wanted) > self.sequences:
            raise UsageError(
                f"batch: has {len(wanted)} rows, a micro batch {self.sequences} "
                "(train_micro_batch_size_per_gpu); let the loader give as many or fewer"
            )
        longest, shortest = max(wanted, default=self.length), min(wanted, default=self.length)
        if longest > self.length:
            raise UsageError(
                f"batch: has rows of {longest} tokens, a sequence {self.length}; set seq_length"
            )
        if shortest < self.length and not self.decoder:
            raise UsageError(
                f"batch: has rows of {shortest} tokens, a sequence {self.length}; shorter rows are "
                "filled for decoders alone, since tokens of other models see what fills them"
            )

    def _next(self, row: array[int]) -> array[int]:
        if not self.decoder:
            raise UsageError("batch: has no labels, which only a decoder's tokens are themselves")
        return row[1:] + array("i", [NONE]) if row else row

    def _from_theirs(self, rows: dict[str, list[array[int]]]) -> dict[str, list[array[int]]]:
        if self.decoder is None:
            raise UsageError(
                f"batch: what labels beside input_ids mean is known of decoders and masked models, "
                f"which {self._folder}/config.json does not name; give {', '.join(_OWN)}"
            )
        if "labels" not in rows:
            raise UsageError("batch: has input_ids and no labels")
        tokens, labels = rows["input_ids"], rows["labels"]
        for row, mask in enumerate(rows.get("attention_mask", [])):
            tokens[row], labels[row] = self._cut(tokens[row], labels[row], mask)
        if self.decoder:
            labels = [row[1:] + array("i", [NONE]) if row else row for row in labels]
        out = {"tokens": tokens, "labels": labels}
        if "token_type_ids" in rows:
            out["token_types"] = rows["token_type_ids"]
        return out

    def _cut(
        self, tokens: array[int], labels: array[int], mask: array[int]
    ) -> tuple[array[int], array[int]]:
        """Without the padding behind a row, which no token of a decoder sees."""
        seen = mask.count(1)
        if mask[:seen].count(1) != seen or mask[seen:].count(0) != len(mask) - seen:
            raise UsageError(
                "attention_mask: has padding before tokens or between them; it may only follow them"
            )
        if seen < len(mask) and not self.decoder:
            raise UsageError("attention_mask: has padding, which is supported for decoders alone")
        if labels[seen:].count(NONE) != len(labels) - seen:
            raise UsageError("labels: padding has labels; give it -100")
        return tokens[:seen], labels[:seen]

    def _pad(self, name: str, rows: list[array[int]]) -> array[int]:
        fill = NONE if name == "labels" else 0
        out = array("i")
        for row in rows:
            out.extend(row)
            out.extend(array("i", [fill]) * (self.length - len(row)))
        out.extend(array("i", [fill]) * (self.length * (self.sequences - len(rows))))
        return out
