"""The devices that torch computes on: which there are, and what they can do."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from rlgames.core.errors import ConfigError, nearest
from rlgames.core.text import printable

AUTO = "auto"

SYNONYMS = {"gpu": "cuda", "nvidia": "cuda", "rocm": "cuda", "metal": "mps", "apple": "mps"}
"""Other names of devices."""

CUBLAS_WORKSPACE = ":4096:8"
"""Memory settings that make cuBLAS deterministic (NVIDIA's documentation of cuBLAS)."""


def available_devices() -> list[str]:
    """The kinds of devices that this machine has, the one that auto takes first."""
    has_device = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return [*(name for name, is_here in has_device.items() if is_here), "cpu"]


def choose_device(name: str) -> str:
    """The name of a device; of "auto" the first one there is, which is said on standard error."""
    if name != AUTO:
        return name
    chosen = available_devices()[0]
    about = f" ({torch.cuda.get_device_name()})" if chosen == "cuda" else ""
    print(printable(f"rlgames: device=auto is {chosen}{about}"), file=sys.stderr, flush=True)
    return chosen


def find_device(name: str) -> torch.device:
    """A device by its name, prepared for use. Raises ConfigError for one that is not there."""
    kind = name.partition(":")[0]
    if kind not in ("cpu", "cuda", "mps"):
        synonym = SYNONYMS.get(kind.lower())
        hint = f"use device={synonym}" if synonym else nearest(name, ["cpu", "cuda", "mps", AUTO])
        raise ConfigError(f"device={name} is not a device", hint)
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        best = available_devices()[0]
        raise ConfigError(f"this machine has no device={name}", f"use device={best}") from None
    if device.type == "cuda":
        _make_deterministic()
    return device


def build_device(name: str, threads: int) -> torch.device:
    """The device of that name, where torch then computes with this many threads.

    Raises ConfigError for a device that is not there.
    """
    torch.set_num_threads(threads)
    return find_device(choose_device(name))


def find_device_or_cpu(name: str) -> torch.device:
    """A device by its name, the CPU where it is not there: what a run was trained on elsewhere."""
    try:
        return find_device(name)
    except ConfigError:
        return torch.device("cpu")


def _make_deterministic() -> None:
    """Equal results in each run, where CUDA has an algorithm for that."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", CUBLAS_WORKSPACE)
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Filling memory that nothing reads takes time.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    warnings.filterwarnings("ignore", message=".*does not have a deterministic implementation")


@contextmanager
def torch_settings_restored() -> Iterator[None]:
    """A block after which torch has as many threads as before, and is as deterministic."""
    threads = torch.get_num_threads()
    is_deterministic = torch.are_deterministic_algorithms_enabled()
    is_lenient = torch.is_deterministic_algorithms_warn_only_enabled()
    fills_memory = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        # Calling use_deterministic_algorithms imports torch's compiler, which takes seconds.
        if torch.are_deterministic_algorithms_enabled() != is_deterministic:
            torch.use_deterministic_algorithms(is_deterministic, warn_only=is_lenient)
        torch.utils.deterministic.fill_uninitialized_memory = fills_memory  # type: ignore[attr-defined]


def has_float64(device: torch.device) -> bool:
    """Whether a device computes with float64."""
    return device.type != "mps"


def no_float64(setting: str, device: torch.device) -> ConfigError:
    """The error of a setting that needs float64."""
    return ConfigError(
        f"{setting} computes with float64, which device={device} does not have", "use device=cpu"
    )


def float64_on(device: torch.device) -> torch.dtype:
    """Float64; float32 on devices that have no float64."""
    return torch.float64 if has_float64(device) else torch.float32


def to_float64(tensor: Tensor) -> Tensor:
    """The same numbers as float64, on the same device; float32 where it has no float64."""
    return tensor.to(float64_on(tensor.device))
