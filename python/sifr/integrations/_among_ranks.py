"""What the processes of a run tell each other: small data, in the order of the ranks. All functions
are of all ranks."""

from __future__ import annotations

import os
import pickle
import socket
from array import array
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .._base import UsageError
from .._ranks import rank, ranks, size, try_together

T = TypeVar("T")
PIECE = 1 << 24  #: bytes of a rank at a time, so that little memory is taken beside the result


def check_launcher(environment: Mapping[str, str] = os.environ, ranks: int | None = None) -> None:
    """Processes that torchrun or deepspeed started would each train by themselves."""
    started = environment.get("WORLD_SIZE", "1")
    if started.isdigit() and int(started) > 1 and (size() if ranks is None else ranks) == 1:
        raise UsageError(
            f"WORLD_SIZE={started}: torchrun, accelerate launch, deepspeed and the like start processes "
            f"that do not find each other here; use mpirun -n {started} or srun (docs/launching.md)"
        )


def gather_alike(mine: bytes) -> list[bytes]:
    """What each rank gives, as many bytes of each."""
    of = ranks()
    if of is None:
        return [mine]
    parts: list[list[bytes]] = [[] for _ in range(size())]
    for first in range(0, max(len(mine), 1), PIECE):
        piece = mine[first : first + PIECE]
        found = of.gather(piece)
        for i, part in enumerate(parts):
            part.append(found[i * len(piece) : (i + 1) * len(piece)])
    return [b"".join(part) for part in parts]


def gather(mine: bytes) -> list[bytes]:
    """The same of any length."""
    if ranks() is None:
        return [mine]
    own = array("q", [len(mine)]).tobytes()
    lengths = [array("q", one)[0] for one in gather_alike(own)]
    every = gather_alike(mine.ljust(max(lengths), b"\0"))
    return [part[:length] for part, length in zip(every, lengths)]


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
