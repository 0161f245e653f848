"""A run's config."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Union

from . import _sifr
from ._base import UsageError

#: What is taken as a config: a file, its content, or one that is made already.
ConfigLike = Union["Config", Mapping[str, Any], str, "os.PathLike[str]"]


class Flag(NamedTuple):
    """A flag of `sifr train`, which a config takes by name."""

    name: str  #: "max-steps"; also max_steps
    path: str  #: the key that it sets: "sifr.max_steps"
    argument: str | None  #: "N", "X", "PATH", "TEXT", "a|b"; None: a switch
    default: Any  #: None: none
    doc: str
    many: bool  #: takes a list


def flags() -> list[Flag]:
    """All flags, in the order of `sifr train --help`."""
    rows = _sifr.flags()
    return [Flag(n, p, a, None if d is None else _read(d), doc, m) for n, p, a, d, doc, m in rows]


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(name: str, value: Any) -> str:
    """A flag's value as it would be typed."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return _dump(value, name)
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        if isinstance(text, bytes):
            text = os.fsdecode(text)
        if "\0" in text:
            raise UsageError(f"{name}: {text!r} has a character of value 0")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{name}: {text!r} is not UTF-8") from None
        return text
    if isinstance(value, (int, float)):
        return repr(value)
    if getattr(value, "size", 0) == 1 and hasattr(value, "item"):  # a number of numpy
        return _text(name, value.item())
    raise UsageError(f"{name}: {value!r} is not a value; give text, a number, or a list of them")


class Config:
    """DeepSpeed's JSON with sifr's own section, and the flags of `sifr train` over it.

    `source` is a path, the content as a dict, or another config, which is copied. A flag's value is
    text as typed, a number, a bool, or a list; None leaves the flag out. Wrong keys and values are
    UsageError, with the key's path.
    """

    _config: _sifr.Config

    def __init__(self, source: ConfigLike | None = None, **flags: Any) -> None:
        if isinstance(source, Config):
            self._config = source._config.copy()
        else:
            self._config = _sifr.config()
        if isinstance(source, Mapping):
            self._config.parse(_dump(source), "config")
        elif isinstance(source, (str, os.PathLike)):
            self._config.load(source)
        elif source is not None and not isinstance(source, Config):
            raise UsageError(f"config: a path, a dict or a Config is wanted, not {source!r}")
        for name, value in flags.items():
            self.set(name, value)

    @classmethod
    def _of(cls, made: _sifr.Config) -> Config:
        config = cls.__new__(cls)
        config._config = made
        return config

    def set(self, name: str, value: Any) -> None:
        """One flag ("max_steps"), or a key by its full path ("optimizer.params.lr"). A list that is
        set twice grows."""
        if value is None:
            return
        several = isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
        if several and not isinstance(value, os.PathLike) and not hasattr(value, "item"):
            texts = [_text(name, one) for one in value]
            if not texts:
                raise UsageError(f"{name}: an empty list; leave it out, or give what is in it")
            for text in texts:
                self._config.set(name, text)
        else:
            self._config.set(name, _text(name, value))

    def clear(self, name: str) -> None:
        """Takes back what the file or `set` gave to one key, by a name as of `set`."""
        self._config.clear(name)

    def resolve(self, ranks: int = 1) -> dict[str, Any]:
        """The effective config for so many ranks: "auto", defaults and batch sizes are worked out.
        Read again, it repeats the run."""
        self._config.resolve(ranks)
        effective: dict[str, Any] = json.loads(self._config.json())
        return effective

    def value(self, name: str, ranks: int = 1) -> Any:
        """The value of one key, by a name as of `set`, resolved for so many ranks."""
        self._config.resolve(ranks)
        return json.loads(self._config.value(name))

    def explain(self, ranks: int = 1, all: bool = False) -> list[str]:
        """What each key does, a line each, as `sifr train --dry-run`."""
        return self._config.explain(ranks, all)


def _dump(source: Mapping[str, Any], name: str = "config") -> str:
    try:
        return json.dumps(source, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name}: {error}") from None
    except RecursionError:
        raise UsageError(f"{name}: is nested too deeply") from None


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} cannot be a value of a config")
