"""TD learning of n-tuple networks while they play 2048 on packed boards.

Several games are played in step: while the values of one are on their way from memory, the boards
of the others are computed. Arguments that many functions share: table, float32, the entries; rows,
uint64, the slide_table; at, 4 times the number of a game among those that are played in step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlgames.kernels.game_2048 import (
    COLUMNS,
    Bits,
    add_tile,
    count_cells,
    empty_cells,
    slide_both,
    transpose,
)
from rlgames.kernels.jit import jit
from rlgames.kernels.ntuple_values import (
    CompiledNetwork,
    fetch_entries,
    find_entries,
    num_entries,
    sum_entries,
)
from rlgames.kernels.words import Array, next_random

U = np.uint64
HALF = U(32)
NUM_IN_STEP = U(2)
"""More do not hide more of the time that memory takes, and push values out of the first cache."""


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


class Memory(NamedTuple):
    """What one thread writes, for G games in step and K lookups of a board.

    rng: uint64 [1], the state of the random numbers. afters: uint64 [4 G], points: float32 [4 G]
    and entries: uint64 [4 G K]: what the four actions lead to. afterstates: uint64 [G, plies] and
    rewards: float32 [G, plies]: what the moves of this window led to. lengths: uint64 [G], the
    number of these moves. next_values: float32 [G], the reward and value that follow them.
    """

    rng: Array
    afters: Array
    points: Array
    entries: Array
    afterstates: Array
    rewards: Array
    lengths: Array
    next_values: Array


@jit()
def look_up(
    board: Bits, at: Bits, table: Array, network: CompiledNetwork, rows: Array, memory: Memory
) -> None:
    """Compute the boards after the four actions, and have the values of legal ones fetched."""
    num = num_entries(network)
    afters, points = memory.afters, memory.points
    up, down, points[at] = slide_both(transpose(board), rows, COLUMNS)
    afters[at + U(3)], afters[at + U(1)], points[at + U(1)] = slide_both(board, rows, U(0))
    afters[at], afters[at + U(2)] = transpose(up), transpose(down)
    points[at + U(2)], points[at + U(3)] = points[at], points[at + U(1)]
    for action in range(at, at + U(4)):
        if afters[action] != board:
            fetch_entries(afters[action], network, table, memory.entries, action * num)


@jit()
def best_action(
    board: Bits, at: Bits, table: Array, num: Bits, scale: np.float32, memory: Memory
) -> tuple[Bits, np.float32]:
    """The first action with the highest score, and this score; 4 and -inf if none is legal.

    look_up has been called. num: K.
    """
    best, highest = U(4), np.float32(-np.inf)
    for action in range(at, at + U(4)):
        if memory.afters[action] != board:
            value = sum_entries(table, memory.entries, action * num, num)
            score = scale * memory.points[action] + value
            if best == U(4) or score > highest:
                best, highest = action - at, score
    return best, highest


@jit()
def random_action(board: Bits, at: Bits, memory: Memory) -> Bits:
    """A uniformly random legal action; there is one, and look_up has been called."""
    legal = U(0)
    for action in range(at, at + U(4)):
        legal += U(memory.afters[action] != board)
    chosen = ((next_random(memory.rng) >> HALF) * legal) >> HALF
    for action in range(at, at + U(4)):
        if memory.afters[action] != board:
            if chosen == U(0):
                return action - at
            chosen -= U(1)
    return U(4)


@jit()
def expected_best(
    board: Bits,
    table: Array,
    network: CompiledNetwork,
    rows: Array,
    settings: Settings,
    memory: Memory,
) -> np.float32:
    """The mean over new tiles of the best action's score, 0 where the game is over."""
    empty, num = empty_cells(board, settings.cells), num_entries(network)
    fours = np.float64(settings.fours) / np.float64(1 << 32)
    count, total = np.float64(count_cells(empty)), 0.0
    while empty != U(0):
        cell = empty & (~empty + U(1))
        empty ^= cell
        for tile in range(U(2)):
            probability = fours if tile else 1.0 - fours
            if probability > 0.0:
                after = board | (cell << tile)
                look_up(after, U(0), table, network, rows, memory)
                best, score = best_action(after, U(0), table, num, settings.scale, memory)
                if best < U(4):
                    total += probability * np.float64(score)
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
    boards: Array,
    done: Array,
    table: Array,
    network: CompiledNetwork,
    rows: Array,
    settings: Settings,
    memory: Memory,
) -> None:
    """Play up to settings.plies moves of each game; boards, done and memory change."""
    num, plies = num_entries(network), U(settings.plies)
    memory.lengths[:] = 0
    memory.next_values[:] = 0
    for ply in range(plies + U(1)):
        for game in range(U(len(boards))):
            if not done[game]:
                look_up(boards[game], U(4) * game, table, network, rows, memory)
        for game in range(U(len(boards))):
            if done[game]:
                continue
            board, at = boards[game], U(4) * game
            action, score = best_action(board, at, table, num, settings.scale, memory)
            if action == U(4):
                done[game] = True
            elif ply == plies:
                memory.next_values[game] = score
            else:
                if settings.epsilon > U(0) and (next_random(memory.rng) >> HALF) < settings.epsilon:
                    action = random_action(board, at, memory)
                after = memory.afters[at + action]
                memory.afterstates[game, ply] = after
                memory.rewards[game, ply] = memory.points[at + action]
                memory.lengths[game] += U(1)
                boards[game] = add_tile(after, settings.cells, settings.fours, memory.rng)


@jit()
def learn_backward(
    game: Bits,
    table: Array,
    network: CompiledNetwork,
    rows: Array,
    settings: Settings,
    memory: Memory,
) -> float:
    """Learn from the moves of a window, the last one first; the sum of the sizes of the errors."""
    total, num, next_reward = 0.0, num_entries(network), np.float32(0)
    next_value, entries = memory.next_values[game], memory.entries
    ply = memory.lengths[game]
    while ply > U(0):
        ply -= U(1)
        after, target = memory.afterstates[game, ply], next_reward + next_value
        if settings.expected:
            target = expected_best(after, table, network, rows, settings, memory)
        find_entries(after, network, entries, U(0))
        error = settings.discount * target - sum_entries(table, entries, U(0), num)
        total += np.float64(np.abs(error))
        correct(table, entries, num, error, settings.lr, settings.coherent)
        next_reward = settings.scale * memory.rewards[game, ply]
        next_value = sum_entries(table, entries, U(0), num)
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
    """Play up to settings.plies moves of some games in step, and learn from them one by one.

    boards: uint64 [B]. score: float32 [B]. turn: int64 [B]. done: bool [B]. All are
    updated. Returns the number of moves and the sum of the sizes of their errors.
    """
    memory = Memory(
        np.full(1, seed, np.uint64),
        np.zeros(U(4) * NUM_IN_STEP, np.uint64),
        np.zeros(U(4) * NUM_IN_STEP, np.float32),
        np.zeros(U(4) * NUM_IN_STEP * num_entries(network), np.uint64),
        np.zeros((NUM_IN_STEP, settings.plies), np.uint64),
        np.zeros((NUM_IN_STEP, settings.plies), np.float32),
        np.zeros(NUM_IN_STEP, np.uint64),
        np.zeros(NUM_IN_STEP, np.float32),
    )
    num_moves, total_error = 0, 0.0
    for first in range(0, len(boards), int(NUM_IN_STEP)):
        games = slice(first, min(first + int(NUM_IN_STEP), len(boards)))
        play(boards[games], done[games], table, network, rows, settings, memory)
        for game in range(len(boards[games])):
            plies = int(memory.lengths[game])
            score[first + game] += memory.rewards[game, :plies].sum()
            turn[first + game] += plies
            num_moves += plies
            total_error += learn_backward(U(game), table, network, rows, settings, memory)
    return num_moves, total_error
