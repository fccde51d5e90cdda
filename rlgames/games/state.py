"""Positions, what a game declares about itself, and tables that move between devices.

Letters in shapes: B games side by side, P seats.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from rlgames.core.rows import Rows


class HiddenTruth:
    """Replaces a hidden field in a public state; using it as a tensor raises PermissionError."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise PermissionError("players see public states, and this field is hidden from them")

    def __reduce__(self) -> str:
        return "HIDDEN"

    __getattr__ = __getitem__ = __and__ = __rand__ = __or__ = __invert__ = _refuse
    __add__ = __radd__ = __sub__ = __mul__ = __gt__ = __lt__ = __len__ = __iter__ = _refuse

    @classmethod
    def __torch_function__(cls, *_: Any, **__: Any) -> Any:
        return HIDDEN._refuse()


HIDDEN: Any = HiddenTruth()


class Wants(NamedTuple):
    """What else than the next positions a step computes at once, where that is cheaper: the legal
    actions, and the observations, of the seats to move."""

    legal: bool = False
    planes: bool = False

    def __or__(self, other: Any) -> Wants:
        return Wants(*(one or two for one, two in zip(self, other, strict=True)))


@dataclass(frozen=True)
class State(Rows):
    """B positions side by side; every field is a tensor with the batch in front.

    done: bool [B], the game is over and this row does not change any more.
    current_seat: int64 [B], the seat to act.
    turn: int64 [B], turns finished since the start.
    score: float32 [B, P], what each seat has scored since the start.
    """

    done: Tensor
    current_seat: Tensor
    turn: Tensor
    score: Tensor

    @classmethod
    def start(cls, batch: int, seats: int, device: torch.device, **fields: Tensor) -> Self:
        """Positions at the start of games: the first seat is to move, nothing is scored.

        fields: the game's own, and the others that differ.
        """
        zeros = torch.zeros(batch, dtype=torch.int64, device=device)
        score = torch.zeros(batch, seats, device=device)
        common = {"done": zeros.bool(), "current_seat": zeros, "turn": zeros, "score": score}
        return cls(**common | fields)

    def __len__(self) -> int:
        return self.done.shape[0]

    def without_views(self) -> Self:
        """The same positions without what a step has computed about them."""
        return self

    def put(self, rows: Tensor, other: Self) -> Self:
        """These positions, with rows, int64 [N], replaced by the N others."""
        new = vars(other)
        columns = {
            name: value if value is HIDDEN else value.index_copy(0, rows, new[name])
            for name, value in vars(self).items()
        }
        return type(self)(**columns)


@dataclass(frozen=True)
class Spec:
    """What a game declares about itself.

    observation: shape of one observation, (planes, rows, columns).
    has_cell_actions: action a is cell a of the observation in row-major order, so that a network
        may give each cell one score; actions after the last cell, such as passing, take no cell.
    max_plies: an upper limit of the plies of a game.
    max_positions: an upper limit of the reachable positions, which need not be tight.
    goal: what a player wants: few "turns"; a high "score"; or an "outcome", a higher final score
        than the other seat's, whose scores add up to 0.
    hidden: some of the state is hidden from the seat to move; the game has HiddenInformation.
    num_chance_inputs: uniform numbers that chance consumes after each action; 0: no chance. Others
        have the capability Chance.
    max_plies_per_turn: an upper limit of the plies of a turn.
    observation_range: limits of the numbers in an observation.
    """

    name: str
    seats: int
    actions: int
    observation: tuple[int, int, int]
    has_cell_actions: bool
    max_plies: int
    max_positions: float
    goal: str
    hidden: bool = False
    num_chance_inputs: int = 0
    max_plies_per_turn: int = 1
    observation_range: tuple[float, float] = (0.0, 1.0)


def count_boards(cell_values: int, cells: int) -> float:
    """The number of ways to fill the cells; infinite where it exceeds all floats."""
    try:
        return float(cell_values) ** cells
    except OverflowError:
        return math.inf


class Tables:
    """Constant tensors, and parts that are tables themselves; they move to a device together."""

    device = torch.device("cpu")

    def to(self, device: torch.device | str) -> Self:
        """Move everything to a device, in place."""
        self.device = torch.device(device)
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(self, name, value.to(device))
            elif isinstance(value, Tables):
                value.to(device)
        return self

    def on_cpu(self) -> Self:
        """A copy whose tables are on the CPU, where solvers and kernels work."""
        return copy.deepcopy(self).to("cpu")
