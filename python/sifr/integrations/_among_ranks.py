"""What the processes of a run tell each other: small data, in the order of the ranks. All functions
are of all ranks."""

from __future__ import annotations

import os
import pickle
import socket
from array import array
from collections.abc import Callable
from typing import Any, TypeVar

from .._base import UsageError
from .._ranks import rank, ranks, size, try_together

T = TypeVar("T")
PIECE = 1 << 24  #: bytes of a rank at a time, so that little memory is taken beside the result


def check_launcher() -> None:
    """Processes that torchrun or deepspeed started would each train by themselves."""
    started = os.environ.get("WORLD_SIZE", "1")
    if started.isdigit() and int(started) > 1 and size() == 1:
        raise UsageError(
            f"WORLD_SIZE={started}: torchrun, deepspeed and the like start processes that do not "
            f"find each other here; use mpirun -n {started} or srun (docs/launching.md)"
        )


def gather(mine: bytes) -> list[bytes]:
    """What each rank gives, of any length."""
    of = ranks()
    if of is None:
        return [mine]
    lengths = array("q")
    lengths.frombytes(of.gather(array("q", [len(mine)]).tobytes()))
    parts = [bytearray() for _ in lengths]
    for first in range(0, max(lengths), PIECE):
        piece = min(PIECE, max(lengths) - first)
        every = of.gather(mine[first : first + piece].ljust(piece, b"\0"))
        for i, part in enumerate(parts):
            part += every[i * piece : (i + 1) * piece]
    return [bytes(part[:n]) for part, n in zip(parts, lengths)]


def broadcast(value: T, source: int = 0) -> T:
    """The value of one rank, which pickle can hold."""
    if ranks() is None:
        return value
    mine = try_together(lambda: pickle.dumps(value) if rank() == source else b"")
    told: T = pickle.loads(gather(mine)[source])
    return told


def barrier() -> None:
    """Waits for all."""
    gather(b"")


def on_first(make: Callable[[], Any]) -> None:
    """Has the first rank do something; where it fails, all raise."""
    try_together(lambda: make() if rank() == 0 else None)


def places() -> tuple[int, int]:
    """This process's number among those of its host, and its host's number."""
    names = gather(socket.gethostname().encode())
    own = names[rank()]
    hosts = list(dict.fromkeys(names))
    return names[: rank()].count(own), hosts.index(own)
