"""Uniformly random play of board games, many games side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.keys import fold
from rlgames.kernels.rules import load, random_move, store
from rlgames.kernels.stepping import Games, add_points
from rlgames.kernels.words import Array, Words


@jit()
def play_games(games: Games, rules: Any, size: int, plies: int, keys: Words) -> int:
    """Play at most `plies` plies of each game, `size` games side by side, started in order; the
    number of moves. keys: uint64 [G], of the games."""
    rng = np.empty(1, np.uint64)
    seats = games.score.shape[1]
    game_of_row, live, next_game = first_games(games.done, size)
    moves, num_moves = np.zeros(size, np.int64), 0
    while live > 0:
        row = 0
        while row < live:
            game = game_of_row[row]
            position = load(rules.start, games.words, game)
            rng[0] = fold(keys[game], games.turn[game] + moves[row])
            position, is_over, points = random_move(rules, position, rng)
            store(games.words, game, position)
            if points != 0:
                seat = (games.current_seat[game] + moves[row]) % seats
                add_points(games, game, points, seat)
            moves[row] += 1
            if not is_over and moves[row] < plies:
                row += 1
                continue
            num_moves += moves[row]
            games.done[game] = is_over
            games.turn[game] += moves[row]
            games.current_seat[game] = (games.current_seat[game] + moves[row]) % seats
            if next_game < len(games.done):
                game_of_row[row], moves[row] = next_game, 0
                next_game, row = next_live(games.done, next_game + 1), row + 1
            else:  # the last row, which has not moved yet, takes this place
                live -= 1
                game_of_row[row], moves[row] = game_of_row[live], moves[live]
    return num_moves


@jit()
def first_games(done: Array, size: int) -> tuple[Array, int, int]:
    """The first games that are not over, int64 [size], how many there are, and the one after
    them."""
    game_of_row, live, next_game = np.zeros(size, np.int64), 0, next_live(done, 0)
    while live < size and next_game < len(done):
        game_of_row[live] = next_game
        live, next_game = live + 1, next_live(done, next_game + 1)
    return game_of_row, live, next_game


@jit()
def next_live(done: Array, game: int) -> int:
    """The first game from this one on that is not over; len(done) if there is none."""
    while game < len(done) and done[game]:
        game += 1
    return game
