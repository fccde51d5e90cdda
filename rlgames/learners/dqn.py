"""Double deep Q-learning: a network's scores become the values of actions."""

from __future__ import annotations

import copy
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from rlgames.core.tensor_checks import load_weights
from rlgames.core.untrusted import checked_int
from rlgames.games.game import State
from rlgames.learners.gradient import GradientLearner, OptimizerSettings
from rlgames.learners.learner import (
    LearnerContext,
    Plan,
    as_in_play,
    check_all_finite,
    check_values_are_not_sampled,
    return_metrics,
)
from rlgames.learners.replay import ReplayBuffer, ReplayTransitions, check_replay_memory
from rlgames.policies.policy import Network
from rlgames.rewards import next_index
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import mask_illegal


class Dqn(GradientLearner):
    """Minimizes the Huber loss of Q(s, a) - y over moves sampled from the replay buffer, with

        y = r + γ · Q_target(s', argmax over legal a' of Q(s', a'))

    (van Hasselt et al. 2016, equation 4). s' is the state of the same seat's next move, r includes
    what happens in between, and γ applies where a turn ends in between.

    n_step: the seat's own moves that r spans. More learn faster, but learn in part the values of
    the exploring policy. polyak_tau: how far the target network moves, a fraction.
    """

    learns_from = frozenset({"rewards", "earlier_weights"})

    policy: Network

    def __init__(
        self,
        context: LearnerContext,
        *,
        buffer_size: int,
        updates_per_batch: int,
        minibatch_size: int,
        n_step: int,
        target_every: int,
        polyak_tau: float,
        **optimizer: Unpack[OptimizerSettings],
    ) -> None:
        super().__init__(context, **optimizer)
        start = self.game.public(self.game.example_state())
        zero = torch.zeros(1, device=self.generator.device)
        example = ReplayTransitions(start, start.current_seat, zero, zero, start.current_seat)
        self.buffer = ReplayBuffer(buffer_size, example)
        self.updates_per_batch, self.minibatch_size = updates_per_batch, minibatch_size
        self.n_step = n_step
        self.target_network = copy.deepcopy(self.policy).requires_grad_(False)
        self.target_every, self.polyak_tau = target_every, polyak_tau
        self.num_steps = 0

    @classmethod
    def check(cls, plan: Plan) -> None:
        super().check(plan)
        check_values_are_not_sampled(plan)
        keys: Any = plan.cfg.learner
        check_replay_memory(plan.game, keys.buffer_size, keys.minibatch_size)

    def update(
        self, trajectories: Trajectories, final_states: FinalStates, progress: float
    ) -> dict[str, float]:
        lr = self.lr.at(progress)
        self.buffer.add(self.make_transitions(trajectories, final_states))
        if not self.num_steps:  # weights may have been loaded into the policy since __init__
            self.target_network.load_state_dict(self.policy.state_dict())
        totals = torch.zeros(3, device=trajectories.action.device)
        grad_norm = 0.0
        for _ in range(self.updates_per_batch):
            transitions, next_state = self.buffer.sample_transitions(
                self.minibatch_size, self.generator
            )
            td_target = self.td_target(transitions, next_state)
            q_values, _ = self.policy(self.policy.inputs(self.game, transitions.state))
            q_value = q_values.gather(1, transitions.action[:, None])[:, 0]
            loss = nn.functional.huber_loss(q_value, td_target)
            grad_norm += self.descend(loss, lr)
            self._update_target_network()
            error = (q_value - td_target).detach().abs().mean()
            totals += torch.stack([loss.detach(), error, q_value.detach().mean()])
        means = (totals / self.updates_per_batch).tolist()
        legal = self.game.legal_action_mask(transitions.state)
        returns = self.reward.returns(trajectories, final_states)
        return dict(zip(("loss", "td_error", "q_values"), means, strict=True)) | {
            **return_metrics(trajectories, returns, returns),
            **spread_metrics(q_values.detach(), legal),
            "grad_norm": grad_norm / self.updates_per_batch,
            "lr": lr,
            **self.buffer.metrics(self.updates_per_batch * self.minibatch_size, len(trajectories)),
        }

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {
            "buffer": self.buffer.state_dict(),
            "target": self.target_network.state_dict(),
            "num_steps": self.num_steps,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.buffer.load_state_dict(state["buffer"], self.game)
        load_weights(self.target_network, state["target"])
        self.num_steps = checked_int(state["num_steps"], 0)

    def make_transitions(
        self, trajectories: Trajectories, final_states: FinalStates
    ) -> ReplayTransitions:
        """The moves with n-step rewards. Raises NonFiniteError for a reward that is not finite."""
        reward = self.reward.rewards(trajectories, final_states)
        check_all_finite("a reward", reward)
        next_move, has_next = next_index(trajectories)
        weight = torch.where(trajectories.ends_turn, self.reward.discount, 1.0) * has_next
        return ReplayTransitions(
            trajectories.state, trajectories.action, reward, weight, next_move
        ).n_step(self.n_step)

    @as_in_play
    def td_target(self, transitions: ReplayTransitions, next_state: State) -> Tensor:
        """Float32 [M]: y."""
        inputs = self.policy.inputs(self.game, next_state)
        legal = self.game.legal_action_mask(next_state)
        next_action = mask_illegal(self.policy(inputs)[0], legal).argmax(1, keepdim=True)
        next_value = self.target_network(inputs)[0].gather(1, next_action)[:, 0]
        return transitions.reward + transitions.weight * next_value

    @torch.no_grad()
    def _update_target_network(self) -> None:
        """Every target_every steps, move the target network towards the online network."""
        self.num_steps += 1
        if self.num_steps % self.target_every:
            return
        pairs = zip(self.target_network.parameters(), self.policy.parameters(), strict=True)
        for target, online in pairs:
            target.lerp_(online, self.polyak_tau)
        buffers = zip(self.target_network.buffers(), self.policy.buffers(), strict=True)
        for copied, buffer in buffers:  # such as the running means of batch normalization
            copied.copy_(buffer)


def spread_metrics(q_values: Tensor, legal: Tensor) -> dict[str, float]:
    """The largest size of a Q value, and the mean over positions of the highest minus the lowest,
    of legal actions. q_values: float32 [M, A]; legal: bool [M, A]."""
    highest = q_values.masked_fill(~legal, -torch.inf).amax(1)
    lowest = q_values.masked_fill(~legal, torch.inf).amin(1)
    return {
        "q_max": float(torch.maximum(highest, -lowest).max()),
        "q_spread": float((highest - lowest).mean()),
    }
