"""Checks that what a command needs fits in memory, before anything is allocated."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import torch

from rlgames.core.errors import ConfigError

COPIES_PER_WEIGHT = 4
"""Of a network: a weight, its gradient and the optimizer's two running means."""


def check_memory(key: str, count: int, size: int, why: str) -> None:
    """Raises ConfigError if `count` items, which a config key sets, of `size` bytes each do not fit
    in free memory. why: "for" what they take it."""
    _check(f"{key}={count}", count, size, why, "use " + key + "={}")


def check_weight_memory(name: str, weights: int, copies: int = COPIES_PER_WEIGHT) -> None:
    """Raises ConfigError if training this many weights of policy=name, of `copies` floats each,
    does not fit in free memory."""
    what = f"policy={name} with {weights:,} weights"
    _check(what, weights, 4 * copies, "to train", "{:,} would fit")


def _check(what: str, count: int, size: int, why: str, hint: str) -> None:
    """hint: what fits, with {} for the largest count."""
    free = free_memory()
    if free is not None and count * size > free:
        raise ConfigError(
            f"{what} may need {count * size / 2**30:.1f} GiB {why}, and "
            f"{free / 2**30:.1f} GiB are free",
            hint.format(max(1, free // size)),
        )


def free_memory() -> int | None:
    """Bytes available on the machine; None if unknown."""
    return _kilobytes("/proc/meminfo", "MemAvailable")


def peak_memory() -> int | None:
    """The most bytes that this process has used so far; None if unknown."""
    return _kilobytes("/proc/self/status", "VmHWM")


def _kilobytes(path: str, name: str) -> int | None:
    """A number of kilobytes that Linux lists, in bytes; None on other systems."""
    try:
        found = re.search(rf"{name}:\s+(\d+)", Path(path).read_text(encoding="utf-8"))
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def count_parameters(make: Callable[[], torch.nn.Module]) -> int:
    """The number of weights of a network, made without memory for them; 0 if unknown."""
    try:
        with torch.device("meta"):
            return sum(weight.numel() for weight in make().parameters())
    except (NotImplementedError, RuntimeError, TypeError):
        return 0
