"""Expectimax: exact means over what chance may add, a few moves deep."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.players.player import Agent, Player
from rlgames.policies.policy import ValueFunction
from rlgames.sampling import greedy_action, mask_illegal

CHUNK = 2048
"""Positions worked on at once, which keeps what follows from them in the processor's cache."""


class Expectimax(Player):
    """Makes the move with the largest

        Q_1(s, a) = the policy's score, what a gains and what it leads to is worth
        Q_n(s, a) = gain(s, a) + γ · E[max over a' of Q_(n - 1)(s', a')],

    s' being what chance makes of the afterstate, and 0 taken for the maximum where it is over.

    player: an agent whose policy values what moves lead to, learnt from what they gain.
    plies: n, how many of the player's own moves to look at. least: outcomes of chance that are
        less likely are left out, but for the likeliest. discount: γ, as it was learnt with.
    Raises ValueError where player and game do not fit.
    """

    deterministic = True

    def __init__(
        self,
        game: Game[Any],
        player: Player,
        *,
        plies: int = 2,
        min_probability: float = 0.0,
        discount: float = 1.0,
    ) -> None:
        policy = player.policy if isinstance(player, Agent) else None
        if game.spec.seats == 2 or game.spec.hidden or not game.spec.num_chance_inputs:
            raise ValueError(
                f"search=expectimax is for one seat against the dice, not for {game.spec.name}"
            )
        if not isinstance(policy, ValueFunction) or not policy.score_scale:
            raise ValueError(
                "search=expectimax adds what moves gain to the values of a run, so that it needs "
                "one with policy=ntuple, table or basis and reward=score"
            )
        self.game, self.policy = game, policy
        self.plies, self.min_probability, self.discount = plies, min_probability, discount

    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        action = torch.zeros_like(state.current_seat)
        live = (~state.done).nonzero()[:, 0]
        if len(live):
            scores = self.scores(state[live], self.plies)
            action[live] = greedy_action(scores, self.game.legal_action_mask(state[live]))
        return action

    @torch.no_grad()
    def scores(self, state: State, plies: int) -> Tensor:
        """Float32 [B, A]: Q_plies of live positions; what is not legal means nothing."""
        parts = [self._scores(state[n : n + CHUNK], plies) for n in range(0, len(state), CHUNK)]
        return torch.cat(parts)

    def _scores(self, state: State, plies: int) -> Tensor:
        if plies == 1:
            return self.policy.scores(self.game, state)[0]
        legal = self.game.legal_action_mask(state)
        row, action = legal.nonzero(as_tuple=True)
        after = self.game.apply_action(state[row], action)
        probability, outcomes = self.game.chance_outcomes(after)
        most = probability.amax(1, keepdim=True)
        probability = probability * (probability >= most.clamp(max=self.min_probability))
        possible = (probability > 0).flatten().nonzero()[:, 0]
        future = torch.zeros(probability.numel(), device=row.device)
        future[possible] = self._best(outcomes[possible], plies - 1)
        expected = (probability * future.view_as(probability)).sum(1) / probability.sum(1)
        gained = (after.score - state.score[row])[:, 0]
        scores = torch.zeros(legal.shape, device=row.device)
        scores[row, action] = self.policy.score_scale * gained + self.discount * expected.float()
        return scores

    def _best(self, state: State, plies: int) -> Tensor:
        """Float32 [B]: the largest Q_plies, 0 where nothing is left to do."""
        most = torch.zeros(len(state), device=state.done.device)
        live = (~state.done).nonzero()[:, 0]
        if len(live):
            scores = self.scores(state[live], plies)
            most[live] = mask_illegal(scores, self.game.legal_action_mask(state[live])).amax(1)
        return most
