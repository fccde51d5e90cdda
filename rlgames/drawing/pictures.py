"""Positions as pictures: the board, and on it a player's probabilities or values of the actions.

A game defines what to draw by `boards` and `action_cells`. Of a game that defines neither, the text
is drawn, with a bar for each action.
"""

from __future__ import annotations

import io
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from rlgames.drawing import mark_styles, sprites
from rlgames.drawing.scene import Arrow, Bar, Cell, Edge, Item, Label, Scene, hexagon
from rlgames.games.board import Board, BoardFormat
from rlgames.games.game import Game, State
from rlgames.games.notation import render

WIDTH, MARGIN, TITLE_HEIGHT = 300, 8, 26
"""Pixels: the approximate width of a picture, the space around boards, the height of the title."""

PAGE_WIDTH, MAX_PAGE_CELL = 560, 72
"""Units of a board on a page, and of its largest cells."""

HEXAGON_PITCH = math.sqrt(3) / 2
"""The distance of two rows of hexagons whose width is 1."""

MIN_LABEL_CELL = 30
"""Pixels of the smallest cell that has a label."""

GAP = 14
"""Pixels between two boards."""

SWATCH, LEGEND_SIZE, TITLE_SIZE, TITLE_LINE = 14, 11, 13, 17
"""Pixels: the cells and the text of a legend, the text of a title and the height of its lines."""

MAX_BARS = 8
"""The most actions that have a bar."""

MAX_GIF_BYTES = 100_000
"""Of a GIF for TensorBoard."""

LAST_FRAME_SECONDS = 2.5
"""How long the end of a game is shown."""


@dataclass(frozen=True)
class ActionOverlay:
    """How to draw a player's opinion of a position's A actions.

    weights: float64 [A], 0 to 1, how dark each action is drawn. labels: the text on each.
    is_distribution: the weights are probabilities, so the weights of a cell add up.
    """

    weights: NDArray[np.float64]
    labels: Sequence[str]
    is_distribution: bool


def position_scene(
    game: Game[Any],
    state: State,
    row: int,
    title: str,
    overlay: ActionOverlay | None = None,
    action: int | None = None,
    reveal: bool = False,
    width: int = WIDTH,
    has_legend: bool = False,
) -> Scene:
    """One position with its coordinates, about this many pixels wide.

    action: the action that is taken. reveal: also show the hidden truth. has_legend: say below what
    marks and numbers mean. Cells that are large enough have labels.
    """
    boards, cells = game.boards(state, row, reveal), game.action_cells(state, row)
    shown = _Boards(boards, game.board_format, width)
    named = range(game.spec.actions if game.spec.actions <= len(sprites.DIRECTIONS) else 0)
    names = [game.action_to_string(state, row, each) for each in named]
    are_directions = bool(names) and set(names) <= sprites.DIRECTIONS.keys()
    if boards and cells is not None:
        chosen = set() if action is None else set(cells[action].nonzero()[:, 0].tolist())
        scene = shown.scene(overlay_of_cells(overlay, cells.cpu().numpy()), chosen)
    elif boards:
        shown.width -= 2 * are_directions * (width // 9)
        scene = shown.scene({}, set())
    else:
        scene = _text_scene(render(game, state, row, reveal), width)
    if are_directions:
        scene = _with_arrows(scene, width // 9, names, overlay, action)
    elif overlay is not None and not (boards and cells is not None):
        best = np.argsort(-overlay.weights, kind="stable")[:MAX_BARS].tolist()
        bars = [(game.action_to_string(state, row, each), each) for each in best]
        scene = _with_bars(scene, bars, overlay, action)
    if has_legend:
        marks = {mark for board in boards for line in board for mark in line}
        scene = _with_legend(scene, _legend(game, marks, overlay, action))
    return _with_title(scene, title)


def board_scenes(
    boards: Sequence[Board],
    form: BoardFormat,
    overlay: Mapping[int, tuple[float, str]],
    chosen: Sequence[Collection[int]],
) -> list[Scene]:
    """Each board of a position by itself, for a page that arranges them.

    overlay: of cells of the first board, how dark each is, 0 to 1, and its label. chosen: of each
    board, the cells that have a frame.
    """
    shown = _Boards([*boards], form, PAGE_WIDTH)
    slant = (form.rows - 1) / 2 if form.is_slanted else 0
    size = max(24, min(MAX_PAGE_CELL, int(PAGE_WIDTH // (form.columns + slant))))
    return [
        shown.board(marks, size, {} if number else overlay, chosen[number])
        for number, marks in enumerate(boards)
    ]


def draw_scene(scene: Scene) -> Image.Image:
    """A scene in RGB."""
    image = Image.new("RGB", (scene.width, scene.height), sprites.PAPER)
    draw = ImageDraw.Draw(image)
    for item in scene.items:
        if isinstance(item, Edge):
            color = [*sprites.STONES.values()][item.seat - 1]
            draw.line([*item.points], color, round(item.width), joint="curve")
            continue
        x, y = round(item.x), round(item.y)
        match item:
            case Cell():
                look = item.mark, item.size, item.shade, item.is_chosen, item.is_hexagon
                sprite = sprites.cell(*look)
                image.paste(sprite, (x, y - (sprite.height - item.size) // 2), sprite)
                if item.label:
                    height, middle = sprites.label_height(item.size, item.label), item.size // 2
                    text = sprites.text(item.label, height, sprites.INK)
                    place = x + middle - text.width // 2, y + middle - text.height // 2
                    image.paste(text, place, text)
            case Label():
                text = sprites.text(item.text, item.size, item.color)
                before = {"start": 0, "middle": text.width // 2, "end": text.width}[item.anchor]
                image.paste(text, (x - before, y - text.height // 2), text)
            case Arrow():
                arrow = sprites.arrow(item.direction, item.size, item.color)
                image.paste(arrow, (round(item.x - item.size / 2), round(item.y - item.size / 2)))
            case Bar():
                end = round(item.x + item.width), round(item.y + item.height)
                draw.rectangle((x, y, *end), item.color)
    return image


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


def overlay_of_cells(
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


class _Boards:
    """Boards side by side with their coordinates, about `width` pixels wide."""

    def __init__(self, boards: list[Board], form: BoardFormat, width: int) -> None:
        self.boards, self.form, self.width = boards, form, width

    def scene(self, overlay: dict[int, tuple[float, str]], chosen: set[int]) -> Scene:
        """The boards, the first one with the overlay."""
        rows = len(self.boards[0])
        slant = (rows - 1) / 2 if self.form.is_slanted else 0
        columns = sum(len(marks[0]) + slant for marks in self.boards)
        count = len(self.boards)
        across = self.width
        if count > 1:
            across = 3 * self.width // 2 - count * (GAP + 2 * MARGIN)
        size = max(12, min(self.width // max(rows, 4), int(across // columns)))
        items: list[Item] = []
        left = height = 0
        for number, marks in enumerate(self.boards):
            first = number == 0
            board = self.board(marks, size, overlay if first else {}, chosen if first else set())
            items += board.moved(left, 0)
            left, height = left + board.width + GAP, max(height, board.height)
        return Scene(left - GAP, height, items)

    def board(
        self,
        marks: Board,
        size: int,
        overlay: Mapping[int, tuple[float, str]],
        chosen: Collection[int],
    ) -> Scene:
        """One board with its coordinates; size: of a cell."""
        form, text_size = self.form, max(8, min(13, size * 36 // 100))
        left = max(map(len, form.left), default=0) * text_size * 3 // 4 + 3 if form.left else 0
        above = text_size + 4 if form.above else 0
        rows, columns = len(marks), len(marks[0])
        slant = size / 2 if form.is_slanted else 0  # of a row, relative to the one above
        pitch, tip = size * HEXAGON_PITCH if slant else size, size // 8 if slant else 0
        above += tip
        items: list[Item] = []
        for cell in range(rows * columns):
            row, column = divmod(cell, columns)
            weight, label = overlay.get(cell, (0.0, ""))
            mark = marks[row][column]
            label = label if mark == "." and size >= MIN_LABEL_CELL else ""
            place = left + column * size + row * slant, above + row * pitch
            shade = round(sprites.SHADES * weight)
            items.append(Cell(*place, size, mark, shade, cell in chosen, label, form.is_slanted))
        if form.is_slanted:
            items += _hex_edges([each for each in items if isinstance(each, Cell)], columns)
        bottom = round(above + (rows - 1) * pitch) + size + tip
        for labels, y in (
            (form.above, (above - tip) / 2),
            (form.below, bottom + text_size / 2 + 2),
        ):
            for column, name in enumerate(labels):
                x = left + (column + 0.5) * size
                items.append(Label(x, y, name, text_size, sprites.FAINT, "middle"))
        for row, name in enumerate(form.left):
            y = above + row * pitch + size / 2
            items.append(Label(left - 4 + row * slant, y, name, text_size, sprites.FAINT, "end"))
        height = bottom + (text_size + 4 if form.below else 0)
        return Scene(left + columns * size + round((rows - 1) * slant) + tip, height, items)


def _hex_edges(cells: Sequence[Cell], columns: int) -> list[Edge]:
    """The edges of a Hex board: the first seat connects the upper and the lower one."""
    corners = [hexagon(cell.x, cell.y, cell.size) for cell in cells]
    sides = (
        (1, corners[:columns], (5, 0, 1)),
        (1, corners[-columns:], (4, 3, 2)),
        (2, corners[::columns], (5, 4, 3)),
        (2, corners[columns - 1 :: columns], (0, 1, 2)),
    )
    width = cells[0].size / 12
    return [
        Edge([each[at] for each in side for at in order], width, seat)
        for seat, side, order in sides
    ]


def _with_title(scene: Scene, title: str) -> Scene:
    """A scene with margins and a title above, in several lines if it is too long for one."""
    width = scene.width + 2 * MARGIN
    if not title:
        return Scene(width, scene.height + 2 * MARGIN, scene.moved(MARGIN, MARGIN))
    lines = [""]
    for word in title.split():
        longer = f"{lines[-1]} {word}".strip()
        is_too_long = sprites.text(longer, TITLE_SIZE, sprites.INK).width > scene.width
        lines[-1:] = [lines[-1], word] if is_too_long and lines[-1] else [longer]
    labels = [
        Label(MARGIN, TITLE_HEIGHT / 2 + number * TITLE_LINE, line, TITLE_SIZE, sprites.INK)
        for number, line in enumerate(lines)
    ]
    top = TITLE_HEIGHT + (len(lines) - 1) * TITLE_LINE
    return Scene(width, scene.height + top + MARGIN, [*labels, *scene.moved(MARGIN, top)])


def _with_arrows(
    scene: Scene,
    edge: int,
    names: list[str],
    overlay: ActionOverlay | None,
    action: int | None,
) -> Scene:
    """An arrow at the side that each action moves to; edge: its size in pixels."""
    width, height = scene.width + 2 * edge, scene.height + 2 * edge
    items = scene.moved(edge, edge)
    for number, name in enumerate(names):
        x, y = sprites.DIRECTIONS[name]
        center = (width + x * (width - edge)) / 2, (height + y * (height - edge)) / 2
        weight = 0.0 if overlay is None else float(overlay.weights[number])
        shade = sprites.shade(round(sprites.SHADES * weight))
        items.append(Arrow(*center, edge, name, sprites.CHOSEN if number == action else shade))
        if overlay is not None and overlay.labels[number]:
            place = (center[0] + 18, center[1]) if y else (center[0], center[1] + 24)
            anchor = "start" if y else "middle"
            items.append(Label(*place, overlay.labels[number], 12, sprites.INK, anchor))
    return Scene(width, height, items)


def _with_bars(
    scene: Scene, bars: list[tuple[str, int]], overlay: ActionOverlay, taken: int | None
) -> Scene:
    """A bar for each of these actions, (name, number), below the scene."""
    width, items = max(scene.width, WIDTH), scene.moved(0, 0)
    for place, (name, action) in enumerate(bars):
        top = scene.height + 10 + 18 * place
        items.append(Label(0, top + 8, name[:14], 12, sprites.INK))
        length = max(1, int((width - 160) * float(overlay.weights[action])))
        color = sprites.CHOSEN if action == taken else sprites.LIKELY
        items.append(Bar(110, top + 2, length, 12, color))
        items.append(Label(116 + length, top + 8, overlay.labels[action], 12, sprites.FAINT))
    return Scene(width, scene.height + 10 + 18 * len(bars), items)


def _legend(
    game: Game[Any], marks: set[str], overlay: ActionOverlay | None, action: int | None
) -> list[tuple[Cell, str]]:
    """Small cells, and what they mean."""
    meanings = mark_styles.meanings(game.spec.hidden, game.spec.seats)
    entries = [
        (Cell(0, 0, SWATCH, mark), meaning) for mark, meaning in meanings.items() if mark in marks
    ]
    if overlay is not None:
        words = "probability, %" if overlay.is_distribution else "value"
        entries.append((Cell(0, 0, SWATCH, ".", sprites.SHADES * 2 // 3), words))
    if action is not None:
        entries.append((Cell(0, 0, SWATCH, ".", 0, is_chosen=True), "move"))
    return entries


def _with_legend(scene: Scene, entries: list[tuple[Cell, str]]) -> Scene:
    """A scene with a legend below, in as many lines as its width needs."""
    items, x, y = scene.moved(0, 0), 0, scene.height + 8
    for cell, words in entries:
        width = SWATCH + 5 + sprites.text(words, LEGEND_SIZE, sprites.INK).width
        if x and x + width > scene.width:
            x, y = 0, y + SWATCH + 6
        items.append(replace(cell, x=x, y=y))
        place = x + SWATCH + 5, y + SWATCH / 2
        items.append(Label(*place, words, LEGEND_SIZE, sprites.INK))
        x += width + 14
    return Scene(scene.width, y + SWATCH + 2 if entries else scene.height, items)


def _text_scene(text: str, width: int) -> Scene:
    """Text in a monospaced grid, scaled to the width."""
    lines = text.splitlines()
    across = max(1, *map(len, lines))
    step = min(11, max(5, 2 * width // across))
    items = [
        Label(
            (column + 0.5) * step,
            (2 * row + 1) * step,
            letter,
            step * 3 // 2,
            sprites.INK,
            "middle",
        )
        for row, line in enumerate(lines)
        for column, letter in enumerate(line)
        if letter != " "
    ]
    return Scene(across * step, len(lines) * step * 2, items)
