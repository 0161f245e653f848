"""What the Trainer does with several processes, by sifr's ranks: there is no group of
torch.distributed. Batches are divided, results are gathered."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import torch
from accelerate import Accelerator  # type: ignore[import-untyped]
from accelerate.data_loader import prepare_data_loader  # type: ignore[import-untyped]
from accelerate.utils import recursively_apply  # type: ignore[import-untyped]
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, Sampler

from .. import _sifr
from .._base import UsageError
from .._ranks import rank, ranks, size
from ._among_ranks import gather_alike

#: By which accelerate would find a launcher, and start a group of its own.
_LAUNCHERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE") + (
    "MV2_COMM_WORLD_SIZE",
    "ACCELERATE_USE_DEEPSPEED",
    "ACCELERATE_USE_FSDP",
)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """accelerate sees one process."""
    hidden = {name: os.environ.pop(name) for name in _LAUNCHERS if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)


def gather_numbers(numbers: list[float]) -> list[list[float]]:
    own = torch.tensor(numbers, dtype=torch.float64)
    return [
        torch.frombuffer(bytearray(part), dtype=torch.float64).tolist() if part else []
        for part in gather_alike(own.numpy().tobytes())
    ]


def _gather(tensor: torch.Tensor) -> torch.Tensor:
    own = (tensor[None] if tensor.ndim == 0 else tensor).detach().cpu().contiguous()
    if own.numel() == 0:
        return own.repeat((size(),) + (1,) * (own.ndim - 1))
    raw = own.view(torch.uint8) if own.dtype != torch.bool else own.to(torch.uint8)
    found = gather_alike(raw.numpy().tobytes())
    stored = torch.uint8 if own.dtype == torch.bool else own.dtype
    all_ = torch.frombuffer(bytearray(b"".join(found)), dtype=stored)
    return all_.reshape(size() * own.shape[0], *own.shape[1:]).to(own.dtype)


def _pad(tensor: torch.Tensor, dim: int, index: Any, first: bool) -> torch.Tensor:
    if dim >= tensor.ndim or dim < -tensor.ndim:
        return tensor
    most = int(max(n[0] for n in gather_numbers([tensor.shape[dim]])))
    if most == tensor.shape[dim]:
        return tensor
    shape = list(tensor.shape)
    shape[dim] = most - tensor.shape[dim]
    more = tensor.new_full(shape, index)
    return torch.cat((more, tensor) if first else (tensor, more), dim)


class RankAccelerator(Accelerator):  # type: ignore[misc]
    """accelerate's, of this rank. It moves and wraps nothing."""

    #: Of each rank the numbers of its micro batches in a step; set by the trainer.
    micro_batches: list[list[int]] = [[0]]
    training = False  #: the next data loader is that of training

    @property
    def num_processes(self) -> int:
        return size()

    @property
    def process_index(self) -> int:
        return rank()

    @property
    def is_main_process(self) -> bool:
        return rank() == 0

    def wait_for_everyone(self) -> None:
        of = ranks()
        if of is not None:
            of.agree(0, "")

    def gather(self, tensor: Any) -> Any:
        if size() == 1:
            return tensor
        return recursively_apply(_gather, tensor, error_on_other_type=True)

    def gather_for_metrics(self, input_data: Any, use_gather_object: bool = False) -> Any:
        if size() > 1 and use_gather_object:
            raise UsageError("eval_use_gather_object: objects are not gathered between ranks yet")
        return super().gather_for_metrics(input_data, use_gather_object)

    def reduce(self, tensor: Any, reduction: str = "sum", scale: float = 1.0) -> Any:
        def add(own: torch.Tensor) -> torch.Tensor:
            sums = _gather(own[None]).sum(0) * scale
            return sums / size() if reduction == "mean" else sums

        return tensor if size() == 1 else recursively_apply(add, tensor, error_on_other_type=True)

    def pad_across_processes(
        self, tensor: Any, dim: int = 0, pad_index: Any = 0, pad_first: bool = False
    ) -> Any:
        if size() == 1:
            return tensor
        return recursively_apply(
            lambda one: _pad(one, dim, pad_index, pad_first), tensor, error_on_other_type=True
        )

    def prepare_optimizer(self, optimizer: Any, device_placement: Any = None) -> Any:
        if optimizer not in self._optimizers:
            self._optimizers.append(optimizer)
        return optimizer

    def prepare_data_loader(self, data_loader: Any, *args: Any, **kwargs: Any) -> Any:
        rows = not isinstance(data_loader.dataset, IterableDataset)
        if size() == 1 or not self.training or not rows or data_loader.batch_sampler is None:
            return super().prepare_data_loader(data_loader, *args, **kwargs)
        prepared = prepare_data_loader(
            _divide(data_loader, self.micro_batches, rank()),
            self.device,
            num_processes=1,
            process_index=0,
            put_on_device=False,
            use_seedable_sampler=self.use_seedable_sampler,
            data_seed=self.dataloader_config.data_seed,
        )
        self._dataloaders.append(prepared)
        return prepared


# --- batches of a rank ---


class RankBatches(BatchSampler):
    """Of all batches those of one rank, as the engine adds micro batches, so that any number of ranks
    has the bits of one. Where the last step of an epoch has none for a rank, it gets a row of which
    nothing is learned: index -1 - i stands for row i."""

    def __init__(self, batches: BatchSampler, numbers: list[list[int]], own: int) -> None:
        self.batch_sampler = batches
        self.numbers = numbers
        self.own = own
        size: Any = getattr(batches, "batch_size", None)
        self.batch_size = size
        self.drop_last = getattr(batches, "drop_last", False)

    @property
    def sampler(self) -> Any:
        return self.batch_sampler.sampler

    @sampler.setter
    def sampler(self, sampler: Any) -> None:
        self.batch_sampler.sampler = sampler

    def set_epoch(self, epoch: int) -> None:
        for part in (self.batch_sampler, self.sampler):
            if hasattr(part, "set_epoch"):
                part.set_epoch(epoch)

    def _most(self, batches: int) -> int:
        """Micro batches of the rank that has most of a short step."""
        return max(sum(number < batches for number in own) for own in self.numbers)

    def _group(self) -> int:
        return sum(len(own) for own in self.numbers)

    def __len__(self) -> int:
        steps, rest = divmod(len(self.batch_sampler), self._group())
        return steps * len(self.numbers[0]) + self._most(rest)

    def _step(self, group: list[list[int]]) -> Iterator[list[int]]:
        for number in self.numbers[self.own][: self._most(len(group))]:
            yield group[number] if number < len(group) else [-1 - group[0][0]]

    def __iter__(self) -> Iterator[list[int]]:
        group: list[list[int]] = []
        for batch in self.batch_sampler:
            group.append(list(batch))
            if len(group) == self._group():
                yield from self._step(group)
                group = []
        if group:
            yield from self._step(group)


class _Idle:
    def __init__(self, row: Any) -> None:
        self.row = row


class _Rows(Dataset[Any]):
    """A data set whose rows below 0 are there for their form alone."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        return self.rows[index] if index >= 0 else _Idle(self.rows[-1 - index])

    def __getitems__(self, indices: list[int]) -> list[Any]:
        if hasattr(self.rows, "__getitems__") and min(indices) >= 0:
            return list(self.rows.__getitems__(indices))
        return [self[index] for index in indices]


class _Collate:
    def __init__(self, collate: Any) -> None:
        self.collate = collate

    def __call__(self, features: list[Any]) -> Any:
        idle = isinstance(features[0], _Idle)
        batch = self.collate([one.row for one in features] if idle else features)
        for name in ("labels", "shift_labels") if idle else ():
            if batch.get(name) is not None:
                batch[name] = torch.full_like(torch.as_tensor(batch[name]), -100)
        return batch


def _divide(loader: Any, numbers: list[list[int]], own: int) -> DataLoader[Any]:
    return DataLoader(
        _Rows(loader.dataset),
        batch_sampler=RankBatches(loader.batch_sampler, numbers, own),
        num_workers=loader.num_workers,
        collate_fn=_Collate(loader.collate_fn),
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        generator=loader.generator,
        prefetch_factor=loader.prefetch_factor,
        persistent_workers=loader.persistent_workers,
        in_order=loader.in_order,
    )


class SifrSampler(Sampler[int]):
    """The order in which `sifr train` takes the rows of one file, by the seed, epoch by epoch."""

    def __init__(self, rows: int, seed: int) -> None:
        self.rows = rows
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[int]:
        for place in range(self.rows):
            yield _sifr.order(self.seed, self.epoch, self.rows, place)
