"""Uniformly random play of 2048 on packed boards, many games side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.packed_2048 import (
    Array,
    Bits,
    add_tile,
    empty_cells,
    next_random,
    slide,
)
from rlgames.kernels.random_lines import first_games, next_live, sum_bits

U = np.uint64


class Rules(NamedTuple):
    """rows: the slide_table. shifts: uint64 [N], the lowest bit of each cell. cells: all of them.
    fours: the probability of a 4 in units of 2^-32. planes: of a one-hot observation; 1: the
    exponents ÷ 10."""

    rows: Array
    shifts: Array
    cells: np.uint64
    fours: np.uint64
    planes: int


class Games(NamedTuple):
    """Fields of the games' states, with the numbers of games in front, changed in place; boards,
    uint64, are the tiles."""

    done: Array
    turn: Array
    score: Array
    boards: Array


@jit()
def play(
    games: Games, rules: Rules, size: int, plies: int, observations: Array, seed: np.uint64
) -> tuple[int, int]:
    """Play at most `plies` plies of each game, `size` games side by side, started in order.

    observations: float32 [size or 0, planes * N], overwritten at each ply with the observations of
        the positions; without rows, nothing is observed.
    Returns the number of moves and the sum of the bits of all observations.
    """
    rng = np.full(1, seed, np.uint64)
    game_of_row, live, next_game = first_games(games.done, size)
    moves, num_moves, checksum = np.zeros(size, np.int64), 0, 0
    while live > 0:
        if len(observations) > 0:
            checksum += observe(games.boards, rules, game_of_row[:live], observations)
        row = 0
        while row < live:
            game = game_of_row[row]
            board, points = random_move(games.boards[game], rules, rng)
            games.boards[game] = board
            games.score[game] += points
            games.done[game] = is_stuck(board, rules)
            moves[row] += 1
            if not games.done[game] and moves[row] < plies:
                row += 1
                continue
            num_moves += moves[row]
            games.turn[game] += moves[row]
            if next_game < len(games.done):
                game_of_row[row], moves[row] = next_game, 0
                next_game, row = next_live(games.done, next_game + 1), row + 1
            else:  # the last row, which has not moved yet, takes this place
                live -= 1
                game_of_row[row], moves[row] = game_of_row[live], moves[live]
    return num_moves, checksum


@jit()
def observe(boards: Array, rules: Rules, game_of_row: Array, observations: Array) -> int:
    """Write the observations of the rows' games; the sum of their bits as numbers of 32 bits."""
    num_cells = len(rules.shifts)
    for row in range(len(game_of_row)):
        board = boards[game_of_row[row]]
        if rules.planes > 1:
            observations[row] = np.float32(0)
        for cell in range(num_cells):
            exponent: Any = np.int64((board >> rules.shifts[cell]) & U(15))
            if rules.planes == 1:
                observations[row, cell] = np.float32(exponent) / np.float32(10)
            else:
                plane: int = min(exponent, rules.planes - 1)
                observations[row, plane * num_cells + cell] = np.float32(1)
    return sum_bits(observations[: len(game_of_row)])


@jit()
def random_move(board: Bits, rules: Rules, rng: Array) -> tuple[Bits, np.float32]:
    """The board after one of its legal moves and a new tile, and the points."""
    bits = next_random(rng)
    while True:
        after, points = slide(board, rules.rows, bits & U(3))
        if after != board:
            return add_tile(after, rules.cells, rules.fours, rng), points
        bits >>= U(2)
        if bits < U(4):
            bits = next_random(rng)


@jit()
def is_stuck(board: Bits, rules: Rules) -> bool:
    """Whether no action changes the board."""
    if empty_cells(board, rules.cells):
        return False
    can_slide = False
    for action in range(U(4)):
        can_slide |= slide(board, rules.rows, U(action))[0] != board
    return not can_slide
