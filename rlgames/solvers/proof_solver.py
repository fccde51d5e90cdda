"""The solver of two-player board games that are too large to list."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

import torch

from rlgames.games.board_game import BoardGame, BoardState
from rlgames.games.game import Game, State
from rlgames.solvers.position import ListingSolver, PositionValue, Solver, as_value
from rlgames.solvers.proof import MAX_SLOTS, SLOT_BYTES, ProofSearch, can_prove

MIN_PROVEN_POSITIONS, MAX_PROVEN_POSITIONS = 1e6, 1e13
"""Games whose rules allow fewer positions are listed, which takes less time than loading a kernel.
Games that allow more are not solved from the start."""


class ProofSolver(Solver[BoardGame, BoardState]):
    """Searches for who wins, and then for who wins after each action, within the limits."""

    about = "proof-number search, for two-player board games"
    max_solved = MAX_PROVEN_POSITIONS
    usual_total = 1 << 22

    @staticmethod
    def fits(game: Game[Any]) -> bool:
        is_listed = ListingSolver.fits(game) and game.spec.max_positions < MIN_PROVEN_POSITIONS
        return can_prove(game) and not is_listed

    def optimum(self, seconds: float, layouts: State | None) -> tuple[float | None, int]:
        openings = self.game.openings(1) if self.is_in_reach else None
        if openings is None:
            return None, 0
        entry_bytes = 2 * SLOT_BYTES + 16 * len(self.game.rules.start)
        search = ProofSearch(self.game, self.table_entries(entry_bytes, seconds))
        value, _ = search.search(openings[0], seconds)
        sign = int(1 - 2 * openings[0].current_seat)
        return None if value is None else sign * value, search.positions

    @cached_property
    def _search(self) -> ProofSearch:
        return ProofSearch(self.game, min(4 * self.max_positions, MAX_SLOTS))

    def value(self, state: BoardState, seconds: float) -> PositionValue:
        game, search = self.game, self._search
        legal = game.legal_action_mask(state)[0].nonzero()[:, 0]
        before = state[torch.zeros_like(legal)]
        after = game.apply_action(before, legal)
        gained = (1 - 2 * before.current_seat) * (after.score - before.score)[:, 0]
        end, last = time.perf_counter() + seconds, search.positions + self.max_positions
        actions: list[float | None] = [None] * game.spec.actions
        best, best_actions = search.search(state, seconds / 2, self.max_positions / 2)
        for action in [] if best is None else best_actions:
            actions[action] = float(best or 0)
        for number, action in enumerate(legal.tolist()):
            if bool(after.done[number]):
                actions[action] = float(gained[number])
            if actions[action] is not None:
                continue
            # What one action does not need is left to the others.
            now, share = time.perf_counter(), len(legal) - number
            row = after[torch.tensor([number])]
            left = max(end - now, 0.0) / share, (last - search.positions) / share
            value, _ = search.search(row, *left)
            actions[action] = None if value is None else float(0 - value)
        known = [value for value in actions if value is not None]
        if best is None and (1.0 in known or len(known) == len(legal)):
            best = int(max(known))
        return PositionValue(as_value(best), actions)

    def best_actions(self, state: BoardState) -> tuple[float | None, list[int]]:
        """As ProofSearch.search."""
        self._search.clear()
        value, actions = self._search.search(state, max_positions=self.max_positions)
        return as_value(value), actions
