"""A picture as a list of items, which Pillow draws or which are written as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlgames.drawing.mark_styles import Color


@dataclass(frozen=True)
class Cell:
    """A cell of a board; x, y: its upper left corner. shade: of an empty cell, 0 to SHADES.
    label: text on it. is_chosen: it has a frame. is_hexagon: it is a hexagon of this width, which
    is higher than wide, around the same middle."""

    x: float
    y: float
    size: int
    mark: str
    shade: int = 0
    is_chosen: bool = False
    label: str = ""
    is_hexagon: bool = False


@dataclass(frozen=True)
class Edge:
    """A line at the edge of a board, of the seat that has to connect it: 1 or 2."""

    points: Sequence[tuple[float, float]]
    width: float
    seat: int


@dataclass(frozen=True)
class Label:
    """Text of one line; x: its left end, its middle or its right end, by the anchor. y: the middle
    of the line."""

    x: float
    y: float
    text: str
    size: int
    color: Color
    anchor: str = "start"


@dataclass(frozen=True)
class Arrow:
    """An arrow into one of the DIRECTIONS; x, y: its middle."""

    x: float
    y: float
    size: int
    direction: str
    color: Color


@dataclass(frozen=True)
class Bar:
    """A rectangle; x, y: its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    color: Color


Item = Cell | Edge | Label | Arrow | Bar


@dataclass(frozen=True)
class Scene:
    """Items on a white background; width and height in pixels."""

    width: int
    height: int
    items: Sequence[Item]

    def moved(self, x: float, y: float) -> list[Item]:
        """Its items, moved to the right by x and down by y."""
        return [
            replace(item, points=[(a + x, b + y) for a, b in item.points])
            if isinstance(item, Edge)
            else replace(item, x=item.x + x, y=item.y + y)
            for item in self.items
        ]


def hexagon(x: float, y: float, size: float) -> list[tuple[float, float]]:
    """The corners of the hexagon of a cell, clockwise from the top; x, y: as of a Cell."""
    middle, half, side = (x + size / 2, y + size / 2), size / 2, size / math.sqrt(3)
    steps = ((0, -2), (1, -1), (1, 1), (0, 2), (-1, 1), (-1, -1))
    return [(middle[0] + a * half, middle[1] + b * side / 2) for a, b in steps]
