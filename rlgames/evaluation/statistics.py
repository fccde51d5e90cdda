"""Means and rates with their 95 % intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Estimate:
    """One number a game. low and high bound the 95 % interval of its mean, which has no width
    where every way the games could go was played."""

    mean: float
    low: float
    high: float
    median: float
    minimum: float
    maximum: float

    @classmethod
    def of(cls, value: Tensor, weight: Tensor, exact: bool) -> Estimate:
        """value, weight: float64 [G]; the weights add up to 1, and are equal unless exact."""
        count = len(value)
        mean = float((weight * value).sum())
        spread = 0.0
        if not exact and count > 1:
            variance = float((weight * (value - mean).square()).sum()) * count / (count - 1)
            spread = 1.96 * math.sqrt(variance / count)
        order = value.argsort()
        middle = int((weight[order].cumsum(0) < 0.5 - 1e-12).sum())
        return cls(
            mean=mean,
            low=mean - spread,
            high=mean + spread,
            median=float(value[order[min(middle, count - 1)]]),
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
    """How many of so many games, with Wilson's 95 % interval of the rate."""

    count: int
    games: int

    @property
    def rate(self) -> float:
        return self.count / self.games if self.games else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson 1927: finite and inside [0, 1], also where none or all of the games count."""
        if not self.games:
            return 0.0, 1.0
        z, n, p = 1.96, self.games, self.rate
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        low = 0.0 if self.count == 0 else middle - half
        high = 1.0 if self.count == self.games else middle + half
        return low, high

    def as_dict(self) -> dict[str, Any]:
        return {"count": self.count, "rate": self.rate, "ci95": list(self.interval)}
