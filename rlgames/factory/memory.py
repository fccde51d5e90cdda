"""Checks that a batch, a replay buffer and a policy fit in memory, before anything is allocated."""

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
from rlgames.games.game import Game, State


def check_batch_memory(batch: int, window: int | None, game: Game[Any]) -> None:
    """Raises ConfigError if the moves of one batch do not fit in free memory.

    Counted per move: its position, its observation twice (as played and as trained on), and per
    action a mask and four floats (scores, log-probabilities and their gradients).
    """
    spec = game.spec
    cells = math.prod(spec.observation[1:])
    move_bytes = 4 * cells + 8 * math.prod(spec.observation) + 17 * spec.actions
    # Rules may hardly bound the length of a game; 100 plies per cell exceed any likely one.
    game_bytes = move_bytes * min(window or spec.max_plies, spec.max_plies, 100 * cells)
    check_fits_in_memory(f"batch={batch}", "for its moves", batch, game_bytes, "batch={} fits")


def check_evaluation_memory(key: str, games: int, game: Game[Any], factor: int = 1) -> None:
    """Raises ConfigError if what an evaluation of factor * games games keeps does not fit in free
    memory.

    key: the config key that sets `games`. Counted per game: its final position twice (as it ended
    and in order), and 100 bytes for seats, lengths, scores and weights.
    """
    size = factor * (2 * _state_bytes(game.example_state()) + 100)
    check_fits_in_memory(f"{key}={games}", "for final states", games, size, key + "={} fits")


def _state_bytes(state: State) -> int:
    return sum(column.nbytes for column in vars(state).values() if isinstance(column, Tensor))


def check_replay_memory(config: DictConfig, game: Game[Any]) -> None:
    """Raises ConfigError if learner.buffer_size moves do not fit in free memory.

    Counted per move: its position, 32 bytes for reward and links, and a search target if any.
    """
    row_bytes = _state_bytes(game.public(game.example_state()))
    target = 4 * game.spec.actions if config.get("search") is not None else 0
    size = row_bytes + 32 + target
    what, fits = f"learner.buffer_size={config.learner.buffer_size}", "learner.buffer_size={} fits"
    check_fits_in_memory(what, "for the replay buffer", config.learner.buffer_size, size, fits)
    step_bytes = 8 * math.prod(game.spec.observation) + 17 * game.spec.actions
    what, fits = f"learner.minibatch={config.learner.minibatch}", "learner.minibatch={} fits"
    check_fits_in_memory(what, "for a step", config.learner.minibatch, step_bytes, fits)


COPIES_PER_WEIGHT = 4
"""A weight, its gradient and the optimizer's two running means."""


MAX_WEIGHTS = 100_000_000
"""Of a network. To initialize more takes minutes, before a game is played; AlphaGo Zero had 23
million."""


def check_number_of_weights(name: str, weights: int) -> None:
    """Raises ConfigError for a network with more than MAX_WEIGHTS weights."""
    if weights > MAX_WEIGHTS:
        raise ConfigError(
            f"policy={name} would have {weights:,} weights",
            f"a network can have up to {MAX_WEIGHTS:,}; use fewer or narrower layers",
        )


def check_weight_memory(name: str, weights: int) -> None:
    """Raises ConfigError if training this many weights does not fit in free memory."""
    check_fits_in_memory(
        f"policy={name} with {weights:,} weights",
        "to train",
        weights,
        4 * COPIES_PER_WEIGHT,
        "{:,} would fit",
    )


def check_fits_in_memory(what: str, why: str, count: int, size: int, hint: str) -> None:
    """Raises ConfigError if count items of size bytes each do not fit in free memory.

    hint: what fits, with {} for the largest count.
    """
    free = free_memory()
    if free is not None and count * size > free:
        raise ConfigError(
            f"{what} may need {count * size / 2**30:.1f} GiB {why}, and "
            f"{free / 2**30:.1f} GiB are free",
            hint.format(max(1, free // size)),
        )


def free_memory() -> int | None:
    """Bytes available on the machine and in the control group; None if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = [int(ln.split()[1]) * 1024 for ln in lines if ln.startswith("MemAvailable")]
        group = Path("/sys/fs/cgroup")
        maximum = group / "memory.max"
        if maximum.exists() and (limit := maximum.read_text().strip()) != "max":
            available.append(int(limit) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        return None
    return max(0, min(available)) if available else None


class CountParametersOnly(TorchFunctionMode):
    """Inside this context, tensors are created without memory, so that only sizes are known."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.empty:
            return func(*args, **(kwargs or {}) | {"device": "meta"})
        is_init = args and isinstance(args[0], Tensor) and args[0].is_meta
        name = getattr(func, "__name__", "")
        if is_init and name.endswith("_") and not name.endswith("__"):
            return args[0]  # initializing a tensor without memory
        return func(*args, **(kwargs or {}))


def count_parameters(make: Callable[[], torch.nn.Module]) -> int:
    """The number of weights of a network, without building it; 0 if it cannot be determined."""
    try:
        with CountParametersOnly():
            return sum(weight.numel() for weight in make().parameters())
    except (NotImplementedError, RuntimeError):
        return 0
