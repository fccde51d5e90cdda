"""What finds exact values: a solver, which optimum.py looks up by the game; and the one that lists
all positions."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from rlgames.games.capabilities import InvertibleKey, find
from rlgames.games.game import Game, State
from rlgames.solvers.budget import MAX_MEMORY, OutOfBudget
from rlgames.solvers.graph import MAX_POSITIONS, Graph

if TYPE_CHECKING:
    from rlgames.solvers.belief import BeliefSolution

G = TypeVar("G", bound=Game[Any])
S = TypeVar("S", bound=State)

MAX_SOLVER_ENTRIES = 1 << 27
"""The most entries of the table of a search that solves a game: 1 GiB for Connect 4."""

ENTRIES_PER_SECOND = 1 << 20
"""Entries for each second of the time limit: short searches do not need more."""


@dataclass(frozen=True)
class PositionValue:
    """What a position is worth to the seat to move when every seat plays optimally from here on.

    value: the turns of battleship, including this one; the score still to be gained; or +1, 0 and
    -1 for a game that is won, drawn and lost. None where it is unknown. actions: the same for each
    action, None where it is illegal or unknown. plies: for each action, how many plies the game
    then takes, this one included, if the winner hurries and the loser delays; None if unknown.
    """

    value: float | None
    actions: list[float | None]
    plies: list[int | None] | None = None


class Solver(ABC, Generic[G, S]):
    """Solves a game, and values many positions: what is found out about one serves the others.

    game: with its tables on the CPU. max_positions: where positions are searched or listed, the
    most for each one that is valued; the same on every machine, as opposed to seconds. memory: the
    most bytes.
    """

    about: ClassVar[str]
    """How it solves, and what."""

    max_solved: ClassVar[float] = MAX_POSITIONS
    max_played: ClassVar[float] = MAX_POSITIONS
    """The most positions that the rules may allow of games that it solves, and that it plays."""

    values_late_positions = True
    """Whether it values positions within max_positions, also of boards out of its reach."""

    usual_positions: ClassVar[float] = 1 << 19
    usual_total: ClassVar[float] = math.inf
    usual_seconds: ClassVar[float] = math.inf
    """Limits on one value, on all, and on the time, where nothing else is asked for."""

    def __init__(self, game: G, max_positions: float = math.inf, memory: int = MAX_MEMORY) -> None:
        self.game, self.max_positions, self.memory = game, max_positions, memory
        self.finds_plies = max_positions == math.inf

    @staticmethod
    @abstractmethod
    def fits(game: Game[Any]) -> bool:
        """Whether it solves the game with these rules, on boards that are small enough. Solvers
        that know the rules of a game do not know the rules of games derived from it."""

    @property
    def is_in_reach(self) -> bool:
        """Whether a board of this size can be solved, given time and memory."""
        return self.game.spec.max_positions <= self.max_solved

    @property
    def has_player(self) -> bool:
        """Whether it can also play such a board."""
        return self.is_in_reach and self.game.spec.max_positions <= self.max_played

    @abstractmethod
    def optimum(self, seconds: float, layouts: State | None) -> tuple[float | None, int]:
        """The value and the states of find_optimum; None beyond the budget. Raises OutOfBudget and
        ValueError."""

    def solution(self, seconds: float) -> Graph | BeliefSolution:
        """All that play from the start can lead to. Raises OutOfBudget and ValueError."""
        return Graph(self.game, seconds, self.memory)

    def table_entries(self, entry_bytes: int, seconds: float) -> float:
        """Entries for a search that solves the game. entry_bytes: more than twice their size."""
        return min(self.memory // entry_bytes, MAX_SOLVER_ENTRIES, seconds * ENTRIES_PER_SECOND)

    _search: Any = None

    @property
    def searched(self) -> int:
        """How many positions have been searched, where solve has a limit on them."""
        return 0 if self._search is None else int(self._search.positions)

    def solve(
        self, state: S, seconds: float, max_total: float = math.inf
    ) -> list[PositionValue | None]:
        """The values of live public positions [B], the latest first; None beyond the budget.

        seconds, max_total: limits on all of them together, of time and of positions searched.
        Raises ValueError for a position that no play leads to.
        """
        values: list[PositionValue | None] = [None] * len(state)
        end, last = time.perf_counter() + seconds, self.searched + max_total
        for row in self.game.depth(state).argsort(descending=True, stable=True).tolist():
            left = end - time.perf_counter()
            if left <= 0 or self.searched >= last:
                break
            with suppress(OutOfBudget):
                values[row] = self.value(state[torch.tensor([row])], left)
        return values

    @abstractmethod
    def value(self, state: S, seconds: float) -> PositionValue:
        """The value of one position. Raises as solve, and OutOfBudget."""

    def best_actions(self, state: S) -> tuple[float | None, list[int]]:
        """The value of one position and its best actions; beyond max_positions None and those that
        are not known to be worse than others. Both depend only on this position."""
        try:
            found = self.value(state, math.inf)
        except OutOfBudget:
            legal = self.game.legal_action_mask(state)[0]
            return None, legal.nonzero()[:, 0].tolist()
        assert found.value is not None
        values = [-math.inf if value is None else value for value in found.actions]
        best = [action for action, value in enumerate(values) if value > found.value - 1e-9]
        return found.value, best


class ListingSolver(Solver[Game[Any], State]):
    """Lists all positions that can follow."""

    about = "lists all positions"

    @staticmethod
    def fits(game: Game[Any]) -> bool:
        return find(game, InvertibleKey) is not None and not game.spec.hidden

    def optimum(self, seconds: float, layouts: State | None) -> tuple[float | None, int]:
        graph = Graph(self.game, seconds, self.memory)
        return graph.solve([None] * self.game.spec.seats).mean, graph.positions

    def solve(
        self, state: State, seconds: float, max_total: float = math.inf
    ) -> list[PositionValue | None]:
        values: list[PositionValue | None] = [None] * len(state)
        end = time.perf_counter() + seconds
        depth = self.game.depth(state)

        def solve(rows: Tensor) -> bool:
            """List what follows from all rows at once or, beyond the budget, from the later half
            and then from the rest. Returns whether all are valued."""
            try:
                part = self._list(state[rows], end - time.perf_counter())
            except OutOfBudget:
                depths = depth[rows].unique()
                late = depth[rows] >= depths[len(depths) // 2]
                return len(depths) > 1 and solve(rows[late]) and solve(rows[~late])
            for row, value in zip(rows.tolist(), part, strict=True):
                values[row] = value
            return True

        solve(torch.arange(len(state)))
        return values

    def value(self, state: State, seconds: float) -> PositionValue:
        return self._list(state, seconds)[0]

    def _list(self, state: State, seconds: float) -> list[PositionValue]:
        game = self.game
        row, action = game.legal_action_mask(state).nonzero().unbind(1)
        before = state[row]
        probability, after = game.chance_outcomes(game.apply_action(before, action))
        outcomes = probability.shape[1]
        value = (after.score - before.score.repeat_interleave(outcomes, 0))[:, 0].double()
        live = (probability.flatten() > 0) & ~after.done
        if bool(live.any()):
            graph = Graph(game, seconds, self.memory, self.max_positions, roots=after[live])
            solution = graph.solve([None] * game.spec.seats)
            value[live] += graph.state_values(solution, after[live])
        # The value of an outcome of probability 0 is meaningless and may not be finite.
        value = torch.where(probability.flatten() > 0, value, 0.0)
        sign = 1 - 2 * before.current_seat
        means = sign * (probability * value.view_as(probability)).sum(1)
        values = []
        for number in range(len(state)):
            mine = row == number
            by_action = dict(zip(action[mine].tolist(), means[mine].tolist(), strict=True))
            actions = [by_action.get(each) for each in range(game.spec.actions)]
            values.append(PositionValue(float(means[mine].max()), actions))
        return values


def as_value(value: int | None) -> float | None:
    """The value of a game that is won, drawn or lost, if it is known."""
    return None if value is None else float(value)
