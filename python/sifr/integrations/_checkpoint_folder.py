"""A checkpoint of another program that is a folder:

    model/        a model folder, as `sifr train` writes one
    engine/       sifr's checkpoint, with all state; not of a save of weights alone
    lightning.pt  what the other program keeps of itself

It is written beside its place and put there when it is whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import NamedTuple

from .._base import UsageError
from .._engine import Engine
from ._among_ranks import on_first

MODEL, ENGINE, STATE = "model", "engine", "lightning.pt"


class Found(NamedTuple):
    path: str
    model: str
    engine: str | None  #: None: weights alone
    state: str


def local(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    if "://" in text:
        raise UsageError(f"{text}: a checkpoint is a folder of a file system; give a local path")
    return os.path.abspath(text)


def _remove(path: str) -> None:
    if os.path.islink(path):
        os.unlink(path)
    elif os.path.isdir(path):
        shutil.rmtree(path)


def _begin(path: str, part: str) -> None:
    if os.path.lexists(path) and not os.path.islink(path) and not _is_whole(path):
        raise UsageError(f"{path}: is there, and is no checkpoint of sifr's; give another path")
    _remove(part)
    os.makedirs(part)


def _is_whole(path: str) -> bool:
    return os.path.isfile(os.path.join(path, STATE)) and os.path.isdir(os.path.join(path, MODEL))


def _sync(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _put(path: str, part: str, put_state: Callable[[str], None]) -> None:
    state = os.path.join(part, STATE)
    put_state(state)
    _sync(state)
    _sync(part)
    old = path + ".old"
    _remove(old)
    if os.path.lexists(path):
        os.rename(path, old)
    os.rename(part, path)
    _sync(os.path.dirname(path))
    _remove(old)


def write(
    engine: Engine,
    path: str | os.PathLike[str],
    put_state: Callable[[str], None],
    *,
    weights_only: bool = False,
) -> None:
    """Of all ranks. `put_state` writes the other program's file, on the first rank."""
    whole = local(path)
    part = whole + ".part"
    on_first(lambda: _begin(whole, part))
    engine.save(os.path.join(part, MODEL))
    if not weights_only:
        engine.save_checkpoint(os.path.join(part, ENGINE))
    on_first(lambda: _put(whole, part, put_state))


def find(path: str | os.PathLike[str]) -> Found:
    whole = local(path)
    if os.path.isfile(whole):
        raise UsageError(
            f"{whole}: is a file, as Lightning's other strategies save; sifr's checkpoints are "
            "folders. Weights of another run are taken from a model folder: SifrModule(model_dir)"
        )
    if not os.path.isdir(whole):
        kept = f"; {whole}.old is the one before" if _is_whole(whole + ".old") else ""
        raise FileNotFoundError(f"{whole}: there is no such checkpoint{kept}")
    if not _is_whole(whole):
        above = os.path.dirname(whole)
        hint = f"; {above} is one" if _is_whole(above) else ""
        raise UsageError(
            f"{whole}: is no checkpoint of sifr's: it lacks {STATE} or {MODEL}/{hint}"
        )
    engine = os.path.join(whole, ENGINE)
    return Found(
        whole,
        os.path.join(whole, MODEL),
        engine if os.path.isdir(engine) else None,
        os.path.join(whole, STATE),
    )


def remove(path: str | os.PathLike[str]) -> None:
    """Of all ranks."""
    on_first(lambda: _remove(local(path)))
