"""Temporal differences: values of afterstates, learnt backwards from the end of each game."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.learners.learner import BadNumber, Learner
from rlgames.play import Moves, Results
from rlgames.policies.policy import AfterstateValues
from rlgames.rewards import Reward, last
from rlgames.sampling import Sampling, masked
from rlgames.schedule import Schedule


class Td(Learner):
    """After a game each seat's own afterstates are walked back through, from the last:

        V ← V + lr · (γ · target - V)

    The target of the last is what is paid at the end; that of an earlier one is what the seat's
    next move gained and the value of the afterstate that it led to, as just updated (Hickman's
    article, where all is paid at the end); that of the last in an open game is the best that can
    be done where the window ends. Many games side by side are learnt from together.
    """

    learns_from_records = True
    bootstraps = True

    def __init__(
        self,
        game: Game[Any],
        policy: AfterstateValues,
        sampling: Sampling,
        reward: Reward,
        rng: torch.Generator,
        *,
        lr: float,
        lr_end: float | None,
    ) -> None:
        self.game, self.policy, self.reward = game, policy, reward
        self.lr = Schedule(lr, lr_end)

    @torch.no_grad()
    def update(self, moves: Moves, results: Results, progress: float) -> dict[str, float]:
        lr = self.lr.at(progress)
        after = self.game.act(moves.state, moves.action)
        paid = self.reward.of_moves(moves, results)
        if not torch.isfinite(paid).all():
            raise BadNumber("a reward is not a finite number")
        is_last = last(moves) & results.state.done[moves.game]
        seats = results.score.shape[1]
        owner = moves.game * seats + moves.seat
        next_gain = torch.zeros(moves.games * seats, device=paid.device)
        next_value = self._best(results.state)[:, None].repeat(1, seats).view(-1)
        error = torch.zeros((), device=paid.device)
        stop = len(moves)
        for size in reversed(moves.steps):
            now = slice(stop - size, stop)
            stop -= size
            if not size:
                continue
            own = owner[now]
            target = next_gain[own] + next_value[own]
            if self.reward.at_the_end:
                target = torch.where(is_last[now], paid[now], target)
            else:
                next_gain[own] = paid[now]
            target = self.reward.discount * target
            before = self.policy.value(self.game, after[now])
            error += (target - before).abs().sum()
            next_value[own] = self.policy.learn(self.game, after[now], target, lr)
        return {"td_error": float(error) / len(moves), "lr": lr}

    def _best(self, state: State) -> Tensor:
        """Float32 [G]: what the best action is worth, 0 where the game is over."""
        best = torch.zeros(len(state), device=state.done.device)
        rows = (~state.done).nonzero()[:, 0]
        if len(rows):
            scores, _ = self.policy.scores(self.game, state[rows])
            best[rows] = masked(scores, self.game.legal(state[rows])).amax(1)
        return best
