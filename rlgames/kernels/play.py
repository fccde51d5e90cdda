"""Play of a compiled policy and of random players, many plies of many games in one call.

Letters in shapes: B rows, P seats, M moves, A actions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.choice import best_action, random_action, sample_action
from rlgames.kernels.jit import jit
from rlgames.kernels.keys import CHANCE, fold, uniform
from rlgames.kernels.mlp import MAX_ROWS
from rlgames.kernels.policy import compute_outputs, read_position
from rlgames.kernels.rules import add_chance, load, store
from rlgames.kernels.stepping import Games, play_row, write_legal
from rlgames.kernels.words import Array, compiled


class Moves(NamedTuple):
    """Room for M moves in the order they are made. game: int64, its number; before, after: the
    positions; action: int64; log_prob, value: float32, NaN of random moves. sizes: int64 [M], how
    many moves each ply has. counts: int64 [2], the plies and moves so far."""

    game: Array
    before: Games
    after: Games
    action: Array
    log_prob: Array
    value: Array
    sizes: Array
    counts: Array


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
    """What is overwritten. inputs, outputs: float32 [MAX_ROWS, N] of the policy. legal: bool [A];
    weights: float32 [A]; rng: of next_random, uint64 [1]."""

    inputs: Array
    outputs: Array
    legal: Array
    weights: Array
    rng: Array


@jit(forceinline=True, _nrt=False)
def choose_and_play(
    rules: Any,
    policy: Any,
    choice: Choice,
    games: Games,
    row: int,
    number: int,
    game_key: np.uint64,
    is_random: bool,
    outputs: Array,
    scratch: Scratch,
    moves: Moves,
    move: int,
) -> None:
    """Choose an action, by the outputs of the policy unless it is random, play it in a game, and
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
    moves.game[move], moves.action[move], moves.log_prob[move] = number, action, log_prob
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
    policy: Any,
    choice: Choice,
    games: Games,
    numbers: Array,
    rows: Array,
    stream: Any,
    first_game: int,
    random_seats: Array,
    min_live: int,
    max_plies: int,
    scratch: Scratch,
    moves: Moves,
) -> int:
    """Play plies of games until fewer than min_live of them are not over, or there is no room for
    the moves of another one; the number of plies, at most max_plies.

    numbers: int64 [B], of the games, whose random numbers are those of the stream's parts from
    first_game on. rows: int64, of the games that are not over, overwritten. random_seats: bool
    [B, P], where a random player sits.
    """
    inputs, outputs = scratch.inputs, scratch.outputs
    live, ply, move = len(rows), 0, moves.counts[1]
    while live >= min_live and ply < max_plies and move + live <= len(moves.game):
        still = 0
        for first in range(0, live, MAX_ROWS):
            end, asked = min(first + MAX_ROWS, live), 0
            for at in range(first, end):
                row = rows[at]
                if random_seats[row, games.current_seat[row]]:
                    continue
                position, seat = load(rules.start, games.words, row), games.current_seat[row]
                read_position(policy, rules, position, seat, inputs[asked], outputs[asked])
                asked += 1
            compute_outputs(policy, inputs[:asked], outputs[:asked])
            asked = 0
            for at in range(first, end):
                row = rows[at]
                is_random = random_seats[row, games.current_seat[row]]
                key = fold(stream, first_game + numbers[row])
                given = (row, numbers[row], key, is_random, outputs[asked], scratch, moves, move)
                choose_and_play(rules, policy, choice, games, *given)
                move, asked = move + 1, asked + (not is_random)
                if not games.done[row]:
                    rows[still] = row
                    still += 1
        moves.sizes[moves.counts[0]] = live
        moves.counts[0] += 1
        live, ply = still, ply + 1
    moves.counts[1] = move
    return ply
