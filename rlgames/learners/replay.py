"""The latest moves, kept to be learnt from more than once."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import HIDDEN, State


@dataclass(frozen=True)
class Steps:
    """M moves, each with what came of it.

    state: public positions [M]. action: int64 [M]. reward: float32 [M]. weight: float32 [M], of
    what follows: the discount up to there, 0 where the game is over for the mover. following:
    int64 [M], which of these moves the same seat made next; any where weight is 0.
    """

    state: State
    action: Tensor
    reward: Tensor
    weight: Tensor
    following: Tensor

    def __len__(self) -> int:
        return len(self.action)

    def over(self, count: int) -> Steps:
        """The same moves, with the reward of count of the seat's own moves as that of one."""
        found = self
        for _ in range(count - 1):
            later = found.following
            found = replace(
                found,
                reward=found.reward + found.weight * self.reward[later],
                weight=found.weight * self.weight[later],
                following=self.following[later],
            )
        return found


class Replay:
    """A ring of at most size moves.

    Only positions before a move are stored, for what follows a move is another move's position.
    That one lies later in the ring and so is never overwritten first.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._ring: Steps | None = None
        self._begun = 0
        """Moves that were ever added."""

    def __len__(self) -> int:
        return min(self._begun, self.size)

    def add(self, steps: Steps) -> None:
        """Moves of whole games in the order they were made; the earliest make room."""
        if self._ring is None:
            self._ring = _empty_like(steps, self.size)
        skipped = max(0, len(steps) - self.size)
        place = (self._begun + torch.arange(len(steps), device=steps.action.device)) % self.size
        kept = place[skipped:]
        new = replace(steps, following=place[steps.following])
        for ring, column in zip(_columns(self._ring), _columns(new), strict=True):
            ring[kept] = column[skipped:]
        self._begun += len(steps)

    def draw(self, count: int, rng: torch.Generator) -> tuple[Steps, State]:
        """count moves, drawn evenly and with replacement, and the positions that followed."""
        ring = self._ring
        assert ring is not None
        rows = torch.randint(len(self), (count,), generator=rng, device=rng.device)
        drawn = Steps(ring.state[rows], *(column[rows] for column in _columns(ring)[-4:]))
        return drawn, ring.state[drawn.following]


def _columns(steps: Steps) -> list[Tensor]:
    """All tensors of moves, the state's first; nothing stands for what is hidden."""
    state = [getattr(steps.state, field.name) for field in fields(steps.state)]
    shown = [column for column in state if column is not HIDDEN]
    return [*shown, steps.action, steps.reward, steps.weight, steps.following]


def _empty_like(steps: Steps, size: int) -> Steps:
    """Room for size moves of the same kind."""

    def room(column: Any) -> Any:
        return HIDDEN if column is HIDDEN else column.new_zeros(size, *column.shape[1:])

    state = {f.name: room(getattr(steps.state, f.name)) for f in fields(steps.state)}
    columns = {f.name: room(getattr(steps, f.name)) for f in fields(steps) if f.name != "state"}
    return Steps(replace(steps.state, **state), **columns)
