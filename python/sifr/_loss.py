"""Losses of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: A loss of one's own: `loss(logits, labels, gradient)` gives the sum of the losses of the rows.
#: Arrays of numpy (memoryviews where there is none): logits, rows x words, and labels, to read;
#: `gradient`, rows x words of zeros, to be filled with the derivatives of the sum by the logits, or
#: None in an evaluation. They are the engine's memory, and good during the call alone (in `train`
#: copies).
Loss = Callable[[Any, Any, Any], float]


def with_arrays(loss: Loss | None) -> Loss | None:
    if loss is None:
        return None
    if not callable(loss):
        raise TypeError(f"loss: a function is wanted, not {type(loss).__name__}")
    made: Callable[[Any], Any] = memoryview
    try:
        from numpy import asarray

        made = asarray
    except ImportError:
        pass

    def call(logits: Any, labels: Any, gradient: Any) -> float:
        return loss(made(logits), made(labels), None if gradient is None else made(gradient))

    return call
