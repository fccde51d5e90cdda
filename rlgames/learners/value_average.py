"""The mean of a policy's values over the later part of a training."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from rlgames.core.tensor_checks import load_weights, parts
from rlgames.core.untrusted import checked_int
from rlgames.policies.policy import AfterstateValues

INTERVAL = 0.01
"""How often values count, as a fraction of the training."""

MAX_COUNT = 1 + round(1 / INTERVAL)


class ValueAverage:
    """Averages the values that a learner trains, so that they can go on changing quickly (Polyak
    and Juditsky 1992).

    policy: like the trained one, with the mean of its values since `start`, a fraction of the
        training; before that, with the same values.
    """

    def __init__(self, trained: AfterstateValues, start: float) -> None:
        self.start, self.count = start, 0
        self.policy = copy.copy(trained)
        self.policy._buffers = dict(trained._buffers)  # only the values will differ
        self._latest = trained.values

    @torch.no_grad()
    def add(self, progress: float) -> None:
        """Count the trained values if it is time. progress: the fraction of training done."""
        if progress < self.start + self.count * INTERVAL:
            return
        self.count += 1
        if self.count == 1:
            self._separate()
        values = zip(parts(self.policy.values), parts(self._latest), strict=True)
        for mean, latest in values:
            mean.lerp_(latest, 1 / self.count)

    def _separate(self) -> None:
        self.policy.values = self._latest.clone(memory_format=torch.contiguous_format)

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count, "trained": {"values": self._latest} if self.count else {}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore both from the trained policy, which has loaded what `policy` had, and a state.
        Raises LookupError, TypeError or ValueError for a state that does not fit."""
        self.count = checked_int(state["count"], 0, MAX_COUNT)
        if self.count:
            self._separate()
            trained = nn.Module()
            trained.register_buffer("values", self._latest)
            load_weights(trained, state["trained"])
