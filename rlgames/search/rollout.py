"""One step of policy iteration: tries actions and lets the player play on.

Letters in shapes: T roots, K actions tried, W worlds, A actions.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from rlgames.games.capabilities import ExactKey, HiddenInformation, ListedWorlds, find
from rlgames.games.game import Game, State
from rlgames.players.player import Agent, HasProbabilities, Player
from rlgames.rng import Rng
from rlgames.sampling import Argmax, mask_illegal
from rlgames.search.search import Search, SearchResult, play_on
from rlgames.search.utility import Utility

MAX_ROOTS = 512
"""Roots that are searched at once."""

WORLD, NOISE = -2, -3
"""The parts of random numbers for what is hidden, and for the choice of candidates."""

MAX_PLAYOUTS = 1 << 17
"""Games that are played on at once."""


class Rollouts(Search):
    """Makes the move with the largest mean value, when the player makes all moves after it
    (Tesauro and Galperin 1996). Of equal moves it makes the one that is likeliest. An agent plays
    on greedily.

    All actions are tried in the same worlds. If the game lists all that agree with the observations
    and neither chance nor the player is random, these are played and the result is exact; otherwise
    worlds and chance are sampled.

    max_num_considered_actions: the likeliest by the player's probabilities; a player without tries
        all legal ones. simulations: games played on after each action, where the result is not
        exact. gumbel_scale: of noise that is added to the log-probabilities before the likeliest
        actions are chosen, so that in training all are tried from time to time.
    """

    def __init__(
        self,
        game: Game[Any],
        player: Player,
        max_num_considered_actions: int,
        simulations: int,
        gumbel_scale: float,
        temperature: float,
        value: str | None,
    ) -> None:
        self.game, self.utility = game, Utility(game, value)
        self.max_num_considered_actions, self.simulations = max_num_considered_actions, simulations
        self.gumbel_scale, self.temperature = gumbel_scale, temperature
        if isinstance(player, Agent):
            player = Agent(game, player.policy, Argmax("first"))
        self._ranks = player if isinstance(player, HasProbabilities) else None
        self.player = player
        self._keys, self._hidden = find(game, ExactKey), find(game, HiddenInformation)
        self._listed = find(game, ListedWorlds)
        if player.is_deterministic and self._keys is not None and game.spec.hidden:
            self.player = _OncePerPosition(self._keys, player)
        is_known = self._listed is not None or not game.spec.hidden
        self._is_exact = player.is_deterministic and is_known and game.spec.num_chance_inputs == 0
        self.is_deterministic = self._is_exact and not gumbel_scale

    @torch.no_grad()
    def search(self, state: State, rng: Rng) -> SearchResult:
        rng = rng.rows(len(state))
        if not self.is_deterministic or self._keys is None:
            return self._search_all(state, rng)
        first, inverse = _distinct(self._keys.key(state))
        result = self._search_all(state[first], rng[first])
        return SearchResult(*(column[inverse] for column in vars(result).values()))

    def _search_all(self, state: State, rng: Rng) -> SearchResult:
        starts = range(0, len(state), MAX_ROOTS)
        parts = [slice(n, min(n + MAX_ROOTS, len(state))) for n in starts]
        return SearchResult.cat([self._search(state[part], rng[part]) for part in parts])

    def _search(self, roots: State, rng: Rng) -> SearchResult:
        candidate, is_legal = self._candidates(roots, rng)
        root, worlds, of_world = self._worlds(roots, rng)
        world, column = is_legal[root].nonzero(as_tuple=True)
        total = torch.zeros(candidate.shape, dtype=torch.float64, device=root.device)
        for part in torch.arange(len(world), device=root.device).split(MAX_PLAYOUTS):
            row = root[world[part]]
            start, action = worlds[world[part]], candidate[row, column[part]]
            now = of_world[world[part]]  # the same after all actions
            after = self.game.step(start, action, now)
            end = play_on(self.game, self.player, after, math.inf, now)
            value = self.utility.realized(start, end) * (1 - 2 * start.current_seat)
            total.index_put_((row, column[part]), value.double(), accumulate=True)
        num_worlds = root.bincount(minlength=len(roots))[:, None]
        return self._result(candidate, is_legal, total / num_worlds, num_worlds)

    def _result(
        self, candidate: Tensor, is_legal: Tensor, mean: Tensor, num_worlds: Tensor
    ) -> SearchResult:
        """The result from candidates, int64 [T, K], whether they are legal, what they reached on
        average, float64 [T, K], and how many games were played after each, int64 [T, 1]."""
        value, choice = mean.masked_fill(~is_legal, -math.inf).max(1, keepdim=True)
        low = mean.masked_fill(~is_legal, math.inf).amin(1, keepdim=True)
        q = ((mean - low) / (value - low).clamp(min=1e-9)).clamp(0, 0.999)
        share = ((mean == value) & is_legal).double()
        if self.temperature:
            gap = (mean - value).clamp(max=0)  # what is not legal may be above, which overflows
            share = torch.exp(gap / self.temperature) * is_legal
        shape = (len(mean), self.game.spec.actions)
        visits, q, policy = (
            torch.zeros(shape, dtype=torch.float64, device=mean.device)
            .scatter_(1, candidate, torch.where(is_legal, column, 0))
            .float()
            for column in (
                num_worlds.double().expand_as(mean),
                q,
                share / share.sum(1, keepdim=True),
            )
        )
        action = candidate.gather(1, choice)[:, 0]
        return SearchResult(visits, q, policy, action, value[:, 0].float())

    def _candidates(self, roots: State, rng: Rng) -> tuple[Tensor, Tensor]:
        """Int64 [T, K], the likeliest first, and whether they are legal."""
        legal = self.game.legal_action_mask(roots)
        count = legal.shape[1]
        if self._ranks is None:
            action = torch.arange(count, device=legal.device).expand(legal.shape)
            return action, legal
        count = min(count, self.max_num_considered_actions)
        if isinstance(self._ranks, Agent):
            # Its own probabilities may be greedy ones.
            scores, _ = self._ranks.policy.scores(self.game, roots)
        else:
            scores = self._ranks.probabilities(roots).float().log()
        if self.gumbel_scale:
            noise = rng.fold_in(NOISE).gumbel(*scores.shape).to(scores.device)
            scores = scores + self.gumbel_scale * noise
        order = mask_illegal(scores, legal).argsort(dim=1, descending=True, stable=True)[:, :count]
        return order, legal.gather(1, order)

    def _worlds(self, roots: State, rng: Rng) -> tuple[Tensor, State, Rng]:
        """The root of each world, int64 [W], its full position, and its random numbers."""
        if self._is_exact and self._listed is not None:
            root, worlds = self._listed.worlds(roots)
            return root, worlds, rng[root]
        count = 1 if self._is_exact else self.simulations
        root = torch.arange(len(roots), device=roots.done.device).repeat_interleave(count)
        worlds, number = roots[root], torch.arange(len(root), device=root.device) % count
        rng = rng[root].fold_in(number)
        if self._hidden is not None:
            worlds = self._hidden.resample(worlds, rng.fold_in(WORLD))
        return root, worlds, rng


class _OncePerPosition(Player):
    """A player asked once about each visible position, however many games have come to it."""

    def __init__(self, keys: ExactKey, player: Player) -> None:
        self._keys, self.player = keys, player
        self.is_deterministic = player.is_deterministic

    def choose(self, state: State, rng: Rng) -> Tensor:
        first, inverse = _distinct(self._keys.key(state))
        return self.player.choose(state[first], rng[first])[inverse]


def _distinct(key: Tensor) -> tuple[Tensor, Tensor]:
    """The first row of each distinct key, int64 [D], and for each row which of them it has."""
    distinct, inverse = key.unique(return_inverse=True)
    row = torch.arange(len(key), device=key.device)
    first = torch.full_like(distinct, len(key)).scatter_reduce(0, inverse, row, "amin")
    return first, inverse
