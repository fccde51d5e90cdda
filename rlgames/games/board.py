"""Boards as text: columns are letters, rows are numbers, cells are single marks.

  A B C
1 . x .
2 o . .
"""

from __future__ import annotations


def cell_name(cell: int, columns: int) -> str:
    """A cell, in row-major order, as a person writes it: B1."""
    return f"{_letters(cell % columns)}{cell // columns + 1}"


Board = list[list[str]]
"""The marks of all cells, row by row from the top; "." is an empty one."""


def split(marks: list[str], columns: int) -> Board:
    """Marks in row-major order as a board."""
    return [marks[start : start + columns] for start in range(0, len(marks), columns)]


def draw(rows: Board) -> str:
    """The marks of all cells under the columns' letters."""
    head = "   " + " ".join(_letters(column)[-1] for column in range(len(rows[0])))
    return "\n".join([head] + [f"{r + 1:2d} {' '.join(row)}" for r, row in enumerate(rows)])


def read(text: str, rows: int, columns: int, marks: str) -> list[str]:
    """The marks that draw was given; raises ValueError for any other text."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    found = [line[1:] for line in lines if line[0].isdigit()]
    if len(found) != rows or any(len(line) != columns for line in found):
        raise ValueError(f"not a board of {rows} rows of {columns} marks")
    cells = [mark for line in found for mark in line]
    check(cells, marks)
    return cells


def check(cells: list[str], marks: str) -> None:
    """Raises ValueError for a cell that is none of the marks."""
    wrong = [mark for mark in cells if len(mark) != 1 or mark not in marks]
    if wrong:
        raise ValueError(f"{wrong[0]!r} is none of the marks {' '.join(marks)}")


def _letters(column: int) -> str:
    """A to Z, then AA, AB and so on."""
    first, last = divmod(column, 26)
    return (chr(ord("A") + first - 1) if first else "") + chr(ord("A") + last)
