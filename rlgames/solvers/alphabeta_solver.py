"""The solver of k in a row with gravity."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from rlgames.games.board_game import BoardState
from rlgames.games.game import Game, State
from rlgames.games.k_in_a_row import KInARow
from rlgames.solvers.connect4 import MAX_TABLE_ENTRIES, AlphaBeta
from rlgames.solvers.graph import MAX_POSITIONS
from rlgames.solvers.position import ListingSolver, PositionValue, Solver, as_value


class AlphaBetaSolver(Solver[KInARow, BoardState]):
    """Searches within the limits; what that leaves open on small boards is valued by listing. Plies
    are known only if it finds plies."""

    about = "alpha-beta search, for k in a row with gravity"
    max_solved = max_played = math.inf
    usual_positions, usual_total = 1 << 24, 1 << 28

    @staticmethod
    def fits(game: Game[Any]) -> bool:
        return type(game) is KInARow and game.gravity

    def optimum(self, seconds: float, layouts: State | None) -> tuple[float | None, int]:
        search = self.search(self.table_entries(16, seconds))
        return search.search(0, 0, seconds).value, search.positions

    def search(self, entries: float) -> AlphaBeta:
        """A search whose table has this many entries, about."""
        return AlphaBeta(self.game.rows, self.game.columns, self.game.line, int(entries))

    @cached_property
    def _search(self) -> AlphaBeta:
        return self.search(min(4 * self.max_positions, MAX_TABLE_ENTRIES))

    def value(self, state: BoardState, seconds: float) -> PositionValue:
        game, limit = self.game, self.max_positions
        own, occupied = state.words[0].tolist()
        result = self._search.analyze(own, occupied, seconds, limit, self.finds_plies)
        if result.value is None and game.spec.max_positions <= MAX_POSITIONS:
            return ListingSolver(game, limit, self.memory).value(state, seconds)
        columns = range(game.spec.actions)
        actions = [as_value(result.outcome(each)) for each in columns]
        return PositionValue(as_value(result.value), actions, [*map(result.plies, columns)])

    def best_actions(self, state: BoardState) -> tuple[float | None, list[int]]:
        """Those that win as soon, or lose as late, as can be told with the positions that the
        question who wins has left."""
        search, (own, occupied) = self._search, state.words[0].tolist()
        search.clear()
        before = search.positions
        result = search.search(own, occupied, max_positions=self.max_positions)
        if result.value is None:
            return None, result.columns
        left = self.max_positions - (search.positions - before)
        scored = search.analyze(own, occupied, max_positions=left)
        return float(result.value), (result if scored.value is None else scored).best_columns
