"""The values of a study: a metric of the seeds of a run, with its mean and interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rlgames.evaluation.estimates import Estimate

DIGITS = 6
"""Significant digits of a recorded value."""

MISSING = "–"

NEVER = 1e300
"""A number of games that was never reached, which JSON can hold."""

NOTE = (
    "± is half of a 95% interval: of the mean over training seeds by Student's t, of a difference "
    "by Welch's, and of a single seed over its games. Of two seeds, both values are in parentheses."
)


@dataclass(frozen=True)
class Cell:
    """A value of a table.

    Args:
        half: half of its 95% interval; None where it has none.
        n: the number of seeds.
        values: of each seed; empty where only the mean is known.
    """

    mean: float
    half: float | None = None
    n: int = 1
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: list[float], half: float | None = None) -> Cell:
        """The cell of the values of all seeds; half: of the games of a single seed."""
        if len(values) > 1:
            has_interval = len(values) > 2 and max(values) < NEVER
            half = Estimate.of_seeds([np.array(values)]).half if has_interval else None
        return cls(sum(values) / len(values), half, len(values), tuple(values))

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Cell:
        """The inverse of as_record."""
        values = tuple(map(float, record.get("values", ())))
        half = record["half"]
        return cls(float(record["mean"]), half and float(half), int(record["n"]), values)

    def as_record(self) -> dict[str, Any]:
        """The cell as JSON, rounded."""
        record: dict[str, Any] = {"mean": rounded(self.mean), "half": None, "n": self.n}
        if self.half is not None:
            record["half"] = rounded(self.half)
        return record | (
            {"values": [*map(rounded, self.values)]} if self.n > 1 < len(self.values) else {}
        )

    def contains(self, value: float) -> bool | None:
        """Whether the interval contains a value; None without an interval over seeds."""
        return None if self.half is None or self.n < 3 else abs(self.mean - value) <= self.half

    def shown(self, factor: float = 1.0, format: str = ",.4g", option: str = "") -> str:
        """The cell as text.

        Of two seeds, both values are in parentheses, and three or more equal ones are marked,
        because they say nothing of how much others would differ.
        """

        def text(value: float) -> str:
            return "never" if value >= NEVER / 100 else f"{factor * value:{format}}"

        values = self.values or (self.mean,)
        if option == "by seed":
            return ", ".join(map(text, values))
        if option == "highest":
            return text(max(values))
        if option == "mean":
            return text(self.mean)
        if self.n == 2 == len(self.values):
            return f"{text(self.mean)} ({text(min(values))}, {text(max(values))})"
        if self.half is None:
            return text(self.mean) + f" ({self.n} equal)" * (self.n > 2 and max(values) < NEVER)
        half = format.replace("+", "")
        return f"{text(self.mean)} ± {abs(factor) * self.half:{half}}"


def rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def evaluate_expression(parts: list[str], look_up: Callable[[str], Cell | None]) -> Cell | None:
    """The value of terms and the operators between them, from the left; None if one is missing.

    look_up: the cell of a term, a number included.
    """
    cell = look_up(parts[0])
    for operator, term in zip(parts[1::2], parts[2::2], strict=True):
        other = look_up(term)
        if cell is None or other is None:
            return None
        cell = _combined(cell, operator, other)
    return cell


def _combined(cell: Cell, operator: str, other: Cell) -> Cell:
    """Each seed is paired with a single value, and two samples are compared by their means.

    Intervals of independent values add in squares, each by how the result depends on its value
    (the delta method). A single value without an interval is exact.
    """
    a, b = cell.mean, other.mean
    operations: dict[str, Callable[[float, float], float]] = {
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: a / b if b else NEVER,
    }
    operation = operations[operator]
    if 1 in (cell.n, other.n):
        firsts, seconds = cell.values or (a,), other.values or (b,)
        paired = Cell.of([operation(first, second) for first in firsts for second in seconds])
        slopes = {"-": (1.0, 1.0), "*": (b, a), "/": (1 / (b or 1.0), a / (b or 1.0) ** 2)}[
            operator
        ]
        halves = [
            slope * each.half
            for slope, each in zip(slopes, (cell, other), strict=True)
            if each.n == 1 and each.half is not None
        ]
        if paired.n > 1:
            halves = [paired.half, *halves] if paired.half is not None else []
        return replace(paired, half=math.hypot(*halves) if halves else None)
    mean = operation(a, b)
    if operator == "-" and len(cell.values) > 1 and len(other.values) > 1:
        samples = [np.array(each.values) for each in (cell, other)]
        difference = Estimate.difference([samples[0]], [samples[1]])
        return Cell(mean, difference.half, cell.n)
    return Cell(mean)
