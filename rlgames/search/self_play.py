"""Self-play with a search, as data for learner=alphazero."""

from __future__ import annotations

import torch
from torch import Tensor

from rlgames.games.game import State
from rlgames.players.player import Agent, Decision, Player
from rlgames.search.mcts import Mcts


class SearchSelfPlay(Player):
    """Searches around an agent in training and returns visit fractions as targets.

    The agent's sampling rule chooses the action, with the logarithms of the visit fractions as
    scores: sampling=stochastic samples in proportion to the visits.
    """

    def __init__(self, agent: Agent, search: Mcts) -> None:
        self.agent, self.search = agent, search

    def choose(self, state: State, rng: torch.Generator) -> Tensor:
        return self.act(state, rng).action

    def act(self, state: State, rng: torch.Generator) -> Decision:
        """The target is each action's fraction of the visits; 0 in finished rows."""
        legal = self.search.game.legal_action_mask(state)
        target = torch.zeros_like(legal, dtype=torch.float32)
        live = (~state.done).nonzero()[:, 0]
        if len(live):
            visits, _ = self.search.search(state[live], rng)
            target[live] = visits / visits.sum(1, keepdim=True)
        scores = target.clamp(min=1e-30).log()
        action = self.agent.sampling.choose(scores, legal, rng, self.agent.progress)
        return Decision(action, target)
