"""Exact scores of k in a row with gravity, by alpha-beta search within a budget.

A score belongs to the seat to move: the number of stones that the winner still had, counting the
one that won; negative if the other seat won, 0 for a draw. The kernel answers whether a score is at
least some bound. Questions about early wins and losses take few positions, so they come first.

Boards are numbers, as in rlgames.games.k_in_a_row: cell r from the bottom of column c is bit
c * (rows + 1) + r, and the bit above each column is always empty.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

from rlgames.games.k_in_a_row import KInARow
from rlgames.solvers import connect4_search as kernel

MAX_TABLE_ENTRIES = 1 << 22
"""Entries of the transposition table, 8 bytes each, where nothing else is asked for."""

SLICE = 1 << 15
"""Positions between two checks of the time, and of signals: some milliseconds."""

NUM_EARLY_STONES = 6
"""Wins and losses with this many more stones are looked for first; together these questions take
far fewer positions than the question who wins at all."""


UNKNOWN = -1, 1


class _LimitReached(Exception):
    pass


@dataclass(frozen=True)
class ScoreBounds:
    """The lowest and the highest score that each column can have, for the seat to move.

    empty: the number of empty cells before the move.
    """

    bounds: dict[int, tuple[int, int]]
    empty: int

    @property
    def value(self) -> int | None:
        """+1, 0 or -1 for a game that is won, drawn or lost; None if unknown."""
        low = max((low for low, _ in self.bounds.values()), default=0)
        high = max((high for _, high in self.bounds.values()), default=0)
        return _sign(low) if low > 0 or _sign(low) == _sign(high) else None

    @property
    def columns(self) -> list[int]:
        """Columns that reach the value; of a lost game those not known to be lost sooner than
        others. If the value is unknown, columns not known to be worse than others."""
        least = max((low for low, _ in self.bounds.values()), default=0)
        if self.value is not None and self.value >= 0:
            return sorted(c for c, (low, _) in self.bounds.items() if _sign(low) == self.value)
        return sorted(c for c, (_, high) in self.bounds.items() if high >= min(least, 0))

    @property
    def best_columns(self) -> list[int]:
        """Of these columns, those that are not known to have a lower score than others: of a won
        game the soonest wins, of a lost one the latest losses."""
        least = max((low for low, _ in self.bounds.values()), default=0)
        return [c for c in self.columns if self.bounds[c][1] >= least]

    def outcome(self, column: int) -> int | None:
        """+1, 0 or -1 for a column, None if unknown or full."""
        low, high = map(_sign, self.bounds.get(column, UNKNOWN))
        return low if low == high else None

    def plies(self, column: int) -> int | None:
        """The plies to the end, this one included, if the winner hurries and the loser delays; None
        if unknown."""
        low, high = self.bounds.get(column, UNKNOWN)
        if low != high:
            return None
        if low > 0:
            return 2 * ((self.empty + 1) // 2 - low) + 1
        return 2 * (self.empty // 2 + low) + 2 if low < 0 else self.empty


@dataclass
class _Move:
    """A move at the root: the position after it, for the other seat, and bounds of its score for
    the seat that makes it."""

    column: int
    own: int
    occupied: int
    low: int
    high: int


class AlphaBeta:
    """Searches positions and keeps what it learns about them in a table, for later searches.

    With a limit on positions and an empty table, the result depends only on the position.
    table_entries: how many the table has, about. positions: how many all searches have visited.
    """

    def __init__(
        self, rows: int, columns: int, line: int, table_entries: int = MAX_TABLE_ENTRIES
    ) -> None:
        self._rules = KInARow(rows, columns, line, gravity=True).rules
        self._stack = kernel.make_stack(self._rules)
        self._table, self._rest_bits = kernel.make_table(columns * (rows + 1), table_entries)
        # The central columns first.
        self._piles = {
            (pile & -pile).bit_length() // (rows + 1): pile for pile in map(int, self._rules.piles)
        }
        self.positions = 0
        self._deadline = self._last_position = math.inf

    def clear(self) -> None:
        """Forget all positions."""
        self._table.fill(0)

    def search(
        self,
        own: int,
        occupied: int,
        seconds: float = math.inf,
        max_positions: float = math.inf,
    ) -> ScoreBounds:
        """Find out who wins an unfinished position, and the winning columns, until that is known or
        a limit is reached.

        own: the stones of the seat to move. occupied: all stones. max_positions: visited by this
        search.
        """
        moves, empty = self._moves(own, occupied)
        self._deadline = time.perf_counter() + seconds
        self._last_position = self.positions + max_positions
        try:
            for bound in [*_early_bounds(empty), 1, 0]:
                for move in moves:
                    self._ask(move, bound)
                    if move.low > 0:
                        return _result(moves, empty)
        except _LimitReached:
            pass
        return _result(moves, empty)

    def analyze(
        self,
        own: int,
        occupied: int,
        seconds: float = math.inf,
        max_positions: float = math.inf,
        scores: bool = True,
    ) -> ScoreBounds:
        """Find out the outcome of every column of a position that is not over, and then every exact
        score, until all are known or a limit is reached.

        max_positions: visited by this search. scores: False: only the outcomes.
        """
        moves, empty = self._moves(own, occupied)
        last, end = self.positions + max_positions, time.perf_counter() + seconds
        for bounds in (tuple(_early_bounds(empty)), (1, 0), None)[: 3 if scores else 2]:
            for number, move in enumerate(moves):
                # What one column does not need is left to the others.
                now, share = time.perf_counter(), len(moves) - number
                self._deadline = now + max(0.0, end - now) / share
                self._last_position = self.positions + (last - self.positions) / share
                try:
                    for bound in _halving(move) if bounds is None else bounds:
                        self._ask(move, bound)
                except _LimitReached:
                    pass
        return _result(moves, empty)

    def preferred(self, own: int, occupied: int, columns: list[int]) -> int:
        """The column that makes the most threats; of equals the one nearest the center."""

        def threats(column: int) -> int:
            stone = (occupied + self._rules.bottom) & self._piles[column]
            return (self._completing_cells(own | stone) & ~occupied).bit_count()

        return max((column for column in self._piles if column in columns), key=threats)

    def _completing_cells(self, stones: int) -> int:
        rules = self._rules
        return int(kernel.completing_cells(stones, rules.line, rules.stride, rules.board[0]))

    def _moves(self, own: int, occupied: int) -> tuple[list[_Move], int]:
        """The moves of a position, with the facts known without a search, and its empty cells."""
        other, free = own ^ occupied, self._rules.board[0] & ~occupied
        empty = free.bit_count()
        soonest_win, soonest_loss = (empty + 1) // 2, -(empty // 2)
        wins, threats = (self._completing_cells(stones) & free for stones in (own, other))
        moves = []
        for column, pile in self._piles.items():
            stone = (occupied + self._rules.bottom) & pile
            if not stone:
                continue
            played = occupied | stone
            low, high = min(soonest_loss + 1, 0), soonest_win - 1
            if stone & wins:
                low = high = soonest_win
            elif (played + self._rules.bottom) & threats:
                low = high = soonest_loss
            moves.append(_Move(column, other, played, low, high))
        return moves, empty

    def _ask(self, move: _Move, bound: int) -> None:
        """Find out whether the score of a move is at least bound, unless that is known."""
        if move.low >= bound or move.high < bound:
            return
        score = -self._run(move.own, move.occupied, 1 - bound)
        if score >= bound:
            move.low = score
        else:
            move.high = score

    def _run(self, own: int, occupied: int, bound: int) -> int:
        """A lower bound of a position's score that is at least bound, or else an upper bound."""
        frames, *_, progress = self._stack
        frames[0, [kernel.OWN, kernel.OCCUPIED, kernel.BOUND]] = own, occupied, bound
        progress[:] = 0
        is_done = False
        while not is_done:
            left = self._last_position - self.positions
            if left < 1 or time.perf_counter() > self._deadline:
                raise _LimitReached
            visited = int(progress[kernel.POSITIONS])
            limit = visited + int(min(SLICE, left))
            is_done = kernel.search(self._rules, *self._stack, self._table, self._rest_bits, limit)
            self.positions += int(progress[kernel.POSITIONS]) - visited
        return int(progress[kernel.SCORE])


def _early_bounds(empty: int) -> Iterator[int]:
    """Bounds that tell wins and losses with few stones from everything else, fewest first."""
    for stones in range(2, 2 + NUM_EARLY_STONES):
        win, loss = (empty + 1) // 2 - stones + 1, stones - empty // 2
        if win > 1:
            yield win
        if loss < 0:
            yield loss


def _halving(move: _Move) -> Iterator[int]:
    """Bounds that leave one score: of those still possible the one in the middle, at each time."""
    while move.low < move.high:
        yield (move.low + move.high + 1) // 2


def _result(moves: list[_Move], empty: int) -> ScoreBounds:
    return ScoreBounds({move.column: (move.low, move.high) for move in moves}, empty)


def _sign(score: int) -> int:
    return (score > 0) - (score < 0)
