"""The mean of a policy's values over the later part of a training."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from rlgames.core.tensor_checks import load_weights, parts
from rlgames.core.untrusted import checked_int
from rlgames.policies.ntuple import Ntuple
from rlgames.policies.policy import AfterstateValues

PARTS = 100
"""The values count once in each of so many parts of the training."""


class ValueAverage:
    """Averages the values that a learner trains, so that they can go on changing quickly (Polyak
    and Juditsky 1992).

    policy: like the trained one, with the mean of its values since `start`, a fraction of the
        training; before that, with the same values. If a training becomes longer, the mean begins
        anew.
    Raises ValueError for a policy whose values change their meaning during training.
    """

    def __init__(self, trained: AfterstateValues, start: float) -> None:
        if isinstance(trained, Ntuple) and len(trained.met):
            raise ValueError(
                "learner.average_start needs one value per content of a tuple, and "
                "policy.table_size= gives the value of one to another; use "
                "learner.average_start=null or policy.table_size=null"
            )
        self.start, self.count, self.part = start, 0, -1
        self.policy = copy.copy(trained)
        self.policy._buffers = dict(trained._buffers)  # only the values will differ
        self._latest = trained.values

    @torch.no_grad()
    def add(self, progress: float) -> None:
        """Count the trained values if it is time. progress: the fraction of training done."""
        part = int(progress * PARTS)
        if part < self.part:
            self.count, self.part, self.policy.values = 0, -1, self._latest
        if progress < self.start or part == self.part:
            return
        self.count, self.part = self.count + 1, part
        if self.count == 1:
            self._separate()
        values = zip(parts(self.policy.values), parts(self._latest), strict=True)
        for mean, latest in values:
            mean.lerp_(latest, 1 / self.count)

    def _separate(self) -> None:
        self.policy.values = self._latest.clone(memory_format=torch.contiguous_format)

    def state_dict(self) -> dict[str, Any]:
        latest = {"values": self._latest} if self.count else {}
        return {"count": self.count, "part": self.part, "trained": latest}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore both from the trained policy, which has loaded what `policy` had, and a state.
        Raises LookupError, TypeError or ValueError for a state that does not fit."""
        self.count = checked_int(state["count"], 0, PARTS + 1)
        self.part = checked_int(state["part"], -1, PARTS)
        if self.count:
            self._separate()
            trained = nn.Module()
            trained.register_buffer("values", self._latest)
            load_weights(trained, state["trained"])
