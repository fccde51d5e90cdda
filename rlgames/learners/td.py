"""Temporal differences: values of afterstates, learnt backwards from the end of each game."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from rlgames.core.schedule import Schedule
from rlgames.core.tensor_checks import load_weights
from rlgames.games.game import Game
from rlgames.learners.learner import Learner, NonFiniteError
from rlgames.policies.policy import AfterstateValues, mean_over_chance
from rlgames.rewards import Reward, is_last
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.sampling import Sampling


class SharedValues(nn.Module):
    """Moves values that many afterstates share; rates as in Td.

    errors, sizes: float32 [W], of each value the sum of its errors and of their sizes. times:
    float32 [W], how often each was moved.
    """

    KEPT: ClassVar = {
        "constant": (),
        "temporal_coherence": ("errors", "sizes"),
        "counts": ("times",),
    }
    """What is kept of every value besides, by rates."""

    def __init__(self, policy: AfterstateValues, step_size: str) -> None:
        super().__init__()
        self.values, self.step_size = policy.values, step_size
        self.errors: Tensor
        self.sizes: Tensor
        self.times: Tensor
        for name in self.KEPT[step_size]:
            self.register_buffer(name, torch.zeros_like(self.values))
        self._one_of = torch.zeros_like(self.values, dtype=torch.int64)

    def move(self, places: Tensor, error: Tensor, lr: float) -> None:
        """Move the values at places, int64 [B, K], by up to lr of the errors of their sums, [B]."""
        place = places.reshape(-1).long()
        share = (error[:, None] * self._part(places)).view(-1)
        # Those at the same place go by the number of any one of them. Sorting takes longer.
        number = torch.arange(len(place), device=place.device)
        one_of = self._one_of.scatter_(0, place, number).index_select(0, place)
        count = torch.zeros_like(share).scatter_add_(0, one_of, torch.ones_like(share))
        total = torch.zeros_like(share).scatter_add_(0, one_of, share)
        alone = count.nonzero()[:, 0]
        place, count, total = (each.index_select(0, alone) for each in (place, count, total))
        mean = total / count
        rate: Tensor | float = lr
        if self.step_size == "counts":
            self.times.scatter_add_(0, place, torch.ones_like(mean))
        if self.step_size == "temporal_coherence":
            errors, sizes = self.errors.index_select(0, place), self.sizes.index_select(0, place)
            rate = lr * torch.where(sizes > 0, errors.abs() / sizes, 1.0)
            self.errors.scatter_(0, place, errors + mean)
            self.sizes.scatter_(0, place, sizes + mean.abs())
        step = (1 - (1 - rate) ** count) * mean
        self.values.scatter_add_(0, place, step)

    def forget(self, places: Tensor) -> None:
        """What is kept of values that begin anew, at places, int64 [N]."""
        for name in self.KEPT[self.step_size]:
            getattr(self, name).index_fill_(0, places, 0)

    def _part(self, places: Tensor) -> Tensor:
        """Float32 [B, K]: the part of an error that each of its values takes; 1 in all."""
        if self.step_size != "counts":
            return torch.full(places.shape, 1 / places.shape[1], device=places.device)
        part = 1 / (1 + self.times.index_select(0, places.reshape(-1)).view(places.shape))
        return part / part.sum(1, keepdim=True)


class Td(Learner):
    """After a game each seat's own afterstates are walked back through, from the last:

        V ← V + lr · (γ · target - V)

    The target of the last is what is paid at the end; that of an earlier one is what the seat's
    next move gained and the value of the afterstate that it led to, as just updated (Hickman's
    article, where all is paid at the end); that of the last in an open game is the best that can
    be done where the window ends. Many games side by side are learnt from together: what several
    of them share moves as far as if they had come one after another, 1 - (1 - lr)ⁿ of the way to
    the mean of what they ask for. Where a value is a sum, each part moves by its share.

    backup: "sampled", as above, or "expected": every target is the mean, over all that chance may
        add, of what the best next move gains and leads to. The dice add no noise, and moves made
        to explore do no harm. For one seat that is paid what it gains. Or "every": the same for
        every legal move of the positions met, whether it was made or not.
    rates: "constant", or "temporal_coherence": of every value apart, lr times how much its errors
        so far agree, |Σ error| ÷ Σ |error| (Beal and Smith 1999; Jaskowski 2016), 1 to begin with.
        Or "counts": values of one sum take parts of its error in proportion to 1 ÷ (1 + how often
        each was moved), where otherwise the parts are alike: what is met everywhere settles, and
        what is met seldom learns how this afterstate differs from others (the gain of a Kalman
        filter that takes values for independent and the target for exact).
    frozen: tuples whose values stay as they are; the others take all of an error.
    Raises ValueError for tuples that are not there, and where none is left to learn.
    """

    policy_class = AfterstateValues
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
        step_size: str,
        backup: str = "sampled",
        frozen_tuples: Sequence[int] = (),
    ) -> None:
        if backup != "sampled" and (game.spec.seats > 1 or reward.scored != "score_delta"):
            raise NotImplementedError(
                f"backup={backup} learns one seat's points, as they are gained"
            )
        self.game, self.policy, self.reward = game, policy, reward
        self.backup = backup
        self.lr = Schedule(lr, lr_end)
        self.values = SharedValues(policy, step_size)
        self.frozen_tuples = frozen_tuples
        self.learnt = _not_frozen(policy.tuple_of, frozen_tuples)

    def state_dict(self) -> dict[str, Any]:
        return {"values": self.values.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_weights(self.values, state["values"])

    @torch.no_grad()
    def update(
        self, moves: Trajectories, results: FinalStates, progress: float
    ) -> dict[str, float]:
        lr = self.lr.at(progress)
        if self.backup == "every":
            moves = moves.for_all_actions(self.game.legal_action_mask(moves.state))
        afterstate = self.game.apply_action(moves.state, moves.action)
        places, anew = self.policy.allocate(self.game, afterstate, self.frozen_tuples)
        self.values.forget(anew)
        paid = self.reward.rewards(moves, results)
        if not torch.isfinite(paid).all():
            raise NonFiniteError("a reward is not a finite number")
        ends_game = is_last(moves) & results.state.done[moves.game]
        seats = results.score.shape[1]
        owner = moves.game * seats + moves.seat
        next_gain = torch.zeros(moves.games * seats, device=paid.device)
        next_value = self.policy.best(self.game, results.state)[:, None].repeat(1, seats).view(-1)
        error = torch.zeros((), device=paid.device)
        stop = len(moves)
        for size in reversed(moves.ply_sizes):
            now = slice(stop - size, stop)
            stop -= size
            if not size:
                continue
            own = owner[now]
            if self.backup != "sampled":
                best = partial(self.policy.best, self.game)
                target = mean_over_chance(self.game, afterstate[now], best)
            else:
                target = next_gain[own] + next_value[own]
            if self.reward.is_final:
                target = torch.where(ends_game[now], paid[now], target)
            else:
                next_gain[own] = paid[now]
            target = self.reward.discount * target
            wrong = target - self.policy.lookup(places[now])
            error += wrong.abs().sum()
            self.values.move(places[now][:, self.learnt], wrong, lr)
            next_value[own] = self.policy.lookup(places[now])
        return {"td_error": float(error) / len(moves), "lr": lr}


def _not_frozen(tuple_of: Tensor, frozen: Sequence[int]) -> Tensor | slice:
    """Which of the places, by tuple, int64 [K], are learnt."""
    numbers = tuple_of.unique().tolist()
    for number in frozen:
        if number not in numbers:
            raise ValueError(
                f"learner.frozen_tuples={list(frozen)}: the tuples are {_listed(numbers)}"
            )
    if not frozen:
        return slice(None)
    if set(frozen) == set(numbers):
        raise ValueError(f"learner.frozen_tuples={list(frozen)} leaves nothing to learn")
    return torch.tensor([number not in frozen for number in tuple_of.tolist()]).nonzero()[:, 0]


def _listed(numbers: list[int]) -> str:
    return "0" if len(numbers) == 1 else f"0 to {numbers[-1]}"
