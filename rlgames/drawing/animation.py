"""Animated GIFs of pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence

from PIL import Image

from rlgames.drawing import sprites

MAX_GIF_BYTES = 100_000
"""Of a GIF for TensorBoard."""

LAST_FRAME_SECONDS = 2.5
"""How long the end of a game is shown."""


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
    size = max(frame.width for frame in frames), max(frame.height for frame in frames)
    images = []
    for frame in frames:
        image = Image.new("RGB", size, sprites.PAPER)
        image.paste(frame)
        images.append(image.quantize(palette=sprites.palette(), dither=Image.Dither.NONE))
    file = io.BytesIO()
    images[0].save(
        file,
        "GIF",
        save_all=True,
        append_images=images[1:],
        duration=[round(1000 * each) for each in seconds],
        loop=0,
        optimize=False,
    )
    return file.getvalue()
