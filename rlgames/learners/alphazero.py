"""AlphaZero: the network learns the search's policy and the return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import torch
from torch import Tensor

from rlgames.core.rows import Rows
from rlgames.games.game import State
from rlgames.games.symmetry import Symmetries
from rlgames.learners.gradient import GradientLearner, OptimizerSettings
from rlgames.learners.learner import (
    LearnerContext,
    Plan,
    as_in_play,
    check_all_finite,
    return_metrics,
)
from rlgames.learners.replay import RingBuffer, check_replay_memory
from rlgames.players.player import Agent, Player
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import mask_illegal
from rlgames.search.search import Search
from rlgames.search.self_play import SearchSelfPlay

MAX_COMPARED = 256
"""New moves per update that compare search and network."""


@dataclass(frozen=True)
class SearchTargets(Rows):
    """M moves. state: public states [M]. target: float32 [M, A], the search's policy.
    value: float32 [M], the return."""

    state: State
    target: Tensor
    value: Tensor


class AlphaZero(GradientLearner):
    """Minimizes, over moves sampled from the replay buffer,

        loss = -Σ_a π(a) · log p(a) + value_coef · (z - v)²

    (Silver et al. 2017, equation 1, without weight decay). p and v are the network's policy and
    value, π is the search's policy, see SearchResult, and z the return, see Reward.returns.

    opening_epsilon, opening_turns: see SearchSelfPlay, which plays the games.
    """

    learns_from = frozenset({"rewards", "search", "earlier_weights"})
    trains_logits = True

    def __init__(
        self,
        context: LearnerContext,
        *,
        buffer_size: int,
        updates_per_batch: int,
        minibatch_size: int,
        value_coef: float,
        symmetries: bool,
        opening_epsilon: float,
        opening_turns: int,
        **optimizer: Unpack[OptimizerSettings],
    ) -> None:
        super().__init__(context, **optimizer)
        start = self.game.public(self.game.example_state())
        target = torch.zeros(1, self.game.spec.actions, device=self.generator.device)
        self.buffer = RingBuffer(buffer_size, SearchTargets(start, target, target[:, 0]))
        self.updates_per_batch, self.minibatch_size = updates_per_batch, minibatch_size
        self.value_coef = value_coef
        transforms = symmetries and not self.policy.canonical
        self.symmetries = Symmetries(self.game, self.generator.device) if transforms else None

    @classmethod
    def check(cls, plan: Plan) -> None:
        super().check(plan)
        keys: Any = plan.cfg.learner
        check_replay_memory(plan.game, keys.buffer_size, keys.minibatch_size, has_targets=True)

    @classmethod
    def has_value_head(cls, keys: Any) -> bool:
        return True

    @classmethod
    def self_play(cls, keys: Any, agent: Agent, search: Search) -> Player:
        return SearchSelfPlay(agent, search, keys.opening_epsilon, keys.opening_turns)

    def update(
        self, trajectories: Trajectories, final_states: FinalStates, progress: float
    ) -> dict[str, float]:
        lr = self.lr.at(progress)
        returns = self.reward.returns(trajectories, final_states)
        check_all_finite("a return", returns)
        target = trajectories.target
        assert target is not None
        new = SearchTargets(trajectories.state, target, returns)
        search_kl = self.search_kl(new[:: -(-len(new) // MAX_COMPARED)])
        self.buffer.add(new)
        grad_norm, losses = 0.0, []
        for _ in range(self.updates_per_batch):
            minibatch = self.buffer[self.buffer.sample(self.minibatch_size, self.generator)]
            parts = self.losses(minibatch)
            grad_norm += self.descend(parts[0] + self.value_coef * parts[1], lr)
            losses.append(torch.stack(parts).detach())
        policy_loss, value_loss, agreement = torch.stack(losses).mean(0).tolist()
        target_entropy = -(target * target.clamp(min=1e-30).log()).sum(1).mean()
        return {
            "loss": policy_loss + self.value_coef * value_loss,
            "policy_loss": policy_loss,
            "value_loss": value_loss,
            "agreement": agreement,
            "target_entropy": float(target_entropy),
            "search_kl": search_kl,
            **return_metrics(trajectories, returns, returns),
            "grad_norm": grad_norm / self.updates_per_batch,
            "lr": lr,
            **self.buffer.metrics(self.updates_per_batch * self.minibatch_size, len(trajectories)),
        }

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"buffer": self.buffer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.buffer.load_state_dict(state["buffer"], self.game)

    @as_in_play
    def search_kl(self, moves: SearchTargets) -> float:
        """The mean KL divergence of the search's policy from the network's, on the same moves."""
        scores, _ = self.policy.scores(self.game, moves.state)
        legal = self.game.legal_action_mask(moves.state)
        log_probs = mask_illegal(scores, legal).log_softmax(1).masked_fill(~legal, 0)
        target = moves.target
        return float((target * (target.clamp(min=1e-30).log() - log_probs)).sum(1).mean())

    def losses(self, minibatch: SearchTargets) -> tuple[Tensor, Tensor, Tensor]:
        """The mean policy loss, the mean value loss, and the fraction of moves where the
        network and the search prefer the same action, on a random symmetry of each position."""
        inputs = self.policy.inputs(self.game, minibatch.state)
        legal = self.game.legal_action_mask(minibatch.state)
        target = minibatch.target
        symmetries = self.symmetries
        if symmetries is not None and symmetries.count > 1:
            index = symmetries.sample(len(inputs), self.generator)
            inputs = symmetries.transform_planes(inputs, index)
            target = symmetries.transform_action_values(target, index)
            legal = symmetries.transform_action_values(legal, index)
        scores, value = self.policy(inputs)
        assert value is not None
        # Illegal actions have target 0 and log-probability -inf, whose product is NaN.
        scores = mask_illegal(scores, legal)
        log_probs = scores.log_softmax(1).masked_fill(~legal, 0)
        policy_loss = -(target * log_probs).sum(1).mean()
        agreement = (scores.argmax(1) == target.argmax(1)).float().mean()
        return policy_loss, (minibatch.value - value).square().mean(), agreement
