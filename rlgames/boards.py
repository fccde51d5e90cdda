"""Boards as a person sees them: what `render` writes, with the likely moves on it.

A board is found in the text of any game that writes it as Spec.observation's rows and columns of
marks. Where the actions are cells their probabilities stand in the cells, where they are columns
above them, and otherwise in a list beside the board, which is all that other games get.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.grids import grids

SHOWN = 8
"""So many of the likeliest moves are listed."""

LINED = 7
"""Boards of more rows go without lines between them, to fit on a screen."""

LEAST = 0.005
"""A cell says nothing of less than this, half a percent."""

STYLES = {"X": "bold red", "O": "bold yellow", "x": "bold red", "o": "blue", "+": "bold yellow"}
STYLES |= {"#": "green", ".": "dim"}

TILES = ["eee4da", "ede0c8", "f2b179", "f59563", "f67c5f", "f65e3b"]
TILES += ["edcf72", "edcc61", "edc850", "edc53f", "edc22e"]
"""The colours of 2, 4, 8 and so on up to 2048."""

SIZES = ("lined", "tidy", "narrow", "bare")
"""With lines between the cells, with room for brackets, with less room, with marks only."""

GAP = "   "


class Board:
    """A position to be printed by rich, as wide as there is room for.

    likely: float [A], the probabilities to show, if any. since: an earlier text of the board;
    cells that were different are marked. reveal: show the hidden truth too. listed: list the
    likeliest moves where they have no place on the board.
    """

    def __init__(
        self,
        game: Game[Any],
        state: State,
        likely: Tensor | None = None,
        since: str | None = None,
        reveal: bool = False,
        listed: bool = True,
    ) -> None:
        _, rows, columns = game.spec.observation
        self.game, self.state, self.columns, self.listed = game, state, columns, listed
        self.text = game.render(state, 0, reveal=reveal)
        self.shares = [] if likely is None else likely.tolist()
        self.caption, self.grids = grids(self.text, rows, columns) or ([], [])
        earlier = grids(since, rows, columns) if since else None
        # What is revealed was there before.
        visible = grids(game.render(state, 0), rows, columns) or ([], [])
        pairs = zip(visible[1], earlier[1] if earlier else [], strict=False)
        self.changed = [
            [mark != old for mark, old in zip(chain(*now.marks), chain(*then.marks), strict=True)]
            for now, then in pairs
        ]

    def likeliest(self) -> list[tuple[str, float]]:
        """The likeliest moves by name, and the rest of them together."""
        order = sorted(range(len(self.shares)), key=lambda action: -self.shares[action])
        told = [action for action in order[:SHOWN] if self.shares[action] > 0]
        rest = sum(self.shares) - sum(self.shares[action] for action in told)
        names = [self.game.name_action(self.state, 0, action) for action in told]
        moves = [(name, self.shares[action]) for name, action in zip(names, told, strict=True)]
        return [*moves, ("others", rest)] if rest > 0.0005 else moves

    def plain(self) -> str:
        """The board as render writes it, and the likeliest moves below."""
        moves = [f"  {name:12} {share:6.1%}" for name, share in self.likeliest()]
        return "\n".join([self.text, *moves] if self.listed else [self.text])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, ascii_only = options.max_width, options.ascii_only
        count = range(len(self.grids))
        sizes = {size: [self._draw(number, size, ascii_only) for number in count] for size in SIZES}
        # Better small side by side than one below the other.
        sides = [size for size in SIZES if self.grids and _width(sizes[size]) <= width]
        rooms = [size for size in SIZES if self.grids and max(map(_widest, sizes[size])) <= width]
        size = next(iter([*sides, *rooms]), "bare")
        drawn = sizes[size] if rooms else [[Text(line) for line in self.text.splitlines()]]
        yield from map(Text, self.caption if self.grids else [])
        listed = self._list(ascii_only) if self._needs_list(size) else []
        for block in _beside([*drawn, listed] if listed else drawn, width):
            yield from block

    def on_cells(self) -> list[float] | None:
        """What the actions that take each cell are likely together; None where actions are not
        empty cells or sets of them."""
        marks = list(chain(*self.grids[0].marks))
        if self.game.spec.cells:
            taken = any(p >= LEAST and m != "." for p, m in zip(self.shares, marks, strict=False))
            return self.shares if self.shares and not taken else None
        names = self.grids[0].names()
        cells = dict.fromkeys(names.values(), 0.0)
        for action, share in enumerate(self.shares):
            words = self.game.name_action(self.state, 0, action).split() if share else []
            if not all(word in names for word in words):
                return None
            for word in words:
                cells[names[word]] += share
        return list(cells.values()) if self.shares and cells else None

    def on_columns(self) -> bool:
        """Whether actions are columns, and named below the board."""
        foot, actions = self.grids[0].foot, range(len(self.shares))
        return (
            bool(foot)
            and len(foot) == len(actions)
            and all(
                self.game.name_action(self.state, 0, action).endswith(foot[action])
                for action in actions
            )
        )

    def _needs_list(self, size: str) -> bool:
        if not self.shares or not self.listed:
            return False
        one = self.game.spec.cells and size != "bare" and self.on_cells() is not None
        return not one and (size == "bare" or not self.on_columns())

    def _draw(self, number: int, size: str, ascii_only: bool) -> list[Text]:
        """One of the boards, with the probabilities if it is the first."""
        grid = self.grids[number]
        lined = size == "lined" and len(grid.marks) <= LINED
        words, above = self._words(number, size, " " if lined else "." if ascii_only else "·")
        inner = max(word.cell_len for row in [*words, above] for word in row)
        # An equal distance to both sides looks best.
        inner += size in ("lined", "tidy") and not inner % 2
        side = max(map(len, grid.left), default=-1) + 1
        pad, edges = Text(" " * side), _edges(self.columns, inner + 2, ascii_only)
        pipe = "" if not lined else "|" if ascii_only else "│"
        changed = self.changed[number] if self.changed else [False] * (len(words) * self.columns)
        lines = [pad + _labels(grid.head, inner, size, lined)] if grid.head else []
        if above:
            lines.append(pad + _row(above, [False] * len(above), inner, size, " " * lined))
        for row, row_words in enumerate(words):
            if lined:
                lines.append(pad + Text(edges[min(row, 1)], "dim"))
            marks = changed[row * self.columns : (row + 1) * self.columns]
            label = f"{grid.left[row]:>{side - 1}} " if grid.left else ""
            lines.append(Text().append(label, "dim") + _row(row_words, marks, inner, size, pipe))
        if lined:
            lines.append(pad + Text(edges[2], "dim"))
        return [*lines, pad + _labels(grid.foot, inner, size, lined)] if grid.foot else lines

    def _words(self, number: int, size: str, empty: str) -> tuple[list[list[Text]], list[Text]]:
        """What stands in the cells, and above the columns."""
        words = [[_mark(mark, empty) for mark in row] for row in self.grids[number].marks]
        if number or size == "bare" or not self.shares:
            return words, []
        sign, cells = "" if size == "narrow" else "%", self.on_cells()
        if cells is not None:
            for place, share in enumerate(cells):
                row, column = divmod(place, self.columns)
                if share >= LEAST:
                    words[row][column] = _percent(share, sign, max(cells))
        above = self.shares if self.on_columns() else []
        return words, [_percent(share, sign, max(above)) for share in above]

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
    if mark.isdecimal():
        return Text(mark, _tile(int(mark)))
    if len(mark) == 1 and mark.isalpha() and mark not in STYLES:  # one's own ships
        return Text(mark, "bold red" if mark.isupper() else "green")
    return Text(empty if mark == "." else mark, STYLES.get(mark, ""))


def _tile(value: int) -> str:
    place = value.bit_length() - 2
    if value < 2 or value & (value - 1) or place >= len(TILES):
        return "bold white on #3c3a32"
    return f"bold {'#776e65' if place < 2 else 'black'} on #{TILES[place]}"


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


def printed(*parts: str | Board) -> str:
    """Parts one below the other as they are printed: drawn on a terminal, plain elsewhere."""
    if not sys.stdout.isatty():
        return "\n".join(part if isinstance(part, str) else part.plain() for part in parts)
    console = Console()
    with console.capture() as drawn:
        console.print(grouped(*parts), end="")
    return drawn.get().rstrip("\n")


def grouped(*parts: str | Board) -> RenderableType:
    """Parts one below the other, for rich; a text in brackets is no markup."""
    return Group(*(Text(part) if isinstance(part, str) else part for part in parts))
