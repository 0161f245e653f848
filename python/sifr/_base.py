"""Exceptions of sifr, and its log."""

from __future__ import annotations

import logging

_log = logging.getLogger("sifr")


class Error(Exception):
    """A file, the system or the data; its message says what, where, why and what to do."""

    status = 1  #: the exit code that the program has for it


class UsageError(Error, ValueError):
    """A config, an argument or a model description that is wrong."""

    status = 2


class NoMemoryError(Error, MemoryError):
    """Does not fit in memory or on disk."""

    status = 3


class LostRankError(Error):
    """A rank is lost, or a collective hangs. The process should end."""

    status = 4


class StoppedError(Error):
    """The run was stopped, and saved: a callback of another rank raised an exception."""


def write_log(level: int, line: str) -> None:
    """Takes the library's log lines, of any thread: to the logger "sifr"."""
    _log.log(level, "%s", line)
