"""Alpha-beta search of k in a row with gravity, on bitboards, exact within its budget.

A position is worth +1, 0 or -1 to the seat to move. The search deepens iteratively and counts
positions at its horizon as 0. So a win or a loss that it finds is always proven, and a draw is
proven where no branch reached the horizon.

Boards are numbers, as in rlgames.games.k_in_a_row: cell r from the bottom of column c is bit
c * (rows + 1) + r, and the bit above each column is always empty.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

MAX_TABLE_ENTRIES = 4_000_000
"""The transposition table is cleared at this many positions."""

CHECK_EVERY = 1024
"""Positions between two checks of the time and of the table's size."""

MAX_MIRRORED_STONES = 8
"""Up to this many stones mirrored positions share a table entry; later they hardly ever meet."""

UPPER, EXACT, LOWER = -1, 0, 1
"""What a value of 0 in the table means: at most 0, exactly 0, or at least 0."""


class _LimitReached(Exception):
    pass


@dataclass(frozen=True)
class SearchResult:
    """value: +1, 0 or -1 to the seat to move. is_proven: whether the value is certain.

    columns: if the value is proven, columns that reach it, all of them unless it is a win;
    otherwise those not known to be worse than others. depth: plies searched; with an empty table,
    about the length of the game.
    """

    columns: list[int]
    value: int
    is_proven: bool
    depth: int = 1


class AlphaBeta:
    """Searches positions and keeps their values in a table, which later searches reuse.

    With a limit on positions and an empty table, the result depends on the position alone.
    positions: how many all searches have visited.
    """

    def __init__(self, rows: int, columns: int, line: int) -> None:
        self.rows, self.columns, self.line = rows, columns, line
        height = rows + 1
        self._height = height
        self._bottom_row = sum(1 << (column * height) for column in range(columns))
        self._board = self._bottom_row * ((1 << rows) - 1)
        self._column_mask = [((1 << rows) - 1) << (column * height) for column in range(columns)]
        # Cells near the center belong to more lines: search them first.
        self._center_first = sorted(
            range(columns), key=lambda column: (abs(2 * column - columns + 1), column)
        )
        self._steps = (height, height + 1, height - 1)
        self._completing_cells: Callable[[int], int] = (
            self._complete_four if line == 4 else self._complete_any
        )
        self._masks_center_first = [self._column_mask[column] for column in self._center_first]
        self._proven: dict[int, int] = {}
        self._zero: dict[int, tuple[int, int]] = {}
        self.positions = 0
        self._deadline = self._last_position = math.inf
        self._next_check = 0.0
        self._reached_horizon = False

    def clear(self) -> None:
        """Forget the values of all positions."""
        self._proven.clear()
        self._zero.clear()

    def search(
        self,
        own: int,
        occupied: int,
        seconds: float = math.inf,
        max_positions: float = math.inf,
    ) -> SearchResult:
        """Search a position that is not over, until it is solved or a limit is reached.

        own: the stones of the seat to move. occupied: all stones. max_positions: visited by this
        search.
        """
        deadline = time.perf_counter() + seconds
        last_position = self.positions + max_positions
        moves = {
            column: ((occupied + self._bottom_row) & self._column_mask[column])
            for column in self._center_first
            if (occupied + self._bottom_row) & self._column_mask[column]
        }
        if not moves:
            return SearchResult([], 0, True)
        wins = self._completing_cells(own)
        winning = sorted(column for column, move in moves.items() if move & wins)
        if winning:
            return SearchResult(winning, 1, True)
        return self._deepen(own, occupied, moves, deadline, last_position)

    def preferred(self, own: int, occupied: int, columns: list[int]) -> int:
        """The column that makes the most threats; of equals the one nearest the center."""

        def threats(column: int) -> int:
            move = (occupied + self._bottom_row) & self._column_mask[column]
            return (self._completing_cells(own | move) & ~occupied).bit_count()

        return max((c for c in self._center_first if c in columns), key=threats)

    def _deepen(
        self,
        own: int,
        occupied: int,
        moves: dict[int, int],
        deadline: float,
        last_position: float,
    ) -> SearchResult:
        """Search moves, {column: cell}, none of which wins at once, deeper and deeper."""
        empty_cells = (self._board & ~occupied).bit_count()
        values: dict[int, int] = {}
        depth = 1
        # The first step ignores the limits: moves that lose at once are always recognized.
        self._set_limits(math.inf, math.inf)
        try:
            # Two more plies a step: wins end on moves of the seat to move.
            for depth in [*range(1, empty_cells, 2), empty_cells]:
                self._reached_horizon = False
                for column, move in moves.items():
                    values[column] = -self._value_after(own, occupied, move, depth - 1)
                self._set_limits(deadline, last_position)
                if max(values.values()) != 0 or not self._reached_horizon:
                    break
            is_proven = not self._reached_horizon or max(values.values()) != 0
        except _LimitReached:
            # Wins and losses are proven, also those of the unfinished step.
            is_proven = max(values.values()) != 0
        best = max(values.values())
        columns = sorted(column for column in moves if values[column] == best)
        return SearchResult(columns, best, is_proven, depth)

    def _value_after(self, own: int, occupied: int, move: int, depth: int) -> int:
        """The value of a root move to the other seat."""
        other = own ^ occupied
        played = occupied | move
        if (played + self._bottom_row) & self._board & self._completing_cells(other):
            return 1
        return self._negamax(other, played, self._completing_cells(own | move), -1, 1, depth)

    def _negamax(
        self, own: int, occupied: int, threats: int, alpha: int, beta: int, depth: int
    ) -> int:
        """The fail-soft value without an immediate win. threats: winning cells of the other."""
        if self.positions >= self._next_check:
            self._check_limits()
        self.positions += 1
        board = self._board
        free = board & ~occupied
        if not free:
            return 0
        candidates = (occupied + self._bottom_row) & board
        forced = threats & candidates
        if forced:
            if forced & (forced - 1):
                return -1  # two lines cannot both be blocked
            candidates = forced
        # A stone right below a threat lets the other seat complete its line.
        candidates &= ~(threats >> 1)
        if not candidates:
            return -1
        key = self._key(own, occupied)
        if key in self._proven:
            return self._proven[key]
        entry = self._zero.get(key)
        if entry is not None and entry[0] >= depth:
            bound = entry[1]
            if bound == EXACT or (bound == LOWER and beta <= 0) or (bound == UPPER and alpha >= 0):
                if entry[0] < free.bit_count():
                    self._reached_horizon = True  # the earlier search reached its horizon too
                return 0
        if depth <= 0:
            self._reached_horizon = True
            return 0
        first_alpha, best, other = alpha, -1, own ^ occupied
        for _, move, new_threats in self._ordered(own, candidates, free):
            value = -self._negamax(other, occupied | move, new_threats, -beta, -alpha, depth - 1)
            if value > best:
                best = value
                if best >= beta:
                    break
                alpha = max(alpha, best)
        if best:
            self._proven[key] = best
        else:
            bound = LOWER if beta <= 0 else UPPER if first_alpha >= 0 else EXACT
            self._zero[key] = (depth, bound)
        return best

    def _set_limits(self, deadline: float, last_position: float) -> None:
        self._deadline, self._last_position = deadline, last_position
        self._next_check = min(self.positions + CHECK_EVERY, last_position)

    def _check_limits(self) -> None:
        if self.positions >= self._last_position or time.perf_counter() > self._deadline:
            raise _LimitReached
        if len(self._proven) + len(self._zero) > MAX_TABLE_ENTRIES:
            self.clear()
        self._next_check = min(self.positions + CHECK_EVERY, self._last_position)

    def _key(self, own: int, occupied: int) -> int:
        """The position as a number; with few stones the same as that of its mirror image."""
        key = own + occupied
        if occupied.bit_count() > MAX_MIRRORED_STONES:
            return key
        height = self.rows + 1
        mirrored, rest = 0, key
        for _ in range(self.columns):
            mirrored = mirrored << height | rest & ((1 << height) - 1)
            rest >>= height
        return min(key, mirrored)

    def _ordered(self, own: int, candidates: int, free: int) -> list[tuple[int, int, int]]:
        """(order, move, cells threatened): most threats first, then the nearest to the center."""
        moves = []
        for place, column in enumerate(self._masks_center_first):
            move = candidates & column
            if move:
                threats = self._completing_cells(own | move)
                moves.append((place - 64 * (threats & free).bit_count(), move, threats))
        moves.sort()
        return moves

    def _complete_four(self, stones: int) -> int:
        """_complete_any for lines of four, unrolled because the search spends its time here."""
        cells = stones << 1 & stones << 2 & stones << 3
        for step in self._steps:
            up, down = stones << step, stones >> step
            pair = up & stones << 2 * step
            cells |= pair & (stones << 3 * step | down)
            pair = down & stones >> 2 * step
            cells |= pair & (up | stones >> 3 * step)
        return cells & self._board

    def _complete_any(self, stones: int) -> int:
        """The cells that would complete a line of these stones; some of them may be taken."""
        reach = self.line - 1
        if reach == 0:
            return self._board
        cells = stones << 1
        for step in range(2, reach + 1):  # of a vertical line only the top cell can be empty
            cells &= stones << step
        for step in self._steps:
            before, after = [-1], [-1]
            for place in range(1, reach + 1):
                before.append(before[-1] & stones << (place * step))
                after.append(after[-1] & stones >> (place * step))
            for place in range(reach + 1):
                cells |= before[place] & after[reach - place]
        return cells & self._board
