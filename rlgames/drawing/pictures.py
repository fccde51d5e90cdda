"""Positions as pictures: the board, and on it a player's probabilities or values of the actions.

A game defines what to draw by `boards` and `action_cells`. Of a game that defines neither, the text
is drawn, with a bar for each action.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from rlgames.drawing import sprites
from rlgames.games.board import Board
from rlgames.games.game import Game, State

WIDTH, MARGIN, TITLE_HEIGHT = 300, 8, 26
"""Pixels: the approximate width of a picture, the space around boards, the height of the title."""

MIN_LABEL_CELL = 30
"""Pixels of the smallest cell that has a label."""

GAP = 14
"""Pixels between two boards."""

MAX_ANIMATION_BYTES = 100_000

MAX_BARS = 8
"""The most actions that have a bar."""


@dataclass(frozen=True)
class ActionOverlay:
    """How to draw a player's opinion of a position's A actions.

    weights: float64 [A], 0 to 1, how dark each action is drawn. labels: the text on each.
    is_distribution: the weights are probabilities, so those of a cell add up.
    """

    weights: NDArray[np.float64]
    labels: Sequence[str]
    is_distribution: bool


def draw_position(
    game: Game[Any],
    state: State,
    row: int,
    title: str,
    overlay: ActionOverlay | None = None,
    action: int | None = None,
    reveal: bool = False,
    width: int = WIDTH,
) -> Image.Image:
    """One position in RGB, about this many pixels wide.

    action: the action that is taken. reveal: show the hidden truth, too. Cells that are large
    enough have labels.
    """
    boards, cells = game.boards(state, row, reveal), game.action_cells(state, row)
    if boards and cells is not None:
        cell_overlay = _overlay_of_cells(overlay, cells.cpu().numpy())
        chosen = set() if action is None else set(cells[action].nonzero()[:, 0].tolist())
        return _add_title(title, _draw_boards(boards, width, cell_overlay, chosen))
    named = range(game.spec.actions if game.spec.actions <= len(sprites.DIRECTIONS) else 0)
    names = [game.action_to_string(state, row, each) for each in named]
    are_directions = bool(names) and set(names) <= sprites.DIRECTIONS.keys()
    if boards:
        picture = _draw_boards(boards, width - 2 * are_directions * (width // 9), {}, set())
    else:
        picture = _draw_text(game.render(state, row, reveal), width)
    if are_directions:
        return _add_title(title, _add_arrows(picture, width // 9, names, overlay, action))
    if overlay is None:
        return _add_title(title, picture)
    best = np.argsort(-overlay.weights, kind="stable")[:MAX_BARS].tolist()
    bars = [(game.action_to_string(state, row, each), each) for each in best]
    return _add_title(title, _add_bars(picture, bars, overlay, action))


def encode_gif(frames: list[Image.Image], max_bytes: int = MAX_ANIMATION_BYTES) -> bytes:
    """A looping GIF; while it is too large, every other frame but the last is dropped."""
    data = _encode_frames(frames)
    while len(data) > max_bytes and len(frames) > 2:
        frames = [*frames[:-1:2], frames[-1]]
        data = _encode_frames(frames)
    return data


def _encode_frames(frames: list[Image.Image]) -> bytes:
    size = max(frame.width for frame in frames), max(frame.height for frame in frames)
    images = []
    for frame in frames:
        image = Image.new("RGB", size, sprites.PAPER)
        image.paste(frame)
        images.append(image.quantize(palette=sprites.palette(), dither=Image.Dither.NONE))
    frame_ms = min(800, max(200, 20_000 // len(frames)))
    durations = [frame_ms] * (len(frames) - 1) + [2500]
    file = io.BytesIO()
    images[0].save(
        file,
        "GIF",
        save_all=True,
        append_images=images[1:],
        duration=durations,
        loop=0,
        optimize=False,
    )
    return file.getvalue()


def _overlay_of_cells(
    overlay: ActionOverlay | None, action_cells: NDArray[np.bool_]
) -> dict[int, tuple[float, str]]:
    """How dark each cell is, and its label; action_cells: bool [A, N]."""
    if overlay is None:
        return {}
    if overlay.is_distribution:  # a cell may belong to several actions
        total = overlay.weights @ action_cells
        return {cell: (float(p), format_percent(p)) for cell, p in enumerate(total)}
    cells: dict[int, tuple[float, str]] = {}
    for action in np.argsort(overlay.weights):  # the best action of a cell comes last
        for cell in action_cells[action].nonzero()[0] if overlay.labels[action] else ():
            cells[int(cell)] = float(overlay.weights[action]), overlay.labels[action]
    return cells


def format_percent(probability: float) -> str:
    """A probability in percent; empty below half a percent."""
    return f"{100 * probability:.0f}" if probability >= 0.005 else ""


def _add_title(title: str, picture: Image.Image) -> Image.Image:
    width = picture.width + 2 * MARGIN
    image = Image.new("RGB", (width, picture.height + TITLE_HEIGHT + MARGIN), sprites.PAPER)
    image.paste(picture, (MARGIN, TITLE_HEIGHT))
    text = sprites.text(title, 13, sprites.INK)
    image.paste(text, (MARGIN, (TITLE_HEIGHT - text.height) // 2), text)
    return image


def _draw_boards(
    boards: list[Board], width: int, overlay: dict[int, tuple[float, str]], chosen: set[int]
) -> Image.Image:
    """Boards side by side, the first one with the overlay."""
    rows, columns = len(boards[0]), sum(len(marks[0]) for marks in boards)
    across = width if len(boards) == 1 else 3 * width // 2
    size = max(12, min(width // max(rows, 4), across // columns))
    images = [_draw_board(boards[0], size, overlay, chosen)]
    images += [_draw_board(marks, size, {}, set()) for marks in boards[1:]]
    across = sum(each.width for each in images) + GAP * (len(images) - 1)
    image = Image.new("RGB", (across, max(each.height for each in images)), sprites.PAPER)
    left = 0
    for each in images:
        image.paste(each, (left, 0))
        left += each.width + GAP
    return image


def _draw_board(
    marks: Board, size: int, overlay: dict[int, tuple[float, str]], chosen: set[int]
) -> Image.Image:
    rows, columns = len(marks), len(marks[0])
    image = Image.new("RGB", (columns * size, rows * size), sprites.PAPER)
    for cell in range(rows * columns):
        row, column = divmod(cell, columns)
        weight, label = overlay.get(cell, (0.0, ""))
        mark, place = marks[row][column], (column * size, row * size)
        image.paste(sprites.cell(mark, size, round(sprites.SHADES * weight), cell in chosen), place)
        if mark == "." and label and size >= MIN_LABEL_CELL:
            text = sprites.text(label, max(7, size * 34 // 100), sprites.INK)
            place = place[0] + (size - text.width) // 2, place[1] + (size - text.height) // 2
            image.paste(text, place, text)
    return image


def _add_arrows(
    picture: Image.Image,
    edge: int,
    names: list[str],
    overlay: ActionOverlay | None,
    action: int | None,
) -> Image.Image:
    """An arrow at the side that each action moves to; edge: its size in pixels."""
    image = Image.new("RGB", (picture.width + 2 * edge, picture.height + 2 * edge), sprites.PAPER)
    image.paste(picture, (edge, edge))
    for number, name in enumerate(names):
        x, y = sprites.DIRECTIONS[name]
        distance = (image.width - edge) / 2, (image.height - edge) / 2
        center = image.width / 2 + x * distance[0], image.height / 2 + y * distance[1]
        weight = 0.0 if overlay is None else float(overlay.weights[number])
        color = (
            sprites.shade(round(sprites.SHADES * weight)) if number != action else sprites.CHOSEN
        )
        arrow = sprites.arrow(name, edge, color)
        image.paste(arrow, (round(center[0] - edge / 2), round(center[1] - edge / 2)))
        if overlay is not None and overlay.labels[number]:
            text = sprites.text(overlay.labels[number], 12, sprites.INK)
            place = (center[0] + 18, center[1] - 7)
            if not y:
                place = (center[0] - text.width / 2, center[1] + 17)
            image.paste(text, (int(place[0]), int(place[1])), text)
    return image


def _add_bars(
    picture: Image.Image, bars: list[tuple[str, int]], overlay: ActionOverlay, taken: int | None
) -> Image.Image:
    """A bar for each of these actions, (name, number), below the picture."""
    size = max(picture.width, WIDTH), picture.height + 10 + 18 * len(bars)
    image = Image.new("RGB", size, sprites.PAPER)
    image.paste(picture, (0, 0))
    draw = ImageDraw.Draw(image)
    for place, (name, action) in enumerate(bars):
        top = picture.height + 10 + 18 * place
        text = sprites.text(name[:14], 12, sprites.INK)
        image.paste(text, (0, top + 1), text)
        length = int((image.width - 160) * float(overlay.weights[action]))
        color = sprites.CHOSEN if action == taken else sprites.LIKELY
        draw.rectangle((110, top + 2, 110 + max(length, 1), top + 14), color)
        text = sprites.text(overlay.labels[action], 12, sprites.FAINT)
        image.paste(text, (116 + length, top + 1), text)
    return image


def _draw_text(text: str, width: int) -> Image.Image:
    """Text in a monospaced grid, scaled to the width."""
    lines = text.splitlines()
    across = max(1, *map(len, lines))
    step = min(11, max(5, 2 * width // across))
    image = Image.new("RGB", (across * step, len(lines) * step * 2), sprites.PAPER)
    for row, line in enumerate(lines):
        for column, letter in enumerate(line):
            if letter != " ":
                glyph = sprites.text(letter, step * 3 // 2, sprites.INK)
                left = column * step + (step - glyph.width) // 2
                image.paste(glyph, (left, row * step * 2), glyph)
    return image
