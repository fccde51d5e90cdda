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


def world_size() -> int:
    """How many processes there are."""
    return _told("WORLD_SIZE", 1)


def rank_stream_name(name: str) -> str:
    """The name of a stream of chance that each process has for itself."""
    return f"{name} of process {rank()}" if rank() else name


@contextmanager
def process_group(device: str) -> Iterator[None]:
    """Meet the others: over gloo on CPUs, over nccl on GPUs, of which each process has its own."""
    if world_size() == 1:
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


def local_batch_size(count: int) -> int:
    """This process's part of so many, at least one."""
    return max(1, count // world_size() + (rank() < count % world_size()))


@contextmanager
def _meeting() -> Iterator[Any]:
    """torch.distributed; raises ConnectionError where another process has gone."""
    import torch.distributed

    try:
        yield torch.distributed
    except RuntimeError:
        raise ConnectionError("another process of this run has ended") from None


def all_reduce_sum(values: Tensor) -> Tensor:
    """The sums over all processes."""
    if world_size() > 1:
        with _meeting() as others:
            others.all_reduce(values)
    return values


def all_reduce_mean(values: Tensor, weight: Tensor | None = None) -> Tensor:
    """The mean over all processes' values [M], or weighted by weight [M]."""
    if world_size() == 1 and weight is None:
        return values.mean()
    weight = values.new_ones(len(values)) if weight is None else weight
    found = all_reduce_sum((weight * values).sum()), all_reduce_sum(weight.sum())
    return found[0] / found[1]


def all_reduce_min(count: int, device: Any) -> int:
    """The smallest of all processes' counts."""
    if world_size() == 1:
        return count
    import torch

    found = torch.tensor(count, device=device)
    with _meeting() as others:
        others.all_reduce(found, others.ReduceOp.MIN)
    return int(found)


def gather(value: Any) -> list[Any] | None:
    """What every process gives, in order, for the first one; None for the others."""
    if world_size() == 1:
        return [value]
    found: list[Any] | None = [None] * world_size() if rank() == 0 else None
    with _meeting() as others:
        others.gather_object(value, found)
    return found


def barrier() -> None:
    """Until all are here."""
    if world_size() > 1:
        with _meeting() as others:
            others.barrier()
