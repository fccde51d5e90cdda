"""N-tuple policies that play 2048 on packed boards and learn what a teacher would do there.

The teacher is an n-tuple network of afterstate values. Several games are played in step, as in
ntuple_a2c. Arguments that many functions share are those of ntuple_logits; game is the number of a
game among those in step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlgames.kernels.game_2048 import Bits, add_tile, slide
from rlgames.kernels.jit import jit
from rlgames.kernels.ntuple_logits import (
    NUM_ACTIONS,
    best_action,
    legal_actions,
    softmax,
    step_logits,
    sum_logits,
)
from rlgames.kernels.ntuple_values import CompiledNetwork, fetch_entries, num_entries, sum_entries
from rlgames.kernels.words import Array

U = np.uint64
NUM_IN_STEP = U(16)


class Settings(NamedTuple):
    """cells: the lowest bit of each cell of the board. fours: the probability of a 4 in units of
    2^-32. plies: the most moves of each game in a call. temperature: of the teacher's scores; 0:
    its best action. scale: what a point adds to its scores."""

    cells: np.uint64
    fours: np.uint64
    plies: int
    lr: np.float32
    temperature: np.float32
    scale: np.float32


class Memory(NamedTuple):
    """What one thread writes, for G games in step; the policy has K lookups, the teacher L.

    rng: uint64 [1], the state of the random numbers. entries: uint64 [G K]. legal: uint64 [G].
    afters: uint64 [G, 4] and points: float32 [G, 4]: what the actions lead to. teacher_entries:
    uint64 [4 G L], of these boards. logits, probs, scores, targets: float32 [4].
    """

    rng: Array
    entries: Array
    legal: Array
    afters: Array
    points: Array
    teacher_entries: Array
    logits: Array
    probs: Array
    scores: Array
    targets: Array


class Totals(NamedTuple):
    """Sums over moves: of the cross-entropy, and of equal best actions."""

    num_moves: int
    loss: float
    agreement: int


@jit()
def make_memory(network: CompiledNetwork, teacher: CompiledNetwork, seed: Bits) -> Memory:
    """Memory for games of this policy and this teacher."""
    return Memory(
        rng=np.full(1, seed, np.uint64),
        entries=np.zeros(NUM_IN_STEP * num_entries(network), np.uint64),
        legal=np.zeros(NUM_IN_STEP, np.uint64),
        afters=np.zeros((NUM_IN_STEP, U(NUM_ACTIONS)), np.uint64),
        points=np.zeros((NUM_IN_STEP, U(NUM_ACTIONS)), np.float32),
        teacher_entries=np.zeros(U(NUM_ACTIONS) * NUM_IN_STEP * num_entries(teacher), np.uint64),
        logits=np.zeros(NUM_ACTIONS, np.float32),
        probs=np.zeros(NUM_ACTIONS, np.float32),
        scores=np.zeros(NUM_ACTIONS, np.float32),
        targets=np.zeros(NUM_ACTIONS, np.float32),
    )


@jit()
def look_up(
    board: Bits,
    game: Bits,
    table: Array,
    network: CompiledNetwork,
    teacher_table: Array,
    teacher: CompiledNetwork,
    rows: Array,
    memory: Memory,
) -> None:
    """Compute what a game's actions lead to, and have all entries fetched that are needed."""
    fetch_entries(board, network, table, memory.entries, game * num_entries(network))
    memory.legal[game] = legal_actions(board, rows)
    for action in range(U(NUM_ACTIONS)):
        after, memory.points[game, action] = slide(board, rows, action)
        memory.afters[game, action] = after
        if after != board:
            first = (U(NUM_ACTIONS) * game + action) * num_entries(teacher)
            fetch_entries(after, teacher, teacher_table, memory.teacher_entries, first)


@jit()
def compute_targets(
    game: Bits, teacher_table: Array, num: Bits, settings: Settings, memory: Memory
) -> Bits:
    """Write the target of each action, from the teacher's scores; its best action."""
    legal, scores = memory.legal[game], memory.scores
    for action in range(U(NUM_ACTIONS)):
        scores[action] = np.float32(0)
        if (legal >> action) & U(1):
            first = (U(NUM_ACTIONS) * game + action) * num
            value = sum_entries(teacher_table, memory.teacher_entries, first, num)
            scores[action] = settings.scale * memory.points[game, action] + value
    best = best_action(scores, legal)
    if settings.temperature > np.float32(0):
        scores /= settings.temperature
        softmax(scores, legal, memory.targets)
    else:
        memory.targets[:] = np.float32(0)
        memory.targets[best] = np.float32(1)
    return best


@jit(error_model="numpy")
def imitate(
    table: Array,
    first: Bits,
    num: Bits,
    permutations: Array,
    lr: np.float32,
    memory: Memory,
) -> float:
    """Move the logits of a board towards the targets by an Adagrad step; their cross-entropy."""
    gradient, loss = memory.logits, 0.0
    for action in range(U(NUM_ACTIONS)):
        if memory.targets[action] > np.float32(0):
            probability = max(memory.probs[action], np.float32(1e-30))
            loss -= np.float64(memory.targets[action] * np.log(probability))
        gradient[action] = memory.targets[action] - memory.probs[action]
    lookup, stop = first, first + num
    while lookup < stop:
        for view in range(U(len(permutations))):
            step_logits(table, memory.entries[lookup], view, permutations, lr, gradient)
            lookup += U(1)
    return loss


@jit()
def learn_group(
    table: Array,
    network: CompiledNetwork,
    permutations: Array,
    teacher_table: Array,
    teacher: CompiledNetwork,
    rows: Array,
    settings: Settings,
    games: tuple[Array, Array, Array, Array],
    memory: Memory,
) -> Totals:
    """Play up to settings.plies moves of some games in step, and learn from each; games: as
    learn_games."""
    boards, score, turn, done = games
    num, num_moves, loss, agreement = num_entries(network), 0, 0.0, 0
    for _ in range(settings.plies):
        for game in range(U(len(boards))):
            if not done[game]:
                tables = (table, network, teacher_table, teacher)
                look_up(boards[game], game, *tables, rows, memory)
        for game in range(U(len(boards))):
            if done[game]:
                continue
            first, legal = game * num, memory.legal[game]
            sum_logits(table, memory.entries, first, num, permutations, memory.logits)
            chosen = best_action(memory.logits, legal)
            softmax(memory.logits, legal, memory.probs)
            best = compute_targets(game, teacher_table, num_entries(teacher), settings, memory)
            loss += imitate(table, first, num, permutations, settings.lr, memory)
            agreement += int(chosen == best)
            num_moves += 1
            turn[game] += 1
            score[game] += memory.points[game, chosen]
            after = memory.afters[game, chosen]
            boards[game] = add_tile(after, settings.cells, settings.fours, memory.rng)
            done[game] = legal_actions(boards[game], rows) == U(0)
    return Totals(num_moves, loss, agreement)


@jit()
def learn_games(
    table: Array,
    network: CompiledNetwork,
    permutations: Array,
    teacher_table: Array,
    teacher: CompiledNetwork,
    rows: Array,
    settings: Settings,
    boards: Array,
    score: Array,
    turn: Array,
    done: Array,
    seed: Bits,
) -> Totals:
    """Play up to settings.plies moves of some games, each the policy's best action, and learn from
    every position what the teacher would do.

    boards: uint64 [B]. score: float32 [B], turn: int64 [B], done: bool [B]. All of them change.
    """
    memory = make_memory(network, teacher, seed)
    num_moves, loss, agreement = 0, 0.0, 0
    for first in range(0, len(boards), int(NUM_IN_STEP)):
        part = slice(first, min(first + int(NUM_IN_STEP), len(boards)))
        games = (boards[part], score[part], turn[part], done[part])
        tables = (table, network, permutations, teacher_table, teacher, rows)
        totals = learn_group(*tables, settings, games, memory)
        num_moves += totals.num_moves
        loss += totals.loss
        agreement += totals.agreement
    return Totals(num_moves, loss, agreement)
