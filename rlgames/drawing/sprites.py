"""The parts of pictures of positions: cells, arrows and text.

Each is drawn once and cached. Shapes are drawn four times as large and reduced, for smooth edges.
"""

from __future__ import annotations

from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

from rlgames.drawing import mark_styles
from rlgames.drawing.mark_styles import Color

SHADES = 15
"""Number of shades of a cell by its weight, besides the shade of weight 0."""

PAPER, INK, FAINT = (255, 255, 255), (45, 52, 64), (130, 138, 150)
CELL, LIKELY, CHOSEN = (227, 234, 242), (255, 166, 43), (208, 52, 44)
SHIP, HIT, MISS = (120, 130, 145), (214, 69, 65), (126, 160, 196)
GROUNDS = {"hit": HIT, "miss": MISS, "ship": SHIP}
STONES = {"first": (38, 101, 178), "second": (224, 90, 40)}

DIRECTIONS = {"up": (0, -1), "right": (1, 0), "down": (0, 1), "left": (-1, 0)}
"""Names of actions that are drawn as arrows, and their directions (x, y)."""

UNWRITTEN_MARKS = (".", "x", "o", "+", "#")
"""Marks that are shapes or nothing, not text."""


@lru_cache(4096)
def cell(mark: str, size: int, weight: int, chosen: bool, is_hexagon: bool = False) -> Image.Image:
    """A cell with its mark in RGBA, transparent around it. weight: 0 to SHADES."""
    height = size + 2 * (size // 12) if is_hexagon else size
    image = Image.new("RGBA", (size, height), (*PAPER, 0))
    what, above = mark_styles.mark_kind(mark), (height - size) // 2
    shape = _hexagon(size, height) if is_hexagon else _shape("cell", size)
    image.paste(CHOSEN if chosen and is_hexagon else ground(mark, weight), mask=shape)
    if chosen and is_hexagon:
        inner = 7 * size // 8, 7 * height // 8
        place = (size - inner[0]) // 2, (height - inner[1]) // 2
        image.paste(
            ground(mark, weight),
            (*place, place[0] + inner[0], place[1] + inner[1]),
            _hexagon(*inner),
        )

    def put(color: Color, shape: str) -> None:
        image.paste(color, (0, above, size, above + size), _shape(shape, size))

    if what in STONES:
        put(STONES[what], "stone")
    elif mark in ("x", "o", "+"):
        put(CHOSEN if mark == "+" else PAPER, mark)
    if chosen and not is_hexagon:
        put(CHOSEN, "frame")
    if mark not in UNWRITTEN_MARKS:
        label = text(mark, *mark_text(mark, size))
        place = ((size - label.width) // 2, above + (size - label.height) // 2)
        image.alpha_composite(label, place)
    return image


def ground(mark: str, weight: int) -> Color:
    """The color of a cell with this mark; weight: of an empty cell, 0 to SHADES."""
    what = mark_styles.mark_kind(mark)
    if what == "empty":
        return shade(weight)
    return mark_styles.tile_color(mark) if what == "tile" else GROUNDS.get(what, CELL)


def mark_text(mark: str, size: int) -> tuple[int, Color]:
    """The height and the color of a mark that is written on a cell of this size."""
    height = int(size * (0.44 if len(mark) < 4 else 1.3 / len(mark)))
    is_light = mark.isalpha() or (mark.isdecimal() and int(mark) > 4)
    return max(height, 7), PAPER if is_light else INK


def label_height(size: int, label: str) -> int:
    """The height of a label on a cell of this size; a long one is smaller, so that it fits."""
    return max(7, size * min(34, 140 // max(1, len(label))) // 100)


@lru_cache
def _shape(name: str, size: int) -> Image.Image:
    """The mask of a shape in a cell."""
    large, edge = 4 * size, max(8, 3 * size // 16)
    image = Image.new("L", (large, large))
    draw = ImageDraw.Draw(image)
    inside = (edge // 2, edge // 2, large - edge // 2, large - edge // 2)
    near, far = large // 4, large - large // 4
    if name == "cell":
        draw.rounded_rectangle(inside, 2 * edge, 255)
    elif name == "frame":
        draw.rounded_rectangle(inside, 2 * edge, None, 255, edge)
    elif name == "stone":
        draw.ellipse((edge, edge, large - edge, large - edge), 255)
    elif name == "x":
        draw.line((near, near, far, far), 255, edge)
        draw.line((near, far, far, near), 255, edge)
    elif name == "o":
        draw.ellipse((3 * large // 8, 3 * large // 8, 5 * large // 8, 5 * large // 8), 255)
    elif name == "+":
        draw.ellipse((near, near, far, far), None, 255, edge)
    return image.reduce(4)


@lru_cache
def _hexagon(width: int, height: int) -> Image.Image:
    """The mask of a hexagon that stands on a corner, with a little space around it."""
    image = Image.new("L", (4 * width, 4 * height))
    corners = ((0.5, 0.02), (0.97, 0.26), (0.97, 0.74), (0.5, 0.98), (0.03, 0.74), (0.03, 0.26))
    ImageDraw.Draw(image).polygon([(4 * width * x, 4 * height * y) for x, y in corners], 255)
    return image.reduce(4)


def _blend(one: Color, other: Color, fraction: float) -> Color:
    mixed = [round(a + (b - a) * fraction) for a, b in zip(one, other, strict=True)]
    return mixed[0], mixed[1], mixed[2]


@lru_cache
def arrow(name: str, size: int, color: Color) -> Image.Image:
    image = Image.new("RGB", (4 * size, 4 * size), PAPER)
    points = [(4 * size * (0.5 + x), 4 * size * (0.5 + y)) for x, y in arrow_points(name)]
    ImageDraw.Draw(image).polygon(points, color)
    return image.reduce(4)


def arrow_points(name: str) -> list[tuple[float, float]]:
    """The corners of an arrow of size 1 around (0, 0)."""
    x, y = DIRECTIONS[name]
    ends = ((0.35, 0.0), (-0.175, 0.4), (-0.175, -0.4))
    return [(x * a + y * b, y * a + x * b) for a, b in ends]


@lru_cache(4096)
def text(string: str, size: int, color: Color) -> Image.Image:
    """Text in RGBA on a transparent background; its height depends on the size only."""
    font = _font(size)
    up, down = font.getmetrics() if isinstance(font, ImageFont.FreeTypeFont) else (size, 0)
    image = Image.new("RGBA", (max(1, round(font.getlength(string))), up + down), (*color, 0))
    ImageDraw.Draw(image).text((0, 0), string, (*color, 255), font)
    return image


_font = lru_cache(ImageFont.load_default)


@lru_cache
def palette() -> Image.Image:
    """The colors of an animation: all that are drawn, and blends of them with their background."""
    shades = [shade(weight) for weight in range(SHADES + 1)]
    backgrounds = {
        PAPER: (INK, FAINT, HIT, SHIP, MISS, *STONES.values(), *mark_styles.TILE_COLORS),
        CHOSEN: shades[::3],
    }
    backgrounds |= {INK: (*shades[::5], *mark_styles.TILE_COLORS[:2]), CELL: tuple(STONES.values())}
    blends = [
        _blend(a, b, t)
        for b, foregrounds in backgrounds.items()
        for a in foregrounds
        for t in (0.0, 0.35, 0.7)
    ]
    colors = list(dict.fromkeys([PAPER, CHOSEN, *shades, *blends]))[:256]
    image = Image.new("P", (1, 1))
    image.putpalette([part for color in colors for part in color])
    return image


def shade(weight: int) -> Color:
    """The color of an empty cell; weight: 0 to SHADES."""
    return _blend(CELL, LIKELY, shade_fraction(weight))


def shade_fraction(weight: int) -> float:
    """How much of LIKELY the color of an empty cell has; weight: 0 to SHADES."""
    return float((weight / SHADES) ** 0.6)
