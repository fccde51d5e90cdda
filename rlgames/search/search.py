"""The contract of a search: a player that tries actions before it chooses one."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rlgames.core.devices import to_float64
from rlgames.core.rows import Rows
from rlgames.games.game import Game, State, endless
from rlgames.players.player import Player, choose_in_live_rows
from rlgames.rng import Rng
from rlgames.sampling import sample_logits
from rlgames.search.utility import Utility


@dataclass(frozen=True)
class SearchResult(Rows):
    """What a search found at T roots, for the seats to move.

    visits: float32 [T, A]. q: float32 [T, A], in [0, 1), 0 for unvisited actions. policy: float32
    [T, A], what a network learns from: the fractions of the visits, the improved policy of
    rule=gumbel, or equal shares for the best actions of search=rollout. action: int64 [T], the
    action to take: the one with the most visits, of these with the highest q; by rule=gumbel, of
    these with the highest noise + logits + transformed q; by search=rollout the best, of these the
    likeliest. value: float32 [T], the mean of all simulations, or of the action to take by
    search=rollout; see Utility.
    """

    visits: Tensor
    q: Tensor
    policy: Tensor
    action: Tensor
    value: Tensor


class Search(Player):
    """explores: whether its own noise explores in training, so that it chooses the actions."""

    game: Game[Any]
    utility: Utility
    explores = False

    @abstractmethod
    def search(self, state: State, rng: Rng) -> SearchResult:
        """The result at live public positions [T]."""

    def choose(self, state: State, rng: Rng) -> Tensor:
        """The action that the search takes, see SearchResult."""
        return choose_in_live_rows(state, rng, lambda live, rng: self.search(live, rng).action)


class SearchPolicy(Player):
    """Chooses actions with the probabilities that a search found, see SearchResult.policy."""

    def __init__(self, search: Search) -> None:
        self.search = search

    def choose(self, state: State, rng: Rng) -> Tensor:
        rng = rng.rows(len(state))
        return sample_logits(self.probabilities(state, rng).log(), rng.fold_in(1))

    def probabilities(self, state: State, rng: Rng | None = None) -> Tensor:
        rng = Rng(device=state.done.device) if rng is None else rng
        return to_float64(self.search.search(state, rng).policy)


def play_on(game: Game[Any], player: Player, state: State, max_plies: float, rng: Rng) -> State:
    """Positions [S] after at most max_plies further plies, all seats played by the player; rng: of
    the rows. Raises ConfigError if a game exceeds spec.max_plies."""
    rng = rng.rows(len(state))
    row = torch.arange(len(state), device=state.done.device)
    finished: list[tuple[Tensor, State]] = []
    ply = 0
    while True:
        live = (~state.done).nonzero()[:, 0]
        if 4 * len(live) <= 3 * len(state) or ply >= max_plies:
            ended = state.done.nonzero()[:, 0] if ply < max_plies else slice(None)
            finished.append((row[ended], state[ended]))
            if not len(live) or ply >= max_plies:
                break
            row, state, rng = row[live], state[live], rng[live]
        if ply >= game.spec.max_plies:
            raise endless(game.spec, len(live))
        now = rng.fold_in(ply)
        action = player.choose(game.public(state), now)
        state = game.step(state, action, now)
        ply += 1
    return in_row_order(finished)


def in_row_order(parts: list[tuple[Tensor, State]]) -> State:
    """The states of all parts, sorted by the row numbers next to them."""
    states = [state for _, state in parts]
    if len(parts) == 1:
        return states[0]  # in order already
    row = torch.cat([row for row, _ in parts])
    return type(states[0]).cat(states)[row.argsort().to(states[0].done.device)]
