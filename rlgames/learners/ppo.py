"""Proximal policy optimization: a clipped policy gradient with a value head."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Unpack

import torch
from torch import Tensor

from rlgames.core.rows import Rows
from rlgames.core.schedule import Schedule
from rlgames.games.game import State
from rlgames.learners.gradient import (
    GradientLearner,
    OptimizerSettings,
    mean_entropy,
    select_actions,
    standardized,
)
from rlgames.learners.learner import (
    LearnerContext,
    as_in_play,
    check_all_finite,
    return_metrics,
)
from rlgames.rewards import generalized_advantage
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import distance_to_certainty

MAX_LOG_RATIO = math.log(10)
"""Limits the loss of an unlikely move with a negative advantage (dual clip, Ye et al. 2020), and
the weight of a move that the behavior policy rarely makes."""

METRICS = (
    "loss",
    "policy_gradient_loss",
    "value_loss",
    "entropy",
    "approx_kl",
    "clip_fraction",
    "distance_to_certainty",
)
"""Means over the gradient steps of an update. approx_kl: the mean of r - 1 - log r, an estimate of
KL(π_old, π) without bias and with little variance (Schulman 2020)."""

MIN_VARIANCE = 1e-10
"""Of value targets, relative to their mean square: less is rounding, which nothing explains."""

EVAL_CHUNK = 1 << 15
"""Positions per forward pass without gradient."""

CPU_CHUNK = 1 << 11
"""Positions per forward and backward pass on a CPU: few enough for its caches to hold what the
layers computed, and enough for torch's time per call not to count."""


@dataclass(frozen=True)
class PpoBatch(Rows):
    """M moves.

    inputs: the network's inputs [M, ...]. legal: bool [M, A]. action: int64 [M].
    old_log_prob, advantage, value_target: float32 [M], from the policy before the update.
    weight: float32 [M], π_old(a|s) ÷ μ(a|s).
    """

    inputs: Tensor
    legal: Tensor
    action: Tensor
    old_log_prob: Tensor
    advantage: Tensor
    value_target: Tensor
    weight: Tensor


class Ppo(GradientLearner):
    """Proximal policy optimization (Schulman et al. 2017) with GAE (Schulman et al. 2016).

        loss = mean of -w · min(r · Â, clip(r, 1 - ε, 1 + ε) · Â)
               + value_coef · (V - R)² - entropy_coef · H

    r = π(a|s) ÷ π_old(a|s); Â is the advantage, standardized over the batch; R = V_old + Â before
    it is standardized; H is the policy's entropy. w = π_old(a|s) ÷ μ(a|s), at most 10, corrects for
    a behavior policy μ that is not π_old, as with sampling=epsilon_greedy (the decoupled objective
    of Hilton et al. 2022); w = 1 where μ is unknown, as in recorded games.
    """

    learns_from = frozenset({"rewards", "records", "windows"})
    trains_logits = True
    needs_log_prob = True

    def __init__(
        self,
        context: LearnerContext,
        *,
        gae_lambda: float,
        entropy_coef: float,
        entropy_coef_end: float | None,
        value_coef: float,
        epochs: int,
        num_minibatches: int,
        clip_range: float,
        **optimizer: Unpack[OptimizerSettings],
    ) -> None:
        super().__init__(context, **optimizer)
        self.gae_lambda, self.value_coef, self.clip_range = gae_lambda, value_coef, clip_range
        self.entropy_coef = Schedule(entropy_coef, entropy_coef_end)
        self.epochs, self.num_minibatches = epochs, num_minibatches

    @classmethod
    def has_value_head(cls, keys: Any) -> bool:
        return True

    def update(
        self, trajectories: Trajectories, final_states: FinalStates, progress: float
    ) -> dict[str, float]:
        lr, entropy_coef = self.lr.at(progress), self.entropy_coef.at(progress)
        batch, statistics = self._make_batch(trajectories, final_states)
        steps = []
        batches = self.minibatches(len(batch), self.epochs, parts=self.num_minibatches)
        if self.num_minibatches == 1:  # all rows, in order
            batches = repeat(torch.arange(len(batch), device=self.generator.device), self.epochs)
        for rows in batches:
            metrics = torch.zeros(len(METRICS), device=rows.device)
            losses = self._losses(batch, rows, entropy_coef, metrics)
            grad_norm = self.descend(losses, lr)
            steps.append(torch.cat([metrics, metrics.new_tensor([grad_norm])]))
        means = torch.stack(steps).mean(0).tolist()
        return (
            dict(zip((*METRICS, "grad_norm"), means, strict=True))
            | statistics
            | {"lr": lr, "ent_coef": entropy_coef}
        )

    def _make_batch(
        self, trajectories: Trajectories, final_states: FinalStates
    ) -> tuple[PpoBatch, dict[str, float]]:
        """Advantages and value targets of the current policy; and metrics of the returns, with the
        fraction of their variance that the current values explain."""
        inputs = self.policy.inputs(self.game, trajectories.state)
        legal = self.game.legal_action_mask(trajectories.state)
        reward = self.reward.rewards(trajectories, final_states)
        check_all_finite("a reward", reward)
        old_log_prob, value = trajectories.log_prob, trajectories.state_value
        if old_log_prob is None or value is None or bool(value.isnan().any()):
            old_log_prob, value = self._evaluate_moves(inputs, legal, trajectories.action)
        advantage = generalized_advantage(
            reward,
            value,
            trajectories,
            self.reward.discount,
            self.gae_lambda,
            self._bootstrap_value(final_states.state),
        )
        value_target = value + advantage
        statistics = return_metrics(trajectories, value_target, reward)
        variance = value_target.var(correction=0)
        if bool(variance > MIN_VARIANCE * value_target.square().mean()):
            unexplained = advantage.var(correction=0) / variance
            statistics["explained_variance"] = float(1 - unexplained)
        advantage = standardized(advantage)
        weight = importance_weight(old_log_prob, trajectories.log_prob)
        action = trajectories.action
        batch = PpoBatch(inputs, legal, action, old_log_prob, advantage, value_target, weight)
        return batch, statistics

    def _losses(
        self, batch: PpoBatch, rows: Tensor, entropy_coef: float, metrics: Tensor
    ) -> Iterator[Tensor]:
        """The loss of a minibatch in parts, whose metrics are added to `metrics`."""
        for chunk in rows.split(CPU_CHUNK if rows.device.type == "cpu" else len(rows)):
            fraction = len(chunk) / len(rows)
            loss, terms = self._loss(batch[chunk], entropy_coef)
            metrics += fraction * torch.stack(terms)
            yield fraction * loss

    def _loss(self, batch: PpoBatch, entropy_coef: float) -> tuple[Tensor, list[Tensor]]:
        """The loss, and METRICS."""
        scores, value = self.policy(batch.inputs)
        assert value is not None
        log_probs = self.sampling.logits(scores, batch.legal).log_softmax(1)
        log_ratio = select_actions(log_probs, batch.action) - batch.old_log_prob
        ratio = log_ratio.clamp(max=MAX_LOG_RATIO).exp()
        clipped_ratio = ratio.clamp(1 - self.clip_range, 1 + self.clip_range)
        advantage = batch.weight * batch.advantage
        surrogate = torch.minimum(ratio * advantage, clipped_ratio * advantage)
        probs = log_probs.exp()
        entropy = mean_entropy(log_probs, probs)
        value_loss = (value - batch.value_target).square().mean()
        policy_loss = -surrogate.mean()
        loss = self.value_coef * value_loss + policy_loss - entropy_coef * entropy
        with torch.no_grad():
            approx_kl = (ratio - 1 - log_ratio).mean()
            clip_fraction = (ratio != clipped_ratio).float().mean()
            uncertainty = distance_to_certainty(probs).mean()
        losses = [term.detach() for term in (loss, policy_loss, value_loss, entropy)]
        return loss, [*losses, approx_kl, clip_fraction, uncertainty]

    @as_in_play
    def _evaluate_moves(
        self, inputs: Tensor, legal: Tensor, action: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Float32 [M] twice: the log-probability of each action, and the value."""
        chunks = []
        for rows in torch.arange(len(inputs), device=inputs.device).split(EVAL_CHUNK):
            scores, value = self.policy(inputs[rows])
            assert value is not None
            log_probs = self.sampling.logits(scores, legal[rows]).log_softmax(1)
            chunks.append(torch.stack([select_actions(log_probs, action[rows]), value]))
        log_prob, value = torch.cat(chunks, 1)
        return log_prob, value

    @as_in_play
    def _bootstrap_value(self, state: State) -> Tensor:
        """Float32 [G]: the value of the state each game has reached, 0 where it is over."""
        bootstrap_value = torch.zeros(len(state), device=state.done.device)
        rows = (~state.done).nonzero()[:, 0]
        if len(rows):
            _, value = self.policy.scores(self.game, state[rows])
            assert value is not None
            bootstrap_value[rows] = value
        return bootstrap_value


def importance_weight(log_prob: Tensor, behavior_log_prob: Tensor | None) -> Tensor:
    """Float32 [M]: π(a|s) ÷ μ(a|s), at most 10; 1 where μ is unknown, which is NaN or None."""
    if behavior_log_prob is None:
        return torch.ones_like(log_prob)
    return (log_prob - behavior_log_prob).nan_to_num(nan=0.0).clamp(max=MAX_LOG_RATIO).exp()
