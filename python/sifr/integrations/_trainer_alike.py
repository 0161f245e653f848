"""What the ranks of a SifrTrainer do alike: compared where a call of all of them begins, and agreed on
after each step. Nothing here imports torch or transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .._ranks import ranks
from ._among_ranks import gather
from ._trainer_rules import refuse

#: What a callback asks for, in transformers' TrainerControl.
CONTROLS = (
    "should_training_stop",
    "should_epoch_stop",
    "should_save",
    "should_evaluate",
    "should_log",
)
#: Arguments that a process may have for itself: what it shows, and how it reads rows.
_OWN = (
    "local_rank log_level log_level_replica disable_tqdm report_to run_name project logging_dir "
    "trackio_space_id trackio_bucket_id trackio_static_space_id hub_token dataloader_num_workers "
    "dataloader_prefetch_factor dataloader_persistent_workers dataloader_pin_memory"
).split()


def share(control: Any) -> None:
    """What a callback asks for on one rank, all do."""
    of = ranks()
    if of is None:
        return
    every = of.gather(bytes(bool(getattr(control, name)) for name in CONTROLS))
    for i, name in enumerate(CONTROLS):
        setattr(control, name, any(every[i :: len(CONTROLS)]))


def compare(call: str, facts: Mapping[str, Any]) -> None:
    """Refuses, on all ranks, what they do not give alike."""
    if ranks() is None:
        return
    mine = {"call": call, **{name: one for name, one in facts.items() if name not in _OWN}}
    text = json.dumps(mine, default=lambda value: type(value).__name__)
    every = [json.loads(part) for part in gather(text.encode())]
    for name, first in every[0].items():
        for number, one in enumerate(every):
            if one.get(name) != first:
                refuse(
                    name,
                    f"{one.get(name)!r} on rank {number}, and {first!r} on rank 0; give all ranks the "
                    "same",
                )
