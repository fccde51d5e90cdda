"""What learners of n-tuple policies have in common: compiled kernels that play and learn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from rlgames.core.schedule import Schedule
from rlgames.core.tensor_checks import load_weights
from rlgames.learners.learner import Learner, LearnerContext, NonFiniteError
from rlgames.learners.packed_games import learn_packed_games
from rlgames.policies.ntuple_logits import NtupleLogits
from rlgames.policies.packed_ntuple import Array, PackedLogits, reason_not_packed
from rlgames.rollouts.play import GamePool
from rlgames.rollouts.trajectories import FinalStates, Trajectories

STRIDE = 8
"""Numbers of an entry with its statistics, as in kernels/ntuple_logits.py."""


class Totals(Protocol):
    """What kernels return: the number of moves, and sums over them."""

    @property
    def num_moves(self) -> int: ...

    def _asdict(self) -> dict[str, Any]: ...


T = TypeVar("T", bound=Totals)


class EntryStatistics(nn.Module):
    """Columns of an interleaved table, float32 [W] each, that updates depend on."""

    def __init__(self, table: Tensor, columns: dict[str, int]) -> None:
        super().__init__()
        for name, column in columns.items():
            self.register_buffer(name, table[:, column])


class NtupleLogitsLearner(Learner):
    """Plays and learns in a kernel.

    threads: that play and learn at once on the same entries.
    Raises ValueError for policies that kernels cannot read.
    """

    policy_class = NtupleLogits
    learns_logits = True
    learns_while_playing = True
    bootstraps = True

    STATISTICS: ClassVar[dict[str, int]] = {"squares": 7}
    """The columns of the table that hold statistics, by name."""

    policy: NtupleLogits

    def __init__(
        self, context: LearnerContext, name: str, lr: float, lr_end: float | None, threads: int
    ) -> None:
        super().__init__(context)
        if reason := reason_not_packed(self.game, self.policy):
            raise ValueError(f"learner={name} does not fit: {reason}")
        self.lr, self.threads = Schedule(lr, lr_end), threads
        table = self._interleave()
        self.statistics: nn.Module = EntryStatistics(table, self.STATISTICS)
        self._table: Array = table.numpy().reshape(-1)
        self._packed: PackedLogits | None = None

    def _interleave(self) -> Tensor:
        """Float32 [W, STRIDE]: a table whose first columns become the policy's entries, so that an
        entry and its statistics share a cache line."""
        num_entries, num_columns = self.policy.entries.shape
        # Numpy asks for huge pages, without which half the time is spent on finding pages.
        table = torch.from_numpy(np.zeros((num_entries, STRIDE), dtype=np.float32))
        table[:, :num_columns] = self.policy.entries
        self.policy.entries = table[:, :num_columns]
        return table

    def packed(self) -> PackedLogits:
        """The policy and the game as kernels read them."""
        self._packed = self._packed or PackedLogits(self.game, self.policy, STRIDE)
        return self._packed

    def learn_in_kernel(
        self, learn: Callable[..., T], pool: GamePool, plies: int | None
    ) -> tuple[FinalStates, dict[str, float]]:
        """How the games ended, and the means over moves of what learn returns sums of.

        learn: as learn_packed_games calls it. Raises NonFiniteError where a mean is not finite.
        """
        final_states, totals = learn_packed_games(
            learn, lambda total: total.num_moves, pool, plies, self.packed(), self.threads
        )
        sums = [total._asdict() for total in totals]
        num_moves = max(1, sum(each.pop("num_moves") for each in sums))
        means = {name: sum(each[name] for each in sums) / num_moves for name in sums[0]}
        for name, mean in means.items():
            if not math.isfinite(mean):
                raise NonFiniteError(f"{name} is not a finite number; a smaller lr may help")
        return final_states, means

    def most_plies(self, plies: int | None) -> int:
        """The most moves of a game in a window of this many plies, or in a whole game."""
        max_plies = self.game.spec.max_plies
        return max_plies if plies is None else min(plies, max_plies)

    def update(
        self, trajectories: Trajectories, final_states: FinalStates, progress: float
    ) -> dict[str, float]:
        raise NotImplementedError("it learns from the games that it plays")

    def state_dict(self) -> dict[str, Any]:
        return {"statistics": self.statistics.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_weights(self.statistics, state["statistics"])
