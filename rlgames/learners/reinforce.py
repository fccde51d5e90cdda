"""REINFORCE: raise the probability of each move by its return, less a baseline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game
from rlgames.learners.learner import BadNumber, Learner, make_optimizer, step
from rlgames.play import Moves, Results
from rlgames.policies.policy import Network
from rlgames.rewards import Reward, generalised_advantage
from rlgames.sampling import Sampling, distance_to_certainty
from rlgames.schedule import Schedule

BASELINES = ("none", "mean", "standardised", "value")


class Reinforce(Learner):
    """The loss is -Σ (return - baseline) · log p(action), summed over a game's moves and averaged
    over the games; one game a batch gives the estimator of equation 4 in Landy's article.

    baseline: "none"; "mean" of the batch's returns; "standardised", less the mean and divided by
        the deviation, in which every game counts once, however long it is (section 3.2.1 of
        Dedieu and Amar's paper); "value", learnt by the policy's value head, then divided by the
        deviation over all moves.
    gae_lambda: how far a move's credit reaches past the value of the next, for baseline="value":
        1 takes the whole return (Schulman et al. 2016).
    masked: differentiate the probabilities that moves were drawn with. False takes the softmax
        over all actions, legal or not, as the gradient in Landy's program does.
    entropy: weight of the policy's mean entropy, which keeps it exploring; fades to entropy_end.
    epochs, minibatches: how often, and in how many random parts, each batch is learnt from. Past
        the first step the ratio of new to old probability is clipped to 1 ± clip (Schulman et
        al. 2017, equation 7).
    max_norm: longest gradient, or None. rho: of the running means of the two kinds of RMSProp.
    """

    learns_logits = True
    learns_from_records = True

    def __init__(
        self,
        game: Game[Any],
        policy: Network,
        sampling: Sampling,
        reward: Reward,
        rng: torch.Generator,
        *,
        lr: float,
        lr_end: float | None,
        optimizer: str,
        baseline: str,
        gae_lambda: float,
        masked: bool,
        entropy: float,
        entropy_end: float | None,
        value_weight: float,
        epochs: int,
        minibatches: int,
        clip: float,
        max_norm: float | None,
        rho: float,
    ) -> None:
        self.game, self.policy, self.sampling, self.reward = game, policy, sampling, reward
        self.rng = rng
        self.lr = Schedule(lr, lr_end)
        self.entropy = Schedule(entropy, entropy_end)
        self.optimizer = make_optimizer(optimizer, policy, lr, rho)
        self.baseline, self.gae_lambda = baseline, gae_lambda
        self.masked, self.value_weight = masked, value_weight
        self.epochs, self.minibatches, self.clip = epochs, minibatches, clip
        self.max_norm = max_norm

    def update(self, moves: Moves, results: Results, progress: float) -> dict[str, float]:
        lr, entropy_weight = self.lr.at(progress), self.entropy.at(progress)
        inputs = self.policy.inputs(self.game, moves.state)
        legal = self.game.legal(moves.state)
        returns = self.reward.returns(moves, results)
        if not torch.isfinite(returns).all():
            raise BadNumber("a return is not a finite number")
        short = self.baseline == "value" and self.gae_lambda < 1
        reused = short or self.epochs * self.minibatches > 1
        share = 1 / torch.bincount(moves.game, minlength=moves.games)[moves.game] / moves.games
        if reused:
            with torch.no_grad():
                scores, value = self.policy(inputs)
                old = _of_action(self._log_probability(scores, legal), moves.action)
                if short:
                    assert value is not None
                    reward = self.reward.of_moves(moves, results)
                    discount = self.reward.discount
                    returns = value + generalised_advantage(
                        reward, value, moves, discount, self.gae_lambda
                    )
                advantage = self._advantage(returns, value, share)
        # Sums over a game's moves, averaged over games, from means over moves.
        moves_a_game = len(moves) / moves.games
        losses, entropies, norms, doubts = [], [], [], []
        for part in self._parts(len(moves), returns.device):
            scores, value = self.policy(inputs[part])
            log_p = self._log_probability(scores, legal[part])
            taken = _of_action(log_p, moves.action[part])
            if reused:
                ratio = (taken - old[part]).exp()
                kept = ratio.clamp(1 - self.clip, 1 + self.clip)
                gained = torch.minimum(ratio * advantage[part], kept * advantage[part])
            else:
                gained = self._advantage(returns, value, share) * taken
            loss = -gained.mean()
            entropy = -(log_p.exp() * log_p.clamp(min=-1e9)).sum(1).mean()
            if entropy_weight:
                loss = loss - entropy_weight * entropy
            if self.baseline == "value" and value is not None:
                loss = loss + self.value_weight * (value - returns[part]).square().mean()
            loss = loss * moves_a_game
            norms.append(step(self.optimizer, loss, lr, self.max_norm))
            losses.append(loss.detach())
            entropies.append(entropy.detach())
            doubt = distance_to_certainty(log_p.detach().exp())
            doubts.append((doubt * share[part]).sum() / share[part].sum())
        return {
            "return": float(returns.mean()),
            "loss": float(torch.stack(losses).mean()),
            "entropy": float(torch.stack(entropies).mean()),
            "distance_to_certainty": float(torch.stack(doubts).mean()),
            "grad_norm": sum(norms) / len(norms),
            "lr": lr,
        }

    def _log_probability(self, scores: Tensor, legal: Tensor) -> Tensor:
        """Float32 [M, A], minus infinity for what is not legal."""
        if self.masked:
            return self.sampling.logits(scores, legal).log_softmax(1)
        return scores.log_softmax(1)

    def _advantage(self, returns: Tensor, value: Tensor | None, share: Tensor) -> Tensor:
        """Float32 [M]; share: float32 [M], each move's part of one game's weight, 1 in all."""
        if self.baseline == "none":
            return returns
        if self.baseline == "standardised":
            advantage = returns - (share * returns).sum()
            return advantage / (share * advantage.square()).sum().sqrt().clamp(min=1e-6)
        if self.baseline == "value":
            assert value is not None
            returns = returns - value.detach()
        advantage = returns - returns.mean()
        if self.baseline == "mean":
            return advantage
        return advantage / advantage.square().mean().sqrt().clamp(min=1e-6)

    def _parts(self, count: int, device: torch.device) -> Iterator[Tensor | slice]:
        """The moves of each step: all of them, or a fresh random cut in every epoch."""
        if self.minibatches == 1:
            yield from [slice(None)] * self.epochs
            return
        size = -(-count // self.minibatches)
        for _ in range(self.epochs):
            yield from torch.randperm(count, generator=self.rng, device=device).split(size)


def _of_action(log_p: Tensor, action: Tensor) -> Tensor:
    return log_p.gather(1, action[:, None])[:, 0]
