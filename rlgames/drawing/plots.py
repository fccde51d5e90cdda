"""Small plots that runs write for TensorBoard while they train; they need no matplotlib.

figures.py draws figures for papers.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Floats = NDArray[np.float64]

SIZE = (340, 220)
"""Pixels. TensorBoard shows pictures at about this width, and scales larger ones badly."""

LEFT, RIGHT, TOP, BOTTOM = 48, 16, 40, 24
LINE = 14
COLORS = (
    *((31, 119, 180), (214, 95, 14), (44, 140, 60), (120, 80, 160), (190, 30, 45)),
    *((23, 150, 160), (140, 86, 75), (220, 110, 180), (130, 130, 30), (90, 90, 90)),
)
GRAY, BLACK, WHITE = (205, 205, 205), (40, 40, 40), (255, 255, 255)


def histogram(title: str, groups: dict[str, Floats], bins: int = 40) -> Image.Image:
    """The distribution of the numbers of each group, as fractions of the group, 0 to 1.

    groups: float64 [N] each.
    """
    everything = np.concatenate(list(groups.values()))
    low, high = float(everything.min()), float(everything.max())
    edges = np.linspace(low, high if high > low else low + 1, bins + 1)
    curves = {}
    for name, values in groups.items():
        fraction = np.histogram(values, edges)[0] / max(len(values), 1)
        # Each bin is a horizontal step.
        curves[f"{name} ({len(values):,})"] = (np.repeat(edges, 2)[1:-1], np.repeat(fraction, 2))
    return _line_chart(title, curves)


def plot_series(title: str, values: Floats, high: float) -> Image.Image:
    """One number for each move of a game, on an axis from 0 to high; values: float64 [T]."""
    return _line_chart(title, {"": (np.arange(1.0, len(values) + 1), values)}, high)


def _line_chart(
    title: str, curves: dict[str, tuple[Floats, Floats]], top: float | None = None
) -> Image.Image:
    """Lines through points, x and y float64 [N] each, by name; the y axis starts at 0.

    top: where it ends; None: at the highest point.
    """
    width, plain_height = SIZE
    legend = _legend(list(curves), width - LEFT)
    height = plain_height + (len(legend) - 1) * LINE
    image = Image.new("RGB", (width, height), WHITE)
    draw = ImageDraw.Draw(image)
    xs = np.concatenate([x for x, _ in curves.values()])
    ys = np.concatenate([y for _, y in curves.values()])
    x_range = _non_empty(float(xs.min()), float(xs.max()))
    y_range = _non_empty(0.0, top or float(ys.max()))
    axes = _Axes(x_range, y_range, height - plain_height + TOP, width, height)
    axes.draw(draw)
    draw.text((LEFT, 6), title, BLACK)
    for number, (x, y) in enumerate(curves.values()):
        points = [axes.place(a, b) for a, b in zip(x, y, strict=True)]
        draw.line(points, COLORS[number % len(COLORS)], 2)
    _draw_legend(draw, legend)
    return image


def _non_empty(low: float, high: float) -> tuple[float, float]:
    return low, high if high > low else low + 1


@dataclass(frozen=True)
class _Axes:
    """The ranges of x and y, and the pixels that they cover: from above, the top of the y axis."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    above: int
    width: int
    height: int

    def place(self, x: float, y: float) -> tuple[float, float]:
        (left, right), (low, high) = self.x_range, self.y_range
        across, up = self.width - LEFT - RIGHT, self.height - BOTTOM - self.above
        return (
            LEFT + (x - left) / (right - left) * across,
            self.above + (high - y) / (high - low) * up,
        )

    def draw(self, draw: ImageDraw.ImageDraw) -> None:
        """Horizontal lines, and the numbers of both axes."""
        step, ticks = _ticks(*self.y_range)
        for tick in ticks:
            start, end = (self.place(x, tick) for x in self.x_range)
            draw.line((start, end), GRAY)
            draw.text((LEFT - 6, start[1]), _tick(tick, step), BLACK, anchor="rm")
        step, ticks = _ticks(*self.x_range)
        for tick in ticks:
            place = self.place(tick, 0)[0], self.height - BOTTOM + 8
            draw.text(place, _tick(tick, step), BLACK, anchor="ma")


def _draw_legend(draw: ImageDraw.ImageDraw, rows: list[list[str]]) -> None:
    number = 0
    for line, row in enumerate(rows):
        place = LEFT
        for name in row:
            draw.text((place, 22 + line * LINE), name, COLORS[number % len(COLORS)])
            place += 16 + int(draw.textlength(name))
            number += 1


def _ticks(low: float, high: float) -> tuple[float, list[float]]:
    """A step of 1, 2 or 5 times a power of ten, and its multiples from low to high, at most 7."""
    least = (high - low) / 6
    unit = 10.0 ** math.floor(math.log10(least))
    step = next(step for step in (unit, 2 * unit, 5 * unit, 10 * unit) if step >= least * 0.999999)
    first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
    return step, [number * step for number in range(first, last + 1)]


def _tick(value: float, step: float) -> str:
    """A multiple of the step, with as many digits as it needs."""
    return f"{value:,.{max(0, -math.floor(math.log10(step) + 1e-6))}f}"


def _legend(names: list[str], across: int) -> list[list[str]]:
    """The names in rows that fit the width, unless a single name does not."""
    font, used = ImageFont.load_default(), 0
    rows: list[list[str]] = [[]]
    for name in names:
        width = 16 + int(font.getlength(name))
        if rows[-1] and used + width > across:
            rows.append([])
            used = 0
        rows[-1].append(name)
        used += width
    return rows


def encode_png(picture: Image.Image) -> bytes:
    """The picture as a PNG file, with fast compression."""
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=1)
    return file.getvalue()
