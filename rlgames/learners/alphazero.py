"""Expert iteration: the network learns what a search around it has found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import State
from rlgames.games.symmetry import Symmetries
from rlgames.learners.gradient import GradientLearner
from rlgames.learners.learner import NonFiniteError
from rlgames.learners.replay import RingBuffer
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import mask_illegal


@dataclass(frozen=True)
class SearchTargets:
    """M moves. state: public positions [M]. target: float32 [M, A], what the search made of them.
    value: float32 [M], the return that followed."""

    state: State
    target: Tensor
    value: Tensor


class AlphaZero(GradientLearner):
    """The loss of a move is (Silver et al. 2017, equation 1, without the weights' own)

        -Σ_a π(a) · log p(a) + value_coef · (z - v)²,

    p and v being the network's, π the share of its visits that the search gave each action, and z
    the return. Weights that are to stay small are left to lr_end and the memory.

    memory: how many of the latest moves are drawn from. updates: steps for each batch of games,
    each on minibatch moves. symmetries: show each of them in a random symmetry of the board.
    """

    trains_value_head = True
    learns_logits = True
    supports_distributed = True

    def __init__(
        self,
        *parts: Any,
        buffer_size: int,
        updates_per_batch: int,
        minibatch: int,
        value_coef: float,
        symmetries: bool,
        **descent: Any,
    ) -> None:
        super().__init__(*parts, **descent)
        self.buffer: RingBuffer[SearchTargets] = RingBuffer(buffer_size)
        self.updates_per_batch, self.minibatch, self.value_coef = (
            updates_per_batch,
            minibatch,
            value_coef,
        )
        turns = symmetries and not self.policy.canonical
        self.symmetries = Symmetries(self.game, self.rng.device) if turns else None

    def update(
        self, moves: Trajectories, results: FinalStates, progress: float
    ) -> dict[str, float]:
        lr = self.lr.at(progress)
        value = self.reward.returns(moves, results)
        if not torch.isfinite(value).all():
            raise NonFiniteError("a return is not a finite number")
        assert moves.target is not None
        self.buffer.add(SearchTargets(moves.state, moves.target, value))
        norm, found = 0.0, []
        for _ in range(self.updates_per_batch):
            drawn = self.buffer[self.buffer.sample(self.minibatch, self.rng)]
            policy_loss, value_loss = self.losses(drawn)
            loss = policy_loss + self.value_coef * value_loss
            norm += self.descend(loss, lr)
            found.append(torch.stack([policy_loss, value_loss]).detach())
        policy_loss, value_loss = torch.stack(found).mean(0).tolist()
        doubt = -(moves.target * moves.target.clamp(min=1e-30).log()).sum(1).mean()
        return {
            "loss": policy_loss + self.value_coef * value_loss,
            "policy_loss": policy_loss,
            "value_loss": value_loss,
            "target_entropy": float(doubt),
            "grad_norm": norm / self.updates_per_batch,
            "lr": lr,
            "buffer_size": float(len(self.buffer)),
        }

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"memory": self.buffer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.buffer.load_state_dict(state["memory"], self._example(), self.game)

    def _example(self) -> SearchTargets:
        """One move as it is remembered."""
        start = self.game.public(self.game.initial(1, torch.Generator(self.rng.device)))
        target = torch.zeros(1, self.game.spec.actions, device=self.rng.device)
        return SearchTargets(start, target, target[:, 0])

    def losses(self, drawn: SearchTargets) -> tuple[Tensor, Tensor]:
        """The means of both parts of the loss, each move in a random symmetry."""
        inputs, legal = (
            self.policy.inputs(self.game, drawn.state),
            self.game.legal_action_mask(drawn.state),
        )
        target = drawn.target
        same = self.symmetries
        if same is not None and same.count > 1:
            turn = same.sample(len(inputs), self.rng)
            inputs = same.transform_planes(inputs, turn)
            target, legal = (
                same.transform_action_values(target, turn),
                same.transform_action_values(legal, turn),
            )
        scores, value = self.policy(inputs)
        assert value is not None
        # What is not legal has no share of the target, and minus infinity times 0 is no number.
        log_p = mask_illegal(scores, legal).log_softmax(1).masked_fill(~legal, 0)
        return -(target * log_p).sum(1).mean(), (drawn.value - value).square().mean()
