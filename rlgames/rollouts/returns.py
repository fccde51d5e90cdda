"""Sums over the moves of each seat of each game, from the last move to the first.

Letters in shapes: M moves in the order they were made, T seats of games, one after the
other. slot: int64 [M], the number of the mover among the T.
"""

from __future__ import annotations

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.words import Array


@jit()
def find_score_deltas(
    slot: Array, score: Array, is_move: Array, later: Array, score_delta: Array
) -> None:
    """Write the growth of each mover's score until its next move, float32 [M].

    score: float32 [M], of the mover. is_move: bool [M]; the others are rows of games that were over
    already. later: float32 [T], the final scores; changed.
    """
    for move in range(len(slot) - 1, -1, -1):
        score_delta[move] = later[slot[move]] - score[move]
        if is_move[move]:
            later[slot[move]] = score[move]


@jit()
def sum_rewards(
    slot: Array, reward: Array, discount: Array, value: Array, later: Array, returns: Array
) -> None:
    """Write the discounted sums of rewards, float32 [M]; discount: float32 [M], after each move.

    value: float32 [M], or [0] without any, what replaces a sum, and with the other sign
    of the last sum of the other of two seats before; NaN where nothing does. later: float32 [2, T],
    0 and NaN; changed.
    """
    for move in range(len(slot) - 1, -1, -1):
        seat = slot[move]
        total = reward[move] + discount[move] * later[0, seat]
        if len(value):
            if not np.isnan(value[move]):
                later[1, seat], later[1, seat ^ 1] = value[move], -value[move]
            if not np.isnan(later[1, seat]):
                total = later[1, seat]
            later[1, seat] = np.float32(np.nan)
        later[0, seat] = returns[move] = total


@jit()
def sum_advantages(
    slot: Array,
    reward: Array,
    value: Array,
    discount: Array,
    gae_lambda: float,
    later: Array,
    advantage: Array,
) -> None:
    """Write the sums of generalized advantage estimation, float32 [M], from reward, value and
    discount, float32 [M]. later: float32 [2, T], the values of the last positions, and 0; changed.
    """
    decay = np.float32(gae_lambda)
    for move in range(len(slot) - 1, -1, -1):
        seat = slot[move]
        delta = reward[move] + discount[move] * later[0, seat] - value[move]
        total = delta + discount[move] * decay * later[1, seat]
        later[0, seat], later[1, seat] = value[move], total
        advantage[move] = total
