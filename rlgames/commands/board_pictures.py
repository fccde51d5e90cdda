"""Positions and games in files: `rlgames show picture=` and `rlgames watch picture=`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlgames.core.errors import ConfigError
from rlgames.core.output_files import check_writable
from rlgames.drawing import images, pictures, svg
from rlgames.drawing.pictures import ActionOverlay
from rlgames.drawing.scene import Scene
from rlgames.terminal.boards import BoardView

STILLS, ANIMATIONS = (".svg", ".png"), (".gif", ".svg")
"""The endings of files with one position, and with games."""

WIDTH = 360
"""Pixels of a board; it is made narrower to fit whole cells."""


@dataclass(frozen=True)
class Frame:
    """A position of a game: the move in words, the board, and the action that is taken, if any."""

    title: str
    board: BoardView
    action: int | None = None


def check_picture(path: Path, formats: Sequence[str], delay: float | None = None) -> None:
    """Raises ConfigError for a file of another format or that cannot be written, and for an
    animation without time between its moves."""
    if path.suffix.lower() not in formats:
        hint = f"it should end in {' or '.join(formats)}"
        raise ConfigError(f"picture={path} has another format", hint)
    if delay == 0:
        raise ConfigError("delay=0 leaves no time between moves", "use delay=0.5")
    check_writable(f"picture={path}", path)


def write_position(board: BoardView, title: str, path: Path) -> None:
    """Write a board with its coordinates, its legend and the player's probabilities."""
    scene = _scene(board, title, None)
    if path.suffix.lower() == ".svg":
        path.write_text(svg.svg_document(scene), encoding="utf-8")
    else:
        images.draw_scene(scene).save(path, "PNG", optimize=True)


def write_games(games: Iterable[Iterable[Frame]], path: Path, delay: float) -> None:
    """Write games, one after the other; delay: seconds between two moves."""
    scenes: list[Scene] = []
    seconds: list[float] = []
    for game in games:
        own = [_scene(frame.board, frame.title, frame.action) for frame in game]
        scenes += own
        seconds += [delay] * (len(own) - 1) + [max(delay, images.LAST_FRAME_SECONDS)]
    if path.suffix.lower() == ".svg":
        path.write_text(svg.animated_svg(scenes, seconds), encoding="utf-8")
    else:
        frames = [*map(images.draw_scene, scenes)]
        path.write_bytes(images.encode_animation(frames, seconds))


def _scene(board: BoardView, title: str, action: int | None) -> Scene:
    overlay = None
    if board.opinion:
        overlay = ActionOverlay.of(np.array(board.opinion, np.float64), board.are_values)
    return pictures.position_scene(
        board.game,
        board.state,
        0,
        title,
        overlay,
        action,
        board.reveal,
        width=WIDTH,
        has_legend=True,
    )
