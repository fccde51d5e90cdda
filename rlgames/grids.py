"""The rectangles of marks in the text that a game's render writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlgames.games.game import Game


@dataclass(frozen=True)
class Grid:
    """The marks of a board [rows][columns], and what is written beside, above and below them."""

    marks: list[list[str]]
    left: list[str]
    head: list[str]
    foot: list[str]

    def names(self) -> dict[str, int]:
        """The cells, in row-major order, by the names that their row and column give them."""
        if not self.head:
            return {str(place): place for place in range(len(self.marks[0]) * (not self.left))}
        labels = (column + row for row in self.left for column in self.head)
        return {label: place for place, label in enumerate(labels)}


def grids(text: str, rows: int, columns: int) -> tuple[list[str], list[Grid]] | None:
    """The boards in a text, side by side with | between them, and its other lines above them.

    None where there is no board of so many rows and columns.
    """
    lines = [line.split("|") for line in text.splitlines() if line.strip()]
    most = max(map(len, lines), default=0)
    body = [line for line in lines if len(line) == most]
    found = [_grid([line[n].split() for line in body], rows, columns) for n in range(most)]
    boards = [grid for grid in found if grid is not None]
    if not boards or len(boards) != most:
        return None
    return ["|".join(line) for line in lines if len(line) != most], boards


def _grid(lines: list[list[str]], rows: int, columns: int) -> Grid | None:
    numbered = [line for line in lines if len(line) == columns + 1 and line[0].isdigit()]
    bare = [line for line in lines if len(line) == columns]
    if len(numbered) == rows and len(numbered) + len(bare) == len(lines):
        left, marks = [line[0] for line in numbered], [line[1:] for line in numbered]
        return Grid(marks, left, bare[0] if bare else [], [])
    if len(bare) != len(lines) or len(bare) - rows not in (0, 1):
        return None
    return Grid(bare[:rows], [], [], bare[rows] if len(bare) > rows else [])


def template(game: Game[Any], text: str, marks: str) -> str:
    """The text of a board with the marks of another, which may lack all that is written around it.

    Raises ValueError where there are not as many marks.
    """
    _, rows, columns = game.spec.observation
    fresh = iter(marks.split())
    found = grids(text, rows, columns)
    given = [line.split() for line in marks.splitlines() if line.strip()]
    if found is None or len(found[1]) != 1 or any(len(line) != columns for line in given):
        raise ValueError(f"not a board of {rows} rows of {columns} marks")
    if len(given) != rows:
        raise ValueError(f"{len(given)} rows; the board has {rows}")
    grid = found[1][0]
    lines = [[left, *(next(fresh) for _ in range(columns))] for left in grid.left or [""] * rows]
    return "\n".join(" ".join(line) for line in [grid.head, *lines, grid.foot] if line)
