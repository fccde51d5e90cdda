"""Play of a compiled policy against itself, many plies of many games in one call.

Letters in shapes: B rows, M moves, A actions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.choice import best_action, sample_action
from rlgames.kernels.jit import jit
from rlgames.kernels.keys import CHANCE, fold
from rlgames.kernels.mlp import MAX_ROWS, PLANES, CompiledPolicy, forward
from rlgames.kernels.rules import add_chance, load, observe, store, write_cells
from rlgames.kernels.stepping import Games, play_row, write_legal
from rlgames.kernels.words import Array


class Moves(NamedTuple):
    """M moves in the order they were made. game: int64, the row of its game; before, after: the
    positions; action: int64; log_prob, value: float32."""

    game: Array
    before: Games
    after: Games
    action: Array
    log_prob: Array
    value: Array


class Choice(NamedTuple):
    """How actions are chosen: the best one, or one sampled from softmax(scores ÷ temperature)."""

    is_greedy: bool
    temperature: np.float32


@jit(forceinline=True, _nrt=False)
def copy_game(source: Games, row: int, target: Games, place: int) -> None:
    target.done[place], target.turn[place] = source.done[row], source.turn[row]
    target.current_seat[place] = source.current_seat[row]
    for seat in range(source.score.shape[1]):
        target.score[place, seat] = source.score[row, seat]
    for word in range(source.words.shape[1]):
        target.words[place, word] = source.words[row, word]


class Scratch(NamedTuple):
    """What choices overwrite: legal, bool [A]; weights, float32 [A]; rng, of next_random, uint64
    [1]."""

    legal: Array
    weights: Array
    rng: Array


@jit(forceinline=True, _nrt=False)
def choose_and_play(
    rules: Any,
    policy: CompiledPolicy,
    choice: Choice,
    games: Games,
    row: int,
    game_key: np.uint64,
    outputs: Array,
    scratch: Scratch,
    moves: Moves,
    move: int,
) -> None:
    """Choose an action by the outputs of the network, play it in a game, and record the move."""
    key, legal = fold(game_key, games.turn[row]), scratch.legal
    scores, log_prob = outputs[: len(legal)], np.float32(0)
    write_legal(rules, games, row, legal)
    if choice.is_greedy:
        action = best_action(scores, legal)
    else:
        action, log_prob = sample_action(scores, legal, key, choice.temperature, scratch.weights)
    moves.game[move], moves.action[move], moves.log_prob[move] = row, action, log_prob
    moves.value[move] = outputs[len(legal)] if policy.has_value else np.float32(0)
    copy_game(games, row, moves.before, move)
    play_row(rules, games, row, action)
    if not games.done[row]:
        scratch.rng[0] = fold(key, CHANCE)
        position = load(rules.start, games.words, row)
        position, games.done[row] = add_chance(rules, position, scratch.rng)
        store(games.words, row, position)
    copy_game(games, row, moves.after, move)


@jit(_nrt=True)
def play_plies(
    rules: Any,
    policy: CompiledPolicy,
    choice: Choice,
    games: Games,
    keys: Array,
    min_live: int,
    moves: Moves,
    sizes: Array,
) -> int:
    """Play plies of the games that are not over, [B], until fewer than min_live of them are left;
    the number of plies, at most len(sizes).

    keys: uint64 [B], of the games. moves: there is room for one ply more than is played. sizes:
    int64, how many moves each ply had.
    """
    inputs = np.empty((MAX_ROWS, policy.num_inputs), np.float32)
    outputs = np.empty((MAX_ROWS, rules.actions + policy.has_value), np.float32)
    scratch = Scratch(
        np.empty(rules.actions, np.bool_),
        np.empty(rules.actions, np.float32),
        np.empty(1, np.uint64),
    )
    rows = np.flatnonzero(~games.done)
    live, ply, move = len(rows), 0, 0
    while live >= min_live and ply < len(sizes) and move + live <= len(moves.game):
        still = 0
        for first in range(0, live, MAX_ROWS):
            count = min(MAX_ROWS, live - first)
            for at in range(count):
                position = load(rules.start, games.words, rows[first + at])
                if policy.open_value == PLANES:
                    observe(rules, position, inputs[at])
                else:
                    write_cells(rules, position, policy.open_value, inputs[at])
            forward(policy.network, inputs[:count], outputs[:count])
            for at in range(count):
                row = rows[first + at]
                given = (row, keys[row], outputs[at], scratch, moves, move)
                choose_and_play(rules, policy, choice, games, *given)
                move += 1
                if not games.done[row]:
                    rows[still] = row
                    still += 1
        sizes[ply] = live
        live, ply = still, ply + 1
    return ply
