"""Advantage actor-critic learning of n-tuple policies while they play 2048 on packed boards.

Several games are played in step: while the entries of one are on their way from memory, those of
the others are used. After the logits, an entry has parts of the value, the sum of its errors and
that of their sizes. Arguments that many functions share are those of ntuple_logits; game is the
number of a game among those in step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlgames.kernels.game_2048 import Bits, add_tile, slide
from rlgames.kernels.jit import jit
from rlgames.kernels.ntuple_logits import (
    NUM_ACTIONS,
    legal_actions,
    sample_action,
    softmax,
    step_logits,
    sum_logits,
)
from rlgames.kernels.ntuple_values import CompiledNetwork, fetch_entries, num_entries
from rlgames.kernels.words import Array

U = np.uint64
VALUE, ERRORS, SIZES = U(4), U(5), U(6)
NUM_IN_STEP = U(16)
MEAN_SQUARE_RATE = np.float32(1e-4)
"""How far each squared advantage moves their mean."""
MAX_ADVANTAGE = np.float32(5)
"""Of a move, in units of the root of that mean."""


class Settings(NamedTuple):
    """cells: the lowest bit of each cell of the board. fours: the probability of a 4 in units of
    2^-32. plies: the most moves of each game in a call. scale: the reward of a point."""

    cells: np.uint64
    fours: np.uint64
    plies: int
    lr: np.float32
    value_lr: np.float32
    discount: np.float32
    gae_lambda: np.float32
    entropy_coef: np.float32
    scale: np.float32


class Memory(NamedTuple):
    """What one thread writes, for G games in step and K lookups of a board.

    rng: uint64 [1], the state of the random numbers. entries: uint64 [G K], of the present board of
    each game. boards, actions: uint64 [G, plies], and points: float32 [G, plies], of the moves of
    this window. lengths: uint64 [G], their number. values, advantages: float32 [G], of the state
    after the move that is learned. logits, probs: float32 [4].
    """

    rng: Array
    entries: Array
    boards: Array
    actions: Array
    points: Array
    lengths: Array
    values: Array
    advantages: Array
    logits: Array
    probs: Array


class Totals(NamedTuple):
    """Sums over moves: of the sizes of the value's errors, and of the policy's entropy."""

    num_moves: int
    td_error: float
    entropy: float


@jit()
def make_memory(network: CompiledNetwork, plies: int, seed: Bits) -> Memory:
    """Memory for windows of `plies` moves."""
    shape = (NUM_IN_STEP, U(plies))
    return Memory(
        rng=np.full(1, seed, np.uint64),
        entries=np.zeros(NUM_IN_STEP * num_entries(network), np.uint64),
        boards=np.zeros(shape, np.uint64),
        actions=np.zeros(shape, np.uint64),
        points=np.zeros(shape, np.float32),
        lengths=np.zeros(NUM_IN_STEP, np.uint64),
        values=np.zeros(NUM_IN_STEP, np.float32),
        advantages=np.zeros(NUM_IN_STEP, np.float32),
        logits=np.zeros(NUM_ACTIONS, np.float32),
        probs=np.zeros(NUM_ACTIONS, np.float32),
    )


@jit()
def fetch(board: Bits, game: Bits, table: Array, network: CompiledNetwork, memory: Memory) -> None:
    """Compute where the entries of a game's board are, and have them fetched."""
    fetch_entries(board, network, table, memory.entries, game * num_entries(network))


@jit()
def value_of(game: Bits, table: Array, num: Bits, memory: Memory) -> np.float32:
    """The value of a game's board; fetch has been called."""
    value = np.float32(0)
    for lookup in range(game * num, (game + U(1)) * num):
        value += table[memory.entries[lookup] + VALUE]
    return value


@jit()
def play(
    boards: Array,
    done: Array,
    table: Array,
    network: CompiledNetwork,
    permutations: Array,
    rows: Array,
    settings: Settings,
    memory: Memory,
) -> None:
    """Play up to settings.plies moves of each game; boards, done and memory change."""
    num, logits, probs = num_entries(network), memory.logits, memory.probs
    memory.lengths[:] = 0
    for ply in range(U(settings.plies)):
        for game in range(U(len(boards))):
            if not done[game]:
                fetch(boards[game], game, table, network, memory)
        for game in range(U(len(boards))):
            if done[game]:
                continue
            board = boards[game]
            sum_logits(table, memory.entries, game * num, num, permutations, logits)
            softmax(logits, legal_actions(board, rows), probs)
            action = sample_action(probs, memory.rng)
            after, points = slide(board, rows, action)
            memory.boards[game, ply], memory.actions[game, ply] = board, action
            memory.points[game, ply] = points
            memory.lengths[game] += U(1)
            boards[game] = add_tile(after, settings.cells, settings.fours, memory.rng)
            done[game] = legal_actions(boards[game], rows) == U(0)


@jit()
def start_backward(
    boards: Array, done: Array, table: Array, network: CompiledNetwork, memory: Memory
) -> None:
    """Set the values after each game's last move, and have the entries of its board fetched."""
    for game in range(U(len(boards))):
        memory.values[game] = memory.advantages[game] = np.float32(0)
        if not done[game]:
            fetch(boards[game], game, table, network, memory)
            memory.values[game] = value_of(game, table, num_entries(network), memory)
        if memory.lengths[game] > U(0):
            last = memory.boards[game, memory.lengths[game] - U(1)]
            fetch(last, game, table, network, memory)


@jit(error_model="numpy")
def standardized(advantage: np.float32, mean_square: Array) -> np.float32:
    """An advantage in units of the usual size, which it changes."""
    mean_square[0] += MEAN_SQUARE_RATE * (advantage * advantage - mean_square[0])
    units = advantage / np.sqrt(mean_square[0])
    return max(min(units, MAX_ADVANTAGE), -MAX_ADVANTAGE)


@jit(error_model="numpy")
def policy_gradient(
    probs: Array, action: Bits, advantage: np.float32, entropy_coef: np.float32, gradient: Array
) -> np.float32:
    """Write the gradient of advantage · log π(action) + entropy_coef · H in the logits; H, the
    entropy."""
    entropy = np.float32(0)
    for each in range(U(NUM_ACTIONS)):
        if probs[each] > np.float32(0):
            entropy -= probs[each] * np.log(probs[each])
    for each in range(U(NUM_ACTIONS)):
        gradient[each] = advantage * (np.float32(each == action) - probs[each])
        if probs[each] > np.float32(0):
            gradient[each] -= entropy_coef * probs[each] * (np.log(probs[each]) + entropy)
    return entropy


@jit(error_model="numpy")
def correct(
    table: Array,
    game: Bits,
    num: Bits,
    permutations: Array,
    gradient: Array,
    error: np.float32,
    settings: Settings,
    memory: Memory,
) -> None:
    """Move the logits of a game's board along a gradient, and its value by parts of an error."""
    part = error / np.float32(num)
    size = np.abs(part)
    lookup, stop = game * num, (game + U(1)) * num
    while lookup < stop:
        for view in range(U(len(permutations))):
            entry, rate = memory.entries[lookup], settings.value_lr
            step_logits(table, entry, view, permutations, settings.lr, gradient)
            errors, sizes = table[entry + ERRORS], table[entry + SIZES]
            if sizes > np.float32(0):
                rate *= np.abs(errors) / sizes
            table[entry + ERRORS], table[entry + SIZES] = errors + part, sizes + size
            table[entry + VALUE] += rate * part
            lookup += U(1)


@jit()
def learn_move(
    game: Bits,
    ply: Bits,
    table: Array,
    network: CompiledNetwork,
    permutations: Array,
    rows: Array,
    mean_square: Array,
    settings: Settings,
    memory: Memory,
) -> tuple[np.float32, np.float32]:
    """Learn from a move whose board is fetched; the value's error, and the entropy."""
    num, logits, probs = num_entries(network), memory.logits, memory.probs
    board = memory.boards[game, ply]
    value = value_of(game, table, num, memory)
    reward = settings.scale * memory.points[game, ply]
    delta = reward + settings.discount * memory.values[game] - value
    advantage = delta + settings.discount * settings.gae_lambda * memory.advantages[game]
    memory.values[game], memory.advantages[game] = value, advantage
    sum_logits(table, memory.entries, game * num, num, permutations, logits)
    softmax(logits, legal_actions(board, rows), probs)
    units, action = standardized(advantage, mean_square), memory.actions[game, ply]
    entropy = policy_gradient(probs, action, units, settings.entropy_coef, logits)
    correct(table, game, num, permutations, logits, advantage, settings, memory)
    return advantage, entropy


@jit()
def learn_games(
    table: Array,
    network: CompiledNetwork,
    permutations: Array,
    rows: Array,
    mean_square: Array,
    settings: Settings,
    boards: Array,
    score: Array,
    turn: Array,
    done: Array,
    seed: Bits,
) -> Totals:
    """Play up to settings.plies moves of some games, and learn from them, the last moves first.

    mean_square: float32 [1], of the advantages. boards: uint64 [B]. score: float32 [B], turn: int64
    [B], done: bool [B]. All of them change.
    """
    memory = make_memory(network, settings.plies, seed)
    num_moves, errors, entropies = 0, 0.0, 0.0
    for first in range(0, len(boards), int(NUM_IN_STEP)):
        games = slice(first, min(first + int(NUM_IN_STEP), len(boards)))
        play(boards[games], done[games], table, network, permutations, rows, settings, memory)
        start_backward(boards[games], done[games], table, network, memory)
        for step in range(U(settings.plies)):
            for game in range(U(len(boards[games]))):
                if step >= memory.lengths[game]:
                    continue
                ply = memory.lengths[game] - U(1) - step
                shared = (table, network, permutations, rows, mean_square, settings, memory)
                error, entropy = learn_move(game, ply, *shared)
                errors += np.float64(np.abs(error))
                entropies += np.float64(entropy)
                if ply > U(0):
                    fetch(memory.boards[game, ply - U(1)], game, table, network, memory)
        for game in range(len(boards[games])):
            plies = int(memory.lengths[game])
            score[first + game] += memory.points[game, :plies].sum()
            turn[first + game] += plies
            num_moves += plies
    return Totals(num_moves, errors, entropies)
