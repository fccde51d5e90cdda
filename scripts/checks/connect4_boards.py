"""The positions of Connect 4 of the labeled files, as stones.

connect4_positions.txt and connect4_test_positions.txt have positions of games of random moves that
complete no line, where the mover cannot complete one either, with the exact result of each move.
Our alpha-beta search labeled them in 2026, and bitbully where that took longer. The second file
has none of the positions of the first: it is only for values that are reported.
"""

from __future__ import annotations

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
