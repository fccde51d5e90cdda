"""Alpha-beta search of k in a row with gravity, on bitboards, exact within its budget.

A position is worth +1, 0 or -1 to the seat to move. The search deepens step by step and counts
what lies beyond its horizon as 0, so that a win or a loss it finds is always proven, and a draw is
proven once the horizon was nowhere reached.

Boards are numbers: cell r from the bottom of column c is bit c * (rows + 1) + r, and the bit above
each column is always empty.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

MOST_ENTRIES = 4_000_000
"""The table of positions is dropped when it holds so many."""

CHECK_EVERY = 1024
"""Positions between two looks at the clock."""

UPPER, EXACT, LOWER = -1, 0, 1
"""What a 0 in the table says: at most 0, 0, or at least 0."""


class _TimeUp(Exception):
    pass


@dataclass(frozen=True)
class Best:
    """value: +1, 0 or -1 to the seat to move. exact: whether that is proven.

    columns: where the value is proven, columns that keep it, all of them unless it is a win that
    some reach sooner; otherwise those that are not known to be worse than others.
    """

    columns: list[int]
    value: int
    exact: bool


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
        self._proven: dict[int, int] = {}
        self._drawn: dict[int, tuple[int, int]] = {}
        self.positions = 0
        self._deadline = 0.0
        self._beyond = False

    def best(self, own: int, occupied: int, seconds: float) -> Best:
        """The best columns of a position that is not over.

        own: the stones of the seat to move. occupied: all stones. seconds: the most time to take.
        """
        start = time.perf_counter()
        self._deadline = start + seconds
        if len(self._proven) + len(self._drawn) > MOST_ENTRIES:
            self._proven.clear()
            self._drawn.clear()
        moves = {
            column: ((occupied + self._bottom) & self._column[column])
            for column in self._middle_first
            if (occupied + self._bottom) & self._column[column]
        }
        wins = self._completing(own) & ~occupied
        winning = sorted(column for column, move in moves.items() if move & wins)
        if winning:
            return Best(winning, 1, True)
        left = (self._board & ~occupied).bit_count()
        found = Best(sorted(moves), 0, False)
        try:
            for depth in range(1, left + 1):
                self._beyond = False
                value = {
                    column: -self._search(own ^ occupied, occupied | move, -1, 1, depth - 1)
                    for column, move in moves.items()
                }
                most = max(value.values())
                exact = most != 0 or not self._beyond
                found = Best(sorted(c for c in moves if value[c] == most), most, exact)
                if exact:
                    break
        except _TimeUp:
            pass
        return found

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

    def _search(self, own: int, occupied: int, alpha: int, beta: int, depth: int) -> int:
        """The worth, as far as alpha and beta ask; fails soft."""
        self.positions += 1
        if not self.positions % CHECK_EVERY and time.perf_counter() > self._deadline:
            raise _TimeUp
        board = self._board
        free = board & ~occupied
        if not free:
            return 0
        possible = (occupied + self._bottom) & board
        if self._completing(own) & possible:
            return 1
        threats = self._completing(own ^ occupied) & free
        forced = threats & possible
        if forced:
            if forced & (forced - 1):
                return -1  # two lines cannot both be stopped
            possible = forced
        # Whatever is played below a threat lets the other complete it.
        possible &= ~(threats >> 1)
        if not possible:
            return -1
        key = own + occupied
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
        for move in self._ordered(own, possible):
            worth = -self._search(own ^ occupied, occupied | move, -beta, -alpha, depth - 1)
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

    def _ordered(self, own: int, possible: int) -> list[int]:
        """Single moves, first those that threaten most, among them those in the middle."""
        moves = []
        for column in self._middle_first:
            move = possible & self._column[column]
            if move:
                moves.append(move)
        if len(moves) > 1:
            moves.sort(key=lambda move: -self._completing(own | move).bit_count())
        return moves

    def _completing(self, stones: int) -> int:
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
