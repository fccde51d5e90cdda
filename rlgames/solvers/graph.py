"""Exact values of games without hidden information, over all reachable positions.

Positions are grouped in layers by their depth, which grows with every move. A sweep upwards lists
them, a sweep downwards values them (backward induction). The value of a position is the score that
seat 0 is expected to gain from there on; seat 0 maximizes it and seat 1, if there is one,
minimizes it. So one sweep is minimax, expectimax, the value of one policy against another, or the
best response to a policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from rlgames.core.errors import ConfigError
from rlgames.games.capabilities import InvertibleKey, require
from rlgames.games.game import Game, State
from rlgames.solvers.budget import MAX_MEMORY, Budget, OutOfBudget

PolicyFunction = Callable[[State], Tensor]
"""Probabilities of the actions, float64 [B, A], of positions [B]."""

CHUNK = 1 << 16
"""Positions processed at once."""

EDGE_BYTES = 48
"""Memory that an edge takes."""

MAX_OPENINGS = 10_000
"""The most openings of a game whose positions are listed."""

MAX_POSITIONS = 1e11
"""Games whose rules allow more positions than this, most of them unreachable, are not tried, only
a limited number of the positions that can follow from others."""

MAX_GRAPH_POSITIONS = 50_000
"""Trainings know exploitability and the exact mean of random play of games of at most this many
positions. It is a count, so that the same is known on every machine, however busy."""


@dataclass
class _Layer:
    """The n positions of one depth and the e edges that leave them.

    keys: int64 [n], ascending. cell: int64 [e], row * A + action. probability, score_delta: float64
    [e]. child, child_depth: int64 [e], the key and the depth of the next position; depth -1: over.
    """

    keys: Tensor
    cell: Tensor
    probability: Tensor
    score_delta: Tensor
    child: Tensor
    child_depth: Tensor


@dataclass(frozen=True)
class Solution:
    """The values of a game when each seat follows a policy or plays optimally.

    mean: expected final score of seat 0, from the game's openings. mean_abs: expected absolute
    value of that score; in a game of +1, 0 and -1 seat 0 wins with probability
    (mean_abs + mean) / 2 and loses with probability (mean_abs - mean) / 2.
    best_actions: bool [n, A] by depth, the best actions of each position for the seat to move.
    values: float64 [n, 2] by depth, mean and mean_abs of each position from there on.
    """

    mean: float
    mean_abs: float
    best_actions: dict[int, Tensor]
    values: dict[int, Tensor]


class Graph:
    """All positions of a game, or those that can follow from some live positions, the roots.

    Raises OutOfBudget beyond the limits, ValueError for a game without exact keys, and ConfigError
    for one whose rules end nowhere.
    """

    def __init__(
        self,
        game: Game[Any],
        seconds: float,
        memory_bytes: int,
        max_positions: float = float("inf"),
        roots: State | None = None,
    ) -> None:
        if game.spec.hidden:
            raise ValueError(f"{game.spec.name} cannot be solved by listing its positions")
        self.keys = require(game, InvertibleKey, "the solver that lists positions")
        if roots is None:
            openings = game.openings(MAX_OPENINGS)
        else:
            openings = roots, torch.full((len(roots),), 1 / len(roots), dtype=torch.float64)
        is_limited = roots is not None and max_positions < float("inf")
        is_vast = game.spec.max_positions > MAX_POSITIONS and not is_limited
        if openings is None or is_vast:
            raise OutOfBudget(f"{game.spec.name} has too many positions to list")
        self.game, self.layers = game, dict[int, _Layer]()
        self._budget = Budget(seconds, memory_bytes)
        self._roots, self._root_probability = openings
        self._list_positions(max_positions)

    @property
    def positions(self) -> int:
        """The number of positions where a seat has to move."""
        return sum(len(layer.keys) for layer in self.layers.values())

    def solve(self, policies: Sequence[PolicyFunction | None]) -> Solution:
        """The values when each seat follows its policy, or plays optimally (None)."""
        values: dict[int, Tensor] = {}
        best_actions: dict[int, Tensor] = {}
        for depth in sorted(self.layers, reverse=True):
            values[depth], best_actions[depth] = self._back_up(self.layers[depth], values, policies)
        depths = self.game.depth(self._roots)
        total = torch.zeros(2, dtype=torch.float64)
        for depth in depths.unique().tolist():
            rows = (depths == depth).nonzero()[:, 0]
            at = self._find(depth, self.keys.key(self._roots[rows]))
            total += (self._root_probability[rows, None] * values[depth][at]).sum(0)
        return Solution(float(total[0]), float(total[1]), best_actions, values)

    @cached_property
    def optimum(self) -> float:
        """The score that seat 0 is expected to gain if every seat plays optimally."""
        return self.solve([None] * self.game.spec.seats).mean

    def best_actions(self, solution: Solution, state: State) -> Tensor:
        """Bool [B, A]: the best actions; all True in a finished row."""
        mask = torch.ones(len(state), self.game.spec.actions, dtype=torch.bool)
        return self._look_up(solution.best_actions, state, mask)

    def state_values(self, solution: Solution, state: State) -> Tensor:
        """Float64 [B]: the score that seat 0 is expected to gain; 0 in a finished row."""
        zeros = torch.zeros(len(state), 2, dtype=torch.float64)
        return self._look_up(solution.values, state, zeros)[:, 0]

    def _look_up(self, table: dict[int, Tensor], state: State, rows_of: Tensor) -> Tensor:
        """rows_of, [B, ...], with the rows of live positions from a table by depth."""
        depths, keys = self.game.depth(state), self.keys.key(state)
        for depth in depths[~state.done].unique().tolist():
            rows = ((depths == depth) & ~state.done).nonzero()[:, 0]
            rows_of[rows] = table[depth][self._find(depth, keys[rows])]
        return rows_of

    def _find(self, depth: int, keys: Tensor) -> Tensor:
        return torch.searchsorted(self.layers[depth].keys, keys)

    def _list_positions(self, max_positions: float) -> None:
        """Fill the layers, from the roots on."""
        queue: dict[int, list[Tensor]] = {}
        _enqueue(queue, self.keys.key(self._roots), self.game.depth(self._roots))
        while queue:
            depth = min(queue)
            keys = torch.cat(queue.pop(depth)).unique()
            if self.positions + len(keys) > max_positions:
                raise OutOfBudget(f"more than {max_positions:,} positions")
            self.layers[depth] = layer = self._expand(keys)
            live = layer.child_depth >= 0
            if bool((layer.child_depth[live] <= depth).any()):
                name = self.game.spec.name
                raise ConfigError(f"the depth of {name} does not grow with a move after {depth}")
            _enqueue(queue, layer.child[live], layer.child_depth[live])

    def _expand(self, keys: Tensor) -> _Layer:
        parts: list[tuple[Tensor, ...]] = []
        for start in range(0, len(keys), CHUNK):
            state = self.keys.state_from_key(keys[start : start + CHUNK])
            legal = self.game.legal_action_mask(state)
            if not bool(legal.any(1).all()):
                name = self.game.spec.name
                raise ConfigError(f"{name} has no legal action in a game that is not over")
            for action in range(self.game.spec.actions):
                rows = legal[:, action].nonzero()[:, 0]
                if len(rows):
                    parts.append(self._edges(state, rows, action, start))
            edges = sum(len(part[0]) for part in parts)
            edges += sum(len(layer.cell) for layer in self.layers.values())
            self._budget.bytes_in_use = EDGE_BYTES * edges
            self._budget.states_found = self.positions
            self._budget.check()
        return _Layer(keys, *(torch.cat(column) for column in zip(*parts, strict=True)))

    def _edges(self, state: State, rows: Tensor, action: int, start: int) -> tuple[Tensor, ...]:
        """The columns of a layer for one action; start: the number of the first row."""
        game = self.game
        afterstate = game.apply_action(state[rows], torch.full((len(rows),), action))
        probability, after = game.chance_outcomes(afterstate)
        outcomes = probability.shape[1]
        possible = (probability.reshape(-1) > 0).nonzero()[:, 0]
        after = after[possible]
        row = rows.repeat_interleave(outcomes)[possible]
        depth = torch.where(after.done, -1, game.depth(after))
        return (
            (row + start) * game.spec.actions + action,
            probability.reshape(-1)[possible],
            after.score[:, 0].double(),
            torch.where(after.done, 0, self.keys.key(after)),
            depth,
        )

    def _back_up(
        self, layer: _Layer, values: dict[int, Tensor], policies: Sequence[PolicyFunction | None]
    ) -> tuple[Tensor, Tensor]:
        """Values of a layer's positions, float64 [n, 2], and their best actions, bool [n, A]."""
        action_values, legal = self._action_values(layer, values)
        result = torch.zeros(len(layer.keys), 2, dtype=torch.float64)
        best = torch.zeros_like(legal)
        for start in range(0, len(layer.keys), CHUNK):
            part = slice(start, start + CHUNK)
            state = self.keys.state_from_key(layer.keys[part])
            sign = (1 - 2 * state.current_seat).double()
            for_mover = action_values[part, :, 0] * sign[:, None]
            for_mover = for_mover.masked_fill(~legal[part], -torch.inf)
            highest = for_mover.amax(1, keepdim=True)
            best[part] = for_mover >= highest - 1e-9 * highest.abs().clamp(min=1)
            weight = torch.zeros_like(for_mover)
            weight.scatter_(1, for_mover.argmax(1, keepdim=True), 1.0)
            for seat, policy in enumerate(policies):
                rows = (state.current_seat == seat).nonzero()[:, 0]
                if policy is not None and len(rows):
                    weight[rows] = policy(state[rows]).double().cpu()
            result[part] = (weight[:, :, None] * action_values[part]).sum(1)
        return result, best

    def _action_values(self, layer: _Layer, values: dict[int, Tensor]) -> tuple[Tensor, Tensor]:
        """Values of a layer's actions, float64 [n, A, 2], and their legality, bool [n, A]."""
        later = torch.zeros(len(layer.cell), 2, dtype=torch.float64)
        for depth in layer.child_depth.unique().tolist():
            if depth >= 0:
                rows = (layer.child_depth == depth).nonzero()[:, 0]
                later[rows] = values[depth][self._find(depth, layer.child[rows])]
        later += torch.stack([layer.score_delta, layer.score_delta.abs()], 1)
        actions = self.game.spec.actions
        totals = torch.zeros(len(layer.keys) * actions, 2, dtype=torch.float64)
        totals.index_add_(0, layer.cell, layer.probability[:, None] * later)
        legal = torch.zeros(len(layer.keys) * actions, dtype=torch.bool)
        legal[layer.cell] = True
        return totals.view(-1, actions, 2), legal.view(-1, actions)


def _enqueue(queue: dict[int, list[Tensor]], keys: Tensor, depths: Tensor) -> None:
    for depth in depths.unique().tolist():
        queue.setdefault(depth, []).append(keys[depths == depth].unique())


def find_graph(
    game: Game[Any], seconds: float = math.inf, max_positions: float = math.inf
) -> Graph | None:
    """All positions of a game without hidden information, or None beyond a limit or 4 GiB."""
    if not seconds:
        return None
    try:
        return Graph(game.on_cpu(), seconds, MAX_MEMORY, max_positions)
    except (OutOfBudget, ValueError):
        return None


def exact_results(
    graph: Graph, policy: PolicyFunction, opponent: PolicyFunction
) -> list[dict[str, float]]:
    """The probabilities that the policy wins, draws and loses, in seat 0 and in seat 1.

    For games whose final scores are 1, 0 and -1.
    """
    seats = []
    for seat in (0, 1):
        pair = [policy, opponent] if seat == 0 else [opponent, policy]
        solution = graph.solve(pair)
        mean = solution.mean if seat == 0 else -solution.mean
        win, loss = (solution.mean_abs + mean) / 2, (solution.mean_abs - mean) / 2
        # Rounding may leave a trace of either sign.
        probabilities = {"win": win, "draw": 1 - win - loss, "loss": loss}
        seats.append({name: 0.0 if abs(p) < 1e-12 else p for name, p in probabilities.items()})
    return seats


def exploitability(graph: Graph, policy: PolicyFunction) -> tuple[float, list[float]]:
    """What a best response gains on a policy in either seat, compared with the game's value.

    Returns the mean over both seats, and the gain against the policy in seat 0 and in seat 1.
    """
    against_first = graph.optimum - graph.solve([policy, None]).mean
    against_second = graph.solve([None, policy]).mean - graph.optimum
    # Rounding may leave a trace of either sign where nothing is gained.
    gains = [0.0 if abs(gain) < 1e-12 else gain for gain in (against_first, against_second)]
    return sum(gains) / 2, gains
