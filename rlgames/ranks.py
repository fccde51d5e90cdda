"""Processes that teach one policy together, each from games of its own.

torchrun starts them and says so in the environment. Alone, as nearly always, a process is the first
of one, and all sums are its own. Nothing heavy is imported before it has to be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def _told(name: str, alone: int) -> int:
    return int(os.environ[name]) if "TORCHELASTIC_RUN_ID" in os.environ else alone


def rank() -> int:
    """This process's number, from 0."""
    return _told("RANK", 0)


def size() -> int:
    """How many processes there are."""
    return _told("WORLD_SIZE", 1)


def own(name: str) -> str:
    """The name of a stream of chance that each process has for itself."""
    return f"{name} of process {rank()}" if rank() else name


@contextmanager
def joined(device: str) -> Iterator[None]:
    """Meet the others: over gloo on CPUs, over nccl on GPUs, of which each process has its own."""
    if size() == 1:
        yield
        return
    import torch.distributed

    if device.startswith("cuda"):
        torch.cuda.set_device(_told("LOCAL_RANK", 0))
    torch.distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


def share(count: int) -> int:
    """This process's part of so many, at least one."""
    return max(1, count // size() + (rank() < count % size()))


@contextmanager
def _meeting() -> Iterator[Any]:
    """torch.distributed; raises ConnectionError where another process has gone."""
    import torch.distributed

    try:
        yield torch.distributed
    except RuntimeError:
        raise ConnectionError("another process of this run has ended") from None


def total(values: Tensor) -> Tensor:
    """The sums over all processes."""
    if size() > 1:
        with _meeting() as others:
            others.all_reduce(values)
    return values


def mean(values: Tensor, weight: Tensor | None = None) -> Tensor:
    """The mean over all processes' values [M], or weighted by weight [M]."""
    if size() == 1 and weight is None:
        return values.mean()
    weight = values.new_ones(len(values)) if weight is None else weight
    found = total((weight * values).sum()), total(weight.sum())
    return found[0] / found[1]


def least(count: int, device: Any) -> int:
    """The smallest of all processes' counts."""
    if size() == 1:
        return count
    import torch

    found = torch.tensor(count, device=device)
    with _meeting() as others:
        others.all_reduce(found, others.ReduceOp.MIN)
    return int(found)


def gathered(value: Any) -> list[Any] | None:
    """What every process gives, in order, for the first one; None for the others."""
    if size() == 1:
        return [value]
    found: list[Any] | None = [None] * size() if rank() == 0 else None
    with _meeting() as others:
        others.gather_object(value, found)
    return found


def wait() -> None:
    """Until all are here."""
    if size() > 1:
        with _meeting() as others:
            others.barrier()
