"""What finds exact values: one solver for each kind of game, of which optimum.py has the table."""

from __future__ import annotations

import itertools
import math
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlgames.games.battleship import Battleship, BattleshipState
from rlgames.games.board_game import BoardGame, BoardState
from rlgames.games.capabilities import InvertibleKey, find
from rlgames.games.game import Game, State
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.symmetry import preserving
from rlgames.solvers.belief import BeliefSolution, solve_belief
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.connect4 import MAX_TABLE_ENTRIES, AlphaBeta
from rlgames.solvers.graph import MAX_POSITIONS, Graph
from rlgames.solvers.proof import MAX_SLOTS, SLOT_BYTES, ProofSearch, can_prove

G = TypeVar("G", bound=Game[Any])
S = TypeVar("S", bound=State)

MAX_MEMORY = 4 * 2**30
"""Bytes that a solver takes where nothing else is asked for."""

MAX_SOLVER_ENTRIES = 1 << 27
"""The most entries of the table of a search that solves a game: 1 GiB for Connect 4."""

ENTRIES_PER_SECOND = 1 << 20
"""Entries for each second of the time limit: short searches do not need more."""

MIN_PROVEN_POSITIONS, MAX_PROVEN_POSITIONS = 1e6, 1e13
"""Games whose rules allow fewer positions are listed, which takes less time than loading a kernel.
Games that allow more are not solved from the start."""

MAX_SALVOS = 20_000
"""The most ways to complete a turn that are compared where its cells are chosen one by one."""


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
        actions = [_number(result.outcome(each)) for each in columns]
        return PositionValue(_number(result.value), actions, [*map(result.plies, columns)])

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
        return PositionValue(_number(best), actions)

    def best_actions(self, state: BoardState) -> tuple[float | None, list[int]]:
        """As ProofSearch.search."""
        self._search.clear()
        value, actions = self._search.search(state, max_positions=self.max_positions)
        return _number(value), actions


def _number(value: int | None) -> float | None:
    return None if value is None else float(value)


class BeliefSolver(Solver[Battleship, BattleshipState]):
    """Values each possible turn: the mean over all layouts that agree with the hits and misses."""

    about = "dynamic programming over beliefs, for battleship with hits and misses only"
    max_played = math.inf
    values_late_positions = False
    usual_positions, usual_seconds = math.inf, 60.0
    _solution: BeliefSolution | None = None

    @staticmethod
    def fits(game: Game[Any]) -> bool:
        return type(game) is Battleship and not game.announces_sinkings

    @property
    def is_in_reach(self) -> bool:
        return self.game.fleet.layouts is not None

    def optimum(self, seconds: float, layouts: State | None) -> tuple[float | None, int]:
        solution = self.solution(seconds, layouts)
        return solution.optimal, solution.states

    def solution(self, seconds: float, layouts: State | None = None) -> BeliefSolution:
        """Also raises OutOfBudget for fleets whose layouts are too many to list, and ValueError for
        boards that are too large."""
        game = self.game
        ships = game.fleet.layouts if layouts is None else cast(BattleshipState, layouts).ships
        if ships is None:
            raise OutOfBudget("the fleet has too many layouts")
        cells = ships.cpu() > 0
        symmetries = preserving(game.symmetries(), cells).numpy()
        return solve_belief(cells.numpy(), game.shots, symmetries, seconds, self.memory)

    def value(self, state: BattleshipState, seconds: float) -> PositionValue:
        game = self.game
        try:
            self._solution = self._solution or self.solution(seconds)
        except ValueError as error:  # more cells than beliefs have numbers for
            raise OutOfBudget(str(error)) from None
        shot, hit, aimed = (np.asarray(field[0]) for field in (state.shot, state.hit, state.aimed))
        agreeing = self._layouts[(self._layouts[:, shot] == hit[shot]).all(1)]
        if not len(agreeing):
            raise ValueError("no layout of the fleet agrees with these hits and misses")
        salvos = _salvos(game, shot, aimed)
        seen, weights = [], []
        for cells in salvos:
            patterns, counts = np.unique(agreeing[:, cells], axis=0, return_counts=True)
            after = np.tile([shot, hit], (len(patterns), 1, 1))
            after[:, 0, cells], after[:, 1, cells] = True, patterns
            seen.append(after)
            weights.append(counts)
        shots, hits = np.concatenate(seen).swapaxes(0, 1)
        ends = np.cumsum([len(counts) for counts in weights])
        turns_left = np.split(self._solution.value(shots, hits), ends[:-1])
        totals = [float((t * counts).sum()) for t, counts in zip(turns_left, weights, strict=True)]
        values = 1.0 + np.array(totals) / len(agreeing)
        return PositionValue(float(values.min()), _action_values(game, state, salvos, values))

    @cached_property
    def _layouts(self) -> NDArray[np.bool_]:
        return np.asarray(self.game.layouts())


def _salvos(
    game: Battleship, shot: NDArray[np.bool_], aimed: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The cells of each turn that can be completed from here, int64 [S, shots].

    Raises OutOfBudget where there are too many.
    """
    chosen, free = np.flatnonzero(aimed), np.flatnonzero(~shot & ~aimed)
    missing = min(game.shots, int((~shot).sum())) - len(chosen)
    if math.comb(len(free), missing) > MAX_SALVOS:
        raise OutOfBudget("too many ways to shoot")
    added = np.array([*itertools.combinations(free.tolist(), missing)], np.int64)
    return np.concatenate([np.tile(chosen, (len(added), 1)), added], 1)


def _action_values(
    game: Battleship,
    state: BattleshipState,
    salvos: NDArray[np.int64],
    values: NDArray[np.float64],
) -> list[float | None]:
    """The value of the best salvo that each action can begin."""
    target = torch.zeros(len(salvos), game.num_cells, dtype=torch.bool)
    target.scatter_(1, torch.from_numpy(salvos), True)
    value = torch.from_numpy(values)[:, None]
    if game.sequential:
        best = value.where(target & ~state.aimed, math.inf).amin(0)
    else:
        actions = torch.cat([game.action_at(state, each) for each in target.split(1)])
        best = torch.full((game.spec.actions,), math.inf, dtype=torch.float64)
        best.scatter_reduce_(0, actions, value[:, 0], "amin")
    return [None if each == math.inf else each for each in best.tolist()]
