"""A number that stays, or moves in a straight line from one value to another over a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """start at the first game, end at the last; end=None stays at start."""

    start: float
    end: float | None = None

    def at(self, progress: float) -> float:
        """The value when progress, 0 to 1, of the run's games have been played."""
        if self.end is None:
            return self.start
        return self.start + (self.end - self.start) * progress
