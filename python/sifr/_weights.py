"""Weights of folders and checkpoints."""

from __future__ import annotations

import json
import math
import os
import tempfile
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _sifr
from ._base import Error, UsageError
from ._ranks import rank, try_together

if TYPE_CHECKING:
    import numpy

Path = Union[str, "os.PathLike[str]"]


class Exported(NamedTuple):
    """What was written."""

    parameters: int
    bytes: int
    step: int | None  #: of the checkpoint; None: a model folder
    source: str  #: the checkpoint or folder that was read


def export(
    source: Path,
    destination: Path,
    *,
    format: str = "hf",
    type: str | None = None,
    average: bool = False,
    text_model: bool = False,
) -> Exported:
    """Writes a model folder of a checkpoint, or of a run's output: `sifr export`. `format`: "hf",
    "gguf" (a file, of a model folder; `type` says the type of matrices) or "deepspeed-universal".
    `average`: the average of the weights (sifr.ema). `text_model`: of a folder with a tower, the text
    model alone."""
    made = _sifr.export(source, destination, format, type, average, text_model)
    return Exported(made[0], made[1], None if made[2] < 0 else made[2], made[3])


def new_folder(path: Path) -> str:
    """The path of a folder that is to be written (Engine.save), refused if something is there: called
    at the start of a script, so that it fails before it has trained. Of all ranks."""
    folder = os.fsdecode(path)
    try_together(lambda: _check_new(folder) if rank() == 0 else None)
    return folder


def _check_new(folder: str) -> None:
    try:
        full = bool(os.listdir(folder))
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}; give a new folder for the model") from None
    if full:
        raise UsageError(f"{folder}: is not empty; give a new folder for the model, or remove it")


#: Types of safetensors, as numpy writes them.
_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; of two values of one name none is the right one."""
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            raise ValueError(f"{name} is there twice")
        made[name] = value
    return made


def _header(path: str, size: int) -> tuple[dict[str, Any], int]:
    """The tensors that a file of safetensors names, and where their bytes begin."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, 100_000_000):
            raise Error(f"{path}: its header has {length} bytes, the file {size}: it is cut off")
        try:
            header = json.loads(file.read(length), object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            raise Error(f"{path}: its header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise Error(f"{path}: its header is no JSON object")
    header.pop("__metadata__", None)
    return header, 8 + length


def _whole(number: Any) -> int:
    if not isinstance(number, int):
        raise TypeError(number)
    return number


def _tensor(path: str, name: str, facts: Any, room: int) -> tuple[str, tuple[int, ...], int]:
    """Type, shape and first byte of a tensor, checked."""
    try:
        kind, shape = facts["dtype"], tuple(_whole(n) for n in facts["shape"])
        first, end = (_whole(n) for n in facts["data_offsets"])
    except (TypeError, KeyError, ValueError):
        raise Error(f"{path}: tensor {name}: its entry is not whole") from None
    if not isinstance(kind, str) or kind not in _TYPES:
        raise UsageError(
            f"{path}: tensor {name}: type {kind} is not supported (supported: {', '.join(_TYPES)})"
        )
    import numpy

    if len(shape) > 32 or max(shape, default=0) > 1 << 60:
        raise Error(f"{path}: tensor {name}: its shape {shape} is beyond numpy's arrays")
    wanted = math.prod(shape) * numpy.dtype(_TYPES[kind]).itemsize
    if min(shape, default=0) < 0 or not 0 <= first <= end <= room or end - first != wanted:
        raise Error(f"{path}: tensor {name}: bytes {first} to {end} do not hold its {wanted} bytes")
    return kind, shape, first


def _check_apart(path: str, header: dict[str, Any]) -> None:
    """No byte is of two tensors: of checked ones."""
    places = sorted((*one["data_offsets"], name) for name, one in header.items())
    full = [(first, end, name) for first, end, name in places if first < end]
    for (_, end, name), (first, _, other) in zip(full, full[1:]):
        if first < end:
            raise Error(f"{path}: tensors {name} and {other} have bytes in common")


def _read(path: str) -> dict[str, numpy.ndarray]:
    import numpy

    size = os.path.getsize(path)
    header, begin = _header(path, size)
    found = {n: _tensor(path, n, facts, size - begin) for n, facts in header.items()}
    _check_apart(path, header)
    data = numpy.memmap(path, numpy.uint8, "r", begin) if size > begin else numpy.empty(0, "u1")
    out = {}
    for name, (kind, shape, first) in found.items():
        count = math.prod(shape) * numpy.dtype(_TYPES[kind]).itemsize
        values = data[first : first + count].view(_TYPES[kind]).reshape(shape)
        if kind == "BF16":  # numpy has no such type; fp32 has all of its values
            values = (values.astype(numpy.uint32) << 16).view(numpy.float32)
        out[name] = values
    return out


def _files(folder: str) -> list[str]:
    """The files with weights of a model folder, or of an adapter; none: it is neither."""
    index = os.path.join(folder, "model.safetensors.index.json")
    if os.path.exists(index):
        try:
            with open(index, encoding="utf-8") as file:
                names = set(json.load(file)["weight_map"].values())
        except (ValueError, TypeError, KeyError, AttributeError):
            raise Error(f"{index}: is no index of safetensors") from None
        if any(not isinstance(n, str) or os.path.basename(n) != n or "\0" in n for n in names):
            raise Error(f"{index}: names a file outside of its folder")
        return [os.path.join(folder, name) for name in sorted(names)]
    for name in ("model.safetensors", "adapter_model.safetensors"):
        if os.path.exists(os.path.join(folder, name)):
            return [os.path.join(folder, name)]
    return []


def state_dict(path: Path, *, average: bool = False) -> dict[str, numpy.ndarray]:
    """The weights of a model folder, an adapter's folder, a checkpoint or a run's output, by name, as
    read-only arrays of numpy. Those of safetensors lie in the file until they are read; bf16 becomes
    float32. A checkpoint is exported first, into a folder for temporary files (TMPDIR) that is gone
    when the arrays are; other files have to stay as they are while their arrays are in use: one that is
    cut short meanwhile ends the process (SIGBUS), as it does with every mapped file, since to read all
    at once would take memory for all (`{n: v.copy() for n, v in found.items()}` does). `average`: of a checkpoint the average of the weights (sifr.ema)."""
    folder = os.fsdecode(path)
    files = [] if average else _files(folder)
    if files:
        return _read_all(files)
    with tempfile.TemporaryDirectory(prefix="sifr-state-") as room:
        export(folder, os.path.join(room, "model"), average=average)
        return _read_all(_files(os.path.join(room, "model")))


def _read_all(files: list[str]) -> dict[str, numpy.ndarray]:
    out: dict[str, numpy.ndarray] = {}
    try:
        for file in files:
            out.update(_read(file))
    except OSError as error:
        raise Error(f"{error.filename}: {error.strerror}") from None
    for values in out.values():
        values.flags.writeable = False
    return out
