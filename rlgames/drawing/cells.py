"""The colors of pictures of positions, and cells as shapes."""

from __future__ import annotations

from rlgames.drawing.mark_styles import Color, mark_kind, tile_color
from rlgames.drawing.scene import Box, Cell, Item, Label, Path, Point, Shape, hexagon

PAPER, INK, FAINT = (255, 255, 255), (45, 52, 64), (130, 138, 150)
CELL, LIKELY, CHOSEN = (227, 234, 242), (255, 166, 43), (208, 52, 44)
GROUNDS = {"hit": (214, 69, 65), "miss": (126, 160, 196), "ship": (120, 130, 145)}
STONES = {"first": (38, 101, 178), "second": (224, 90, 40)}

EDGE = 3 / 64
"""The space around a cell, as a fraction of its size."""

DIRECTIONS = {"up": (0, -1), "right": (1, 0), "down": (0, 1), "left": (-1, 0)}
"""Names of actions that are drawn as arrows, and their directions (x, y)."""


def shapes(item: Item) -> list[Shape]:
    """What an item is drawn of: a cell of its ground, its mark and its label."""
    if not isinstance(item, Cell):
        return [item]
    mark, size, kind = item.mark, item.size, mark_kind(item.mark)
    middle, stroke, arm = (item.x + size / 2, item.y + size / 2), 1.5 * EDGE * size, size / 4
    parts: list[Shape] = [ground(item, _ground_color(mark, item.shade))]
    if kind in STONES:
        parts.append(_disc(middle, 0.45 * size, STONES[kind]))
    elif mark == "x":
        for end in ((arm, arm), (arm, -arm)):
            line = ((-end[0], -end[1]), end)
            parts.append(Path(*middle, line, stroke=PAPER, width=stroke))
    elif mark == "o":
        parts.append(_disc(middle, size / 8, PAPER))
    elif mark == "+":
        parts.append(
            Box(middle[0] - arm, middle[1] - arm, (2 * arm, 2 * arm), arm, None, CHOSEN, stroke)
        )
    if mark not in (".", "x", "o", "+", "#"):
        height = max(7, int(size * (0.44 if len(mark) < 4 else 1.3 / len(mark))))
        is_light = mark.isalpha() or (mark.isdecimal() and int(mark) > 4)
        parts.append(Label(*middle, mark, height, PAPER if is_light else INK, "middle"))
    if item.label:  # a long one is smaller, so that it fits
        height = max(7, size * min(34, 140 // len(item.label)) // 100)
        parts.append(Label(*middle, item.label, height, INK, "middle"))
    return parts


def ground(cell: Cell, color: Color) -> Shape:
    """The shape of a cell, in a frame if it is chosen."""
    edge = EDGE * cell.size
    frame, width = (CHOSEN, 2 * edge) if cell.is_chosen else (None, 0.0)
    if cell.is_hexagon:
        middle = cell.x + cell.size / 2, cell.y + cell.size / 2
        return Path(*middle, hexagon(cell.size - edge), color, frame, width)
    inner = cell.size - 2 * edge
    return Box(cell.x + edge, cell.y + edge, (inner, inner), cell.size / 10, color, frame, width)


def _disc(middle: Point, radius: float, fill: Color) -> Box:
    corner, size = (middle[0] - radius, middle[1] - radius), (2 * radius, 2 * radius)
    return Box(*corner, size, radius, fill, None, 0)


def _ground_color(mark: str, weight: float) -> Color:
    kind = mark_kind(mark)
    if kind == "empty":
        return shade(weight)
    return tile_color(mark) if kind == "tile" else GROUNDS.get(kind, CELL)


def shade(weight: float) -> Color:
    """The color of an empty cell; weight: 0 to 1."""
    fraction = shade_fraction(weight)
    mixed = [round(a + (b - a) * fraction) for a, b in zip(CELL, LIKELY, strict=True)]
    return mixed[0], mixed[1], mixed[2]


def shade_fraction(weight: float) -> float:
    """How much of LIKELY the color of an empty cell has; weight: 0 to 1."""
    return float(weight**0.6)


def arrow(name: str, x: float, y: float, size: int, color: Color) -> Path:
    """An arrow into one of the DIRECTIONS; x, y: its middle."""
    across, down = DIRECTIONS[name]
    ends = ((0.35, 0.0), (-0.175, 0.4), (-0.175, -0.4))
    corners = [(size * (across * a + down * b), size * (down * a + across * b)) for a, b in ends]
    return Path(x, y, corners, color)
