"""Small pictures that those of positions are put together from: cells, arrows and words.

Each is drawn once and kept, its shapes four times as large, so that their edges are smooth.
"""

from __future__ import annotations

from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

from rlgames.drawing import marks
from rlgames.drawing.marks import Colour

SHADES = 15
"""So many colours a cell can have by how likely it is, beside that of none."""

PAPER, INK, FAINT = (255, 255, 255), (45, 52, 64), (130, 138, 150)
CELL, LIKELY, CHOSEN = (227, 234, 242), (255, 166, 43), (208, 52, 44)
SHIP, HIT, MISS = (120, 130, 145), (214, 69, 65), (126, 160, 196)
GROUNDS = {"hit": HIT, "miss": MISS, "ship": SHIP}
STONES = {"first": (38, 101, 178), "second": (224, 90, 40)}

DIRECTIONS = {"up": (0, -1), "right": (1, 0), "down": (0, 1), "left": (-1, 0)}
"""Actions of these names are arrows, by what they add to x and y."""


@lru_cache(4096)
def cell(mark: str, size: int, weight: int, chosen: bool) -> Image.Image:
    """weight: 0 to SHADES."""
    image = Image.new("RGB", (size, size), PAPER)
    what = marks.kind(mark)
    ground = marks.tile(mark) if what == "tile" else GROUNDS.get(what, CELL)
    image.paste(shade(weight) if what == "empty" else ground, mask=_shape("cell", size))
    if what in STONES:
        image.paste(STONES[what], mask=_shape("stone", size))
    elif mark in ("x", "o", "+"):
        image.paste(CHOSEN if mark == "+" else PAPER, mask=_shape(mark, size))
    if chosen:
        image.paste(CHOSEN, mask=_shape("frame", size))
    if mark not in (".", "x", "o", "+", "#"):
        height = int(size * (0.44 if len(mark) < 4 else 1.3 / len(mark)))
        light = mark.isalpha() or (mark.isdecimal() and int(mark) > 4)
        words = word(mark, max(height, 7), PAPER if light else INK)
        image.paste(words, ((size - words.width) // 2, (size - words.height) // 2), words)
    return image


@lru_cache
def _shape(name: str, size: int) -> Image.Image:
    """A mask of a cell."""
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


def _blend(one: Colour, other: Colour, share: float) -> Colour:
    mixed = [round(a + (b - a) * share) for a, b in zip(one, other, strict=True)]
    return mixed[0], mixed[1], mixed[2]


@lru_cache
def arrow(name: str, size: int, colour: Colour) -> Image.Image:
    x, y = DIRECTIONS[name]
    image = Image.new("RGB", (4 * size, 4 * size), PAPER)
    ends = ((1.4, 0.0), (-0.7, 1.6), (-0.7, -1.6))
    ImageDraw.Draw(image).polygon(
        [(size * (2 + x * a + y * b), size * (2 + y * a + x * b)) for a, b in ends], colour
    )
    return image.reduce(4)


@lru_cache(4096)
def word(text: str, size: int, colour: Colour) -> Image.Image:
    """In RGBA, with nothing behind; as high for any words of a size."""
    font = _font(size)
    up, down = font.getmetrics() if isinstance(font, ImageFont.FreeTypeFont) else (size, 0)
    image = Image.new("RGBA", (max(1, round(font.getlength(text))), up + down), (*colour, 0))
    ImageDraw.Draw(image).text((0, 0), text, (*colour, 255), font)
    return image


@lru_cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


@lru_cache
def palette() -> Image.Image:
    """The colours of an animation: all that are drawn with, and between them and what is behind."""
    shades = [shade(weight) for weight in range(SHADES + 1)]
    behind = {PAPER: (INK, HIT, SHIP, MISS, *STONES.values(), *marks.TILES), CHOSEN: shades[::3]}
    behind |= {INK: (*shades[::5], *marks.TILES[:2]), CELL: tuple(STONES.values())}
    between = [_blend(a, b, t) for b, own in behind.items() for a in own for t in (0.0, 0.35, 0.7)]
    colours = list(dict.fromkeys([PAPER, CHOSEN, *shades, *between]))[:256]
    image = Image.new("P", (1, 1))
    image.putpalette([part for colour in colours for part in colour])
    return image


def shade(weight: int) -> Colour:
    """Of an empty cell; weight: 0 to SHADES."""
    return _blend(CELL, LIKELY, (weight / SHADES) ** 0.6)
