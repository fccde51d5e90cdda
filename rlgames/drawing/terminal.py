"""Positions on a terminal: the boards of a game, with the likely moves on them.

Where actions take cells their probabilities stand in the cells. Where an action is not one cell
they are listed beside the board, or beside the text of a game that has no boards.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from typing import Any

import torch
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text
from torch import Tensor

from rlgames.drawing import marks
from rlgames.games.game import Game, State

SHOWN = 8
"""So many of the likeliest moves are listed."""

LINED = 7
"""Boards of more rows go without lines between them, to fit on a screen."""

LEAST = 0.005
"""A cell says nothing of less than this, half a percent."""

STYLES = {"first": "bold red", "second": "bold yellow", "hit": "bold red", "miss": "blue"}
STYLES |= {"aim": "bold yellow", "ship": "green", "empty": "dim", "other": ""}

SIZES = ("lined", "tidy", "narrow", "bare")
"""With lines between the cells, with room for brackets, with less room, with marks only."""

GAP = "   "


class Diagram:
    """A position to be printed by rich, as wide as there is room for.

    likely: float [A], the probabilities to show, if any. since: an earlier position; cells that
    were different are marked. reveal: show the hidden truth too. listed: list the
    likeliest moves where they have no place on the board.
    """

    def __init__(
        self,
        game: Game[Any],
        state: State,
        likely: Tensor | None = None,
        since: State | None = None,
        reveal: bool = False,
        listed: bool = True,
    ) -> None:
        self.game, self.state, self.listed = game, state, listed
        self.text, self.board_format = game.render(state, 0, reveal), game.board_format
        self.boards = game.boards(state, 0, reveal)
        seen = (mark for each in self.boards for mark in chain(*each))
        self.legend = marks.legend(seen, game.spec.hidden, game.spec.seats)
        self.shares = [] if likely is None else likely.tolist()
        aims = game.action_cells(state, 0)
        self.action_cells = None if aims is None else aims.cpu()
        # What is revealed was there before.
        visible = game.boards(state, 0)
        earlier = visible if since is None else game.boards(since, 0)
        self.changed = [
            [mark != old for mark, old in zip(chain(*now), chain(*then), strict=True)]
            for now, then in zip(visible, earlier, strict=True)
        ]

    def likeliest(self) -> list[tuple[str, float]]:
        """The likeliest moves by name, and the rest of them together."""
        order = sorted(range(len(self.shares)), key=lambda action: -self.shares[action])
        told = [action for action in order[:SHOWN] if self.shares[action] > 0]
        rest = sum(self.shares) - sum(self.shares[action] for action in told)
        names = [self.game.action_to_string(self.state, 0, action) for action in told]
        moves = [(name, self.shares[action]) for name, action in zip(names, told, strict=True)]
        return [*moves, ("others", rest)] if rest > 0.0005 else moves

    def plain(self) -> str:
        """The board as render writes it, and the likeliest moves below."""
        moves = [f"  {name:12} {share:6.1%}" for name, share in self.likeliest()]
        lines = [self.text, *([self.legend] if self.legend else [])]
        return "\n".join([*lines, *moves] if self.listed else lines)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, ascii_only = options.max_width, options.ascii_only
        count = range(len(self.boards))
        sizes = {size: [self._draw(number, size, ascii_only) for number in count] for size in SIZES}
        # Better small side by side than one below the other.
        sides = [size for size in SIZES if self.boards and _width(sizes[size]) <= width]
        rooms = [size for size in SIZES if self.boards and max(map(_widest, sizes[size])) <= width]
        size = next(iter([*sides, *rooms]), "bare")
        drawn = sizes[size] if rooms else [[Text(line) for line in self.text.splitlines()]]
        if rooms and (caption := self.game.caption(self.state, 0)):
            yield Text(caption)
        listed = self._list(ascii_only) if self._needs_list(size) else []
        for block in _beside([*drawn, listed] if listed else drawn, width):
            yield from block
        if rooms and self.legend:
            yield Text(self.legend, "dim")

    def on_cells(self) -> list[float] | None:
        """What the actions that take each cell are likely together; None where actions do not take
        empty cells."""
        if self.action_cells is None or not self.shares or not self.boards:
            return None
        cells: list[float] = (torch.tensor(self.shares) @ self.action_cells.float()).tolist()
        pairs = zip(cells, chain(*self.boards[0]), strict=True)
        return None if any(share >= LEAST and mark != "." for share, mark in pairs) else cells

    def _needs_list(self, size: str) -> bool:
        if not self.shares or not self.listed:
            return False
        single = self.action_cells is not None and int(self.action_cells.sum(1).max()) <= 1
        return size == "bare" or not single or self.on_cells() is None

    def _draw(self, number: int, size: str, ascii_only: bool) -> list[Text]:
        """One of the boards, with the probabilities if it is the first."""
        form = self.board_format
        lined = size == "lined" and form.rows <= LINED
        words = self._words(number, size, " " if lined else "." if ascii_only else "·")
        inner = max(word.cell_len for row in words for word in row)
        # An equal distance to both sides looks best.
        inner += size in ("lined", "tidy") and not inner % 2
        side = max(map(len, form.left), default=-1) + 1
        pad, edges = Text(" " * side), _edges(form.columns, inner + 2, ascii_only)
        pipe = "" if not lined else "|" if ascii_only else "│"
        lines = [pad + _labels(form.above, inner, size, lined)] if form.above else []
        for row, row_words in enumerate(words):
            if lined:
                lines.append(pad + Text(edges[min(row, 1)], "dim"))
            changed = self.changed[number][row * form.columns : (row + 1) * form.columns]
            label = f"{form.left[row]:>{side - 1}} " if form.left else ""
            lines.append(Text().append(label, "dim") + _row(row_words, changed, inner, size, pipe))
        if lined:
            lines.append(pad + Text(edges[2], "dim"))
        return [*lines, pad + _labels(form.below, inner, size, lined)] if form.below else lines

    def _words(self, number: int, size: str, empty: str) -> list[list[Text]]:
        """What stands in the cells."""
        words = [[_mark(mark, empty) for mark in row] for row in self.boards[number]]
        cells = None if number or size == "bare" else self.on_cells()
        if cells is not None:
            sign = "" if size == "narrow" else "%"
            for place, share in enumerate(cells):
                row, column = divmod(place, self.board_format.columns)
                if share >= LEAST:
                    words[row][column] = _percent(share, sign, max(cells))
        return words

    def _list(self, ascii_only: bool) -> list[Text]:
        """The likeliest moves with bars, which a black and white terminal shows as well."""
        moves = self.likeliest()
        wide = max((len(name) for name, _ in moves), default=0)
        full = "#" if ascii_only else "█"
        return [
            Text(f"{name:<{wide}} {share:6.1%} ", "bold" if share == moves[0][1] else "")
            + Text(full * round(10 * share), "green")
            for name, share in moves
        ]


def _percent(share: float, sign: str, most: float) -> Text:
    style = "bold green" if share == most else "green" if share >= 0.05 else "dim green"
    return Text(f"{share * 100:.0f}{sign}", style)


def _mark(mark: str, empty: str) -> Text:
    what = marks.kind(mark)
    if what == "tile":
        red, green, blue = marks.tile(mark)
        return Text(mark, f"bold black on rgb({red},{green},{blue})")
    return Text(empty if what == "empty" else mark, STYLES[what])


def _row(words: list[Text], marked: list[bool], inner: int, size: str, pipe: str) -> Text:
    """The cells of a row: what has changed stands in brackets, or reversed where there is no room
    for them."""
    line = Text().append(pipe, "dim")
    for word, mark in zip(words, marked, strict=True):
        room = inner - word.cell_len
        cell = (
            Text(" " * (room - room // 2), word.style) + word + Text(" " * (room // 2), word.style)
        )
        if size in ("narrow", "bare"):
            cell.stylize("reverse" if mark else "")
            line.append_text(cell).append(" " * (size == "narrow"))
        else:
            left, right = ("[", "]") if mark else (" ", " ")
            line.append(left, word.style).append_text(cell).append(right, word.style)
            line.append(pipe, "dim")
    line.rstrip()
    return line


def _labels(labels: list[str], inner: int, size: str, lined: bool) -> Text:
    if size in ("narrow", "bare"):
        line = (" " * (size == "narrow")).join(f"{label[-inner:]:>{inner}}" for label in labels)
    else:
        line = " " * lined + (" " * lined).join(f"{label:^{inner + 2}}" for label in labels)
    return Text(line.rstrip(), "dim")


def _edges(columns: int, width: int, ascii_only: bool) -> list[str]:
    """The lines above the first row, between rows and below the last."""
    if ascii_only:
        return ["+" + "+".join(["-" * width] * columns) + "+"] * 3
    ends = (("┌", "┬", "┐"), ("├", "┼", "┤"), ("└", "┴", "┘"))
    return [left + middle.join(["─" * width] * columns) + right for left, middle, right in ends]


def _widest(block: list[Text]) -> int:
    return max((line.cell_len for line in block), default=0)


def _width(blocks: list[list[Text]]) -> int:
    """Of blocks side by side."""
    return sum(map(_widest, blocks)) + len(GAP) * (len(blocks) - 1)


def _beside(blocks: list[list[Text]], width: int) -> Iterator[list[Text]]:
    """Blocks side by side where there is room, otherwise one below the other."""
    if _width(blocks) > width:
        for block in blocks:
            yield block
        return
    joined = []
    for place in range(max(map(len, blocks))):
        line = Text()
        for block in blocks:
            part = block[place].copy() if place < len(block) else Text()
            part.pad_right(_widest(block) - part.cell_len)
            line.append_text(part).append(GAP)
        line.rstrip()
        joined.append(line)
    yield joined


def printed(*parts: str | Diagram) -> str:
    """Parts one below the other as they are printed: drawn on a terminal, plain elsewhere."""
    if not sys.stdout.isatty():
        return "\n".join(part if isinstance(part, str) else part.plain() for part in parts)
    console = Console()
    with console.capture() as drawn:
        console.print(grouped(*parts), end="")
    return drawn.get().rstrip("\n")


def grouped(*parts: str | Diagram) -> RenderableType:
    """Parts one below the other, for rich; a text in brackets is no markup."""
    return Group(*(Text(part) if isinstance(part, str) else part for part in parts))
