"""Small charts for TensorBoard and the run's directory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

Floats = NDArray[np.float64]
Picture = NDArray[np.uint8]

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 40, 40
COLOURS = ((31, 119, 180), (214, 95, 14), (44, 140, 60), (120, 80, 160))
GREY, BLACK, WHITE = (205, 205, 205), (40, 40, 40), (255, 255, 255)


def density(title: str, groups: dict[str, Floats], bins: int = 40) -> Picture:
    """How the numbers of each group are spread: the share of its group in each bin, 0 to 1.

    groups: each float64 [N]. Returns uint8 [H, W, 3].
    """
    everything = np.concatenate(list(groups.values()))
    low, high = float(everything.min()), float(everything.max())
    edges = np.linspace(low, high if high > low else low + 1, bins + 1)
    curves = {}
    for name, values in groups.items():
        share = np.histogram(values, edges)[0] / max(len(values), 1)
        # Each bin is a step, as wide as it is.
        curves[f"{name} ({len(values):,})"] = (np.repeat(edges, 2)[1:-1], np.repeat(share, 2))
    return chart(title, curves)


def over(title: str, values: Floats, high: float) -> Picture:
    """One number for each step of a game, drawn from 0 to high; values: float64 [T]."""
    return chart(title, {"": (np.arange(1.0, len(values) + 1), values)}, top=high)


def chart(
    title: str, curves: dict[str, tuple[Floats, Floats]], top: float | None = None
) -> Picture:
    """Lines through points, x and y float64 [N] each, by name; the y axis begins at 0."""
    image = Image.new("RGB", (WIDTH, HEIGHT), WHITE)
    draw = ImageDraw.Draw(image)
    xs = np.concatenate([x for x, _ in curves.values()])
    low, high = float(xs.min()), float(xs.max())
    high = high if high > low else low + 1
    top = top or max(float(y.max()) for _, y in curves.values()) or 1.0
    across, up = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + (x - low) / (high - low) * across, TOP + (1 - y / top) * up

    for tick in np.linspace(0, top, 6):
        start, end = at(low, tick), at(high, tick)
        draw.line((start, end), GREY)
        draw.text((4, start[1] - 6), f"{tick:.3g}", BLACK)
    for tick in np.linspace(low, high, 6):
        draw.text((at(tick, 0)[0], HEIGHT - BOTTOM + 8), f"{tick:.3g}", BLACK, anchor="ma")
    draw.text((LEFT, 6), title, BLACK)
    place = LEFT
    for number, (name, (x, y)) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        points: Sequence[tuple[float, float]] = [at(a, b) for a, b in zip(x, y, strict=True)]
        draw.line(list(points), colour, 2)
        draw.text((place, 22), name, colour)
        place += 16 + int(draw.textlength(name))
    return np.asarray(image)
