"""Exact play where a position can be solved, around a search that plays all others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.players.player import Player, choose_in_live_rows
from rlgames.rng import Rng
from rlgames.search.search import Search, SearchResult
from rlgames.solvers.optimum import solver_of

MAX_KNOWN = 100_000
"""Positions whose solutions are kept. Games begin alike, and these positions take longest."""


class EndgameSolver:
    """Solves positions one by one, each within the same number of positions, so that the result
    depends only on the position.

    Raises ValueError for a game without a solver that can be limited.
    """

    def __init__(self, game: Game[Any], max_positions: int) -> None:
        solver = solver_of(game, max_positions)
        if solver is None or not solver.values_late_positions:
            raise ValueError(f"no solver plays the end of {game.spec.name}")
        self._solver, self._num_actions = solver, game.spec.actions
        self._known: dict[bytes, tuple[float | None, list[int]]] = {}

    def solve(self, state: State) -> tuple[Tensor, Tensor]:
        """The best actions of live positions, bool [T, A], those not known to be worse than others
        if a position is not solved; and its value for the seat to move, float32 [T], NaN if not
        solved."""
        best = torch.zeros(len(state), self._num_actions, dtype=torch.bool)
        value = torch.full((len(state),), torch.nan)
        state = state.to("cpu")
        for row in range(len(state)):
            position = state[torch.tensor([row])]
            key = position.content().numpy().tobytes()
            if key not in self._known:
                if len(self._known) >= MAX_KNOWN:
                    self._known.clear()
                self._known[key] = self._solver.best_actions(position)
            found, actions = self._known[key]
            best[row, actions] = True
            if found is not None:
                value[row] = found
        return best, value


class ExactEndgame(Player):
    """Plays like another player, except for moves that the solver knows to be worse than others."""

    def __init__(self, player: Player, solver: EndgameSolver) -> None:
        self.player, self.solver = player, solver
        self.is_deterministic = player.is_deterministic

    def choose(self, state: State, rng: Rng) -> Tensor:
        def choose(live: State, rng: Rng) -> Tensor:
            action = self.player.choose(live, rng).cpu()
            best, _ = self.solver.solve(live)
            is_best = best.gather(1, action[:, None])[:, 0]
            return torch.where(is_best, action, best.int().argmax(1))

        return choose_in_live_rows(state, rng, choose)


class ExactEndgameSearch(Search):
    """The same around a search, whose policy is left with these actions."""

    def __init__(self, inner: Search, solver: EndgameSolver) -> None:
        self.inner, self.solver = inner, solver
        self.is_deterministic = inner.is_deterministic
        self.game, self.utility, self.explores = inner.game, inner.utility, inner.explores

    def search(self, state: State, rng: Rng) -> SearchResult:
        result = self.inner.search(state, rng)
        best, value = (each.to(result.policy.device) for each in self.solver.solve(state))
        is_limited = (result.policy.where(best, 0.0) != result.policy).any(1, keepdim=True)
        # Of actions that the search has never tried, each is as good as the others.
        policy = result.policy.where(best, 0.0) + 1e-12 * best
        policy /= policy.sum(1, keepdim=True)
        is_best = best.gather(1, result.action[:, None])[:, 0]
        knows_value = ~value.isnan() & (self.utility.value == "outcome")
        return replace(
            result,
            policy=policy.where(is_limited, result.policy),
            action=torch.where(is_best, result.action, policy.argmax(1)),
            value=torch.where(knows_value, value, result.value),
        )
