"""Positions as pictures: the board, and on it what a player thinks of the moves.

A game says what to draw by `boards` and `aims`; of one that says nothing its text is drawn, with a
bar for each action.
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

WIDTH, MARGIN, TITLE = 300, 8, 26
"""Pixels: of a picture about the width, what is left free around boards, the title's height."""

ROOM = 30
"""Pixels of a cell that has room for words."""

GAP = 14
"""Pixels between two boards."""

LARGEST = 100_000
"""Bytes of an animation."""

BARS = 8
"""So many actions at most have a bar."""


@dataclass(frozen=True)
class Thought:
    """What a player thinks of a position's A actions.

    weights: float64 [A], 0 to 1, how dark each is drawn. words: what is written on the likeliest.
    shared: whether weights are shares of one whole, so that those of a cell add up.
    """

    weights: NDArray[np.float64]
    words: Sequence[str]
    shared: bool


def diagram(
    game: Game[Any],
    state: State,
    row: int,
    title: str,
    thought: Thought | None = None,
    action: int | None = None,
    reveal: bool = False,
    width: int = WIDTH,
) -> Image.Image:
    """One position in RGB, about so many pixels wide.

    action: the one that is taken. reveal: show what is hidden, too. Words stand on cells that have
    room for them.
    """
    boards, aims = game.boards(state, row, reveal), game.action_cells(state, row)
    if boards and aims is not None:
        on_cells = _on_cells(thought, aims.cpu().numpy())
        chosen = set() if action is None else set(aims[action].nonzero()[:, 0].tolist())
        return _titled(title, _side_by_side(boards, width, on_cells, chosen))
    few = range(game.spec.actions if game.spec.actions <= len(sprites.DIRECTIONS) else 0)
    names = [game.action_to_string(state, row, each) for each in few]
    arrows = bool(names) and set(names) <= sprites.DIRECTIONS.keys()
    if boards:
        picture = _side_by_side(boards, width - 2 * arrows * (width // 9), {}, set())
    else:
        picture = _text(game.render(state, row, reveal), width)
    if arrows:
        return _titled(title, _with_arrows(picture, width // 9, names, thought, action))
    if thought is None:
        return _titled(title, picture)
    likely = np.argsort(-thought.weights, kind="stable")[:BARS].tolist()
    bars = [(game.action_to_string(state, row, each), each) for each in likely]
    return _titled(title, _with_bars(picture, bars, thought, action))


def animation(frames: list[Image.Image], most: int = LARGEST) -> bytes:
    """A GIF of frames, again and again; where it has more bytes than that every other frame is
    left out, but for the last."""
    found = _gif(frames)
    while len(found) > most and len(frames) > 2:
        frames = [*frames[:-1:2], frames[-1]]
        found = _gif(frames)
    return found


def _gif(frames: list[Image.Image]) -> bytes:
    size = max(frame.width for frame in frames), max(frame.height for frame in frames)
    drawn = []
    for frame in frames:
        whole = Image.new("RGB", size, sprites.PAPER)
        whole.paste(frame)
        drawn.append(whole.quantize(palette=sprites.palette(), dither=Image.Dither.NONE))
    each = min(800, max(200, 20_000 // len(frames)))
    times = [each] * (len(frames) - 1) + [2500]  # milliseconds
    file = io.BytesIO()
    drawn[0].save(
        file, "GIF", save_all=True, append_images=drawn[1:], duration=times, loop=0, optimize=False
    )
    return file.getvalue()


def _on_cells(thought: Thought | None, aims: NDArray[np.bool_]) -> dict[int, tuple[float, str]]:
    """How dark a cell is, and what is written on it; aims: bool [A, N]."""
    if thought is None:
        return {}
    if thought.shared:  # a cell may belong to several actions
        share = thought.weights @ aims
        return {cell: (float(share[cell]), percent(share[cell])) for cell in range(len(share))}
    found: dict[int, tuple[float, str]] = {}
    for action in np.argsort(thought.weights):  # the best of a cell's actions comes last
        for cell in aims[action].nonzero()[0] if thought.words[action] else ():
            found[int(cell)] = float(thought.weights[action]), thought.words[action]
    return found


def percent(share: float) -> str:
    """A probability, nothing for less than half a percent."""
    return f"{100 * share:.0f}" if share >= 0.005 else ""


def _titled(title: str, picture: Image.Image) -> Image.Image:
    width = picture.width + 2 * MARGIN
    image = Image.new("RGB", (width, picture.height + TITLE + MARGIN), sprites.PAPER)
    image.paste(picture, (MARGIN, TITLE))
    words = sprites.word(title, 13, sprites.INK)
    image.paste(words, (MARGIN, (TITLE - words.height) // 2), words)
    return image


def _side_by_side(
    boards: list[Board], width: int, on_cells: dict[int, tuple[float, str]], chosen: set[int]
) -> Image.Image:
    """The first board with what is thought of its cells, the others as they are."""
    rows, columns = len(boards[0]), sum(len(marks[0]) for marks in boards)
    across = width if len(boards) == 1 else 3 * width // 2
    size = max(12, min(width // max(rows, 4), across // columns))
    drawn = [_board(boards[0], size, on_cells, chosen)]
    drawn += [_board(marks, size, {}, set()) for marks in boards[1:]]
    across = sum(each.width for each in drawn) + GAP * (len(drawn) - 1)
    image = Image.new("RGB", (across, max(each.height for each in drawn)), sprites.PAPER)
    left = 0
    for each in drawn:
        image.paste(each, (left, 0))
        left += each.width + GAP
    return image


def _board(
    marks: Board, size: int, on_cells: dict[int, tuple[float, str]], chosen: set[int]
) -> Image.Image:
    rows, columns = len(marks), len(marks[0])
    image = Image.new("RGB", (columns * size, rows * size), sprites.PAPER)
    for cell in range(rows * columns):
        row, column = divmod(cell, columns)
        weight, word = on_cells.get(cell, (0.0, ""))
        mark, place = marks[row][column], (column * size, row * size)
        image.paste(sprites.cell(mark, size, round(sprites.SHADES * weight), cell in chosen), place)
        if mark == "." and word and size >= ROOM:
            words = sprites.word(word, max(7, size * 34 // 100), sprites.INK)
            place = place[0] + (size - words.width) // 2, place[1] + (size - words.height) // 2
            image.paste(words, place, words)
    return image


def _with_arrows(
    picture: Image.Image, edge: int, names: list[str], thought: Thought | None, action: int | None
) -> Image.Image:
    """An arrow on the side that each action moves to, the darker the likelier; edge: its room."""
    image = Image.new("RGB", (picture.width + 2 * edge, picture.height + 2 * edge), sprites.PAPER)
    image.paste(picture, (edge, edge))
    for number, name in enumerate(names):
        x, y = sprites.DIRECTIONS[name]
        reach = (image.width - edge) / 2, (image.height - edge) / 2
        at = image.width / 2 + x * reach[0], image.height / 2 + y * reach[1]
        weight = 0.0 if thought is None else float(thought.weights[number])
        colour = (
            sprites.shade(round(sprites.SHADES * weight)) if number != action else sprites.CHOSEN
        )
        arrow = sprites.arrow(name, edge, colour)
        image.paste(arrow, (round(at[0] - edge / 2), round(at[1] - edge / 2)))
        if thought is not None and thought.words[number]:
            words = sprites.word(thought.words[number], 12, sprites.INK)
            place = (at[0] + 18, at[1] - 7) if y else (at[0] - words.width / 2, at[1] + 17)
            image.paste(words, (int(place[0]), int(place[1])), words)
    return image


def _with_bars(
    picture: Image.Image, bars: list[tuple[str, int]], thought: Thought, taken: int | None
) -> Image.Image:
    """Actions by name and number below, each with how likely it is."""
    size = max(picture.width, WIDTH), picture.height + 10 + 18 * len(bars)
    image = Image.new("RGB", size, sprites.PAPER)
    image.paste(picture, (0, 0))
    draw = ImageDraw.Draw(image)
    for place, (name, action) in enumerate(bars):
        top = picture.height + 10 + 18 * place
        words = sprites.word(name[:14], 12, sprites.INK)
        image.paste(words, (0, top + 1), words)
        length = int((image.width - 160) * float(thought.weights[action]))
        colour = sprites.CHOSEN if action == taken else sprites.LIKELY
        draw.rectangle((110, top + 2, 110 + max(length, 1), top + 14), colour)
        words = sprites.word(thought.words[action], 12, sprites.FAINT)
        image.paste(words, (116 + length, top + 1), words)
    return image


def _text(text: str, width: int) -> Image.Image:
    """Text in a fixed width, as small as it has to be."""
    lines = text.splitlines()
    across = max(1, *map(len, lines))
    step = min(11, max(5, 2 * width // across))
    image = Image.new("RGB", (across * step, len(lines) * step * 2), sprites.PAPER)
    for row, line in enumerate(lines):
        for column, letter in enumerate(line):
            if letter != " ":
                drawn = sprites.word(letter, step * 3 // 2, sprites.INK)
                left = column * step + (step - drawn.width) // 2
                image.paste(drawn, (left, row * step * 2), drawn)
    return image
