"""A picture as a list of items, which Pillow draws or which are written as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlgames.drawing.mark_styles import Color

Point = tuple[float, float]


@dataclass(frozen=True)
class Cell:
    """A cell of a board; x, y: its upper left corner. shade: of an empty cell, 0 to 1. label: text
    on it. is_chosen: it has a frame. is_hexagon: it is a hexagon of this width, which is higher
    than wide, around the same middle."""

    x: float
    y: float
    size: int
    mark: str
    shade: float = 0.0
    is_chosen: bool = False
    label: str = ""
    is_hexagon: bool = False


@dataclass(frozen=True)
class Path:
    """A polygon or, without a fill, a line. points: relative to x, y. width: of the stroke. seat:
    of the edge of a board, the seat that has to connect it: 1 or 2; otherwise 0."""

    x: float
    y: float
    points: Sequence[Point]
    fill: Color | None = None
    stroke: Color | None = None
    width: float = 0.0
    seat: int = 0


@dataclass(frozen=True)
class Box:
    """A rectangle with round corners; x, y: its upper left corner. width: of the stroke."""

    x: float
    y: float
    size: Point
    radius: float = 0.0
    fill: Color | None = None
    stroke: Color | None = None
    width: float = 0.0


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


Shape = Path | Box | Label
Item = Cell | Shape


@dataclass(frozen=True)
class Scene:
    """Items on a white background; width and height in pixels."""

    width: int
    height: int
    items: Sequence[Item]

    def moved(self, x: float, y: float) -> list[Item]:
        """Its items, moved to the right by x and down by y."""
        return [replace(item, x=item.x + x, y=item.y + y) for item in self.items]


def hexagon(width: float) -> list[Point]:
    """The corners of a hexagon of this width around (0, 0), clockwise from the top."""
    half, side = width / 2, width / math.sqrt(3)
    steps = ((0, -2), (1, -1), (1, 1), (0, 2), (-1, 1), (-1, -1))
    return [(x * half, y * side / 2) for x, y in steps]
