"""The contract between a game's rules and everything that plays it.

Letters in shapes: B games side by side, A actions, P seats, O the shape of an observation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, Self, TypeVar

import torch
from torch import Tensor


class HiddenTruth:
    """Stands where a player may not look: any use of it as a tensor raises PermissionError."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise PermissionError(
            "this player was handed a public state: the hidden truth is not in it"
        )

    __getattr__ = __getitem__ = __and__ = __rand__ = __or__ = __invert__ = _refuse

    @classmethod
    def __torch_function__(cls, *_: Any, **__: Any) -> Any:
        return HIDDEN._refuse()


HIDDEN: Any = HiddenTruth()


@dataclass(frozen=True)
class State:
    """B positions side by side; every field is a tensor with the batch in front.

    done: bool [B], the game is over and this row will not change again.
    mover: int64 [B], the seat to act.
    turn: int64 [B], turns finished since the start.
    score: float32 [B, P], what each seat has gained since the start.
    """

    done: Tensor
    mover: Tensor
    turn: Tensor
    score: Tensor

    def __len__(self) -> int:
        return self.done.shape[0]

    def __getitem__(self, rows: Tensor | slice) -> Self:
        """The chosen rows: a slice, int64 indices or a bool mask of [B]."""
        return self._map(lambda tensor: tensor[rows])

    def to(self, device: torch.device | str) -> Self:
        return self._map(lambda tensor: tensor.to(device))

    @classmethod
    def cat(cls, states: Sequence[Self]) -> Self:
        """Join batches, first to last; hidden fields stay hidden."""
        if len(states) == 1:
            return states[0]
        columns = {}
        for field in fields(cls):
            parts = [getattr(state, field.name) for state in states]
            columns[field.name] = HIDDEN if parts[0] is HIDDEN else torch.cat(parts)
        return cls(**columns)

    def _map(self, change: Any) -> Self:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self,
            **{name: value if value is HIDDEN else change(value) for name, value in values.items()},
        )


@dataclass(frozen=True)
class Spec:
    """What a game declares about itself.

    observation: shape of one observation, (planes, rows, columns).
    cells: action a is cell a of the board in row-major order, so that a network may
        give one score a cell.
    longest: no game lasts more plies than this.
    hidden: some of the truth is not shown to the mover.
    turn_plies: the most plies that one turn can take.
    """

    name: str
    seats: int
    actions: int
    observation: tuple[int, int, int]
    cells: bool
    longest: int
    hidden: bool
    turn_plies: int = 1


S = TypeVar("S", bound=State)


class Game(ABC, Generic[S]):
    """One instance is one set of rules; it holds constant tables and no position."""

    spec: Spec

    @abstractmethod
    def initial(self, batch: int, rng: torch.Generator) -> S:
        """B new games, their hidden truth drawn from the prior with rng."""

    @abstractmethod
    def openings(self, limit: int) -> tuple[S, Tensor] | None:
        """Every way a game can start and its probability, float64 [B]; None beyond limit ways."""

    @abstractmethod
    def legal(self, state: S) -> Tensor:
        """Bool [B, A]: what the mover may do; all True in a finished row."""

    @abstractmethod
    def act(self, state: S, action: Tensor) -> S:
        """The positions after action, int64 [B]; a finished row does not change."""

    @abstractmethod
    def observe(self, state: S) -> Tensor:
        """Float32 [B, *spec.observation]: what the mover may know, from the mover's side."""

    @abstractmethod
    def public(self, state: S) -> S:
        """The same positions with every hidden field replaced by HIDDEN."""

    @abstractmethod
    def render(self, state: S, row: int, reveal: bool = False) -> str:
        """One position as text; reveal shows the hidden truth too."""

    @abstractmethod
    def name_action(self, state: S, row: int, action: int) -> str:
        """An action as a person writes it."""

    @abstractmethod
    def random_gain(self, state: S, plies: bool) -> Tensor:
        """Float32 [B]: what a uniformly random turn from here is expected to gain.

        plies: count a single shot, cell or stone of the turn rather than all of them.
        """

    def random_turns(self) -> float | None:
        """The mean number of turns of uniformly random play where theory gives it."""
        return None

    def to(self, device: torch.device | str) -> Self:
        """Move the constant tables to a device, in place."""
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(self, name, value.to(device))
        return self
