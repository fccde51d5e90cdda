"""Scenes as images of Pillow: PNG, and animations as GIF."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from rlgames.drawing.cells import PAPER, shapes
from rlgames.drawing.scene import Box, Label, Scene

MAX_GIF_BYTES = 100_000
"""Of a GIF for TensorBoard."""

LAST_FRAME_SECONDS = 2.5
"""How long the end of a game is shown."""

FINENESS = 4
"""Shapes are drawn this many times as large and reduced, for smooth edges."""

PALETTE_FRAMES, COLORS = 8, 64
"""An animation has this many colors, taken from this many of its frames."""


def draw_scene(scene: Scene) -> Image.Image:
    """A scene in RGB."""
    image = Image.new("RGB", (FINENESS * scene.width, FINENESS * scene.height), PAPER)
    draw, labels = ImageDraw.Draw(image), list[Label]()
    for shape in (each for item in scene.items for each in shapes(item)):
        x, y = FINENESS * shape.x, FINENESS * shape.y
        if isinstance(shape, Label):
            labels.append(shape)
            continue
        width = round(FINENESS * shape.width)
        if isinstance(shape, Box):
            end = x + FINENESS * shape.size[0] - 1, y + FINENESS * shape.size[1] - 1
            look = FINENESS * shape.radius, shape.fill, shape.stroke, width
            draw.rounded_rectangle((x, y, *end), *look)
            continue
        points = [(x + FINENESS * a, y + FINENESS * b) for a, b in shape.points]
        if shape.fill is None:
            draw.line(points, shape.stroke, width, joint="curve")
        else:
            draw.polygon(points, shape.fill, shape.stroke, width)
    image = image.reduce(FINENESS)
    draw, anchors = ImageDraw.Draw(image), {"start": "lm", "middle": "mm", "end": "rm"}
    for label in labels:
        place = label.x, label.y
        draw.text(place, label.text, label.color, _font(label.size), anchors[label.anchor])
    return image


_font = lru_cache(ImageFont.load_default)


def text_width(text: str, size: int) -> int:
    """Pixels that a label takes."""
    return math.ceil(_font(size).getlength(text))


def encode_png(picture: Image.Image) -> bytes:
    """The picture as a PNG file, with fast compression."""
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=1)
    return file.getvalue()


def encode_gif(frames: list[Image.Image], max_bytes: int = MAX_GIF_BYTES) -> bytes:
    """A looping GIF; while it is too large, every other frame but the last is dropped."""
    frame_seconds = min(0.8, max(0.2, 20 / len(frames)))
    seconds = [frame_seconds] * (len(frames) - 1) + [LAST_FRAME_SECONDS]
    data = encode_animation(frames, seconds)
    if len(data) <= max_bytes or len(frames) <= 2:
        return data
    return encode_gif([*frames[:-1:2], frames[-1]], max_bytes)


def encode_animation(frames: list[Image.Image], seconds: Sequence[float]) -> bytes:
    """A looping GIF, each of its frames for some seconds."""
    width, height = max(each.width for each in frames), max(each.height for each in frames)
    some = frames[:: -max(1, len(frames) // PALETTE_FRAMES)]
    sample, dither = Image.new("RGB", (width, height * len(some)), PAPER), Image.Dither.NONE
    for number, frame in enumerate(some):
        sample.paste(frame, (0, number * height))
    palette = sample.quantize(COLORS, Image.Quantize.MAXCOVERAGE, dither=dither)
    images = []
    for frame in frames:
        image = Image.new("RGB", (width, height), PAPER)
        image.paste(frame)
        images.append(image.quantize(palette=palette, dither=dither))
    file, times = io.BytesIO(), [round(1000 * each) for each in seconds]
    more: dict[str, Any] = {"append_images": images[1:], "duration": times, "loop": 0}
    images[0].save(file, "GIF", save_all=True, optimize=False, **more)
    return file.getvalue()
