"""Data-parallel training: several processes train one policy, each on its own games.

torchrun starts the processes and sets their environment variables. Without it there is one process,
with rank 0, and every function below is local. torch.distributed is imported on first use.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def _torchrun_variable(name: str, default: int) -> int:
    return int(os.environ[name]) if "TORCHELASTIC_RUN_ID" in os.environ else default


def rank() -> int:
    """The index of this process, from 0."""
    return _torchrun_variable("RANK", 0)


def world_size() -> int:
    """The number of processes."""
    return _torchrun_variable("WORLD_SIZE", 1)


def rank_stream_name(name: str) -> str:
    """The name of a random stream, different in each process."""
    return f"{name} of process {rank()}" if rank() else name


@contextmanager
def process_group(device: str) -> Iterator[None]:
    """Connect the processes: gloo on CPUs, nccl on GPUs with one GPU per process."""
    if world_size() == 1:
        yield
        return
    import torch.distributed

    if device.startswith("cuda"):
        torch.cuda.set_device(_torchrun_variable("LOCAL_RANK", 0))
    torch.distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


def local_batch_size(count: int) -> int:
    """This process's part of a batch of count games, at least 1."""
    return max(1, count // world_size() + (rank() < count % world_size()))


@contextmanager
def _communication() -> Iterator[Any]:
    """torch.distributed; raises ConnectionError if another process has ended."""
    import torch.distributed

    try:
        yield torch.distributed
    except RuntimeError:
        raise ConnectionError("another process of this run has ended") from None


def all_reduce_sum(values: Tensor) -> Tensor:
    """The sum over all processes, computed in place."""
    if world_size() > 1:
        with _communication() as dist:
            dist.all_reduce(values)
    return values


def all_reduce_mean(values: Tensor, weight: Tensor | None = None) -> Tensor:
    """The mean of values [M] over all processes, weighted by weight [M] if given."""
    if world_size() == 1 and weight is None:
        return values.mean()
    weight = values.new_ones(len(values)) if weight is None else weight
    return all_reduce_sum((weight * values).sum()) / all_reduce_sum(weight.sum())


def all_reduce_min(count: int, device: Any) -> int:
    """The minimum over all processes."""
    if world_size() == 1:
        return count
    import torch

    minimum = torch.tensor(count, device=device)
    with _communication() as dist:
        dist.all_reduce(minimum, dist.ReduceOp.MIN)
    return int(minimum)


def gather(value: Any) -> list[Any] | None:
    """The values of all processes in order of rank, on rank 0; None on the others."""
    if world_size() == 1:
        return [value]
    values: list[Any] | None = [None] * world_size() if rank() == 0 else None
    with _communication() as dist:
        dist.gather_object(value, values)
    return values


def barrier() -> None:
    """Wait for all processes."""
    if world_size() > 1:
        with _communication() as dist:
            dist.barrier()
