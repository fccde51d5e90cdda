"""Small plots that runs write for TensorBoard while they train; they need no matplotlib.

figures.py draws figures for papers.
"""

from __future__ import annotations

import io
import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

Floats = NDArray[np.float64]

SIZE = (340, 220)
"""Pixels. TensorBoard shows pictures at about this width, and scales larger ones badly."""

LEFT, RIGHT, TOP, BOTTOM = 48, 16, 40, 24
COLORS = ((31, 119, 180), (214, 95, 14), (44, 140, 60), (120, 80, 160), (190, 30, 45))
"""Of the curves; more are not drawn."""

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


def plot_by_move(title: str, name: str, values: Floats, high: float) -> Image.Image:
    """One number for each move of a game, on an axis from 0 to high.

    name: of the number. values: float64 [T].
    """
    moves = np.arange(1.0, len(values) + 1)
    return _line_chart(title, {f"{name} by move": (moves, values)}, high, is_counted=True)


def _line_chart(
    title: str,
    curves: dict[str, tuple[Floats, Floats]],
    top: float | None = None,
    is_counted: bool = False,
) -> Image.Image:
    """Lines through points, x and y float64 [N] each, by name; the y axis starts at 0.

    top: where it ends; None: at the highest point. is_counted: x are whole numbers.
    """
    image = Image.new("RGB", SIZE, WHITE)
    draw = ImageDraw.Draw(image)
    xs, ys = (np.concatenate([curve[axis] for curve in curves.values()]) for axis in (0, 1))
    left, right = _non_empty(float(xs.min()), float(xs.max()))
    low, high = _non_empty(0.0, top or float(ys.max()))
    across, up = SIZE[0] - LEFT - RIGHT, SIZE[1] - BOTTOM - TOP

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + (x - left) / (right - left) * across, TOP + (high - y) / (high - low) * up

    step, ticks = _ticks(low, high)
    for tick in ticks:
        start = place(left, tick)
        draw.line((start, place(right, tick)), GRAY)
        draw.text((LEFT - 6, start[1]), _tick(tick, step), BLACK, anchor="rm")
    step, ticks = _ticks(left, right, 1.0 if is_counted else 0.0)
    for tick in ticks:
        draw.text((place(tick, 0)[0], TOP + up + 8), _tick(tick, step), BLACK, anchor="ma")
    draw.text((LEFT, 6), title, BLACK)
    end = float(LEFT)
    for color, (name, (x, y)) in zip(COLORS, curves.items(), strict=False):
        draw.line([place(a, b) for a, b in zip(x, y, strict=True)], color, 2, "curve")
        draw.text((end, 22), name, color)
        end += 16 + draw.textlength(name)
    return image


def _non_empty(low: float, high: float) -> tuple[float, float]:
    return low, high if high > low else low + 1


def _ticks(low: float, high: float, smallest: float = 0.0) -> tuple[float, list[float]]:
    """A step of 1, 2 or 5 times a power of ten, from smallest on, and its multiples from low to
    high, at most 7."""
    least = max((high - low) / 6, smallest)
    unit = 10.0 ** math.floor(math.log10(least))
    step = next(step for step in (unit, 2 * unit, 5 * unit, 10 * unit) if step >= least * 0.999999)
    first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
    return step, [number * step for number in range(first, last + 1)]


def _tick(value: float, step: float) -> str:
    """A multiple of the step, with as many digits as it needs."""
    return f"{value:,.{max(0, -math.floor(math.log10(step) + 1e-6))}f}"


def encode_png(picture: Image.Image) -> bytes:
    """The picture as a PNG file, with fast compression."""
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=1)
    return file.getvalue()
