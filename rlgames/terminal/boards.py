"""Positions on a terminal: the boards of a game, with the probabilities or values of its actions.

If actions take cells, the numbers are in the cells. If an action is not a single cell, they
are listed next to the board, or next to the text of a game without boards.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Any

import torch
from rich.box import ASCII2, SQUARE
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text
from torch import Tensor

from rlgames.core.text import short_number
from rlgames.drawing import mark_styles
from rlgames.games.game import Game, State
from rlgames.games.notation import render

MAX_LISTED_ACTIONS = 8

MAX_LINED_ROWS = 7
"""Boards with more rows have no lines between them, to fit on a screen."""

MIN_PROBABILITY = 0.005
"""The smallest probability that is written in a cell."""

STYLES = {"first": "bold red", "second": "bold yellow", "hit": "bold red", "miss": "blue"}
STYLES |= {"aim": "bold yellow", "ship": "green", "empty": "dim", "other": ""}

SPACING = {"lined": 2, "narrow": 1, "bare": 0}
"""Columns of the terminal between the marks of neighbors: room for brackets, and lines between the
cells; less room; marks only."""

GAP = "   "


class BoardView:
    """A position for rich to print, fitted to the width of the terminal.

    opinion: float [A], the probabilities of the actions, if any. are_values: they are values
    instead, -inf for illegal actions. since: an earlier position; cells that have
    changed are marked. reveal: show the hidden truth too. listed: list the most likely actions if
    the board cannot show them.
    """

    def __init__(
        self,
        game: Game[Any],
        state: State,
        opinion: Tensor | None = None,
        are_values: bool = False,
        since: State | None = None,
        reveal: bool = False,
        listed: bool = True,
    ) -> None:
        self.game, self.state, self.listed, self.reveal = game, state, listed, reveal
        self.text, self.board_format = render(game, state, 0, reveal), game.board_format
        self.boards = game.boards(state, 0, reveal)
        self.titles = game.board_titles
        used = (mark for each in self.boards for mark in chain(*each))
        self.legend = mark_styles.legend(used, game.spec.hidden, game.spec.seats)
        self.opinion = [] if opinion is None else opinion.tolist()
        self.are_values = are_values
        cells = game.action_cells(state, 0)
        self.action_cells = None if cells is None else cells.cpu()
        # What reveal shows has not changed.
        visible = game.boards(state, 0)
        earlier = visible if since is None else game.boards(since, 0)
        self.changed = [
            [mark != old for mark, old in zip(chain(*now), chain(*then), strict=True)]
            for now, then in zip(visible, earlier, strict=True)
        ]

    def top_actions(self) -> list[tuple[str, float]]:
        """The most likely actions by name, and the others together; or the actions with the highest
        values."""
        opinion, least = self.opinion, -math.inf if self.are_values else 0.0
        order = sorted(range(len(opinion)), key=lambda action: -opinion[action])
        order = [action for action in order if opinion[action] > least]
        top = order[: MAX_LISTED_ACTIONS + (len(order) == MAX_LISTED_ACTIONS + 1)]
        moves = [
            (self.game.action_to_string(self.state, 0, action), opinion[action]) for action in top
        ]
        if self.are_values:
            return moves
        rest = sum(opinion) - sum(opinion[action] for action in top)
        return [*moves, ("others", rest)] if rest > 0.0005 else moves

    def plain_text(self) -> str:
        """The board as render writes it, and the most likely actions below."""
        moves = [f"  {name:12} {self._text(number)}" for name, number in self.top_actions()]
        lines = [self.text, *([self.legend] if self.legend else [])]
        return "\n".join([*lines, *moves] if self.listed else lines)

    def _text(self, number: float) -> str:
        return f"{number:10,.4f}" if self.are_values else f"{number:6.1%}"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, ascii_only = options.max_width, options.ascii_only
        count = range(len(self.boards))
        sizes = {
            size: [self._draw(number, size, ascii_only) for number in count] for size in SPACING
        }
        # Small boards side by side are preferred to large ones below each other.
        fits_row = [size for size in sizes if self.boards and _width(sizes[size]) <= width]
        fits = [size for size in sizes if self.boards and max(map(_widest, sizes[size])) <= width]
        size = next(iter([*fits_row, *fits]), "bare")
        drawn = sizes[size] if fits else [[*map(Text, self.text.splitlines())]]
        if fits and (caption := self.game.caption(self.state, 0)):
            yield Text(caption)
        listed = self._list(ascii_only) if self._needs_list(size) else []
        for block in _arrange([*drawn, listed] if listed else drawn, width):
            yield from block
        if fits and self.legend:
            yield Text(self.legend, "dim")

    def cell_numbers(self) -> list[float] | None:
        """The total probability, or the highest value, of the actions that take each cell; None if
        some likely or legal action takes no empty cell."""
        if self.action_cells is None or not self.opinion or not self.boards:
            return None
        numbers, taken = torch.tensor(self.opinion), self.action_cells.bool()
        cells = numbers @ taken.to(numbers.dtype)
        if self.are_values:
            cells = numbers[:, None].where(taken, -math.inf).amax(0)
        is_taken = torch.tensor([mark != "." for mark in chain(*self.boards[0])])
        hidden = torch.cat([numbers[~taken.any(1)], cells[is_taken]])
        return None if bool((hidden >= self._least).any()) else cells.tolist()

    @property
    def _least(self) -> float:
        """Lower numbers are not shown."""
        return -sys.float_info.max if self.are_values else MIN_PROBABILITY

    def _needs_list(self, size: str) -> bool:
        if not self.opinion or not self.listed:
            return False
        are_single = self.action_cells is not None and int(self.action_cells.sum(1).max()) <= 1
        return size == "bare" or not are_single or self.cell_numbers() is None

    def _draw(self, number: int, size: str, ascii_only: bool) -> list[Text]:
        """One of the boards, the first one with the opinion."""
        form = self.board_format
        lined = size == "lined" and form.rows <= MAX_LINED_ROWS and not form.is_slanted
        words = self._words(number, size, " " if lined else "." if ascii_only else "·")
        inner = max(word.cell_len for row in words for word in row)
        inner += size == "lined" and not inner % 2  # the marks are centered
        side = max(map(len, form.left), default=-1) + 1
        pad, edges = Text(" " * side), _edges(form.columns, inner + 2, ascii_only)
        pipe = "" if not lined else "|" if ascii_only else "│"
        lines = [pad + _labels(form.above, inner, size, lined)] if form.above else []
        if self.titles:
            lines.insert(0, pad + Text(self.titles[number], "bold"))
        for row, row_words in enumerate(words):
            if lined:
                lines.append(pad + Text(edges[min(row, 1)], "dim"))
            changed = self.changed[number][row * form.columns : (row + 1) * form.columns]
            label = f"{form.left[row]:>{side - 1}} " if form.left else ""
            if form.is_slanted:
                label = " " * (row * (inner + SPACING[size]) // 2) + label
            drawn = _row(row_words, changed, inner, size, pipe)
            lines.append(Text().append(label, "dim") + drawn)
        if lined:
            lines.append(pad + Text(edges[2], "dim"))
        return [*lines, pad + _labels(form.below, inner, size, lined)] if form.below else lines

    def _words(self, number: int, size: str, empty: str) -> list[list[Text]]:
        """The contents of the cells."""
        words = [[_mark(mark, empty) for mark in row] for row in self.boards[number]]
        cells = None if number or size == "bare" else self.cell_numbers()
        if cells is not None:
            sign = "" if size == "narrow" else "%"
            for place, share in enumerate(cells):
                row, column = divmod(place, self.board_format.columns)
                if share >= self._least and self.are_values:
                    words[row][column] = _value(share, max(cells))
                elif share >= self._least:
                    words[row][column] = _percent(share, sign, max(cells))
        return words

    def _list(self, ascii_only: bool) -> list[Text]:
        """The most likely actions with bars."""
        moves = self.top_actions()
        width = max((len(name) for name, _ in moves), default=0)
        full = "#" if ascii_only else "█"
        return [
            Text(f"{name:<{width}} {self._text(share)} ", "bold" if share == moves[0][1] else "")
            + Text(full * round(0 if self.are_values else 10 * share), "green")
            for name, share in moves
        ]


def _value(value: float, best: float) -> Text:
    return Text(short_number(value), "bold green" if value == best else "green")


def _percent(share: float, sign: str, most: float) -> Text:
    style = "bold green" if share == most else "green" if share >= 0.05 else "dim green"
    return Text(f"{share * 100:.0f}{sign}", style)


def _mark(mark: str, empty: str) -> Text:
    kind = mark_styles.mark_kind(mark)
    if kind == "tile":
        red, green, blue = mark_styles.tile_color(mark)
        return Text(mark, f"bold black on rgb({red},{green},{blue})")
    return Text(empty if kind == "empty" else mark, STYLES[kind])


def _row(words: list[Text], changed: list[bool], inner: int, size: str, pipe: str) -> Text:
    """The cells of a row; those that have changed are in brackets, or reversed without room for
    them."""
    line = Text().append(pipe, "dim")
    for word, is_changed in zip(words, changed, strict=True):
        cell = Text(f"{word.plain:>{inner - (inner - word.cell_len) // 2}}", word.style)
        cell.pad_right(inner - cell.cell_len)
        if size == "lined":
            left, right = "[]" if is_changed else "  "
            line.append(f"{left}{cell.plain}{right}", word.style).append(pipe, "dim")
        else:
            cell.stylize("reverse" if is_changed else "")
            line.append_text(cell).append(" " * SPACING[size])
    line.rstrip()
    return line


def _labels(labels: list[str], inner: int, size: str, lined: bool) -> Text:
    if size == "lined":
        line = " " * lined + (" " * lined).join(f"{label:^{inner + 2}}" for label in labels)
    else:
        line = (" " * SPACING[size]).join(f"{label[-inner:]:>{inner}}" for label in labels)
    return Text(line.rstrip(), "dim")


def _edges(columns: int, width: int, ascii_only: bool) -> list[str]:
    """The lines above the first row, between rows and below the last."""
    lines, widths = ASCII2 if ascii_only else SQUARE, [width] * columns
    return [lines.get_top(widths), lines.get_row(widths), lines.get_bottom(widths)]


def _widest(block: list[Text]) -> int:
    return max((line.cell_len for line in block), default=0)


def _width(blocks: list[list[Text]]) -> int:
    """The width of blocks side by side."""
    return sum(map(_widest, blocks)) + len(GAP) * (len(blocks) - 1)


def _arrange(blocks: list[list[Text]], width: int) -> Iterator[list[Text]]:
    """Blocks side by side if they fit the width, otherwise below each other."""
    if _width(blocks) > width:
        for block in blocks:
            yield block
        return
    joined = []
    for row in zip_longest(*blocks):
        line = Text()
        for block, text in zip(blocks, row, strict=True):
            part = Text() if text is None else text.copy()
            part.pad_right(_widest(block) - part.cell_len)
            line.append_text(part).append(GAP)
        line.rstrip()
        joined.append(line)
    yield joined


def format_parts(*parts: str | BoardView) -> str:
    """Parts below each other as text: drawn for a terminal, otherwise plain."""
    if not sys.stdout.isatty():
        return "\n".join(part if isinstance(part, str) else part.plain_text() for part in parts)
    console = Console()
    with console.capture() as capture:
        console.print(stack_parts(*parts), end="")
    return capture.get().rstrip("\n")


def stack_parts(*parts: str | BoardView) -> RenderableType:
    """Parts below each other, for rich; brackets in text are not markup."""
    return Group(*(Text(part) if isinstance(part, str) else part for part in parts))
