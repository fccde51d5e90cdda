"""Actor-critic: raise the probability of moves that do better than the value head expects."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from rlgames.core import distributed
from rlgames.core.schedule import Schedule
from rlgames.games.game import State
from rlgames.games.symmetry import Symmetries
from rlgames.learners.gradient import GradientLearner
from rlgames.learners.learner import NonFiniteError
from rlgames.learners.policy_gradient import mean_entropy, select_actions, standardized
from rlgames.rewards import generalized_advantage
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import distance_to_certainty

MAX_LOG_RATIO = math.log(10)
"""A bad move made against the odds counts at most as ten others (as in Ye et al. 2020)."""

CHUNK = 1 << 15
"""So many positions are valued at once where no gradient is wanted."""


class Ppo(GradientLearner):
    """Proximal policy optimisation (Schulman et al. 2017) with generalised advantages (2016).

    The loss is the mean over moves of

        -min(ratio · Â, clip(ratio, 1 - ε, 1 + ε) · Â) + value_coef · (V - R)² - entropy · H

    where ratio is the new probability of the move over the one that it was made with, Â the
    advantage, standardised over the batch, and R = V + Â as it was before that. On a turned board
    the policy may find the turned move less likely than it was: the ratio makes that good.

    gae_lambda: how far a move's credit reaches past the value of the next; 1: the whole return.
    symmetries: learn from each position turned or mirrored at random, where the game allows it.
    entropy: weight of the policy's entropy, which keeps it exploring; fades to entropy_end.
    epochs, minibatches: how often, and in how many random parts, each batch is learnt from.
    clip: ε.
    """

    trains_value_head = True
    learns_logits = True
    learns_from_records = True
    bootstraps = True
    supports_distributed = True

    def __init__(
        self,
        *parts: Any,
        gae_lambda: float,
        symmetries: bool,
        entropy_coef: float,
        entropy_coef_end: float | None,
        value_coef: float,
        epochs: int,
        minibatches: int,
        clip_range: float,
        **descent: Any,
    ) -> None:
        super().__init__(*parts, **descent)
        self.entropy_coef = Schedule(entropy_coef, entropy_coef_end)
        self.gae_lambda, self.value_coef = gae_lambda, value_coef
        turns = symmetries and not self.policy.canonical
        self.symmetries = Symmetries(self.game, self.rng.device) if turns else None
        self.epochs, self.minibatches, self.clip_range = epochs, minibatches, clip_range

    def update(
        self, moves: Trajectories, results: FinalStates, progress: float
    ) -> dict[str, float]:
        lr, entropy_coef = self.lr.at(progress), self.entropy_coef.at(progress)
        inputs, legal = (
            self.policy.inputs(self.game, moves.state),
            self.game.legal_action_mask(moves.state),
        )
        reward = self.reward.rewards(moves, results)
        if not torch.isfinite(reward).all():
            raise NonFiniteError("a reward is not a finite number")
        old, value = self._before(inputs, legal, moves.action)
        beyond = self._beyond(results.state)
        advantage = generalized_advantage(
            reward, value, moves, self.reward.discount, self.gae_lambda, beyond
        )
        wanted = value + advantage
        advantage = standardized(advantage)
        inputs, legal, action = self._turned(inputs, legal, moves.action)
        told = []
        for part in self._parts(len(moves), inputs.device):
            scores, expected = self.policy(inputs[part])
            assert expected is not None
            log_p = self.sampling.logits(scores, legal[part]).log_softmax(1)
            ratio = (select_actions(log_p, action[part]) - old[part]).clamp(max=MAX_LOG_RATIO).exp()
            kept = ratio.clamp(1 - self.clip_range, 1 + self.clip_range)
            gained = torch.minimum(ratio * advantage[part], kept * advantage[part])
            p = log_p.exp()
            entropy = mean_entropy(log_p, p)
            error = (expected - wanted[part]).square().mean()
            loss = self.value_coef * error - gained.mean() - entropy_coef * entropy
            norm = self.descend(loss, lr, len(ratio))
            with torch.no_grad():
                clipped = (ratio != kept).float().mean()
                doubt = distance_to_certainty(p).mean()
                told.append(
                    torch.stack([loss, error, entropy, clipped, doubt, loss.new_tensor(norm)])
                )
        names = ("loss", "value_loss", "entropy", "clipped", "distance_to_certainty", "grad_norm")
        figures = torch.stack(told).mean(0).tolist()
        return dict(zip(names, figures, strict=True)) | {"return": float(wanted.mean()), "lr": lr}

    def _turned(
        self, inputs: Tensor, legal: Tensor, action: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What the network reads, what is legal and what was done, on boards turned at random."""
        same = self.symmetries
        if same is None or same.count == 1:
            return inputs, legal, action
        turn = same.sample(len(action), self.rng)
        return (
            same.transform_planes(inputs, turn),
            same.transform_action_values(legal, turn),
            same.transform_action(action, turn),
        )

    @torch.no_grad()
    def _before(self, inputs: Tensor, legal: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Float32 [M] twice, before learning: log-probabilities of the actions, and values."""
        found = []
        for rows in torch.arange(len(inputs), device=inputs.device).split(CHUNK):
            scores, value = self.policy(inputs[rows])
            assert value is not None
            log_p = self.sampling.logits(scores, legal[rows]).log_softmax(1)
            found.append(torch.stack([select_actions(log_p, action[rows]), value]))
        old, value = torch.cat(found, 1)
        return old, value

    @torch.no_grad()
    def _beyond(self, state: State) -> Tensor:
        """Float32 [G]: the value of where each game stands, 0 where it is over."""
        value = torch.zeros(len(state), device=state.done.device)
        rows = (~state.done).nonzero()[:, 0]
        if len(rows):
            _, expected = self.policy.scores(self.game, state[rows])
            assert expected is not None
            value[rows] = expected
        return value

    def _parts(self, count: int, device: torch.device) -> Iterator[Tensor | slice]:
        """The moves of each step: all of them, or a fresh random cut in every epoch."""
        if self.minibatches == 1:
            yield from [slice(None)] * self.epochs
            return
        parts = min(self.minibatches, distributed.all_reduce_min(count, device))
        for _ in range(self.epochs):
            order = torch.randperm(count, generator=self.rng, device=device)
            yield from order.tensor_split(parts)
