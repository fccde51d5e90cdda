"""The latest moves, kept to be learnt from more than once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from rlgames.core.tensor_checks import checked_rows
from rlgames.core.untrusted import checked_int
from rlgames.games.game import HIDDEN, Game, State


@dataclass(frozen=True)
class ReplayTransitions:
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

    def over(self, count: int) -> ReplayTransitions:
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


T = TypeVar("T")


class RingBuffer(Generic[T]):
    """The latest rows of a table, at most size of them.

    A table is a dataclass of tensors and positions, each with its rows in front.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._table: T | None = None
        self._begun = 0
        """Rows that were ever added."""

    def __len__(self) -> int:
        return min(self._begun, self.size)

    def __getitem__(self, places: Tensor) -> T:
        """The rows at these places, int64 [M], which go round."""
        assert self._table is not None
        rows: T = _mapped(self._table, lambda column: column[places % self.size])
        return rows

    def add(self, table: T) -> None:
        """The earliest rows make room."""
        if self._table is None:
            self._table = self._empty(table)
        columns = _columns(table)
        count = len(columns[0])
        skipped = max(0, count - self.size)
        place = torch.arange(self._begun + skipped, self._begun + count, device=columns[0].device)
        for ring, column in zip(_columns(self._table), columns, strict=True):
            ring[place % self.size] = column[skipped:]
        self._begun += count

    def state_dict(self) -> dict[str, Any]:
        """The rows that there are, column by column, and how many there ever were."""
        columns = [] if self._table is None else _columns(self._table)
        filled = {str(number): column[: len(self)] for number, column in enumerate(columns)}
        return {"begun": self._begun, "columns": filled}

    def load_state_dict(self, state: dict[str, Any], example: T, game: Game[Any]) -> None:
        """example: a table of one row. Raises LookupError, TypeError or ValueError for other
        columns and for positions that cannot be in the game."""
        self._begun = checked_int(state["begun"], 0)
        self._table = None
        if not self._begun:
            return
        wanted, found = _columns(example), state["columns"]
        kept = [checked_rows(found[str(n)], like, len(self)) for n, like in enumerate(wanted)]
        checked = _filled(example, iter(kept))
        if not bool(game.is_valid(checked.state).all()):
            raise ValueError("a position that is remembered cannot be")
        if isinstance(checked, ReplayTransitions) and not bool(
            ((checked.action >= 0) & (checked.action < game.spec.actions)).all()
        ):
            raise ValueError("a move that is remembered cannot be")
        self._table = self._empty(example)
        for ring, column in zip(_columns(self._table), kept, strict=True):
            ring[: len(column)] = column

    def _empty(self, example: T) -> T:
        """A table of size rows like those of the example."""
        made: T = _mapped(example, lambda column: column.new_zeros(self.size, *column.shape[1:]))
        return made

    def sample(self, count: int, rng: torch.Generator) -> Tensor:
        """Int64 [count]: places of rows, drawn evenly and with replacement."""
        return torch.randint(len(self), (count,), generator=rng, device=rng.device)


class ReplayBuffer(RingBuffer[ReplayTransitions]):
    """Moves of whole games in the order they were made, and how to find what followed them.

    Only positions before a move are stored, for what follows a move is another move's position.
    That one lies later in the ring and so is never overwritten first.
    """

    def add(self, table: ReplayTransitions) -> None:
        ahead = table.following - torch.arange(len(table), device=table.following.device)
        super().add(replace(table, following=ahead))

    def sample_transitions(
        self, count: int, rng: torch.Generator
    ) -> tuple[ReplayTransitions, State]:
        """count moves, and the positions that followed."""
        rows = self.sample(count, rng)
        drawn = self[rows]
        return drawn, self[rows + drawn.following].state


def _mapped(table: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same table with every tensor changed; nothing stands for what is hidden."""
    values = {field.name: getattr(table, field.name) for field in fields(table)}
    changed = {
        name: _mapped(value, change) if isinstance(value, State) else change(value)
        for name, value in values.items()
        if value is not HIDDEN
    }
    return replace(table, **changed)


def _filled(table: Any, columns: Iterator[Tensor]) -> Any:
    """The same table with other columns, in the order of _columns."""
    return _mapped(table, lambda _: next(columns))


def _columns(table: Any) -> list[Tensor]:
    """All tensors of a table, those of positions too; nothing stands for what is hidden."""
    values = [getattr(table, field.name) for field in fields(table)]
    shown = [value for value in values if value is not HIDDEN]
    return [
        column
        for value in shown
        for column in (_columns(value) if isinstance(value, State) else [value])
    ]
