"""Exact values of games without hidden information, over every position that can be reached.

Positions are gone through by rank, which grows with every move: first upwards, to find them, then
downwards, to value them. What a position is worth is what seat 0's score is expected to gain from
there on; seat 0 plays for more of it and seat 1, where there is one, for less. So one sweep is
minimax, expectimax, the value of one policy against another, or the best response to a policy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.solvers.budget import OutOfBudget

Decider = Callable[[State], Tensor]
"""Probabilities of the actions, float64 [B, A], of positions [B]."""

CHUNK = 1 << 16
"""Positions worked on at once."""

EDGE_BYTES = 48

MOST_POSITIONS = 1e11
"""Games whose rules allow more than this, mostly unreachable, are not tried at all."""


@dataclass
class _Rank:
    """The n positions of one rank and the e edges that leave them.

    keys: int64 [n], rising. cell: int64 [e], row * A + action. probability, gain: float64 [e].
    child, child_rank: int64 [e], the key and the rank of the position reached; rank -1: it is over.
    """

    keys: Tensor
    cell: Tensor
    probability: Tensor
    score_delta: Tensor
    child: Tensor
    child_rank: Tensor


@dataclass(frozen=True)
class Values:
    """The worth of a game when each seat decides in some way.

    mean: expected final score of seat 0, from the game's openings. decided: expected size of
    it; in a game of +1, 0 and -1 seat 0 wins (decided + mean) / 2, loses (decided - mean) / 2.
    best: bool [n, A] by rank, the best actions of every position for whoever moves.
    worth: float64 [n, 2] by rank, mean and decided of every position from there on.
    """

    mean: float
    decided: float
    best: dict[int, Tensor]
    worth: dict[int, Tensor]


class Graph:
    """All positions of a game, or those that can follow from live positions, roots.

    Raises OutOfBudget beyond the limits, ValueError without keys.
    """

    def __init__(
        self,
        game: Game[Any],
        seconds: float,
        memory_bytes: int,
        most_positions: float = float("inf"),
        roots: State | None = None,
    ) -> None:
        if game.spec.hidden or not game.spec.has_exact_key:
            raise ValueError(f"{game.spec.name} cannot be solved by listing its positions")
        if roots is None:
            openings = game.openings(10_000)
        else:
            openings = roots, torch.full((len(roots),), 1 / len(roots), dtype=torch.float64)
        if openings is None or game.spec.max_positions > MOST_POSITIONS:
            raise OutOfBudget(f"{game.spec.name} has too many positions to list")
        self.game, self.ranks = game, dict[int, _Rank]()
        self._deadline = time.perf_counter() + seconds
        self._memory, self._most = memory_bytes, most_positions
        self._openings, self._weight = openings
        waiting: dict[int, list[Tensor]] = {}
        self._wait(waiting, game.key(self._openings), game.depth(self._openings))
        while waiting:
            rank = min(waiting)
            keys = torch.cat(waiting.pop(rank)).unique()
            if self.positions + len(keys) > self._most:
                raise OutOfBudget(f"more than {self._most:,} positions")
            self.ranks[rank] = found = self._expand(keys)
            live = found.child_rank >= 0
            self._wait(waiting, found.child[live], found.child_rank[live])

    @property
    def positions(self) -> int:
        """How many positions there are in which somebody has to move."""
        return sum(len(rank.keys) for rank in self.ranks.values())

    def value(self, deciders: Sequence[Decider | None]) -> Values:
        """Each seat decides by its probabilities, or plays the best that it can (None)."""
        worth: dict[int, Tensor] = {}
        best: dict[int, Tensor] = {}
        for number in sorted(self.ranks, reverse=True):
            rank = self.ranks[number]
            worth[number], best[number] = self._back_up(rank, worth, deciders)
        numbers = self.game.depth(self._openings)
        total = torch.zeros(2, dtype=torch.float64)
        for number in numbers.unique().tolist():
            rows = (numbers == number).nonzero()[:, 0]
            at = self._find(number, self.game.key(self._openings[rows]))
            total += (self._weight[rows, None] * worth[number][at]).sum(0)
        return Values(float(total[0]), float(total[1]), best, worth)

    def best(self, values: Values, state: State) -> Tensor:
        """Bool [B, A]: the best actions; all of them in a finished row."""
        mask = torch.ones(len(state), self.game.spec.actions, dtype=torch.bool)
        numbers, keys = self.game.depth(state), self.game.key(state)
        for number in numbers[~state.done].unique().tolist():
            rows = ((numbers == number) & ~state.done).nonzero()[:, 0]
            mask[rows] = values.best[number][self._find(number, keys[rows])]
        return mask

    def worth(self, values: Values, state: State) -> Tensor:
        """Float64 [B]: what seat 0 is expected to gain from here on; 0 in a finished row."""
        found = torch.zeros(len(state), dtype=torch.float64)
        numbers, keys = self.game.depth(state), self.game.key(state)
        for number in numbers[~state.done].unique().tolist():
            rows = ((numbers == number) & ~state.done).nonzero()[:, 0]
            found[rows] = values.worth[number][self._find(number, keys[rows]), 0]
        return found

    def _find(self, rank: int, keys: Tensor) -> Tensor:
        return torch.searchsorted(self.ranks[rank].keys, keys)

    def _wait(self, waiting: dict[int, list[Tensor]], keys: Tensor, ranks: Tensor) -> None:
        for rank in ranks.unique().tolist():
            waiting.setdefault(rank, []).append(keys[ranks == rank].unique())

    def _expand(self, keys: Tensor) -> _Rank:
        parts: list[tuple[Tensor, ...]] = []
        for start in range(0, len(keys), CHUNK):
            state = self.game.state_from_key(keys[start : start + CHUNK])
            legal = self.game.legal_action_mask(state)
            for action in range(self.game.spec.actions):
                rows = legal[:, action].nonzero()[:, 0]
                if len(rows):
                    parts.append(self._edges(state, rows, action, start))
            self._check(sum(len(part[0]) for part in parts))
        return _Rank(keys, *(torch.cat(column) for column in zip(*parts, strict=True)))

    def _edges(self, state: State, rows: Tensor, action: int, start: int) -> tuple[Tensor, ...]:
        game = self.game
        slid = game.apply_action(state[rows], torch.full((len(rows),), action))
        probability, after = game.chance_outcomes(slid)
        ways = probability.shape[1]
        possible = (probability.reshape(-1) > 0).nonzero()[:, 0]
        after = after[possible]
        row = rows.repeat_interleave(ways)[possible]
        rank = torch.where(after.done, -1, game.depth(after))
        return (
            (row + start) * game.spec.actions + action,
            probability.reshape(-1)[possible],
            after.score[:, 0].double(),
            torch.where(after.done, 0, game.key(after)),
            rank,
        )

    def _check(self, edges: int) -> None:
        held = EDGE_BYTES * (edges + sum(len(rank.cell) for rank in self.ranks.values()))
        if time.perf_counter() > self._deadline:
            raise OutOfBudget(f"not done in time: {self.positions:,} positions found")
        if held > self._memory:
            raise OutOfBudget(f"more memory would be needed: {self.positions:,} positions found")

    def _back_up(
        self, rank: _Rank, worth: dict[int, Tensor], deciders: Sequence[Decider | None]
    ) -> tuple[Tensor, Tensor]:
        """Worth of the positions, float64 [n, 2], and their best actions, bool [n, A]."""
        later = torch.zeros(len(rank.cell), 2, dtype=torch.float64)
        for number in rank.child_rank.unique().tolist():
            if number >= 0:
                rows = (rank.child_rank == number).nonzero()[:, 0]
                later[rows] = worth[number][self._find(number, rank.child[rows])]
        later += torch.stack([rank.score_delta, rank.score_delta.abs()], 1)
        actions = self.game.spec.actions
        quality = torch.zeros(len(rank.keys) * actions, 2, dtype=torch.float64)
        quality.index_add_(0, rank.cell, rank.probability[:, None] * later)
        legal = torch.zeros(len(rank.keys) * actions, dtype=torch.bool)
        legal[rank.cell] = True
        quality, legal = quality.view(-1, actions, 2), legal.view(-1, actions)
        result = torch.zeros(len(rank.keys), 2, dtype=torch.float64)
        best = torch.zeros_like(legal)
        for start in range(0, len(rank.keys), CHUNK):
            part = slice(start, start + CHUNK)
            state = self.game.state_from_key(rank.keys[part])
            sign = (1 - 2 * state.current_seat).double()
            for_mover = (quality[part, :, 0] * sign[:, None]).masked_fill(~legal[part], -torch.inf)
            most = for_mover.amax(1, keepdim=True)
            best[part] = for_mover >= most - 1e-9 * most.abs().clamp(min=1)
            weight = torch.zeros(len(state), actions, dtype=torch.float64)
            weight.scatter_(1, for_mover.argmax(1, keepdim=True), 1.0)
            for seat, decider in enumerate(deciders):
                rows = (state.current_seat == seat).nonzero()[:, 0]
                if decider is not None and len(rows):
                    weight[rows] = decider(state[rows]).double().cpu()
            result[part] = (weight[:, :, None] * quality[part]).sum(1)
        return result, best


def exact_results(graph: Graph, decider: Decider, opponent: Decider) -> list[dict[str, float]]:
    """How likely the decider wins, draws and loses, sitting in seat 0 and in seat 1.

    For games whose final scores are 1, 0 and -1.
    """
    seats = []
    for seat in (0, 1):
        pair = [decider, opponent] if seat == 0 else [opponent, decider]
        found = graph.value(pair)
        mean = found.mean if seat == 0 else -found.mean
        win, loss = (found.decided + mean) / 2, (found.decided - mean) / 2
        # Sums of very many products leave a trace of either sign.
        likely = {"win": win, "draw": 1 - win - loss, "loss": loss}
        seats.append({name: 0.0 if abs(p) < 1e-12 else p for name, p in likely.items()})
    return seats


def exploitability(graph: Graph, decider: Decider) -> tuple[float, list[float]]:
    """How much a best response gains on a policy that sits in either seat, beyond the game's value.

    Returns the mean over both seats, and the gain against the policy in seat 0 and in seat 1.
    """
    fair = graph.value([None, None]).mean
    against_first = fair - graph.value([decider, None]).mean
    against_second = graph.value([None, decider]).mean - fair
    # Rounding may leave a trace of either sign where nothing is gained.
    score_scale = [0.0 if abs(gain) < 1e-12 else gain for gain in (against_first, against_second)]
    return sum(score_scale) / 2, score_scale
