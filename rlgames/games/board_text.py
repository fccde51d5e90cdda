"""Boards of marks and their text; columns are letters and rows numbers unless a game says more.

  A B C
1 . x .
2 o . .
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from rlgames.core.text import some

Board = list[list[str]]
"""The marks of all cells, row by row from the top; "." is an empty one."""

SEPARATOR = "   |"
"""Text between two boards."""


@dataclass(frozen=True)
class BoardFormat:
    """How the boards of a game are written.

    left, above, below: labels of the rows and of the columns, if any. width: the least width of a
    mark. is_slanted: each row is shifted by half a cell to the right of the one above, as in Hex.
    """

    rows: int
    columns: int
    left: list[str] = field(default_factory=list)
    above: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    width: int = 1
    is_slanted: bool = False

    def cell_name(self, cell: int) -> str:
        """A cell, in row-major order, by the labels of its column and row, such as B1; its number
        without them."""
        row, column = divmod(cell, self.columns)
        return (self.above or self.below)[column] + self.left[row] if self.left else str(cell)


def lettered_format(rows: int, columns: int) -> BoardFormat:
    """Cells have names: A1, B1 and so on."""
    numbers, letters = [str(row + 1) for row in range(rows)], [*map(_letters, range(columns))]
    return BoardFormat(rows, columns, left=numbers, above=letters)


def split(marks: list[str], columns: int) -> Board:
    """Marks in row-major order as a board."""
    return [marks[start : start + columns] for start in range(0, len(marks), columns)]


def draw(boards: Sequence[Board], form: BoardFormat) -> str:
    """Boards side by side, with their labels."""
    blocks = [_lines(board, form) for board in boards]
    return "\n".join(SEPARATOR.join(parts) for parts in zip(*blocks, strict=True))


def _lines(board: Board, form: BoardFormat) -> list[str]:
    width = max(form.width, *(len(mark) for row in board for mark in row))

    def line(label: str, words: list[str]) -> str:
        # A label that is too long is cut at its start.
        row = " ".join(f"{word[-width:]:>{width}}" for word in words)
        return f"{label:>2} {row}" if form.left else row

    rows = [
        line(label, row) for label, row in zip(form.left or [""] * form.rows, board, strict=True)
    ]
    if form.is_slanted:
        rows = [" " * ((width + 1) // 2 * number) + row for number, row in enumerate(rows)]
    above, below = ([line("", labels)] if labels else [] for labels in (form.above, form.below))
    return [*above, *rows, *below]


def read(text: str, form: BoardFormat, *marks: Collection[str]) -> list[list[str]]:
    """The marks of each board in row-major order; the inverse of draw, labels being optional.

    marks: the marks that each board can have. Raises ValueError, with the reason, for other text.
    """
    lines = [line.split("|") for line in text.splitlines() if line.strip()]
    if any(len(line) != len(marks) for line in lines):
        raise ValueError(f"not {len(marks)} board{'s' * (len(marks) > 1)} side by side")
    blocks = [[line[number].split() for line in lines] for number in range(len(marks))]
    return [_read(block, form, valid) for block, valid in zip(blocks, marks, strict=True)]


def _read(lines: list[list[str]], form: BoardFormat, marks: Collection[str]) -> list[str]:
    above, below = ([label[-form.width :] for label in each] for each in (form.above, form.below))
    lines = lines[1:] if above and lines[:1] == [above] else lines
    lines = lines[:-1] if below and lines[-1:] == [below] else lines
    if all(line[:1] == [label] for line, label in zip(lines, form.left, strict=False)):
        lines = [line[bool(form.left) :] for line in lines]
    if any(len(line) != form.columns for line in lines):
        raise ValueError(f"not a board of {form.rows} rows of {form.columns} marks")
    if len(lines) != form.rows:
        raise ValueError(f"{len(lines)} rows; the board has {form.rows}")
    cells = [mark for line in lines for mark in line]
    valid = [*marks]
    invalid = [mark for mark in cells if mark not in valid]
    if invalid:
        raise ValueError(f"{invalid[0]!r} is none of the marks {some(valid, ' ')}")
    return cells


def _letters(column: int) -> str:
    """A to Z, then AA, AB and so on."""
    first, last = divmod(column, 26)
    return (chr(ord("A") + first - 1) if first else "") + chr(ord("A") + last)
