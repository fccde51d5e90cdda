"""TD learning of n-tuple networks while they play 2048 on packed boards.

Arrays that many functions share: table, float32, the entries; rows, uint64, the slide_table. The
memory of one thread is in two arrays:

    scratch: uint64 [5]. 0: the state of the random numbers. 1 to 4: the boards after the four
        actions.
    scores: float32 [8]. 0 to 3: points and value of the four actions, -inf if illegal. 4 to 7: the
        points alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.ntuple_values import (
    CompiledNetwork,
    find_entries,
    num_entries,
    sum_entries,
    value,
)
from rlgames.kernels.packed_2048 import (
    Array,
    Bits,
    add_tile,
    count_cells,
    empty_cells,
    next_random,
    slide,
)

U = np.uint64
AFTER, POINTS = U(1), U(4)
HALF = U(32)


class Settings(NamedTuple):
    """cells: the lowest bit of each cell of the board. fours, epsilon: the probabilities of a 4 and
    of a random move in units of 2^-32. plies: the most moves of each game in a call. scale: the
    reward of a point. coherent: whether each value in the table is followed by the sum of its
    errors and that of their sizes. expected: whether targets are means over chance."""

    cells: np.uint64
    fours: np.uint64
    epsilon: np.uint64
    plies: int
    lr: np.float32
    discount: np.float32
    td_lambda: np.float32
    scale: np.float32
    coherent: bool
    expected: bool


@jit()
def best_action(
    board: Bits,
    table: Array,
    network: CompiledNetwork,
    rows: Array,
    scale: np.float32,
    scratch: Array,
    scores: Array,
) -> Bits:
    """The first action with the highest score, 4 if none is legal; fills scratch and scores."""
    best: Bits = U(4)
    highest = np.float32(-np.inf)
    for action in range(U(4)):
        after, points = slide(board, rows, action)
        scratch[AFTER + action] = after
        scores[POINTS + action] = points
        scores[action] = np.float32(-np.inf)
        if after != board:
            score = scale * points + value(after, network, table)
            scores[action] = score
            if best == U(4) or score > highest:
                best, highest = action, score
    return best


@jit()
def random_action(board: Bits, scratch: Array) -> Bits:
    """A uniformly random legal action; there is one, and scratch has the boards after all."""
    legal = U(0)
    for action in range(U(4)):
        legal += U(scratch[AFTER + action] != board)
    chosen = ((next_random(scratch) >> HALF) * legal) >> HALF
    for action in range(U(4)):
        if scratch[AFTER + action] != board:
            if chosen == U(0):
                return action
            chosen -= U(1)
    return U(4)


@jit()
def expected_best(
    board: Bits,
    table: Array,
    network: CompiledNetwork,
    rows: Array,
    settings: Settings,
    scratch: Array,
    scores: Array,
) -> np.float32:
    """The mean over new tiles of the best action's score, 0 where the game is over."""
    empty = empty_cells(board, settings.cells)
    fours = np.float64(settings.fours) / np.float64(1 << 32)
    count, total = np.float64(count_cells(empty)), 0.0
    while empty != U(0):
        cell = empty & (~empty + U(1))
        empty ^= cell
        for tile in range(U(2)):
            probability = fours if tile else 1.0 - fours
            if probability > 0.0:
                after = board | (cell << tile)
                best = best_action(after, table, network, rows, settings.scale, scratch, scores)
                if best < U(4):
                    total += probability * np.float64(scores[best])
    return np.float32(total / count)


@jit(error_model="numpy")
def correct(
    table: Array, entries: Array, num: Bits, error: np.float32, lr: np.float32, coherent: bool
) -> None:
    """Move the values at `num` entries by their equal parts of an error."""
    part = error / np.float32(num)
    size = np.abs(part)
    for at in range(num):
        entry, rate = entries[at], lr
        if coherent:
            errors, sizes = table[entry + U(1)], table[entry + U(2)]
            if sizes > np.float32(0):
                rate = lr * (np.abs(errors) / sizes)
            table[entry + U(1)] = errors + part
            table[entry + U(2)] = sizes + size
        table[entry] += rate * part


@jit()
def play(
    board: Bits,
    table: Array,
    network: CompiledNetwork,
    rows: Array,
    settings: Settings,
    scratch: Array,
    scores: Array,
    afterstates: Array,
    points: Array,
) -> tuple[Bits, Bits, np.float32]:
    """Play up to settings.plies moves from a board.

    afterstates: uint64 [plies] and points: float32 [plies] are what the moves led to. Returns the
    last board, the number of moves, and the score of the best action on the last board, -inf if
    the game is over.
    """
    ply = U(0)
    while True:
        action = best_action(board, table, network, rows, settings.scale, scratch, scores)
        if action == U(4):
            return board, ply, np.float32(-np.inf)
        if ply == U(settings.plies):
            return board, ply, scores[action]
        if settings.epsilon > U(0) and (next_random(scratch) >> HALF) < settings.epsilon:
            action = random_action(board, scratch)
        afterstates[ply] = scratch[AFTER + action]
        points[ply] = scores[POINTS + action]
        board = add_tile(scratch[AFTER + action], settings.cells, settings.fours, scratch)
        ply += U(1)


@jit()
def learn_backward(
    table: Array,
    network: CompiledNetwork,
    rows: Array,
    settings: Settings,
    scratch: Array,
    scores: Array,
    afterstates: Array,
    points: Array,
    entries: Array,
    ply: Bits,
    next_value: np.float32,
) -> float:
    """Learn from the first `ply` moves of a window, the last one first.

    entries: uint64 [K], memory for the entries of a board. next_value: the reward and value that
    follow the last one. Returns the sum of the sizes of the errors.
    """
    total, num, next_reward = 0.0, num_entries(network), np.float32(0)
    while ply > U(0):
        ply -= U(1)
        find_entries(afterstates[ply], network, entries, U(0))
        target = next_reward + next_value
        if settings.expected:
            target = expected_best(
                afterstates[ply], table, network, rows, settings, scratch, scores
            )
        error = settings.discount * target - sum_entries(table, entries, num)
        total += np.float64(np.abs(error))
        correct(table, entries, num, error, settings.lr, settings.coherent)
        next_reward = settings.scale * points[ply]
        next_value = sum_entries(table, entries, num)
        if settings.td_lambda > np.float32(0):
            next_value += settings.td_lambda * (settings.discount * target - next_value)
    return total


@jit()
def learn_games(
    table: Array,
    network: CompiledNetwork,
    rows: Array,
    settings: Settings,
    boards: Array,
    score: Array,
    turn: Array,
    done: Array,
    seed: Bits,
) -> tuple[int, float]:
    """Play up to settings.plies moves of each game, and learn from them before the next game.

    boards: uint64 [B]. score: float32 [B]. turn: int64 [B]. done: bool [B]. All are
    updated. Returns the number of moves and the sum of the sizes of their errors.
    """
    scratch = np.zeros(5, np.uint64)
    scratch[U(0)] = seed
    scores = np.zeros(8, np.float32)
    afterstates = np.empty(settings.plies, np.uint64)
    points = np.empty(settings.plies, np.float32)
    entries = np.empty(num_entries(network), np.uint64)
    num_moves, total_error = 0, 0.0
    for game in range(len(boards)):
        if done[game]:
            continue
        boards[game], plies, last_score = play(
            *(boards[game], table, network, rows, settings, scratch, scores),
            *(afterstates, points),
        )
        done[game] = last_score == -np.inf
        next_value = np.float32(0) if done[game] else last_score
        score[game] += points[:plies].sum()
        turn[game] += np.int64(plies)
        num_moves += int(plies)
        total_error += learn_backward(
            *(table, network, rows, settings, scratch, scores),
            *(afterstates, points, entries, plies, next_value),
        )
    return num_moves, total_error
