"""Positions as pictures: the board, and on it a player's probabilities or values of the actions.

A game defines what to draw by `boards` and `action_cells`. If it has no boards, its text is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgames.core.text import short_number
from rlgames.drawing import mark_styles
from rlgames.drawing.cells import CHOSEN, DIRECTIONS, FAINT, INK, STONES, arrow, shade
from rlgames.drawing.images import text_width
from rlgames.drawing.scene import Cell, Item, Label, Path, Scene, hexagon
from rlgames.games.board_text import Board, BoardFormat
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

TITLE_LETTER = 7
"""Pixels of an average letter of a title."""


@dataclass(frozen=True)
class ActionOverlay:
    """How to draw a player's opinion of a position's A actions.

    weights: float64 [A], 0 to 1, how dark each action is drawn. labels: the text on each.
    is_distribution: the weights are probabilities, so the weights of a cell add up.
    """

    weights: NDArray[np.float64]
    labels: Sequence[str]
    is_distribution: bool

    @classmethod
    def of(cls, numbers: NDArray[np.float64], are_values: bool) -> ActionOverlay:
        """Of probabilities, in percent, or of values, as they are: the best one in the darkest
        color.

        numbers: float64 [A], values are -inf for illegal actions.
        """
        if not are_values:
            return cls(numbers, [*map(format_percent, numbers)], is_distribution=True)
        known = numbers[np.isfinite(numbers)]
        low, high = (known.min(), known.max()) if len(known) else (0.0, 0.0)
        weights = ((numbers - low) / max(high - low, 1e-9)).clip(0, 1)
        return cls(weights, [*map(short_number, numbers.tolist())], is_distribution=False)


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
    named = range(game.spec.actions if game.spec.actions <= len(DIRECTIONS) else 0)
    names = [game.action_to_string(state, row, each) for each in named]
    are_directions = bool(names) and set(names) <= DIRECTIONS.keys()
    shares, chosen = dict[int, tuple[float, str]](), set[int]()
    if cells is not None:
        shares = overlay_of_cells(overlay, cells.cpu().numpy())
        chosen = set() if action is None else set(cells[action].nonzero()[:, 0].tolist())
    if boards:
        across = width - 2 * are_directions * (width // 9)
        scene = _side_by_side(boards, game.board_format, across, shares, chosen)
    else:
        scene = _text_scene(render(game, state, row, reveal), width)
    if are_directions:
        scene = _with_arrows(scene, width // 9, names, overlay, action)
    if has_legend:
        marks = {mark for board in boards for line in board for mark in line}
        scene = _with_legend(scene, _legend(game, marks, overlay, action))
    return _with_title(scene, title)


def page_scene(form: BoardFormat) -> Scene:
    """An empty board for a page, which adds marks."""
    slant = (form.rows - 1) / 2 if form.is_slanted else 0
    size = max(24, min(MAX_PAGE_CELL, int(PAGE_WIDTH // (form.columns + slant))))
    return _board([["."] * form.columns] * form.rows, form, size, {}, ())


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


def _side_by_side(
    boards: Sequence[Board],
    form: BoardFormat,
    width: int,
    overlay: Mapping[int, tuple[float, str]],
    chosen: Collection[int],
) -> Scene:
    """Boards with their coordinates, about this many pixels wide, the first one with the overlay
    and the chosen cells."""
    rows, count = len(boards[0]), len(boards)
    slant = (rows - 1) / 2 if form.is_slanted else 0
    columns = sum(len(marks[0]) + slant for marks in boards)
    across = width if count == 1 else 3 * width // 2 - count * (GAP + 2 * MARGIN)
    size = max(12, min(width // max(rows, 4), int(across // columns)))
    items: list[Item] = []
    left = height = 0
    for number, marks in enumerate(boards):
        board = _board(marks, form, size, {} if number else overlay, () if number else chosen)
        items += board.moved(left, 0)
        left, height = left + board.width + GAP, max(height, board.height)
    return Scene(left - GAP, height, items)


def _board(
    marks: Board,
    form: BoardFormat,
    size: int,
    overlay: Mapping[int, tuple[float, str]],
    chosen: Collection[int],
) -> Scene:
    """One board with its coordinates; size: of a cell."""
    text_size = max(8, min(13, size * 36 // 100))
    left = max(map(len, form.left), default=0) * text_size * 3 // 4 + 3 if form.left else 0
    rows, columns = len(marks), len(marks[0])
    slant = size / 2 if form.is_slanted else 0  # of a row, relative to the one above
    pitch, tip = size * HEXAGON_PITCH if slant else size, size // 8 if slant else 0
    above = (text_size + 4 if form.above else 0) + tip
    cells: list[Cell] = []
    for cell in range(rows * columns):
        row, column = divmod(cell, columns)
        weight, label = overlay.get(cell, (0.0, ""))
        mark = marks[row][column]
        label = label if mark == "." and size >= MIN_LABEL_CELL else ""
        place = left + column * size + row * slant, above + row * pitch
        cells.append(Cell(*place, size, mark, weight, cell in chosen, label, form.is_slanted))
    items = [*cells, *(_hex_edges(cells, columns) if form.is_slanted else ())]
    bottom = round(above + (rows - 1) * pitch) + size + tip
    for labels, y in (form.above, (above - tip) / 2), (form.below, bottom + text_size / 2 + 2):
        for column, name in enumerate(labels):
            items.append(Label(left + (column + 0.5) * size, y, name, text_size, FAINT, "middle"))
    for row, name in enumerate(form.left):
        place = left - 4 + row * slant, above + row * pitch + size / 2
        items.append(Label(*place, name, text_size, FAINT, "end"))
    height = bottom + (text_size + 4 if form.below else 0)
    return Scene(left + columns * size + round((rows - 1) * slant) + tip, height, items)


def _hex_edges(cells: Sequence[Cell], columns: int) -> list[Path]:
    """The edges of a Hex board: the first seat connects the upper and the lower one."""
    size, corners = cells[0].size, hexagon(cells[0].size)
    sides = (
        (1, cells[:columns], (5, 0, 1)),
        (1, cells[-columns:], (4, 3, 2)),
        (2, cells[::columns], (5, 4, 3)),
        (2, cells[columns - 1 :: columns], (0, 1, 2)),
    )
    edges = []
    for seat, side, order in sides:
        middles = [(cell.x + size / 2, cell.y + size / 2) for cell in side]
        points = [(x + corners[at][0], y + corners[at][1]) for x, y in middles for at in order]
        stroke = [*STONES.values()][seat - 1]
        edges.append(Path(0, 0, points, stroke=stroke, width=size / 12, seat=seat))
    return edges


def _with_title(scene: Scene, title: str) -> Scene:
    """A scene with margins and a title above, in several lines if it is too long for one."""
    lines = wrap(title, max(1, scene.width // TITLE_LETTER))
    labels = [
        Label(MARGIN, TITLE_HEIGHT / 2 + number * TITLE_LINE, line, TITLE_SIZE, INK)
        for number, line in enumerate(lines)
    ]
    top = TITLE_HEIGHT + (len(lines) - 1) * TITLE_LINE if lines else MARGIN
    items = [*labels, *scene.moved(MARGIN, top)]
    return Scene(scene.width + 2 * MARGIN, scene.height + top + MARGIN, items)


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
        x, y = DIRECTIONS[name]
        center = (width + x * (width - edge)) / 2, (height + y * (height - edge)) / 2
        weight, label = 0.0, ""
        if overlay is not None:
            weight, label = float(overlay.weights[number]), overlay.labels[number]
        items.append(arrow(name, *center, edge, CHOSEN if number == action else shade(weight)))
        if label:
            place = (center[0] + 18, center[1]) if y else (center[0], center[1] + 24)
            items.append(Label(*place, label, 12, INK, "start" if y else "middle"))
    return Scene(width, height, items)


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
        entries.append((Cell(0, 0, SWATCH, ".", 2 / 3), words))
    if action is not None:
        entries.append((Cell(0, 0, SWATCH, ".", is_chosen=True), "move"))
    return entries


def _with_legend(scene: Scene, entries: list[tuple[Cell, str]]) -> Scene:
    """A scene with a legend below, in as many lines as its width needs."""
    items, x, y = [*scene.items], 0, scene.height + 8
    for cell, words in entries:
        width = SWATCH + 5 + text_width(words, LEGEND_SIZE)
        if x and x + width > scene.width:
            x, y = 0, y + SWATCH + 6
        items.append(replace(cell, x=x, y=y))
        items.append(Label(x + SWATCH + 5, y + SWATCH / 2, words, LEGEND_SIZE, INK))
        x += width + 14
    return Scene(scene.width, y + SWATCH + 2 if entries else scene.height, items)


def _text_scene(text: str, width: int) -> Scene:
    """Text in a monospaced grid, scaled to the width."""
    lines = text.splitlines()
    across = max(1, *map(len, lines))
    step = min(11, max(5, 2 * width // across))
    items = [
        Label((column + 0.5) * step, (2 * row + 1) * step, letter, step * 3 // 2, INK, "middle")
        for row, line in enumerate(lines)
        for column, letter in enumerate(line)
        if letter != " "
    ]
    return Scene(across * step, len(lines) * step * 2, items)
