"""Double Q-learning: a network's scores become the values of actions."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from rlgames.core.tensor_checks import load_weights
from rlgames.core.untrusted import checked_int
from rlgames.games.game import State
from rlgames.learners.gradient import GradientLearner
from rlgames.learners.learner import NonFiniteError
from rlgames.learners.replay import ReplayBuffer, ReplayTransitions
from rlgames.policies.policy import Network
from rlgames.rewards import next_index
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import mask_illegal


class Dqn(GradientLearner):
    """The score Q(s, a) of each move made moves towards (van Hasselt et al. 2016, equation 4)

        y = r + γ · Q_target(s', argmax over legal a' of Q(s', a')),

    s' being the position of the same seat's next move. What happens in between is part of r, and
    γ counts where a turn ended in between. The loss is Huber's, quadratic up to an error of 1.

    memory: how many moves are kept and drawn from. updates: steps for each batch of games, each
    on minibatch moves. rewards: how many of the seat's own moves r spans before Q is asked; with
    more than one it learns faster, and partly the values of the policy that explores.
    target_every: steps between two of the target network, which then goes by polyak_tau of the
        way to the other one: 1 copies it; with target_every=1 a small one averages (Polyak).
    """

    supports_distributed = True

    policy: Network

    def __init__(
        self,
        *parts: Any,
        buffer_size: int,
        updates_per_batch: int,
        minibatch: int,
        n_step: int,
        target_every: int,
        polyak_tau: float,
        **descent: Any,
    ) -> None:
        super().__init__(*parts, **descent)
        self.replay = ReplayBuffer(buffer_size)
        self.updates_per_batch, self.minibatch, self.n_step = updates_per_batch, minibatch, n_step
        self.target = copy.deepcopy(self.policy).requires_grad_(False)
        self.target_every, self.polyak_tau = target_every, polyak_tau
        self.taken = 0

    def update(
        self, moves: Trajectories, results: FinalStates, progress: float
    ) -> dict[str, float]:
        lr = self.lr.at(progress)
        self.replay.add(self.steps_of(moves, results))
        if not self.taken:  # the policy may have been given other weights since this was made
            self.target.load_state_dict(self.policy.state_dict())
        totals = torch.zeros(3, device=moves.action.device)
        norm = 0.0
        for _ in range(self.updates_per_batch):
            drawn, after = self.replay.sample_transitions(self.minibatch, self.rng)
            wanted = self.wanted(drawn, after)
            scores, _ = self.policy(self.policy.inputs(self.game, drawn.state))
            found = scores.gather(1, drawn.action[:, None])[:, 0]
            loss = nn.functional.huber_loss(found, wanted)
            norm += self.descend(loss, lr)
            self._follow()
            error = (found - wanted).detach().abs().mean()
            totals += torch.stack([loss.detach(), error, wanted.mean()])
        means = (totals / self.updates_per_batch).tolist()
        return dict(zip(("loss", "error", "value"), means, strict=True)) | {
            "grad_norm": norm / self.updates_per_batch,
            "lr": lr,
            "buffer_size": float(len(self.replay)),
        }

    def state_dict(self) -> dict[str, Any]:
        memory, target = self.replay.state_dict(), self.target.state_dict()
        return super().state_dict() | {"memory": memory, "target": target, "taken": self.taken}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.replay.load_state_dict(state["memory"], self._example(), self.game)
        load_weights(self.target, state["target"])
        self.taken = checked_int(state["taken"], 0)

    def _example(self) -> ReplayTransitions:
        """One move as it is remembered."""
        start = self.game.public(self.game.initial(1, torch.Generator(self.rng.device)))
        nothing = torch.zeros(1, device=self.rng.device)
        return ReplayTransitions(start, start.current_seat, nothing, nothing, start.current_seat)

    def steps_of(self, moves: Trajectories, results: FinalStates) -> ReplayTransitions:
        """The moves as they are remembered. Raises BadNumber for a reward that is not finite."""
        reward = self.reward.rewards(moves, results)
        if not torch.isfinite(reward).all():
            raise NonFiniteError("a reward is not a finite number")
        later, exists = next_index(moves)
        weight = torch.where(moves.ends_turn, self.reward.discount, 1.0) * exists
        return ReplayTransitions(moves.state, moves.action, reward, weight, later).over(self.n_step)

    @torch.no_grad()
    def wanted(self, drawn: ReplayTransitions, after: State) -> Tensor:
        """Float32 [M]: y, for moves and the positions that followed them."""
        inputs = self.policy.inputs(self.game, after)
        best = mask_illegal(self.policy(inputs)[0], self.game.legal_action_mask(after)).argmax(
            1, keepdim=True
        )
        return drawn.reward + drawn.weight * self.target(inputs)[0].gather(1, best)[:, 0]

    @torch.no_grad()
    def _follow(self) -> None:
        """Now and then, bring the target network nearer to the one that learns."""
        self.taken += 1
        if self.taken % self.target_every:
            return
        for old, new in zip(self.target.parameters(), self.policy.parameters(), strict=True):
            old.lerp_(new, self.polyak_tau)
