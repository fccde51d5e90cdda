"""Positions as pictures: the board, and on it what a player thinks of the moves.

A game says what to draw by `boards` and `aims`; of one that says nothing its text is drawn, with a
bar for each action. Everything is drawn from small pictures of marks and words that are kept.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from rlgames.games.board import Board
from rlgames.games.game import Game, State

Colour = tuple[int, int, int]

WIDTH, MARGIN, TITLE = 300, 8, 26
"""Pixels: of a picture about the width, what is left free around boards, the title's height."""

ROOM = 30
"""Pixels of a cell that has room for words."""

GAP = 14
"""Pixels between two boards."""

LARGEST = 100_000
"""Bytes of an animation."""

SHADES = 15
"""So many colours a cell can have by how likely it is, beside that of none."""

BARS = 8
"""So many actions at most have a bar."""

PAPER, INK, FAINT = (255, 255, 255), (45, 52, 64), (130, 138, 150)
CELL, LIKELY, CHOSEN = (227, 234, 242), (255, 166, 43), (208, 52, 44)
SHIP, HIT, MISS = (120, 130, 145), (214, 69, 65), (126, 160, 196)
STONES = {"X": (38, 101, 178), "O": (224, 90, 40)}
TILES: tuple[Colour, ...] = (
    *((238, 228, 218), (237, 224, 200), (242, 177, 121), (245, 149, 99), (246, 124, 95)),
    *((246, 94, 59), (237, 207, 114), (237, 204, 97), (237, 200, 80), (237, 197, 63)),
    *((237, 194, 46), (94, 218, 146), (36, 187, 100), (113, 180, 213), (94, 160, 220)),
)
"""Of 2, 4, 8 and so on."""

DIRECTIONS = {"up": (0, -1), "right": (1, 0), "down": (0, 1), "left": (-1, 0)}
"""Actions of these names are arrows, by what they add to x and y."""


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
    boards, aims = game.boards(state, row, reveal), game.aims(state, row)
    if boards and aims is not None:
        on_cells = _on_cells(thought, aims.cpu().numpy())
        chosen = set() if action is None else set(aims[action].nonzero()[:, 0].tolist())
        return _titled(title, _side_by_side(boards, width, on_cells, chosen))
    names = [game.name_action(state, row, each) for each in range(game.spec.actions)]
    arrows = set(names) <= DIRECTIONS.keys()
    if boards:
        picture = _side_by_side(boards, width - 2 * arrows * (width // 9), {}, set())
    else:
        picture = _text(game.render(state, row, reveal), width)
    if arrows:
        return _titled(title, _with_arrows(picture, width // 9, names, thought, action))
    return _titled(title, picture if thought is None else _with_bars(picture, names, thought))


def animation(frames: list[Image.Image], most: int = LARGEST) -> bytes:
    """A GIF of frames of one size, again and again; of more bytes than that every other frame is
    left out, but for the last."""
    found = _gif(frames)
    while len(found) > most and len(frames) > 2:
        frames = [*frames[:-1:2], frames[-1]]
        found = _gif(frames)
    return found


def _gif(frames: list[Image.Image]) -> bytes:
    colours = _palette()
    drawn = [frame.quantize(palette=colours, dither=Image.Dither.NONE) for frame in frames]
    each = min(800, max(200, 20_000 // len(frames)))
    times = [each] * (len(frames) - 1) + [2500]  # milliseconds
    file = io.BytesIO()
    drawn[0].save(
        file, "GIF", save_all=True, append_images=drawn[1:], duration=times, loop=0, optimize=False
    )
    return file.getvalue()


@lru_cache
def _palette() -> Image.Image:
    """The colours of an animation: all that are drawn with, and between them and what is behind."""
    shades = [_shade(weight) for weight in range(SHADES + 1)]
    behind = {PAPER: (INK, HIT, SHIP, MISS, *STONES.values(), *TILES), CHOSEN: shades[::3]}
    behind |= {INK: (*shades[::5], *TILES[:2]), CELL: tuple(STONES.values())}
    between = [_blend(a, b, t) for b, own in behind.items() for a in own for t in (0.0, 0.35, 0.7)]
    colours = list(dict.fromkeys([PAPER, CHOSEN, *shades, *between]))[:256]
    image = Image.new("P", (1, 1))
    image.putpalette([part for colour in colours for part in colour])
    return image


def _shade(weight: int) -> Colour:
    """Of an empty cell; weight: 0 to SHADES."""
    return _blend(CELL, LIKELY, (weight / SHADES) ** 0.6)


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
    image = Image.new("RGB", (width, picture.height + TITLE + MARGIN), PAPER)
    image.paste(picture, (MARGIN, TITLE))
    words = _word(title, 13, INK)
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
    image = Image.new("RGB", (across, max(each.height for each in drawn)), PAPER)
    left = 0
    for each in drawn:
        image.paste(each, (left, 0))
        left += each.width + GAP
    return image


def _board(
    marks: Board, size: int, on_cells: dict[int, tuple[float, str]], chosen: set[int]
) -> Image.Image:
    rows, columns = len(marks), len(marks[0])
    image = Image.new("RGB", (columns * size, rows * size), PAPER)
    for cell in range(rows * columns):
        row, column = divmod(cell, columns)
        weight, word = on_cells.get(cell, (0.0, ""))
        mark, place = marks[row][column], (column * size, row * size)
        image.paste(_cell(mark, size, round(SHADES * weight), cell in chosen), place)
        if mark == "." and word and size >= ROOM:
            words = _word(word, max(7, size * 34 // 100), INK)
            place = place[0] + (size - words.width) // 2, place[1] + (size - words.height) // 2
            image.paste(words, place, words)
    return image


@lru_cache(4096)
def _cell(mark: str, size: int, weight: int, chosen: bool) -> Image.Image:
    """weight: 0 to SHADES."""
    image = Image.new("RGB", (size, size), PAPER)
    image.paste(_shade(weight) if mark == "." else _ground(mark), mask=_shape("cell", size))
    if mark in STONES:
        image.paste(STONES[mark], mask=_shape("stone", size))
    elif mark in ("x", "o", "+"):
        image.paste(CHOSEN if mark == "+" else PAPER, mask=_shape(mark, size))
    if chosen:
        image.paste(CHOSEN, mask=_shape("frame", size))
    if mark not in (".", "x", "o", "+", "#"):
        height = int(size * (0.44 if len(mark) < 4 else 1.3 / len(mark)))
        light = mark.isalpha() or (mark.isdecimal() and int(mark) > 4)
        words = _word(mark, max(height, 7), PAPER if light else INK)
        image.paste(words, ((size - words.width) // 2, (size - words.height) // 2), words)
    return image


@lru_cache
def _shape(name: str, size: int) -> Image.Image:
    """A mask of a cell, drawn four times as large, so that its edges are smooth."""
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


def _ground(mark: str) -> Colour:
    """The colour of a cell by its mark: a number is a tile, a letter a ship, struck if large."""
    if mark.isdecimal():
        return TILES[min(max(int(mark).bit_length() - 2, 0), len(TILES) - 1)]
    if mark.isalpha() and mark not in ("x", "o", *STONES):
        return HIT if mark.isupper() else SHIP
    return {"x": HIT, "o": MISS, "#": SHIP}.get(mark, CELL)


def _blend(one: Colour, other: Colour, share: float) -> Colour:
    mixed = [round(a + (b - a) * share) for a, b in zip(one, other, strict=True)]
    return mixed[0], mixed[1], mixed[2]


def _with_arrows(
    picture: Image.Image, edge: int, names: list[str], thought: Thought | None, action: int | None
) -> Image.Image:
    """An arrow on the side that each action moves to, the darker the likelier; edge: its room."""
    image = Image.new("RGB", (picture.width + 2 * edge, picture.height + 2 * edge), PAPER)
    image.paste(picture, (edge, edge))
    for number, name in enumerate(names):
        x, y = DIRECTIONS[name]
        reach = (image.width - edge) / 2, (image.height - edge) / 2
        at = image.width / 2 + x * reach[0], image.height / 2 + y * reach[1]
        weight = 0.0 if thought is None else float(thought.weights[number])
        colour = _shade(round(SHADES * weight)) if number != action else CHOSEN
        arrow = _arrow(name, edge, colour)
        image.paste(arrow, (round(at[0] - edge / 2), round(at[1] - edge / 2)))
        if thought is not None and thought.words[number]:
            words = _word(thought.words[number], 12, INK)
            place = (at[0] + 18, at[1] - 7) if y else (at[0] - words.width / 2, at[1] + 17)
            image.paste(words, (int(place[0]), int(place[1])), words)
    return image


@lru_cache
def _arrow(name: str, size: int, colour: Colour) -> Image.Image:
    x, y = DIRECTIONS[name]
    image = Image.new("RGB", (4 * size, 4 * size), PAPER)
    ends = ((1.4, 0.0), (-0.7, 1.6), (-0.7, -1.6))
    ImageDraw.Draw(image).polygon(
        [(size * (2 + x * a + y * b), size * (2 + y * a + x * b)) for a, b in ends], colour
    )
    return image.reduce(4)


def _with_bars(picture: Image.Image, names: list[str], thought: Thought) -> Image.Image:
    """The likeliest actions below, each by its name."""
    likely = np.argsort(-thought.weights, kind="stable")[:BARS]
    image = Image.new(
        "RGB", (max(picture.width, WIDTH), picture.height + 10 + 18 * len(likely)), PAPER
    )
    image.paste(picture, (0, 0))
    draw = ImageDraw.Draw(image)
    for place, number in enumerate(likely.tolist()):
        top = picture.height + 10 + 18 * place
        words = _word(names[number][:14], 12, INK)
        image.paste(words, (0, top + 1), words)
        length = int((image.width - 160) * float(thought.weights[number]))
        draw.rectangle((110, top + 2, 110 + max(length, 1), top + 14), LIKELY)
        words = _word(thought.words[number], 12, FAINT)
        image.paste(words, (116 + length, top + 1), words)
    return image


def _text(text: str, width: int) -> Image.Image:
    """Text in a fixed width, as small as it has to be."""
    lines = text.splitlines()
    across = max(1, *map(len, lines))
    step = min(14, max(5, 2 * width // across))
    image = Image.new("RGB", (across * step, len(lines) * step * 3 // 2), PAPER)
    for row, line in enumerate(lines):
        for column, letter in enumerate(line):
            if letter != " ":
                words = _word(letter, step * 5 // 4, INK)
                left = column * step + (step - words.width) // 2
                image.paste(words, (left, row * step * 3 // 2), words)
    return image


@lru_cache(4096)
def _word(text: str, size: int, colour: Colour) -> Image.Image:
    """In RGBA, with nothing behind; as high for any words of a size."""
    font = _font(size)
    up, down = font.getmetrics() if isinstance(font, ImageFont.FreeTypeFont) else (size, 0)
    image = Image.new("RGBA", (max(1, round(font.getlength(text))), up + down), (*colour, 0))
    ImageDraw.Draw(image).text((0, 0), text, (*colour, 255), font)
    return image


@lru_cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
