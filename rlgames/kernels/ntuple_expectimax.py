"""Expectimax of n-tuple networks on packed 2048 boards, with a transposition table.

keys: uint64 [plies · TABLE_SIZE], and means: float64 of the same size, are the transposition table:
boards after a move, 0 for none, and the mean over chance that was computed for them, for each
number of moves that follow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlgames.kernels.game_2048 import Bits, Rules2048, count_cells, empty_cells, slide
from rlgames.kernels.jit import jit
from rlgames.kernels.ntuple_2048 import CompiledNetwork, value
from rlgames.kernels.words import Array, compiled

U = np.uint64
TABLE_BITS = U(15)
TABLE_SIZE = U(1 << 15)


class SearchSettings(NamedTuple):
    """fours: the probability of a 4. scale: the reward of a point. min_probability: less likely
    tiles are left out, except the likeliest."""

    fours: float
    discount: float
    scale: float
    min_probability: float


@compiled
def later_score(
    board: Bits,
    plies: Bits,
    table: Array,
    network: CompiledNetwork,
    rules: Rules2048,
    settings: SearchSettings,
    keys: Array,
    means: Array,
) -> float:
    """What is reached after a move to this board: the network's value, or with `plies` more moves
    the mean over new tiles of the best score, 0 where no move is legal, discounted.

    One function that calls itself: numba cannot load two that call each other from its cache.
    """
    if plies == U(0):
        return np.float64(value(board, network, table))
    slot = (board * U(0x9E3779B97F4A7C15)) >> (U(64) - TABLE_BITS)
    slot += (plies - U(1)) * TABLE_SIZE
    if keys[slot] == board:
        return settings.discount * means[slot]  # type: ignore[no-any-return]
    empty = empty_cells(board, rules.cells)
    cell_probability = 1.0 / np.float64(count_cells(empty))
    two, four = cell_probability * (1.0 - settings.fours), cell_probability * settings.fours
    threshold = min(max(two, four), settings.min_probability)
    total = weight = 0.0
    while empty != U(0):
        cell = empty & (~empty + U(1))
        empty ^= cell
        for tile in range(U(2)):
            probability = four if tile else two
            if probability < threshold or probability == 0.0:
                continue
            before, best, is_over = board | (cell << tile), 0.0, True
            for action in range(U(4)):
                after, points = slide(before, rules.rows, action)
                if after == before:
                    continue
                score = settings.scale * np.float64(points) + later_score(
                    after, plies - U(1), table, network, rules, settings, keys, means
                )
                if is_over or score > best:
                    best, is_over = score, False
            total += probability * best
            weight += probability
    keys[slot], means[slot] = board, total / weight
    return settings.discount * means[slot]  # type: ignore[no-any-return]


@jit()
def search(
    boards: Array,
    plies: Bits,
    table: Array,
    network: CompiledNetwork,
    rules: Rules2048,
    settings: SearchSettings,
    keys: Array,
    means: Array,
) -> Array:
    """Float32 [B, 4]: the score of each action that `plies` moves reach, 0 for illegal ones.

    boards: uint64 [B].
    """
    scores = np.zeros((len(boards), 4), np.float32)
    for number in range(len(boards)):
        for action in range(U(4)):
            after, points = slide(boards[number], rules.rows, action)
            if after != boards[number]:
                scores[number, action] = settings.scale * np.float64(points) + later_score(
                    after, plies - U(1), table, network, rules, settings, keys, means
                )
    return scores
