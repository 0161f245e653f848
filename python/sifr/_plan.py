"""What a training step would take and do, without running it."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple, Union

from . import _sifr
from ._base import UsageError
from ._config import Config, ConfigLike


class MemoryClass(NamedTuple):
    """Memory by what it holds, in bytes."""

    name: str  #: "parameters", "gradients"
    bytes: int  #: at the peak of all together
    most_bytes: int  #: at its own peak
    host_bytes: int
    nvme_bytes: int


class Plan(NamedTuple):
    """A step of one rank, as planned."""

    parameters: int
    bytes: int  #: of the device's memory (of the host's, on a CPU), at the peak
    host_bytes: int  #: of the host's memory beside a device's own; 0 on a CPU
    nvme_bytes: int
    baseline_bytes: int  #: that the program itself takes beside it, about
    room_bytes: int  #: that the rank may take; 2**63 - 1: not known
    ranks_per_host: int  #: 0: all share one
    checkpoint_bytes: int  #: of one checkpoint of all ranks
    micro_batch_size: int
    gradient_accumulation_steps: int
    seq_length: int
    step_seconds: float  #: predicted
    tokens_per_second: float
    fits: bool
    misfit: str  #: all that is too large for what there is; "": it fits
    #: The last one is "gaps": they add up to `bytes`. Of a plan with `fit`: none.
    classes: list[MemoryClass]
    report: dict[str, Any]  #: what `sifr plan --json` prints
    text: str  #: lines for a person to read
    chosen: Config | None  #: with `fit`: the config with the settings that were chosen


def plan(
    config: ConfigLike | None = None,
    *,
    ranks: int = 1,
    rank: int = 0,
    ranks_per_host: int = 0,
    machine: Union[str, os.PathLike[str], None] = None,
    device_memory: int = 0,
    host_memory: int = 0,
    nvme: Union[str, os.PathLike[str], None] = None,
    fit: bool = False,
    **flags: Any,
) -> Plan:
    """Plans a step, as `sifr plan`: from a config and the model's config.json alone, of any number of
    ranks, none of which has to be there. A step that does not fit is no error: `Plan.fits` tells.

    `machine`: a file that describes one, in place of this. `device_memory`, `host_memory`: bytes that
    a rank, and the ranks of a host together, may take; 0: what is there. `nvme`: a directory for
    state, or a size ("4TiB"). `fit`: chooses the settings with the least predicted time that fit;
    NoMemoryError where none does.
    """
    if ranks == 0:  # which the library takes for one
        raise UsageError("ranks: 0; give 1 or more")
    for name, value in (("device_memory", device_memory), ("host_memory", host_memory)):
        if not hasattr(value, "__index__"):
            raise UsageError(f"{name}: {value!r} is no whole number of bytes, such as 8 << 30")
    own = Config(config, **flags)
    figures, classes, misfit, report, text, chosen = _sifr.plan(
        own._config,
        ranks,
        rank,
        ranks_per_host,
        None if machine is None else os.fspath(machine),
        device_memory,
        host_memory,
        None if nvme is None else os.fspath(nvme),
        fit,
    )
    return Plan(
        **figures,
        misfit=misfit,
        classes=[MemoryClass(*one) for one in classes],
        report=json.loads(report),
        text=text,
        chosen=None if chosen is None else Config._of(chosen),
    )
