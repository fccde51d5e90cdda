"""Data-parallel training: several processes train one policy, each on its own games.

torchrun starts the processes and sets their environment variables. Without it there is one process,
with rank 0, and every function below is local. torch.distributed is imported on first use.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rlgames.core.errors import ConfigError
from rlgames.core.processes import stop_with_parent
from rlgames.core.text import printable

if TYPE_CHECKING:
    from torch import Tensor


TORCHRUN_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")

MAX_WORLD_SIZE = 1 << 16

LOST_CONNECTION = re.compile(
    "connection (was |likely )*(closed|reset|refused|lost)|connectfull|broken pipe|"
    "remote process|timed? ?out",
    re.IGNORECASE,
)
"""What gloo, nccl and their store say if a process is gone; their errors have no type for it."""

SILENT_SECONDS = 5.0
"""Whoever waits longer for other processes says so."""


def _torchrun_variable(name: str) -> str:
    if name not in os.environ:
        missing = ", ".join(each for each in TORCHRUN_VARIABLES if each not in os.environ)
        raise ConfigError(
            f"TORCHELASTIC_RUN_ID is set without {missing}",
            "start with torchrun, or unset TORCHELASTIC_RUN_ID",
        )
    return os.environ[name]


def _torchrun_number(name: str, default: int, low: int, high: int) -> int:
    """A number among torchrun's variables; the default where torchrun did not start this process.

    Raises ConfigError where it is missing or wrong.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return default
    text = _torchrun_variable(name)
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise ConfigError(f"{name}={text!r} is not a whole number", "torchrun sets it")
    if not low <= int(text) <= high:
        raise ConfigError(
            f"{name}={text} is out of range", f"it should be at least {low} and at most {high}"
        )
    return int(text)


def rank() -> int:
    """The index of this process, from 0."""
    return _torchrun_number("RANK", 0, 0, world_size() - 1)


def world_size() -> int:
    """The number of processes."""
    return _torchrun_number("WORLD_SIZE", 1, 1, MAX_WORLD_SIZE)


def rank_stream_name(name: str) -> str:
    """The name of a random stream, different in each process."""
    return f"{name} of process {rank()}" if rank() else name


@contextmanager
def process_group(device: str, join_seconds: float) -> Iterator[None]:
    """Connect the processes: gloo on CPUs, nccl on GPUs with one GPU per process.

    From then on a process ends with the one that started it. join_seconds: how long to wait for
    the others. Raises ConfigError for wrong variables of torchrun and for devices that are missing
    or the same for all processes, and ConnectionError.
    """
    if world_size() == 1:
        yield
        return
    import torch.distributed

    from rlgames.core.devices import find_device

    if device.startswith("mps"):
        raise ConfigError("device=mps trains in a single process", "omit torchrun")
    if device.startswith("cuda:"):
        raise ConfigError(
            f"device={device} would be the GPU of all processes",
            "use device=cuda: each process gets its own GPU",
        )
    rank(), _torchrun_variable("MASTER_ADDR"), _torchrun_number("MASTER_PORT", 0, 1, 65_535)
    local_rank = _torchrun_number("LOCAL_RANK", 0, 0, MAX_WORLD_SIZE)
    if device == "cuda" and (gpus := torch.cuda.device_count()):
        if local_rank >= gpus:
            raise ConfigError(
                f"the process with LOCAL_RANK={local_rank} has no GPU; this machine has {gpus}",
                f"use torchrun --nproc-per-node={gpus} or fewer",
            )
        torch.cuda.set_device(local_rank)
    find_device(device)
    stop_with_parent()
    store = _join(join_seconds)
    backend = "nccl" if device.startswith("cuda") else "gloo"
    with _communication() as dist:
        dist.init_process_group(backend, store=store, rank=rank(), world_size=world_size())
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


class Wait:
    """A limited wait for other processes."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self._start, self._has_spoken = seconds, time.monotonic(), False

    @property
    def remaining(self) -> float:
        return self._start + self.seconds - time.monotonic()

    def sleep(self, processes: str, announce: bool) -> None:
        """Wait a little for these. Raises ConnectionError when the time is over."""
        if self.remaining <= 0:
            limit = f"join_seconds={self.seconds:g}"
            raise ConnectionError(f"{processes} did not join within {limit}")
        waited = time.monotonic() - self._start
        if announce and not self._has_spoken and waited >= SILENT_SECONDS:
            self._has_spoken = True
            line = f"waiting for {processes}, at most {self.seconds:g} s"
            print(printable(f"rlgames: {line}"), file=sys.stderr, flush=True)
        time.sleep(min(0.1, max(0.0, self.remaining)))


def _join(seconds: float) -> Any:
    """The store by which the processes find each other, once all have reached it.

    Says on standard error whom it waits for; raises ConnectionError after this many seconds.
    """
    import torch.distributed

    dist: Any = torch.distributed  # its type hints lack the stores

    wait, own, count = Wait(seconds), rank(), world_size()
    host, port = _torchrun_variable("MASTER_ADDR"), int(_torchrun_variable("MASTER_PORT"))
    # torchrun may hold the store itself; otherwise the first process does.
    of_torchrun = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    is_master = own == 0 and not of_torchrun
    master = f"{'torchrun' if of_torchrun else 'process 0 (RANK=0)'} at {host}:{port}"
    while not is_master and not accepts_connections(host, port):
        wait.sleep(master, announce=True)
    try:
        store = dist.TCPStore(
            host,
            port,
            is_master=is_master,
            wait_for_workers=False,
            timeout=timedelta(seconds=max(1.0, wait.remaining)),
        )
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        names = [f"rlgames/{attempt}/{each}" for each in range(count)]
        store.set(names[own], "here")
        while missing := [each for each in range(count) if not store.check([names[each]])]:
            wait.sleep(_in_words(missing), announce=own == 0)
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise ConnectionError(f"the processes cannot meet at {host}:{port}: {reason}") from None
    return dist.PrefixStore(f"rlgames/{attempt}/group", store)


def accepts_connections(host: str, port: int) -> bool:
    """Whether something listens there."""
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:  # also where the name is not known (yet)
        return False


def _in_words(ranks: list[int]) -> str:
    names = ", ".join(f"{each} (RANK={each})" for each in ranks[:8])
    more = f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
    return f"process{'es' if len(ranks) > 1 else ''} {names}{more}"


@contextmanager
def _communication() -> Iterator[Any]:
    """torch.distributed; raises ConnectionError if another process has ended."""
    import torch.distributed

    try:
        yield torch.distributed
    except RuntimeError as error:
        if not LOST_CONNECTION.search(str(error)):
            raise
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
