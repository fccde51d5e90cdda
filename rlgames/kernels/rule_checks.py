"""Compiled rules in many positions, to compare them with a game's own."""

from __future__ import annotations

from typing import Any

from rlgames.kernels.jit import jit
from rlgames.kernels.rules import is_legal, load, observe, play, store
from rlgames.kernels.words import Array


@jit()
def describe_positions(
    rules: Any, positions: Array, legal: Array, observations: Array, size: int
) -> None:
    """Fill legal, bool [N, A], and the first numbers of observations, float32 [N, size or more], of
    positions, int64 [N, W]."""
    for row in range(len(positions)):
        position = load(rules.start, positions, row)
        observe(rules, position, observations[row, :size])
        for action in range(rules.actions):
            legal[row, action] = is_legal(rules, position, action)


@jit()
def play_moves(rules: Any, positions: Array, actions: Array, is_over: Array, points: Array) -> None:
    """Make a move in each position, in place; fill is_over, bool [N], and points, float32 [N]."""
    for row in range(len(positions)):
        position = load(rules.start, positions, row)
        after, is_over[row], points[row] = play(rules, position, actions[row])
        store(positions, row, after)
