"""Boards as a person sees them: what `render` writes, with the likely moves on it.

A board is found in the text of any game that writes it as Spec.observation's rows and columns of
marks. Where the actions are cells their probabilities stand in the cells, where they are columns
above them, and otherwise in a list beside the board, which is all that other games get.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text
from torch import Tensor

from rlgames.games.game import Game, State

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


@dataclass(frozen=True)
class Grid:
    """The marks of a board [rows][columns], and what is written beside, above and below them."""

    marks: list[list[str]]
    left: list[str]
    head: list[str]
    foot: list[str]

    def names(self) -> dict[str, int]:
        """The cells, in row-major order, by the names that their row and column give them."""
        if not self.head:
            return {str(place): place for place in range(len(self.marks[0]) * (not self.left))}
        labels = (column + row for row in self.left for column in self.head)
        return {label: place for place, label in enumerate(labels)}


def grids(text: str, rows: int, columns: int) -> tuple[list[str], list[Grid]] | None:
    """The boards in a text, side by side with | between them, and its other lines above them.

    None where there is no board of so many rows and columns.
    """
    lines = [line.split("|") for line in text.splitlines() if line.strip()]
    most = max(map(len, lines), default=0)
    body = [line for line in lines if len(line) == most]
    found = [_grid([line[n].split() for line in body], rows, columns) for n in range(most)]
    boards = [grid for grid in found if grid is not None]
    if not boards or len(boards) != most:
        return None
    return ["|".join(line) for line in lines if len(line) != most], boards


def _grid(lines: list[list[str]], rows: int, columns: int) -> Grid | None:
    numbered = [line for line in lines if len(line) == columns + 1 and line[0].isdigit()]
    bare = [line for line in lines if len(line) == columns]
    if len(numbered) == rows and len(numbered) + len(bare) == len(lines):
        left, marks = [line[0] for line in numbered], [line[1:] for line in numbered]
        return Grid(marks, left, bare[0] if bare else [], [])
    if len(bare) != len(lines) or len(bare) - rows not in (0, 1):
        return None
    return Grid(bare[:rows], [], [], bare[rows] if len(bare) > rows else [])


def template(game: Game[Any], text: str, marks: str) -> str:
    """The text of a board with the marks of another, which may lack all that is written around it.

    Raises ValueError where there are not as many marks.
    """
    _, rows, columns = game.spec.observation
    fresh = iter(marks.split())
    found = grids(text, rows, columns)
    given = [line.split() for line in marks.splitlines() if line.strip()]
    if found is None or len(found[1]) != 1 or any(len(line) != columns for line in given):
        raise ValueError(f"not a board of {rows} rows of {columns} marks")
    if len(given) != rows:
        raise ValueError(f"{len(given)} rows; the board has {rows}")
    grid = found[1][0]
    lines = [[left, *(next(fresh) for _ in range(columns))] for left in grid.left or [""] * rows]
    return "\n".join(" ".join(line) for line in [grid.head, *lines, grid.foot] if line)


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
        earlier = grids(since or self.text, rows, columns)
        pairs = zip(self.grids, earlier[1] if earlier else [], strict=False)
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
        cells or sets of them."""
        if not self.shares or self.game.spec.cells:
            return self.shares or None
        cells = dict.fromkeys(self.grids[0].names().values(), 0.0)
        names = self.grids[0].names()
        for action, share in enumerate(self.shares):
            words = self.game.name_action(self.state, 0, action).split() if share else []
            if not all(word in names for word in words):
                return None
            for word in words:
                cells[names[word]] += share
        return list(cells.values()) or None

    def on_columns(self) -> bool:
        """Whether actions are columns, and named below the board."""
        foot, actions = self.grids[0].foot, range(len(self.shares))
        return len(foot) == len(actions) and all(
            self.game.name_action(self.state, 0, action).endswith(foot[action])
            for action in actions
        )

    def _needs_list(self, size: str) -> bool:
        if not self.shares or not self.listed:
            return False
        return size == "bare" or not (self.game.spec.cells or self.on_columns())

    def _draw(self, number: int, size: str, ascii_only: bool) -> list[Text]:
        """One of the boards, with the probabilities if it is the first."""
        grid, rows = self.grids[number], len(self.grids[number].marks)
        sign = "" if size == "narrow" else "%"
        told = number == 0 and size != "bare" and bool(self.shares)
        cells = self.on_cells() if told else None
        above = self.shares if told and self.on_columns() else None
        words = [[self._mark(mark, ascii_only) for mark in row] for row in grid.marks]
        if cells is not None:
            for place, share in enumerate(cells):
                row, column = divmod(place, self.columns)
                if share >= LEAST and grid.marks[row][column] == ".":
                    words[row][column] = _percent(share, sign, max(cells))
        top = [_percent(share, sign, max(above)) for share in above] if above else []
        inner = max(word.cell_len for row in [*words, top] for word in row)
        # An equal distance to both sides looks best.
        inner += size in ("lined", "tidy") and not inner % 2
        changed = self.changed[number] if self.changed else [False] * (rows * self.columns)
        lined = size == "lined" and rows <= LINED
        pipe = "" if not lined else "|" if ascii_only else "│"
        side = max(map(len, grid.left), default=0)
        edges = _edges(self.columns, inner + 2, ascii_only)
        pad = " " * (side + bool(side))
        lines = [
            Text(pad + _labels(labels, inner, size, lined), "dim")
            for labels in [grid.head]
            if labels
        ]
        if top:
            lines.append(
                Text(pad) + _row(top, [False] * len(top), inner, size, " " if lined else "")
            )
        for row, row_words in enumerate(words):
            if lined:
                lines.append(Text(pad + edges[min(row, 1)], "dim"))
            marks = changed[row * self.columns : (row + 1) * self.columns]
            label = f"{grid.left[row]:>{side}} " if grid.left else ""
            lines.append(Text().append(label, "dim") + _row(row_words, marks, inner, size, pipe))
        if lined:
            lines.append(Text(pad + edges[2], "dim"))
        if grid.foot:
            lines.append(Text(pad + _labels(grid.foot, inner, size, lined), "dim"))
        return lines

    def _mark(self, mark: str, ascii_only: bool) -> Text:
        if mark.isdecimal():
            return Text(mark, _tile(int(mark)))
        if len(mark) == 1 and mark.isalpha() and mark not in STYLES:  # one's own ships
            return Text(mark, "bold red" if mark.isupper() else "green")
        return Text("·" if mark == "." and not ascii_only else mark, STYLES.get(mark, ""))

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


def _labels(labels: list[str], inner: int, size: str, lined: bool) -> str:
    if size in ("narrow", "bare"):
        return (" " * (size == "narrow")).join(f"{label[-inner:]:>{inner}}" for label in labels)
    gap = " " if lined else ""
    line = gap.join(f"{label:^{inner + 2}}" for label in labels)
    return (" " * lined + line).rstrip()


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
