"""Positions of Connect 4 as stones: those of the labeled files, and random ones.

connect4_positions.txt and connect4_test_positions.txt have positions of games of random moves that
complete no line, where the mover cannot complete one either, with the exact result of each move.
Our alpha-beta search labeled them in 2026, and bitbully where that took longer. The second file
has none of the positions of the first: it is only for values that are reported.
"""

from __future__ import annotations

import random
from pathlib import Path

FILE = Path(__file__).with_name("connect4_positions.txt")
TEST_FILE = Path(__file__).with_name("connect4_test_positions.txt")
ROWS, COLUMNS, LINE = 6, 7, 4

Board = tuple[int, int]
"""The mover's stones and all stones, as AlphaBeta has them."""

BOTTOM = sum(1 << (column * (ROWS + 1)) for column in range(COLUMNS))


def drop(board: Board, column: int) -> Board | None:
    """The position after a stone in a column; None where that is full."""
    own, occupied = board
    pile = ((1 << ROWS) - 1) << (column * (ROWS + 1))
    stone = (occupied + BOTTOM) & pile
    return (own ^ occupied, occupied | stone) if stone else None


def wins(board: Board, column: int) -> bool:
    """Whether a stone there completes a line."""
    after = drop(board, column)
    stones = 0 if after is None else after[0] ^ after[1]
    return any(stones & stones >> s & stones >> 2 * s & stones >> 3 * s for s in (1, 6, 7, 8))


def random_position(rng: random.Random, stones: int) -> tuple[list[int], Board] | None:
    """A position after `stones` random moves that complete no line; None where none is left, or
    where the mover can complete one."""
    board: Board = (0, 0)
    moves: list[int] = []
    while len(moves) < stones:
        open_ = [c for c in range(COLUMNS) if drop(board, c) and not wins(board, c)]
        if not open_:
            return None
        moves.append(rng.choice(open_))
        board = drop(board, moves[-1]) or board
    return None if any(wins(board, column) for column in range(COLUMNS)) else (moves, board)


def played(moves: str) -> Board:
    """The position after these columns, from 1; "-" stands for none."""
    board: Board = (0, 0)
    for column in moves.strip("-"):
        board = drop(board, int(column) - 1) or board
    return board


def boards_of(file: Path) -> list[Board]:
    """The positions of a file."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [played(line.split()[2]) for line in lines if not line.startswith("#")]
