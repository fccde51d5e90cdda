"""Replay buffers: the latest moves, stored to be learned from more than once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from rlgames.core.memory import check_memory
from rlgames.core.rows import Rows
from rlgames.core.tensor_checks import checked_rows
from rlgames.core.untrusted import checked_int
from rlgames.games.game import Game, State
from rlgames.rollouts.trajectories import bytes_per_position


@dataclass(frozen=True)
class ReplayTransitions(Rows):
    """M moves with their rewards and successors.

    state: public states [M]. action: int64 [M]. reward: float32 [M]. weight: float32 [M], the
    discount of the next state's value; 0 where the game is over for the seat. next_index:
    int64 [M], the row of the same seat's next move; any row where weight is 0.
    """

    state: State
    action: Tensor
    reward: Tensor
    weight: Tensor
    next_index: Tensor

    def n_step(self, n: int) -> ReplayTransitions:
        """The same moves with n-step rewards, over n of the seat's own moves."""
        reward, weight, next_index = self.reward, self.weight, self.next_index
        for _ in range(n - 1):
            reward, weight, next_index = (
                reward + weight * self.reward[next_index],
                weight * self.weight[next_index],
                self.next_index[next_index],
            )
        return replace(self, reward=reward, weight=weight, next_index=next_index)


R = TypeVar("R", bound=Rows)


class RingBuffer(Generic[R]):
    """The latest rows that were added, at most size of them. example: one row, for the shapes and
    dtypes."""

    def __init__(self, size: int, example: R) -> None:
        self.size, self._example = size, example
        self._num_added = 0

    @cached_property
    def _rows(self) -> R:
        return self._example.map(lambda column: column.new_zeros(self.size, *column.shape[1:]))

    def __len__(self) -> int:
        return min(self._num_added, self.size)

    def __getitem__(self, indices: Tensor) -> R:
        """The rows at indices, int64 [M], modulo size."""
        return self._rows[indices % self.size]

    def add(self, rows: R) -> None:
        """Add rows, overwriting the oldest ones."""
        columns = rows.columns()
        count = len(columns[0])
        skipped = max(0, count - self.size)
        stop = self._num_added + count
        index = torch.arange(self._num_added + skipped, stop, device=columns[0].device) % self.size
        for stored, column in zip(self._rows.columns(), columns, strict=True):
            stored[index] = column[skipped:]
        self._num_added = stop

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Int64 [count]: indices of rows, sampled uniformly with replacement."""
        return torch.randint(len(self), (count,), generator=generator, device=generator.device)

    def metrics(self, num_samples: int, num_moves: int) -> dict[str, float]:
        """How full it is, and how often an update samples for each move that it adds."""
        return {"buffer_size": float(len(self)), "samples_per_move": num_samples / num_moves}

    def state_dict(self) -> dict[str, Any]:
        """The stored rows, column by column, and the number of rows ever added."""
        columns = self._rows.columns() if self._num_added else []
        filled = {str(number): column[: len(self)] for number, column in enumerate(columns)}
        return {"num_added": self._num_added, "columns": filled}

    def load_state_dict(self, state: dict[str, Any], game: Game[Any]) -> None:
        """Raises LookupError, TypeError or ValueError for other columns and for invalid states."""
        self._num_added = checked_int(state["num_added"], 0)
        if not self._num_added:
            return
        columns = [
            checked_rows(state["columns"][str(number)], column, len(self))
            for number, column in enumerate(self._example.columns())
        ]
        rows: Any = self._example.with_columns(iter(columns))
        if not bool(game.is_valid(rows.state).all()):
            raise ValueError("the replay buffer has an invalid state")
        if isinstance(rows, ReplayTransitions) and not bool(
            ((rows.action >= 0) & (rows.action < game.spec.actions)).all()
        ):
            raise ValueError("the replay buffer has an invalid action")
        for stored, column in zip(self._rows.columns(), columns, strict=True):
            stored[: len(column)] = column


class ReplayBuffer(RingBuffer[ReplayTransitions]):
    """Moves of whole games in playing order, to look up next states.

    Only the state before each move is stored: the state after it is the state before a later move,
    which is never overwritten first. next_index is stored relative to the row.
    """

    def add(self, rows: ReplayTransitions) -> None:
        index = torch.arange(len(rows), device=rows.next_index.device)
        super().add(replace(rows, next_index=rows.next_index - index))

    def sample_transitions(
        self, count: int, generator: torch.Generator
    ) -> tuple[ReplayTransitions, State]:
        """count moves, and the states of the same seats' next moves."""
        indices = self.sample(count, generator)
        transitions = self[indices]
        return transitions, self[indices + transitions.next_index].state


def check_replay_memory(
    game: Game[Any], buffer_size: int, minibatch_size: int, *, has_targets: bool = False
) -> None:
    """Raises ConfigError if buffer_size moves, or a step on minibatch_size of them, do not fit in
    free memory.

    Counted per move: its position, 32 bytes for reward and links, and a search target if any.
    """
    spec = game.spec
    move = bytes_per_position(game.public(game.example_state())) + 32
    move += 4 * spec.actions if has_targets else 0
    step = 8 * math.prod(spec.observation) + 17 * spec.actions
    check_memory("learner.buffer_size", buffer_size, move, "for the replay buffer")
    check_memory("learner.minibatch_size", minibatch_size, step, "for a step")
