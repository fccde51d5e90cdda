"""Refuse what cannot fit in the free memory, before it is allocated."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig
from torch import Tensor
from torch.overrides import TorchFunctionMode

from rlgames.core.errors import ConfigError
from rlgames.games.game import Game


def check_batch_memory(
    batch: int, window: int | None, game: Game[Any], games: int = 0, key: str = "games"
) -> None:
    """Raises ConfigError where the moves of one batch, and how so many games end, cannot fit in
    the memory that is free.

    key: what so many games are named. Counted for each move: its position, its observation twice
    (as played, as learnt from), and for each action a mask and four floats (scores,
    log-probabilities and their gradients).
    """
    spec = game.spec
    cells = math.prod(spec.observation[1:])
    a_move = 4 * cells + 8 * math.prod(spec.observation) + 17 * spec.actions
    # Where the rules hardly bound a game's length, a long one by chance is what has to fit.
    a_game = a_move * min(window or spec.max_plies, spec.max_plies, 100 * cells)
    check_fits_in_memory(f"batch={batch}", "for its moves", batch, a_game, "batch={} fits")
    check_fits_in_memory(
        f"{key}={games}", "for how they end", games, 4 * cells + 64, key + "={} fits"
    )


def check_replay_memory(config: DictConfig, game: Game[Any], device: torch.device) -> None:
    """Raises ConfigError where learner.buffer_size cannot be held in the memory that is free.

    Counted for each move: its position, 32 bytes of what came of it, and what a search found.
    """
    row = game.public(game.initial(1, torch.Generator(device)))
    columns = [value for value in vars(row).values() if isinstance(value, Tensor)]
    target = 4 * game.spec.actions if config.get("search") is not None else 0
    size = sum(column.nbytes for column in columns) + 32 + target
    what, fits = f"learner.buffer_size={config.learner.buffer_size}", "learner.buffer_size={} fits"
    check_fits_in_memory(what, "for the moves it keeps", config.learner.buffer_size, size, fits)
    a_try = 8 * math.prod(game.spec.observation) + 17 * game.spec.actions
    what, fits = f"learner.minibatch={config.learner.minibatch}", "learner.minibatch={} fits"
    check_fits_in_memory(what, "for a step", config.learner.minibatch, a_try, fits)


COPIES_PER_WEIGHT = 4
"""A weight, its gradient, and the two running means that an optimizer keeps."""


def check_weight_memory(name: str, weights: int) -> None:
    """Raises ConfigError where so many weights cannot be learnt in the memory that is free."""
    check_fits_in_memory(
        f"policy={name} with {weights:,} weights",
        "to learn",
        weights,
        4 * COPIES_PER_WEIGHT,
        "{:,} would fit",
    )


def check_fits_in_memory(what: str, why: str, count: int, size: int, hint: str) -> None:
    """Raises ConfigError for so many things of so many bytes each, if they cannot be held.

    hint: what would do, {} standing for how many can.
    """
    free = free_memory()
    if free is not None and count * size > free:
        raise ConfigError(
            f"{what} may need {count * size / 2**30:.1f} GiB {why}, and "
            f"{free / 2**30:.1f} GiB are free",
            hint.format(max(1, free // size)),
        )


def free_memory() -> int | None:
    """Bytes that may be taken: of the machine, and of the control group; None if not known."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found = [int(ln.split()[1]) * 1024 for ln in lines if ln.startswith("MemAvailable")]
        group = Path("/sys/fs/cgroup")
        most = group / "memory.max"
        if most.exists() and (limit := most.read_text().strip()) != "max":
            found.append(int(limit) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        return None
    return max(0, min(found)) if found else None


class CountParametersOnly(TorchFunctionMode):
    """Within it, weights are made without memory and without values: only their sizes are asked."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.empty:
            return func(*args, **(kwargs or {}) | {"device": "meta"})
        begun = args and isinstance(args[0], Tensor) and args[0].is_meta
        name = getattr(func, "__name__", "")
        if begun and name.endswith("_") and not name.endswith("__"):
            return args[0]  # a beginning of nothing, which would take its time
        return func(*args, **(kwargs or {}))


def count_parameters(make: Callable[[], torch.nn.Module]) -> int:
    """How many weights a network will have that is yet to be made; 0 if that is not to be seen."""
    try:
        with CountParametersOnly():
            return sum(weight.numel() for weight in make().parameters())
    except (NotImplementedError, RuntimeError):
        return 0
