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
def action_score(
    board: Bits,
    action: Bits,
    plies: Bits,
    table: Array,
    network: CompiledNetwork,
    rules: Rules2048,
    settings: SearchSettings,
    keys: Array,
    means: Array,
) -> tuple[bool, float]:
    """Whether an action is legal, and the score that `plies` moves reach, of which it is one."""
    after, points = slide(board, rules.rows, action)
    if after == board:
        return False, 0.0
    score = settings.scale * np.float64(points)
    if plies == U(1):
        return True, score + np.float64(value(after, network, table))
    mean = mean_score(after, plies - U(1), table, network, rules, settings, keys, means)
    return True, score + settings.discount * mean


@compiled
def mean_score(
    board: Bits,
    plies: Bits,
    table: Array,
    network: CompiledNetwork,
    rules: Rules2048,
    settings: SearchSettings,
    keys: Array,
    means: Array,
) -> float:
    """The mean over new tiles of the best score that `plies` moves reach, 0 where none is legal."""
    slot = (board * U(0x9E3779B97F4A7C15)) >> (U(64) - TABLE_BITS)
    slot += (plies - U(1)) * TABLE_SIZE
    if keys[slot] == board:
        return means[slot]  # type: ignore[no-any-return]
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
                is_legal, score = action_score(
                    before, action, plies, table, network, rules, settings, keys, means
                )
                if is_legal and (is_over or score > best):
                    best, is_over = score, False
            total += probability * best
            weight += probability
    keys[slot], means[slot] = board, total / weight
    return total / weight


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
            _, scores[number, action] = action_score(
                boards[number], action, plies, table, network, rules, settings, keys, means
            )
    return scores
