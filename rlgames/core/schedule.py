"""A hyperparameter that is constant or changes linearly over a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """From start at the first game to end at the last; constant if end is None."""

    start: float
    end: float | None = None

    def at(self, progress: float) -> float:
        """The value after a fraction, progress, of the run's games."""
        if self.end is None:
            return self.start
        return self.start + (self.end - self.start) * progress
