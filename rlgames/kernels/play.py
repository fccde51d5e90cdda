"""Play of a compiled policy and of random players, many plies of many games in one call.

Letters in shapes: B rows, P seats, M moves, A actions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.choice import best_action, random_action, sample_action
from rlgames.kernels.jit import jit
from rlgames.kernels.keys import CHANCE, fold, uniform
from rlgames.kernels.mlp import MAX_ROWS, PLANES, CompiledPolicy, forward
from rlgames.kernels.rules import add_chance, load, observe, store, write_cells
from rlgames.kernels.stepping import Games, play_row, write_legal
from rlgames.kernels.words import Array, compiled


class Moves(NamedTuple):
    """M moves in the order they were made. game: int64, the row of its game; before, after: the
    positions; action: int64; log_prob, value: float32, NaN of random moves."""

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
    """What is overwritten. inputs, outputs: float32 [MAX_ROWS, N] of the network. legal: bool [A];
    weights: float32 [A]; rng: of next_random, uint64 [1]."""

    inputs: Array
    outputs: Array
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
    is_random: bool,
    outputs: Array,
    scratch: Scratch,
    moves: Moves,
    move: int,
) -> None:
    """Choose an action, by the outputs of the network unless it is random, play it in a game, and
    record the move."""
    key, legal = fold(game_key, games.turn[row]), scratch.legal
    scores, log_prob, value = outputs[: len(legal)], np.float32(0), np.float32(np.nan)
    if policy.has_value and not is_random:
        value = outputs[len(legal)]
    write_legal(rules, games, row, legal)
    if is_random:
        action, log_prob = random_action(legal, uniform(key, 0)), np.float32(np.nan)
    elif choice.is_greedy:
        action = best_action(scores, legal)
    else:
        action, log_prob = sample_action(scores, legal, key, choice.temperature, scratch.weights)
    moves.game[move], moves.action[move], moves.log_prob[move] = row, action, log_prob
    moves.value[move] = value
    copy_game(games, row, moves.before, move)
    play_row(rules, games, row, action)
    if not games.done[row]:
        scratch.rng[0] = fold(key, CHANCE)
        position = load(rules.start, games.words, row)
        position, games.done[row] = add_chance(rules, position, scratch.rng)
        store(games.words, row, position)
    copy_game(games, row, moves.after, move)


@compiled
def play_plies(
    rules: Any,
    policy: CompiledPolicy,
    choice: Choice,
    games: Games,
    rows: Array,
    keys: Array,
    random_seats: Array,
    min_live: int,
    scratch: Scratch,
    moves: Moves,
    sizes: Array,
) -> int:
    """Play plies of games until fewer than min_live of them are not over; the number of plies, at
    most len(sizes).

    rows: int64, of the games that are not over, overwritten. keys: uint64 [B], of the games.
    random_seats: bool [B, P], where a random player sits. moves: there is room for one ply more
    than is played. sizes: int64, how many moves each ply had.
    """
    inputs, outputs = scratch.inputs, scratch.outputs
    live, ply, move = len(rows), 0, 0
    while live >= min_live and ply < len(sizes) and move + live <= len(moves.game):
        still = 0
        for first in range(0, live, MAX_ROWS):
            end, asked = min(first + MAX_ROWS, live), 0
            for at in range(first, end):
                row = rows[at]
                if random_seats[row, games.current_seat[row]]:
                    continue
                position = load(rules.start, games.words, row)
                if policy.open_value == PLANES:
                    observe(rules, position, inputs[asked])
                else:
                    write_cells(rules, position, policy.open_value, inputs[asked])
                asked += 1
            forward(policy.network, inputs[:asked], outputs[:asked])
            asked = 0
            for at in range(first, end):
                row = rows[at]
                is_random = random_seats[row, games.current_seat[row]]
                given = (row, keys[row], is_random, outputs[asked], scratch, moves, move)
                choose_and_play(rules, policy, choice, games, *given)
                move, asked = move + 1, asked + (not is_random)
                if not games.done[row]:
                    rows[still] = row
                    still += 1
        sizes[ply] = live
        live, ply = still, ply + 1
    return ply
