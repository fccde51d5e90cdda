"""Uniformly random play of k in a row, many games side by side.

Sets of stones are int64; rlgames.games.bit_layout draws their bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlgames.kernels.jit import jit
from rlgames.kernels.lines import has_line
from rlgames.kernels.packed_2048 import Array, next_random
from rlgames.kernels.words import count_bits

U = np.uint64


class Rules(NamedTuple):
    """cell_bits: int64 [cells], in row-major order from the top. line_table: bool [2^cells], or
    empty where lines are computed. line: as in lines.py. stride: bits per column with gravity, per
    row without. columns: 0 without gravity."""

    cell_bits: Array
    line_table: Array
    line: int | None
    stride: int
    columns: int


class Games(NamedTuple):
    """The fields of the games' states, with the numbers of games in front; changed in place."""

    done: Array
    current_seat: Array
    turn: Array
    score: Array
    own: Array
    occupied: Array


@jit()
def play(
    games: Games, rules: Rules, size: int, plies: int, observations: Array, seed: np.uint64
) -> tuple[int, int]:
    """Play at most `plies` plies of each game, `size` games side by side, started in order.

    observations: float32 [size or 0, 2 * cells], overwritten at each ply with what the seats to
        move see; without rows, nothing is observed.
    Returns the number of moves and the sum of the bits of all observations.
    """
    rng = np.full(1, seed, np.uint64)
    board: Any = np.int64(0)
    for bit in rules.cell_bits:
        board |= bit
    game_of_row, live, next_game = first_games(games.done, size)
    moves, num_moves, checksum = np.zeros(size, np.int64), 0, 0
    while live > 0:
        if len(observations) > 0:
            checksum += observe(games, rules, game_of_row[:live], observations)
        row = 0
        while row < live:
            game = game_of_row[row]
            won = drop_stone(games, rules, game, board, rng)
            moves[row] += 1
            games.done[game] = won or games.occupied[game] == board
            if not games.done[game] and moves[row] < plies:
                row += 1
                continue
            num_moves += moves[row]
            finish(games, game, moves[row], won)
            if next_game < len(games.done):
                game_of_row[row], moves[row] = next_game, 0
                next_game, row = next_live(games.done, next_game + 1), row + 1
            else:  # the last row, which has not moved yet, takes this place
                live -= 1
                game_of_row[row], moves[row] = game_of_row[live], moves[live]
    return num_moves, checksum


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


@jit()
def observe(games: Games, rules: Rules, game_of_row: Array, observations: Array) -> int:
    """Write the observations of the rows' games; the sum of their bits as numbers of 32 bits."""
    for row in range(len(game_of_row)):
        own = np.int64(games.own[game_of_row[row]])
        other = np.int64(games.occupied[game_of_row[row]]) ^ own
        write_planes(rules, own, other, observations[row])
    return sum_bits(observations[: len(game_of_row)])


@jit()
def write_planes(rules: Rules, own: Any, other: Any, planes: Array) -> None:
    """Write the stones of both seats as planes, float32 [2 * cells]."""
    cells = len(rules.cell_bits)
    # Two loops with one array each: the compiler turns them into vector instructions.
    for cell in range(cells):
        planes[cell] = np.float32(1) if own & rules.cell_bits[cell] else np.float32(0)
    planes = planes[cells:]
    for cell in range(cells):
        planes[cell] = np.float32(1) if other & rules.cell_bits[cell] else np.float32(0)


@jit()
def sum_bits(observations: Array) -> int:
    """The sum of float32 numbers read as int32, in which every number counts."""
    bits, total = observations.reshape(-1).view(np.int32), 0
    for index in range(len(bits)):  # vectorized, unlike a loop over the array itself
        total += bits[index]
    return total


@jit()
def drop_stone(games: Games, rules: Rules, game: int, board: int, rng: Array) -> bool:
    """Make a random move of a game and turn to the other seat; whether it completes a line."""
    own: Any = np.int64(games.own[game])
    occupied: Any = np.int64(games.occupied[game])
    if rules.columns > 0:
        stone = random_column_stone(occupied, rules, rng)
    else:
        stone = random_empty_cell(occupied ^ board, rng)
    games.own[game], games.occupied[game] = own ^ occupied, occupied | stone
    return makes_line(own | stone, rules)


@jit()
def makes_line(stones: int, rules: Rules) -> bool:
    """Whether stones contain a whole line."""
    if len(rules.line_table) > 0:
        return bool(rules.line_table[stones])
    return has_line(stones, rules.line, rules.stride)


@jit()
def random_column_stone(occupied: int, rules: Rules, rng: Array) -> Any:
    """The cell where a stone falls in a column chosen from those that are not full."""
    while True:
        column = np.int64(((next_random(rng) >> U(32)) * U(rules.columns)) >> U(32))
        # Adding the bottom bit carries over the stones, into the spare bit of a full column.
        pile = ((1 << (rules.stride - 1)) - 1) << (column * rules.stride)
        stone = (occupied + (1 << (column * rules.stride))) & pile & ~occupied
        if stone:
            return stone


@jit()
def random_empty_cell(empty: int, rng: Array) -> Any:
    """One of the empty cells."""
    skipped = ((next_random(rng) >> U(32)) * U(count_bits(U(empty)))) >> U(32)
    for _ in range(skipped):
        empty &= empty - 1
    return empty & -empty


@jit()
def finish(games: Games, game: int, moves: int, won: bool) -> None:
    """Count the moves of a game, whose stones are up to date, and score its last one."""
    seat = (games.current_seat[game] + moves) & 1
    games.current_seat[game] = seat
    games.turn[game] += moves
    if won:
        games.score[game, seat] -= np.float32(1)
        games.score[game, 1 - seat] += np.float32(1)
