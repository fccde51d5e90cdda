"""Means and rates with 95 % confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor

Z_95 = 1.96
"""The two-sided 95 % quantile of the normal distribution."""


@dataclass(frozen=True)
class Estimate:
    """Statistics of one number per game. low and high bound the 95 % confidence interval of the
    mean, which has no width if all ways the games can go were played."""

    mean: float
    low: float
    high: float
    median: float
    minimum: float
    maximum: float

    @classmethod
    def of(cls, value: Tensor, weight: Tensor, exact: bool) -> Estimate:
        """value, weight: float64 [G]; the weights sum to 1 and are equal unless exact."""
        count = len(value)
        mean = float((weight * value).sum())
        half_width = 0.0
        if not exact and count > 1:
            variance = float((weight * (value - mean).square()).sum()) * count / (count - 1)
            half_width = Z_95 * math.sqrt(variance / count)
        order = value.argsort()
        median_index = int((weight[order].cumsum(0) < 0.5 - 1e-12).sum())
        return cls(
            mean=mean,
            low=mean - half_width,
            high=mean + half_width,
            median=float(value[order[min(median_index, count - 1)]]),
            minimum=float(value.min()),
            maximum=float(value.max()),
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "mean": self.mean,
            "ci95": [self.low, self.high],
            "median": self.median,
            "min": self.minimum,
            "max": self.maximum,
        }


@dataclass(frozen=True)
class Rate:
    """A count out of a number of games, with Wilson's 95 % interval of the rate."""

    count: int
    games: int

    @property
    def rate(self) -> float:
        return self.count / self.games if self.games else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson (1927): lies within [0, 1] and has a width even for none or all of the games."""
        if not self.games:
            return 0.0, 1.0
        z, n, p = Z_95, self.games, self.rate
        center = (p + z * z / (2 * n)) / (1 + z * z / n)
        half_width = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        low = 0.0 if self.count == 0 else center - half_width
        high = 1.0 if self.count == self.games else center + half_width
        return low, high

    def as_dict(self) -> dict[str, Any]:
        return {"count": self.count, "rate": self.rate, "ci95": list(self.interval)}
