"""Means and rates of games with 95% confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from rlgames.core.intervals import (
    Interval,
    mean_interval,
    mean_rate,
    pooled_rate_interval,
    wilson_interval,
)


@dataclass(frozen=True)
class Estimate:
    """Statistics of one number per game.

    interval: of the mean; None if the mean is exact, because all ways the games can go were
    played, and where the games say nothing of how it varies, see mean_interval.
    """

    mean: float
    interval: Interval | None
    median: float
    minimum: float
    maximum: float

    @classmethod
    def of(
        cls, value: Tensor, weight: Tensor, is_exact: bool, stratum: Tensor | None = None
    ) -> Estimate:
        """value, weight: float64 [G]; the weights add up to 1. stratum: int64 [G], see
        mean_interval."""
        values, weights = np.asarray(value), np.asarray(weight)
        strata = None if stratum is None else np.asarray(stratum)
        order = values.argsort(kind="stable")
        median_index = int((weights[order].cumsum() < 0.5 - 1e-12).sum())
        return cls(
            mean=float((weight * value).sum()),
            interval=None if is_exact else mean_interval(values, weights, strata),
            median=float(values[order[min(median_index, len(values) - 1)]]),
            minimum=float(values.min()),
            maximum=float(values.max()),
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "mean": self.mean,
            "ci95": None if self.interval is None else list(self.interval),
            "median": self.median,
            "min": self.minimum,
            "max": self.maximum,
        }


@dataclass(frozen=True)
class Rate:
    """A count out of a number of games.

    is_exact: these are all ways the games can go. parts: the rates of which this one is the mean,
    such as those in the two seats.
    """

    count: int
    games: int
    is_exact: bool = False
    parts: tuple[Rate, ...] = ()

    @classmethod
    def pooled(cls, parts: list[Rate]) -> Rate:
        """The mean of the rates of all parts that have games."""
        return cls(
            count=sum(part.count for part in parts),
            games=sum(part.games for part in parts),
            is_exact=all(part.is_exact for part in parts),
            parts=tuple(parts),
        )

    @property
    def rate(self) -> float:
        return mean_rate([(part.count, part.games) for part in self.parts or (self,)])

    @property
    def interval(self) -> Interval | None:
        """None if the rate is exact."""
        if self.is_exact:
            return None
        if self.parts:
            return pooled_rate_interval([(part.count, part.games) for part in self.parts])
        return wilson_interval(self.count, self.games)

    def as_dict(self) -> dict[str, Any]:
        interval = None if self.interval is None else list(self.interval)
        return {"count": self.count, "rate": self.rate, "ci95": interval}
