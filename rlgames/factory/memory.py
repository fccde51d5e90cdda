"""Checks that a batch, a replay buffer and a policy fit in memory, before anything is allocated."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlgames.core.errors import ConfigError
from rlgames.games.game import Game, State

COPIES_PER_WEIGHT = 4
"""Of a network: a weight, its gradient and the optimizer's two running means."""


def check_batch_memory(batch: int, window: int | None, game: Game[Any]) -> None:
    """Raises ConfigError if the moves of one batch do not fit in free memory.

    Counted per move: its position, its observation twice (as played and as trained on), and per
    action a mask and four floats (scores, log-probabilities and their gradients).
    """
    spec = game.spec
    cells = math.prod(spec.observation[1:])
    move_bytes = 4 * cells + 8 * math.prod(spec.observation) + 17 * spec.actions
    # Rules may hardly bound the length of a game; 100 plies per cell exceed any likely one.
    size = move_bytes * min(window or spec.max_plies, spec.max_plies, 100 * cells)
    check_fits_in_memory(f"batch={batch}", "for its moves", batch, size, "batch={} fits")


def check_evaluation_memory(key: str, games: int, game: Game[Any], factor: int = 1) -> None:
    """Raises ConfigError if what an evaluation of factor * games games keeps does not fit in free
    memory.

    key: the config key that sets `games`. Counted per game: its final position twice (as it ended
    and in order), and 100 bytes for seats, lengths, scores and weights.
    """
    size = factor * (2 * _state_bytes(game.example_state()) + 100)
    check_fits_in_memory(f"{key}={games}", "for final states", games, size, key + "={} fits")


def check_replay_memory(
    buffer_size: int, minibatch_size: int, has_search: bool, game: Game[Any]
) -> None:
    """Raises ConfigError if buffer_size moves, or a step on minibatch_size of them, do not fit in
    free memory.

    Counted per move: its position, 32 bytes for reward and links, and a search target if any.
    """
    row_bytes = _state_bytes(game.public(game.example_state())) + 32
    target_bytes = 4 * game.spec.actions if has_search else 0
    step_bytes = 8 * math.prod(game.spec.observation) + 17 * game.spec.actions
    for key, count, why, size in (
        ("buffer_size", buffer_size, "for the replay buffer", row_bytes + target_bytes),
        ("minibatch_size", minibatch_size, "for a step", step_bytes),
    ):
        key = f"learner.{key}"
        check_fits_in_memory(f"{key}={count}", why, count, size, key + "={} fits")


def _state_bytes(state: State) -> int:
    return sum(column.nbytes for column in vars(state).values() if isinstance(column, Tensor))


def check_weight_memory(name: str, weights: int, copies: int = COPIES_PER_WEIGHT) -> None:
    """Raises ConfigError if training this many weights, of `copies` floats each, does not fit in
    free memory."""
    what = f"policy={name} with {weights:,} weights"
    check_fits_in_memory(what, "to train", weights, 4 * copies, "{:,} would fit")


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
    """Bytes available on the machine; None if unknown."""
    try:
        found = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
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
