"""Alpha-beta search of k in a row with gravity, on bitboards, exact within its budget.

A position is worth +1, 0 or -1 to the seat to move. The search deepens step by step and counts
what lies beyond its horizon as 0, so that a win or a loss it finds is always proven, and a draw is
proven once the horizon was nowhere reached.

Boards are numbers: cell r from the bottom of column c is bit c * (rows + 1) + r, and the bit above
each column is always empty.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

MOST_ENTRIES = 4_000_000
"""The table of positions is dropped when it is seen to hold so many."""

CHECK_EVERY = 1024
"""Positions between two looks at the clock and the size of the table."""

MIRRORED_UNTIL = 8
"""Stones up to which mirrored positions are one in the table; later they hardly meet."""

UPPER, EXACT, LOWER = -1, 0, 1
"""What a 0 in the table says: at most 0, 0, or at least 0."""


class _TimeUp(Exception):
    pass


@dataclass(frozen=True)
class Best:
    """value: +1, 0 or -1 to the seat to move. exact: whether that is proven.

    columns: where the value is proven, columns that keep it, all of them unless it is a win;
    otherwise those that are not known to be worse than others. plies: how far the search looked;
    with an empty table, about when the game is won or lost.
    """

    columns: list[int]
    value: int
    exact: bool
    plies: int = 1


class AlphaBeta:
    """Keeps a table of what it found, so that the positions of one game are quick to look up."""

    def __init__(self, rows: int, columns: int, line: int) -> None:
        self.rows, self.columns, self.line = rows, columns, line
        height = rows + 1
        self._height = height
        self._bottom = sum(1 << (column * height) for column in range(columns))
        self._board = self._bottom * ((1 << rows) - 1)
        self._column = [((1 << rows) - 1) << (column * height) for column in range(columns)]
        # Cells near the middle are on more lines: search them first.
        self._middle_first = sorted(
            range(columns), key=lambda column: (abs(2 * column - columns + 1), column)
        )
        self._steps = (height, height + 1, height - 1)
        self._completing: Callable[[int], int] = (
            self._completing_four if line == 4 else self._completing_any
        )
        self._column_order = [self._column[column] for column in self._middle_first]
        self._proven: dict[int, int] = {}
        self._drawn: dict[int, tuple[int, int]] = {}
        self.positions = 0
        self._deadline = 0.0
        self._beyond = False

    def best(self, own: int, occupied: int, seconds: float) -> Best:
        """The best columns of a position that is not over.

        own: the stones of the seat to move. occupied: all stones. seconds: the most time to take.
        """
        deadline = time.perf_counter() + seconds
        moves = {
            column: ((occupied + self._bottom) & self._column[column])
            for column in self._middle_first
            if (occupied + self._bottom) & self._column[column]
        }
        if not moves:
            return Best([], 0, True)
        wins = self._completing(own)
        winning = sorted(column for column, move in moves.items() if move & wins)
        if winning:
            return Best(winning, 1, True)
        return self._deepen(own, occupied, moves, deadline)

    def _deepen(self, own: int, occupied: int, moves: dict[int, int], deadline: float) -> Best:
        """The best of moves, {column: cell}, none of which wins at once."""
        left = (self._board & ~occupied).bit_count()
        value: dict[int, int] = {}
        depth = 1
        # What loses at once is found whatever the budget: the first step looks at no clock.
        self._deadline = math.inf
        try:
            # Two moves more a step: wins end on the mover's own moves.
            for depth in [*range(1, left, 2), left]:
                self._beyond = False
                for column, move in moves.items():
                    value[column] = -self._after(own, occupied, move, depth - 1)
                self._deadline = deadline
                if max(value.values()) != 0 or not self._beyond:
                    break
            proven = not self._beyond or max(value.values()) != 0
        except _TimeUp:
            # Wins and losses stay proven, and so do those of the step that was not finished.
            proven = max(value.values()) != 0
        most = max(value.values())
        return Best(sorted(c for c in moves if value[c] == most), most, proven, depth)

    def favourite(self, own: int, occupied: int, columns: list[int]) -> int:
        """The column that makes most threats, among equals the one nearest the middle."""

        def threats(column: int) -> int:
            move = (occupied + self._bottom) & self._column[column]
            return (self._completing(own | move) & ~occupied).bit_count()

        return max((c for c in self._middle_first if c in columns), key=threats)

    def value(self, own: int, occupied: int, seconds: float) -> tuple[int, bool]:
        """The worth of a position that is not over, and whether it is proven."""
        found = self.best(own, occupied, seconds)
        return found.value, found.exact

    def _after(self, own: int, occupied: int, move: int, depth: int) -> int:
        """The worth of a root move to the other seat."""
        other = own ^ occupied
        played = occupied | move
        if (played + self._bottom) & self._board & self._completing(other):
            return 1
        return self._search(other, played, self._completing(own | move), -1, 1, depth)

    def _search(
        self, own: int, occupied: int, threats: int, alpha: int, beta: int, depth: int
    ) -> int:
        """The worth, as far as alpha and beta ask, of a position with no win at once; fails soft.

        threats: the cells that would complete a line of the seat that is not to move.
        """
        self.positions += 1
        if not self.positions % CHECK_EVERY:
            self._check()
        board = self._board
        free = board & ~occupied
        if not free:
            return 0
        possible = (occupied + self._bottom) & board
        forced = threats & possible
        if forced:
            if forced & (forced - 1):
                return -1  # two lines cannot both be stopped
            possible = forced
        # Whatever is played below a threat lets the other complete it.
        possible &= ~(threats >> 1)
        if not possible:
            return -1
        key = self._key(own, occupied)
        proven = self._proven.get(key)
        if proven is not None:
            return proven
        known = self._drawn.get(key)
        if known is not None and known[0] >= depth:
            kind = known[1]
            if kind == EXACT or (kind == LOWER and beta <= 0) or (kind == UPPER and alpha >= 0):
                if known[0] < free.bit_count():
                    self._beyond = True  # that search ended at a horizon too
                return 0
        if depth <= 0:
            self._beyond = True
            return 0
        first_alpha, best = alpha, -1
        other = own ^ occupied
        for _, move, made in self._ordered(own, possible, free):
            worth = -self._search(other, occupied | move, made, -beta, -alpha, depth - 1)
            if worth > best:
                best = worth
                if best >= beta:
                    break
                alpha = max(alpha, best)
        if best:
            self._proven[key] = best
        else:
            kind = LOWER if beta <= 0 else UPPER if first_alpha >= 0 else EXACT
            self._drawn[key] = (depth, kind)
        return best

    def _check(self) -> None:
        if time.perf_counter() > self._deadline:
            raise _TimeUp
        if len(self._proven) + len(self._drawn) > MOST_ENTRIES:
            self._proven.clear()
            self._drawn.clear()

    def _key(self, own: int, occupied: int) -> int:
        """A number for the position, early on the same for its mirror image."""
        key = own + occupied
        if occupied.bit_count() > MIRRORED_UNTIL:
            return key
        height = self.rows + 1
        mirrored, rest = 0, key
        for _ in range(self.columns):
            mirrored = mirrored << height | rest & ((1 << height) - 1)
            rest >>= height
        return min(key, mirrored)

    def _ordered(self, own: int, possible: int, free: int) -> list[tuple[int, int, int]]:
        """Moves and the cells they threaten, most threats first, then those in the middle."""
        moves = []
        for place, column in enumerate(self._column_order):
            move = possible & column
            if move:
                made = self._completing(own | move)
                moves.append((place - 64 * (made & free).bit_count(), move, made))
        moves.sort()
        return moves

    def _completing_four(self, stones: int) -> int:
        """_completing_any where a line is four, written out as the search spends its time here."""
        cells = stones << 1 & stones << 2 & stones << 3
        for step in self._steps:
            up, down = stones << step, stones >> step
            pair = up & stones << 2 * step
            cells |= pair & (stones << 3 * step | down)
            pair = down & stones >> 2 * step
            cells |= pair & (up | stones >> 3 * step)
        return cells & self._board

    def _completing_any(self, stones: int) -> int:
        """The cells that would complete a line of these stones, some of them taken or outside."""
        reach = self.line - 1
        if reach == 0:
            return self._board
        cells = stones << 1
        for step in range(2, reach + 1):  # upright, only the cell on top can be empty
            cells &= stones << step
        for step in self._steps:
            before, after = [-1], [-1]
            for place in range(1, reach + 1):
                before.append(before[-1] & stones << (place * step))
                after.append(after[-1] & stones >> (place * step))
            for place in range(reach + 1):
                cells |= before[place] & after[reach - place]
        return cells & self._board
