"""Batches as collators of transformers make them, as the engine's arrays: of a fixed number of rows
of a fixed length, padded on the right with tokens that no label is predicted from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from .._base import UsageError

if TYPE_CHECKING:
    Array = numpy.ndarray[Any, Any]

NONE = -100  # no label

#: What a batch may hold. Others would be dropped in silence, and so are refused.
_KEYS = {
    "input_ids",
    "attention_mask",
    "labels",
    "label",
    "label_ids",
    "shift_labels",
    "token_type_ids",
    "position_ids",
    "return_loss",
}
#: What collators without padding give beside position_ids, which say the same.
_OF_POSITIONS = {"cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "seq_idx"}
#: How a model's labels stand, by its `loss_type`.
NEXT, SAME, FIRST, LAST = "next", "same", "first", "last"


class Rows(NamedTuple):
    """What the engine's rows are."""

    length: int  #: tokens
    where: str  #: how labels stand
    padding: int | None  #: the model's padding id; None: it has none
    packed: bool  #: a row may hold several texts
    words: int  #: ids of tokens are below it
    classes: int  #: labels are
    types: int  #: token types are


class Slots(NamedTuple):
    """The arrays of a call: rows x length."""

    tokens: Array
    labels: Array
    token_types: Array
    segments: Array
    positions: Array | None  #: of packed rows

    @classmethod
    def empty(cls, count: int, rows: Rows) -> Slots:
        shape = (count, rows.length)
        return cls(
            numpy.full(shape, max(rows.padding or 0, 0), numpy.int32),
            numpy.full(shape, NONE, numpy.int32),
            numpy.zeros(shape, numpy.int32),
            numpy.full(shape, rows.length, numpy.int32),  # padding sees padding alone
            numpy.zeros(shape, numpy.int32) if rows.packed else None,
        )

    def given(self) -> dict[str, Array | None]:
        """The arguments of Engine.step and Engine.evaluate."""
        return self._asdict()


class Batch(NamedTuple):
    """Rows of one batch: what the engine reads of them."""

    tokens: Array
    labels: Array  #: of each token the one that is learned of it
    token_types: Array | None
    real: Array  #: tokens that are not padding
    positions: Array  #: in their texts

    @property
    def rows(self) -> int:
        return int(self.tokens.shape[0])

    def put(self, slots: Slots, at: int, first: int = 0, end: int | None = None) -> None:
        """Rows first … end - 1 into the slots from row `at` on."""
        rows = slice(first, self.rows if end is None else min(end, self.rows))
        count, length = self.tokens[rows].shape
        to = (slice(at, at + count), slice(0, length))
        slots.tokens[to] = self.tokens[rows]
        slots.labels[to] = self.labels[rows]
        texts = numpy.cumsum(self.positions[rows] == 0, 1, dtype=numpy.int32) - 1
        slots.segments[to] = numpy.where(self.real[rows] > 0, texts, slots.segments[to])
        if slots.positions is not None:
            slots.positions[to] = numpy.where(self.real[rows] > 0, self.positions[rows], 0)
        if self.token_types is not None:
            slots.token_types[to] = self.token_types[rows]

    def keep(self, count: int) -> Batch:
        return Batch._make(None if part is None else part[:count] for part in self)


def _numbers(value: Any, name: str) -> Array:
    try:
        found = value.detach().numpy() if hasattr(value, "detach") else numpy.asarray(value)
    except (TypeError, RuntimeError, ValueError) as error:
        why = str(error).split("\n")[0]
        raise UsageError(f"{name}: {why}; give whole numbers, rows of one length") from None
    if found.size == 0:
        raise UsageError(f"{name}: are of shape {found.shape}, which holds no token; leave such rows out")
    if found.dtype.kind not in "iub":
        raise UsageError(
            f"{name}: are {found.dtype}; whole numbers are supported (numbers to learn, or several "
            "labels of a row, are trained by `sifr train`)"
        )
    return found


def _array(value: Any, name: str, below: int, shapes: Sequence[tuple[int, ...]] = ()) -> Array:
    """Every array of a batch comes in here. Its shape is one of `shapes`, and its values are 0 to
    `below` - 1 (of labels also NONE), so that all ranks know of a wrong one before a step that they
    make together."""
    found = _numbers(value, name)
    if shapes and found.shape not in shapes:
        raise UsageError(
            f"{name}: are of shape {found.shape}, and the batch needs "
            f"{' or '.join(map(str, shapes))}; have the collator give a value for each of input_ids"
            + (", or for each row" if len(shapes) > 1 else "")
        )
    label = "label" in name
    wrong = found[((found < 0) | (found >= below)) & ~(label & (found == NONE))]
    if wrong.size:
        raise UsageError(f"{name}: {wrong.flat[0]} {_WRONG.get(name, _NO_ID).format(below - 1)}")
    return found.astype(numpy.int32, copy=False)


_NO_ID = "is none of the model's, which are 0 to {}"
#: What is wrong with a value beyond the range, by its array.
_WRONG = {
    "attention_mask": "is neither 0 nor 1; a row of several texts says them by position_ids",
    "position_ids": "is none of a text's positions, which begin at 0",
    **dict.fromkeys(
        ("labels", "label", "label_ids", "shift_labels"), _NO_ID + "; -100 says that there is none"
    ),
}


def _check_mask(real: Array) -> None:
    """Padding stands behind the text."""
    left = numpy.argwhere(real[:, 1:] > real[:, :-1])
    if len(left):
        raise UsageError(
            f"attention_mask: row {left[0][0]} has a 1 behind a 0: only padding on the right is "
            'supported; set padding_side="right" in the tokenizer'
        )


def _positions(inputs: Mapping[str, Any], real: Array, packed: bool) -> Array:
    """Positions begin anew where a row holds several texts."""
    counted = numpy.broadcast_to(numpy.arange(real.shape[1], dtype=numpy.int32), real.shape)
    if inputs.get("position_ids") is None:
        return counted
    given = _array(inputs["position_ids"], "position_ids", 1 << 31, (real.shape,))
    if not ((given != counted) & (real > 0)).any():
        return counted
    if not packed:
        raise UsageError(
            "position_ids: begin anew within a row, which then holds several texts; for those give "
            'sifr={"sifr": {"packing": true}}'
        )
    steps = (given[:, 1:] == given[:, :-1] + 1) | (given[:, 1:] == 0) | (real[:, 1:] == 0)
    if (given[:, 0] != 0).any() or not steps.all():
        raise UsageError("position_ids: a text's have to be 0, 1, 2 …, one after the other")
    return numpy.where(real > 0, given, 1)


def _labels_of_tokens(labels: Array, shift: bool, real: Array) -> Array:
    out = labels
    if shift:
        out = numpy.full_like(labels, NONE)
        out[:, :-1] = labels[:, 1:]
    wrong = numpy.argwhere((out != NONE) & (real == 0))
    if len(wrong):
        raise UsageError(
            f"labels: row {wrong[0][0]} has a label where attention_mask is 0, and nothing to predict "
            "it from; give -100 there"
        )
    return out


def _labels_of_rows(labels: Array, tokens: Array, where: str, padding: int | None) -> Array:
    """One label of each row: at its first token, or at its last one that is no padding."""
    out = numpy.full_like(tokens, NONE)
    at = numpy.zeros(len(tokens), numpy.int64)
    if where == LAST:
        length = tokens.shape[1]
        text = tokens != padding if padding is not None else numpy.ones_like(tokens, bool)
        at = numpy.where(text.any(1), length - 1 - numpy.argmax(text[:, ::-1], 1), length - 1)
    out[numpy.arange(len(tokens)), at] = labels.reshape(-1)
    return out


def _labels(inputs: Mapping[str, Any], tokens: Array, real: Array, rows: Rows) -> Array | None:
    """Of each token the one that is learned of it. A batch may say it twice, but not otherwise."""
    of_rows = rows.where in (FIRST, LAST)
    shapes = [(len(tokens),), (len(tokens), 1)] if of_rows else [tokens.shape]
    found: dict[str, Array] = {}
    for name in ("shift_labels", "labels", "label_ids", "label"):
        if inputs.get(name) is None:
            continue
        given = _array(inputs[name], name, rows.classes, shapes)
        if of_rows:
            found[name] = _labels_of_rows(given, tokens, rows.where, rows.padding)
        else:
            shift = rows.where == NEXT and name != "shift_labels"
            found[name] = _labels_of_tokens(given, shift, real)
        first = next(iter(found))
        if not numpy.array_equal(found[first], found[name]):
            raise UsageError(f"{name}: say others than {first}, and the batch has both; give one")
    return next(iter(found.values()), None)


def _cut(batch: Batch, length: int) -> Batch:
    """Without columns of padding beyond what the engine takes."""
    too_long = batch.real[:, length:].any(1)
    if too_long.any():
        row = int(numpy.argmax(too_long))
        raise UsageError(
            f"input_ids: row {row} of a batch has {int(batch.real[row].sum())} tokens, and "
            f"seq_length is {length}; cut rows, or give a larger seq_length"
        )
    return Batch._make(None if part is None else part[:, :length] for part in batch)


def _split(batch: Batch, length: int) -> Batch:
    """A row of many texts, as collators without padding make it, as several rows."""
    starts = [*numpy.flatnonzero(batch.positions[0] == 0), batch.tokens.shape[1]]
    rows, first = [], 0
    for start, end in zip(starts, starts[1:], strict=False):
        if end - first > length and start > first:
            rows.append((first, start))
            first = start
    rows.append((first, starts[-1]))
    longest = max(end - start for start, end in rows)
    return Batch._make(
        None if part is None else _as_rows(part[0], rows, longest, filler)
        for part, filler in zip(batch, (0, NONE, 0, 0, 1), strict=True)
    )


def _as_rows(part: Array, rows: list[tuple[int, int]], longest: int, filler: int) -> Array:
    out = numpy.full((len(rows), longest), filler, numpy.int32)
    for i, (start, end) in enumerate(rows):
        out[i, : end - start] = part[start:end]
    return out


def _check_names(inputs: Any) -> None:
    if not isinstance(inputs, Mapping):
        raise UsageError(
            f"inputs: a batch is {type(inputs).__name__}; have the collator give a dict with input_ids"
        )
    known = _KEYS | _OF_POSITIONS if inputs.get("position_ids") is not None else _KEYS
    for key, value in inputs.items():
        if key not in known and value is not None:
            raise UsageError(
                f"inputs: {key} is not supported (supported: {', '.join(sorted(_KEYS))}); leave it "
                "out of the data set, or have the collator drop it"
            )
    if inputs.get("input_ids") is None:
        raise UsageError("inputs: the batch has no input_ids; give a data set and collator with them")


def read(inputs: Any, rows: Rows, learns: bool) -> Batch:
    """`learns`: there have to be labels."""
    _check_names(inputs)
    tokens = _array(inputs["input_ids"], "input_ids", rows.words)
    if tokens.ndim != 2:
        raise UsageError(
            f"input_ids: are of shape {tokens.shape}; a batch has two dimensions: rows and tokens"
        )
    shapes = (tokens.shape,)
    mask = inputs.get("attention_mask")
    real = numpy.ones_like(tokens) if mask is None else _array(mask, "attention_mask", 2, shapes)
    _check_mask(real)
    positions = _positions(inputs, real, rows.packed)
    labels = _labels(inputs, tokens, real, rows)
    if labels is None and learns:
        raise UsageError("labels: the batch has none; give a collator that makes them")
    if labels is None:
        labels = numpy.full_like(tokens, NONE)
    types = inputs.get("token_type_ids")
    types = None if types is None else _array(types, "token_type_ids", rows.types, shapes)
    batch = Batch(tokens, labels, types, real, positions)
    flat = len(tokens) == 1 and tokens.shape[1] > rows.length and (positions[0, 1:] == 0).any()
    return _cut(_split(batch, rows.length) if flat else batch, rows.length)
