"""The kernel of learner=td_ntuple: plays games and learns from each before it plays the next."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.keys import CHANCE, below, fold
from rlgames.kernels.ntuple import (
    Memory,
    bounded,
    enter,
    fetch_places,
    find_places,
    make_memory,
    make_move,
    num_entries,
    score_moves,
    sum_values,
    take_back,
)
from rlgames.kernels.rules import add_chance, load, store
from rlgames.kernels.stepping import Games, add_points
from rlgames.kernels.words import Array, Words, compiled

U = np.uint64
HALF = U(32)

TIE = np.float32(1e-5)
"""Moves whose values differ by a smaller part are equally good: sums of the same numbers in another
order, as of symmetric boards, differ in their last bits."""


class Settings(NamedTuple):
    """epsilon: the probability of a random move in units of 2^-32. plies: the most moves of each
    game in a call. discount: from one ply to the next, negative if the other seat moves then.
    scale: the reward of a point. coherent: whether each value in the table is followed by the sum
    of its errors and the sum of their sizes."""

    epsilon: np.uint64
    plies: int
    lr: np.float32
    discount: np.float32
    td_lambda: np.float32
    scale: np.float32
    coherent: bool


class History(NamedTuple):
    """The moves of a game: positions, int64 [plies + 1, W], the first one and then those after
    moves, before chance; points, float32 [plies]; best_score, float32 [plies], what the best move
    was worth; is_best, bool [plies], whether it was made."""

    positions: Array
    points: Array
    best_score: Array
    is_best: Array


class End(NamedTuple):
    """How a game went: seat, the one that made the first of some plies; is_final, whether the last
    one ended the game by itself; value, what followed."""

    seat: int
    plies: int
    is_final: bool
    value: np.float32


@compiled
def random_action(scores: Array, best: int, key: np.uint64) -> int:
    """A uniformly random legal action, by the second number of the key."""
    num_legal = 0
    for action in range(len(scores)):
        num_legal += scores[action] != -np.inf
    skipped = below(key, 1, num_legal)
    for action in range(len(scores)):
        if scores[action] != -np.inf:
            if skipped == 0:
                return action
            skipped -= 1
    return best


@compiled
def play(
    games: Games,
    game: int,
    table: Array,
    network: Any,
    rules: Any,
    settings: Settings,
    memory: Memory,
    history: History,
    game_key: np.uint64,
) -> End:
    """Play up to settings.plies moves of a game."""
    position, seats = load(rules.start, games.words, game), games.score.shape[1]
    seat: Any = np.int64(games.current_seat[game])
    first = seat
    is_over, is_final, ply, value = False, False, 0, np.float32(0)
    enter(network, rules, position, seat, memory)
    store(history.positions, 0, position)
    while not is_over:
        key = fold(game_key, games.turn[game] + ply)
        memory.rng[0] = fold(key, CHANCE)  # score_moves fetches what follows the tile to come
        best = score_moves(network, rules, position, seat, table, settings.scale, memory)
        value = memory.scores[best]
        if ply == settings.plies:
            break
        action = best
        if settings.epsilon > U(0) and (fold(key, 0) >> HALF) < settings.epsilon:
            action = random_action(memory.scores, best, key)
        history.best_score[ply] = value
        history.is_best[ply] = memory.scores[action] >= value - TIE * np.abs(value)
        position, is_final, points = make_move(network, rules, position, seat, action, memory)
        history.points[ply] = points
        store(history.positions, ply + 1, position)
        add_points(games, game, points, seat)
        position, is_over = add_chance(rules, position, memory.rng)
        if is_over and not is_final:
            value = np.float32(0)
        is_over |= is_final
        seat, ply = seats - 1 - seat, ply + 1
    store(games.words, game, position)
    games.current_seat[game], games.done[game] = seat, is_over
    games.turn[game] += ply
    return End(first, ply, is_final, value)


@compiled
def read_entries(
    table: Array, memory: Memory, first: Any, num: Any, offset: np.uint64, coherent: bool
) -> None:
    """Copy what the table has at the K entries of a board."""
    for at in range(num):
        entry = memory.places[first + at] + offset
        memory.values[at] = table[entry]
        if coherent:
            memory.errors[at], memory.sizes[at] = table[entry + U(1)], table[entry + U(2)]


@jit(_nrt=False, error_model="numpy")  # to divide several numbers at once
def count_error(memory: Memory, num: Any, part: np.float32, lr: np.float32) -> None:
    """Set memory.rates to those of the entries that were read, and add the error to their sums."""
    size, errors, sizes, rates = np.abs(part), memory.errors, memory.sizes, memory.rates
    for at in range(num):
        rate = lr * (np.abs(errors[at]) / sizes[at])
        rates[at] = rate if sizes[at] > np.float32(0) else lr
        errors[at] += part
        sizes[at] += size


@jit(_nrt=False, inline="always")
def correct(
    table: Array,
    memory: Memory,
    first: Any,
    num: Any,
    offset: np.uint64,
    error: np.float32,
    lr: np.float32,
    coherent: bool,
) -> None:
    """Move the K values that read_entries copied to memory by equal parts of an error.

    An entry that occurs n times moves n times towards the same target, by 1 - (1 - rate)^n of
    its part.
    """
    part = error / np.float32(num)
    if coherent:
        count_error(memory, num, part, lr)
    for at in range(num):
        entry, rate = memory.places[first + at] + offset, lr
        if coherent:
            rate = memory.rates[at]
            table[entry + U(1)] = memory.errors[at]
            table[entry + U(2)] = memory.sizes[at]
        moved = table[entry] - memory.values[at]
        table[entry] += rate * (part - moved)


@compiled
def learn_backward(
    end: End,
    table: Array,
    network: Any,
    rules: Any,
    settings: Settings,
    memory: Memory,
    history: History,
    seats: int,
) -> float:
    """Learn from the moves of a game, the last one first; the sum of the sizes of the errors."""
    total, following, num = 0.0, end.value, num_entries(network)
    seat: Any = (end.seat + end.plies - 1) % seats
    for ply in range(end.plies - 1, -1, -1):
        before = load(rules.start, history.positions, ply)
        after = load(rules.start, history.positions, ply + 1)
        if ply < end.plies - 1 or not end.is_final:
            first, offset = find_places(network, after, seat, memory)
            fetch_places(network, before, memory, table)
            target = settings.discount * following
            read_entries(table, memory, first, num, offset, settings.coherent)
            error = target - sum_values(table, memory.places, first, num, offset)
            total += np.float64(np.abs(error))
            correct(table, memory, first, num, offset, error, settings.lr, settings.coherent)
            value = bounded(network, sum_values(table, memory.places, first, num, offset))
            following = value + settings.td_lambda * (target - value)
            following += settings.scale * history.points[ply]
        if seats == 2 and not history.is_best[ply]:  # the other seat would have had a better reply
            following = history.best_score[ply]
        take_back(network, rules, before, after, seat, memory)
        seat = seats - 1 - seat
    return total


@jit()
def learn_games(
    table: Array, network: Any, rules: Any, settings: Settings, games: Games, keys: Words
) -> tuple[int, float]:
    """Play up to settings.plies moves of each game, and learn from them before the next one, unless
    settings.learns is false. keys: uint64 [G], of the games.

    Returns the number of moves and the sum of the sizes of their errors.
    """
    memory = make_memory(network, rules.actions)
    history = History(
        np.empty((settings.plies + 1, games.words.shape[1]), np.int64),
        np.empty(settings.plies, np.float32),
        np.empty(settings.plies, np.float32),
        np.empty(settings.plies, np.bool_),
    )
    num_moves, total_error, seats = 0, 0.0, games.score.shape[1]
    for game in range(len(games.done)):
        if not games.done[game]:
            end = play(games, game, table, network, rules, settings, memory, history, keys[game])
            num_moves += end.plies
            total_error += learn_backward(
                end, table, network, rules, settings, memory, history, seats
            )
    return num_moves, total_error
