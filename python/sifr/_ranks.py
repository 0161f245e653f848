"""The processes of a run: those that mpirun or srun started, or this one alone."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from . import _sifr
from ._base import Error, LostRankError, UsageError

_opened: _sifr.Ranks | None = None
_owner = 0  # the process that opened them
_place = (0, 1, 0, 1)  # of theirs this one; it does not change, so callbacks may ask
_users: weakref.WeakSet[Any] = weakref.WeakSet()  # what is made of them, and closed before them
T = TypeVar("T")
PATIENCE = 5.0  #: seconds for which a rank that failed in sifr waits for the others' ends


def _close() -> None:
    """At the end of the program. Ranks that wait for one that failed by itself would wait for ever,
    so such a rank leaves without a word, and the launcher ends the others. One that failed in sifr
    says so to the others, but only PATIENCE seconds long: they may be busy with something else."""
    failure = getattr(sys, "last_value", None)
    agreed = isinstance(failure, Error) and not isinstance(failure, LostRankError)
    if _opened is None or _owner != os.getpid() or not (failure is None or agreed):
        return
    if failure is None:
        _close_all()
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    with open(os.devnull, "w") as nowhere:  # a thread cannot begin here any more
        faulthandler.dump_traceback_later(PATIENCE, exit=True, file=nowhere)
        _close_all()
        faulthandler.cancel_dump_traceback_later()


def _close_all() -> None:
    global _opened
    for user in list(_users):
        user.close()
    if _opened is not None:
        _opened.close()
    _opened = None


def closes(user: Any) -> None:
    """Has what is made of the ranks closed before them, at the end of the program."""
    if _opened is not None:
        _users.add(user)


def ranks() -> _sifr.Ranks | None:
    """The ranks of this job, opened at the first call and closed at the end of the program. None: no
    launcher started several."""
    global _opened, _owner, _place
    if _sifr.ranks_started() < 2:
        return None
    if _opened is not None and _owner != os.getpid():
        raise UsageError("ranks do not outlive a fork: run in the process that mpirun started")
    if _opened is None:
        _opened, _owner = _sifr.ranks_open(), os.getpid()
        _place = _opened.place()
        atexit.register(_close)
    return _opened


def rank() -> int:
    """The number of this process among those that mpirun or srun started, from 0. Of all ranks at
    its first call: it starts MPI."""
    ranks()
    return _place[0]


def size() -> int:
    """How many processes mpirun or srun started; 1: neither did. As `rank`."""
    ranks()
    return _place[1]


def host_rank() -> int:
    """The number of this process among those of this host. As `rank`."""
    ranks()
    return _place[2]


def try_together(make: Callable[[], T]) -> T:
    """Of all ranks, for what one can fail in by itself: raises on all where it failed on any."""
    failure: Exception | None = None
    try:
        made = make()
    except Exception as error:
        failure = error
    of = ranks()
    if of:
        status = getattr(failure, "status", 1) if failure else 0
        try:
            of.agree(status, str(failure) if failure else "")
        except Error as error:
            raise failure or error from None
    if failure:
        raise failure
    return made
