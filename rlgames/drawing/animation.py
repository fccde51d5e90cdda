"""Animations of pictures: GIF, SVG and MP4."""

from __future__ import annotations

import importlib
import io
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from rlgames.core.errors import ConfigError
from rlgames.drawing import pictures, sprites, svg
from rlgames.drawing.scene import Scene

MAX_GIF_BYTES = 100_000
"""Of a GIF for TensorBoard."""

LAST_FRAME_SECONDS = 2.5
"""How long the end of a game is shown."""

FRAMES_PER_SECOND = 20
"""Of an MP4."""


def write_animation(path: Path, scenes: Sequence[Scene], seconds: Sequence[float]) -> None:
    """Write scenes, each for some seconds, to a .gif, .svg or .mp4 file. Raises OSError, and
    ConfigError where ffmpeg fails."""
    suffix = path.suffix.lower()
    if suffix == ".svg":
        path.write_text(svg.animated_svg(scenes, seconds), encoding="utf-8")
    elif suffix == ".gif":
        path.write_bytes(encode_animation([*map(pictures.draw_scene, scenes)], seconds))
    else:
        _write_mp4(path, [*map(pictures.draw_scene, scenes)], seconds)


def find_ffmpeg() -> str | None:
    """The path of ffmpeg, from the system or the package imageio-ffmpeg; None without it."""
    program = shutil.which("ffmpeg")
    if program is not None:
        return program
    try:
        return str(importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        return None


def _write_mp4(path: Path, frames: list[Image.Image], seconds: Sequence[float]) -> None:
    program = find_ffmpeg()
    if program is None:
        raise ConfigError("an MP4 needs ffmpeg", "pip install imageio-ffmpeg, or write a .gif")
    # yuv420p has half the resolution for colors, so width and height must be even.
    size = (
        (max(each.width for each in frames) + 1) // 2 * 2,
        (max(each.height for each in frames) + 1) // 2 * 2,
    )
    video = b"".join(
        _on_paper(frame, size).tobytes() * max(1, round(FRAMES_PER_SECOND * duration))
        for frame, duration in zip(frames, seconds, strict=True)
    )
    words = [program, "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    words += ["-s", f"{size[0]}x{size[1]}", "-r", str(FRAMES_PER_SECOND), "-i", "-"]
    words += ["-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4", str(path.resolve())]
    done = subprocess.run(words, input=video, capture_output=True)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise ConfigError(f"ffmpeg cannot write {path}: {lines[-1]}")


def _on_paper(frame: Image.Image, size: tuple[int, int]) -> Image.Image:
    image = Image.new("RGB", size, sprites.PAPER)
    image.paste(frame)
    return image


def encode_gif(frames: list[Image.Image], max_bytes: int = MAX_GIF_BYTES) -> bytes:
    """A looping GIF; while it is too large, every other frame but the last is dropped."""
    data = _encode_frames(frames)
    while len(data) > max_bytes and len(frames) > 2:
        frames = [*frames[:-1:2], frames[-1]]
        data = _encode_frames(frames)
    return data


def _encode_frames(frames: list[Image.Image]) -> bytes:
    frame_seconds = min(0.8, max(0.2, 20 / len(frames)))
    return encode_animation(frames, [frame_seconds] * (len(frames) - 1) + [LAST_FRAME_SECONDS])


def encode_animation(frames: list[Image.Image], seconds: Sequence[float]) -> bytes:
    """A looping GIF, each of its frames for some seconds."""
    size = max(frame.width for frame in frames), max(frame.height for frame in frames)
    images = []
    for frame in frames:
        images.append(
            _on_paper(frame, size).quantize(palette=sprites.palette(), dither=Image.Dither.NONE)
        )
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
