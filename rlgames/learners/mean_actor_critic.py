"""Mean actor-critic: every action of a position is learnt from, not only the one that was made."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.learners.learner import BadNumber, Learner, make_optimizer, step
from rlgames.learners.policy_gradient import entropy_of
from rlgames.play import Moves, Results
from rlgames.policies.policy import Network
from rlgames.rewards import Reward, following, generalised_advantage
from rlgames.sampling import Sampling
from rlgames.schedule import Schedule

CHUNK = 1 << 15
"""So many positions are valued at once where no gradient is wanted."""


class MeanActorCritic(Learner):
    """Follows the whole gradient Σ_a ∇π(a|s) Q(s, a) (Allen et al. 2017), for games of one seat
    whose rules tell what each move leads to before chance adds to it:

        Q(s, a) = what a gains + V(what a leads to)

    V, the network's value head, reads afterstates and is learnt by temporal differences, as
    learner=td learns values; the policy's scores come of one look at the position itself.

    td_lambda: how far credit reaches past the value of the next afterstate; 1: the whole return.
    entropy: weight of the policy's entropy, which keeps it exploring; fades to entropy_end.
    minibatches: parts that a batch is cut into at random, a step for each.
    max_norm: longest gradient, or None. rho: of the running means of both RMSProps.
    Raises NotImplementedError for other games and for rewards that are no gains.
    """

    has_critic = True
    learns_logits = True
    bootstraps = True

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
        rho: float,
        td_lambda: float,
        entropy: float,
        entropy_end: float | None,
        value_weight: float,
        minibatches: int,
        max_norm: float | None,
    ) -> None:
        if game.spec.seats > 1 or game.spec.hidden:
            raise NotImplementedError(f"{game.spec.name} does not show what a move leads to")
        if reward.scored != "gain":
            raise NotImplementedError(f"it learns from gains, not from {reward.scored}")
        self.game, self.policy, self.sampling, self.reward = game, policy, sampling, reward
        self.rng = rng
        self.lr = Schedule(lr, lr_end)
        self.entropy = Schedule(entropy, entropy_end)
        self.optimizer = make_optimizer(optimizer, policy, lr, rho)
        self.td_lambda, self.value_weight = td_lambda, value_weight
        self.minibatches, self.max_norm = minibatches, max_norm

    def update(self, moves: Moves, results: Results, progress: float) -> dict[str, float]:
        lr, entropy_weight = self.lr.at(progress), self.entropy.at(progress)
        worth, p = self._worth(moves.state)
        gain = self.reward.of_moves(moves, results)
        if not torch.isfinite(gain).all():
            raise BadNumber("a reward is not a finite number")
        target = self._targets(moves, results, worth, gain)
        advantage = worth - (p * worth).sum(1, keepdim=True)
        advantage = advantage / (p * advantage.square()).sum(1).mean().sqrt().clamp(min=1e-6)
        inputs = self.policy.inputs(self.game, moves.state)
        after = self.policy.inputs(self.game, self.game.act(moves.state, moves.action))
        legal = self.game.legal(moves.state)
        told = []
        size = -(-len(moves) // self.minibatches)
        order = torch.randperm(len(moves), generator=self.rng, device=self.rng.device)
        for part in order.split(size):
            scores, _ = self.policy(inputs[part])
            log_p = self.sampling.logits(scores, legal[part]).log_softmax(1)
            _, value = self.policy(after[part])
            assert value is not None
            entropy = entropy_of(log_p)
            error = (value - target[part]).square().mean()
            gained = (log_p.exp() * advantage[part]).sum(1).mean()
            loss = self.value_weight * error - gained - entropy_weight * entropy
            norm = step(self.optimizer, loss, lr, self.max_norm)
            told.append(torch.stack([loss, error, entropy, loss.new_tensor(norm)]).detach())
        names = ("loss", "value_loss", "entropy", "grad_norm")
        figures = torch.stack(told).mean(0).tolist()
        return dict(zip(names, figures, strict=True)) | {"return": float(target.mean()), "lr": lr}

    @torch.no_grad()
    def _worth(self, state: State) -> tuple[Tensor, Tensor]:
        """Q and the policy's probabilities of all actions, float32 [B, A]; illegal ones have 0."""
        game, actions = self.game, self.game.spec.actions
        worth, p = [], []
        for rows in torch.arange(len(state), device=state.done.device).split(CHUNK // actions):
            before = state[rows]
            legal = game.legal(before)
            scores, _ = self.policy.scores(game, before)
            p.append(self.sampling.logits(scores, legal).softmax(1))
            every = torch.arange(len(rows) * actions, device=rows.device)
            twice = before[every // actions]
            after = game.act(twice, every % actions)
            _, value = self.policy.scores(game, after)
            assert value is not None
            gain = self.reward.scale * (after.score - twice.score)[:, 0]
            worth.append((gain + value).view(-1, actions).masked_fill(~legal, 0))
        return torch.cat(worth), torch.cat(p)

    def _targets(self, moves: Moves, results: Results, worth: Tensor, gain: Tensor) -> Tensor:
        """Float32 [M]: what the afterstate of each move is worth, from what came of it.

        worth: Q of all moves, [M, A]. gain: what each move was paid, [M].
        """
        value = worth.gather(1, moves.action[:, None])[:, 0] - gain
        place, exists = following(moves)
        discount = self.reward.discount
        next_gain = torch.where(exists, gain[place], 0.0)
        beyond = torch.zeros(moves.games, device=gain.device)
        open_ = (~results.state.done).nonzero()[:, 0]
        if len(open_):
            ahead, p = self._worth(results.state[open_])
            beyond[open_] = (p * ahead).sum(1)
        return value + generalised_advantage(
            discount * next_gain, value, moves, discount, self.td_lambda, beyond
        )
