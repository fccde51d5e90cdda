"""Self-play with a search, as data for learner=alphazero."""

from __future__ import annotations

import torch
from torch import Tensor

from rlgames.games.game import State
from rlgames.games.state import Wants
from rlgames.players.player import Agent, Decision, Player
from rlgames.rng import Rng
from rlgames.search.search import Search


class SearchSelfPlay(Player):
    """Searches around an agent in training and returns the search's policies as targets.

    The agent's sampling rule chooses the action, with the logarithms of the search's policy as
    scores: with search=mcts, sampling=stochastic samples in proportion to the visits. A search by
    rule=gumbel, whose noise explores, chooses the action itself.

    opening_epsilon: the probability of a uniformly random action instead, in the first
        opening_turns turns of a game; its target is still the search's policy. So games reach
        openings that the agent would not play. If the search maximizes the outcome, the decision
        has the value of the positions before random actions.
    """

    def __init__(
        self, agent: Agent, search: Search, opening_epsilon: float = 0.0, opening_turns: int = 0
    ) -> None:
        self.agent, self.search = agent, search
        self.opening_epsilon, self.opening_turns = opening_epsilon, opening_turns

    wants = Wants(legal=True)

    def choose(self, state: State, rng: Rng) -> Tensor:
        return self.act(state, rng).action

    def act(self, state: State, rng: Rng, progress: float = 0.0) -> Decision:
        """The target is the search's policy; 0 in finished rows."""
        rng = rng.rows(len(state))
        legal = self.search.game.legal_action_mask(state)
        target = torch.zeros_like(legal, dtype=torch.float32)
        value = torch.full_like(target[:, 0], torch.nan)
        action = torch.zeros_like(state.current_seat)
        live = (~state.done).nonzero()[:, 0]
        if len(live):
            result = self.search.search(state[live], rng[live])
            target[live], action[live], value[live] = result.policy, result.action, result.value
        if not self.search.explores:
            scores = target.clamp(min=1e-30).log()
            action = self.agent.sampling.choose(scores, legal, rng.fold_in(1), progress)
        if not self.opening_epsilon:
            return Decision(action, target)
        u = rng.fold_in(2).uniform(len(state))
        is_random = (state.turn < self.opening_turns) & (u < self.opening_epsilon) & ~state.done
        u = rng.fold_in(3).uniform(len(state))
        action = torch.where(is_random, self.search.game.sample_legal_action(state, u), action)
        if self.search.utility.value != "outcome":
            return Decision(action, target)
        return Decision(action, target, value=value.masked_fill(~is_random, torch.nan))
