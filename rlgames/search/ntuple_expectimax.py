"""Expectimax of n-tuple networks on packed 2048 boards, with a transposition table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.games.game_2048 import Rules2048
from rlgames.kernels.jit import jit
from rlgames.kernels.nibbles import (
    Bits,
    columns_start,
    count_cells,
    empty_cells,
    slide,
    slide_both,
    transpose,
)
from rlgames.kernels.ntuple import num_entries, sum_values
from rlgames.kernels.words import Array, compiled
from rlgames.policies.ntuple_2048 import CompiledNetwork, fetch_entries

U = np.uint64
TABLE_BITS = U(12)
TABLE_SIZE = U(1 << 12)
"""Small enough for the processor's cache: most boards that come again do so within a search."""

NEVER = U(16)
"""An exponent that packed boards do not have."""


class SearchSettings(NamedTuple):
    """scale: the reward of a point. least: as in downgrade, for the boards to search."""

    discount: float
    scale: float
    least: np.uint64


class Memory(NamedTuple):
    """What a search writes.

    keys: uint64 [plies · TABLE_SIZE], and results: float64 of the same size, are the transposition
    table: boards after a move, 0 for none, and what was computed for them, for each number of moves
    that follow.

    The others are of two boards whose moves are being scored, by action, a board after the other.
    afters: uint64 [8], the boards after the moves. points: float32 [8], for them. values: float64
    [8], what was in the transposition table, NaN for nothing; then entries: uint64 [8 · K], the
    places of the values.
    """

    keys: Array
    results: Array
    afters: Array
    points: Array
    values: Array
    entries: Array


@jit()
def make_memory(network: CompiledNetwork, plies: Bits) -> Memory:
    size = np.int64(plies * TABLE_SIZE)
    return Memory(
        np.zeros(size, np.uint64),
        np.empty(size, np.float64),
        np.empty(8, np.uint64),
        np.empty(8, np.float32),
        np.empty(8, np.float64),
        np.empty(8 * np.int64(num_entries(network)), np.uint64),
    )


@compiled
def find_slot(board: Bits, plies: Bits) -> Bits:
    """Where a board belongs in the transposition table."""
    return plies * TABLE_SIZE + ((board * U(0x9E3779B97F4A7C15)) >> (U(64) - TABLE_BITS))


@compiled
def fetch_moves(
    board: Bits,
    first: Bits,
    table: Array,
    network: CompiledNetwork,
    rules: Rules2048,
    memory: Memory,
) -> None:
    """Make all moves on a board, and have the values fetched that are not known yet.

    first: where the moves are in memory, 0 or 4.
    """
    afters, points = memory.afters, memory.points
    up, down, vertical = slide_both(transpose(board), rules.rows, columns_start(rules.rows))
    left, right, horizontal = slide_both(board, rules.rows, U(0))
    afters[first], afters[first + U(1)] = transpose(up), right
    afters[first + U(2)], afters[first + U(3)] = transpose(down), left
    points[first], points[first + U(1)] = vertical, horizontal
    points[first + U(2)], points[first + U(3)] = vertical, horizontal
    for move in range(first, first + U(4)):
        after = afters[move]
        if after != board:
            slot = find_slot(after, U(0))
            value = memory.results[slot] if memory.keys[slot] == after else np.nan
            if np.isnan(value):
                fetch_entries(after, network, table, memory.entries, move * num_entries(network))
            memory.values[move] = value


@compiled
def score_move(
    move: Bits, table: Array, network: CompiledNetwork, settings: SearchSettings, memory: Memory
) -> float:
    """The score of a legal move that fetch_moves has made."""
    value, num = memory.values[move], num_entries(network)
    if np.isnan(value):
        value = np.float64(sum_values(table, memory.entries, move * num, num, U(0)))
        slot = find_slot(memory.afters[move], U(0))
        memory.keys[slot], memory.results[slot] = memory.afters[move], value
    return settings.scale * np.float64(memory.points[move]) + value


@compiled
def best_score(
    board: Bits,
    first: Bits,
    table: Array,
    network: CompiledNetwork,
    settings: SearchSettings,
    memory: Memory,
) -> float:
    """The best score of the moves that fetch_moves has made, 0 if none is legal."""
    best, is_over = 0.0, True
    for move in range(first, first + U(4)):
        if memory.afters[move] != board:
            score = score_move(move, table, network, settings, memory)
            if is_over or score > best:
                best, is_over = score, False
    return best


@compiled
def probability_of_four(rules: Rules2048) -> Any:
    """Of a new tile."""
    return np.float64(rules.fours) / np.float64(1 << 32)


@compiled
def mean_of_values(
    board: Bits,
    table: Array,
    network: CompiledNetwork,
    rules: Rules2048,
    settings: SearchSettings,
    memory: Memory,
) -> float:
    """The mean over new tiles of the best score of one more move, 0 where none is legal."""
    four = probability_of_four(rules)
    empty, total, last_weight = empty_cells(board, rules.cells), 0.0, 0.0
    count = np.float64(count_cells(empty))
    last, first = U(0), U(0)
    while empty != U(0):
        cell = empty & (~empty + U(1))
        empty ^= cell
        for tile in range(U(2)):
            weight = four if tile else 1.0 - four
            if weight == 0.0:
                continue
            # The values of a board are fetched while those of the board before are added up.
            now = board | (cell << tile)
            fetch_moves(now, first, table, network, rules, memory)
            first = U(4) - first
            if last != U(0):
                total += last_weight * best_score(last, first, table, network, settings, memory)
            last, last_weight = now, weight
    total += last_weight * best_score(last, U(4) - first, table, network, settings, memory)
    return total / count


@compiled
def later_score(
    board: Bits,
    plies: Bits,
    table: Array,
    network: CompiledNetwork,
    rules: Rules2048,
    settings: SearchSettings,
    memory: Memory,
) -> float:
    """What is reached after a move to this board: the mean over new tiles of the best score of
    `plies` more moves, 0 where no move is legal, discounted.

    One function that calls itself: numba cannot load two that call each other from its cache.
    """
    slot = find_slot(board, plies)
    if memory.keys[slot] == board:
        return settings.discount * memory.results[slot]
    if plies == U(1):
        mean = mean_of_values(board, table, network, rules, settings, memory)
    else:
        four = probability_of_four(rules)
        empty, total = empty_cells(board, rules.cells), 0.0
        count = np.float64(count_cells(empty))
        while empty != U(0):
            cell = empty & (~empty + U(1))
            empty ^= cell
            for tile in range(U(2)):
                weight = four if tile else 1.0 - four
                if weight == 0.0:
                    continue
                before, best, is_over = board | (cell << tile), 0.0, True
                for action in range(U(4)):
                    after, points = slide(before, rules.rows, action)
                    if after == before:
                        continue
                    score = settings.scale * np.float64(points) + later_score(
                        after, plies - U(1), table, network, rules, settings, memory
                    )
                    if is_over or score > best:
                        best, is_over = score, False
                total += weight * best
        mean = total / count
    memory.keys[slot], memory.results[slot] = board, mean
    return settings.discount * mean


@compiled
def downgrade(board: Bits, least: Bits) -> Bits:
    """A board that a network knows better, with the same moves (Guei, Chen and Wu 2021).

    While the exponent of the largest tile is at least `least` and a smaller tile is missing, all
    tiles above the largest missing one are halved. Equal tiles stay equal and different ones
    different, so actions slide and merge the same cells as before.
    """
    while True:
        present = largest = U(0)
        for shift in range(U(0), U(64), U(4)):
            exponent = (board >> shift) & U(15)
            present, largest = present | U(1) << exponent, max(largest, exponent)
        missing = largest
        while missing != U(0) and present >> missing & U(1):
            missing -= U(1)
        if largest < least or missing == U(0):
            return board
        for shift in range(U(0), U(64), U(4)):
            if (board >> shift) & U(15) > missing:
                board -= U(1) << shift


@jit()
def search(
    boards: Array,
    plies: Bits,
    table: Array,
    network: CompiledNetwork,
    rules: Rules2048,
    settings: SearchSettings,
) -> Array:
    """Float32 [B, 4]: the score of each action that `plies` moves reach, 0 for illegal ones.

    boards: uint64 [B].
    """
    memory = make_memory(network, plies)
    scores = np.zeros((len(boards), 4), np.float32)
    for number in range(len(boards)):
        board = downgrade(boards[number], settings.least)
        if plies == U(1):
            fetch_moves(board, U(0), table, network, rules, memory)
        for action in range(U(4)):
            after, points = slide(board, rules.rows, action)
            if after == board:
                continue
            if plies == U(1):
                scores[number, action] = score_move(action, table, network, settings, memory)
            else:
                scores[number, action] = settings.scale * np.float64(points) + later_score(
                    after, plies - U(1), table, network, rules, settings, memory
                )
    return scores
