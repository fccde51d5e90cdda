"""A search that plays to be learnt from."""

from __future__ import annotations

import torch
from torch import Tensor

from rlgames.games.game import State
from rlgames.players.player import Agent, Player
from rlgames.search.mcts import Mcts


class SearchSelfPlay(Player):
    """Looks ahead around an agent that learns, and tells how often it took each action.

    Moves are drawn by the agent's own rule of sampling, with the logarithms of the visits for
    scores: sampling=stochastic draws them in proportion to their visits.
    """

    def __init__(self, agent: Agent, search: Mcts) -> None:
        self.agent, self.search = agent, search

    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        return self.act_with_target(state, rng)[0]

    def act_with_target(self, state: State, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """The target is the share of the visits that each action got; 0 in finished rows."""
        legal = self.search.game.legal_action_mask(state)
        target = torch.zeros_like(legal, dtype=torch.float32)
        live = (~state.done).nonzero()[:, 0]
        if len(live):
            visits, _ = self.search.search(state[live], rng)
            target[live] = visits / visits.sum(1, keepdim=True)
        scores = target.clamp(min=1e-30).log()
        return self.agent.sampling.choose(scores, legal, rng, self.agent.progress), target
