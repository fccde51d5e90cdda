"""Conditions on runs, as in where='game=salvo,status=failed,lr<0.01,started>2026-11-20'."""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rlgames.config.schema import as_typed
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.text import counted
from rlgames.core.untrusted import finite_or_none
from rlgames.runs.find import RunSummary

T = TypeVar("T")

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
CONDITION = re.compile(r"([\w./-]+)\s*(<=|>=|!=|=|<|>)\s*(.*)", re.DOTALL)
SEPARATOR = re.compile(r",(?![^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\])")
"""A comma outside brackets: [64,64] and [[0,1],[2,3]] are one value each."""

FIELDS: dict[str, Callable[[RunSummary], Any]] = {
    "status": lambda run: run.status,
    "path": lambda run: str(run.path),
    "started": lambda run: run.start,
    "played": lambda run: run.games,
    "seconds": lambda run: run.seconds,
}
"""What a condition may name besides the keys of a config and the metrics of a run."""


@dataclass(frozen=True)
class Condition:
    """One condition: a name, an operator and the value as typed, where * is any text."""

    name: str
    sign: str
    typed: str

    def holds(self, run: RunSummary) -> bool:
        """Whether it holds for a run; never for a name that the run does not have."""
        known, compare = values_of(run), OPERATORS[self.sign]
        if self.name not in known:
            return False
        value = known[self.name]
        if self.name == "started":
            date = self._date()  # also checked where no run has one
            return value is not None and compare(_date(value), date)
        number = _number(value)
        if number is not None and (limit := _number(self.typed)) is not None:
            return compare(number, limit)
        if self.sign not in ("=", "!="):
            if _number(self.typed) is None:
                hint = "text has no order; use = or !="
                raise ConfigError(f"where={self}: {self.typed} is not a number", hint)
            return False
        pattern = ".*".join(map(re.escape, self.typed.split("*")))
        return bool(re.fullmatch(pattern, as_typed(value), re.DOTALL)) == (self.sign == "=")

    def _date(self) -> datetime.datetime:
        try:
            return _date(self.typed)
        except ValueError:
            hint = "write 2026-11-20 or 2026-11-20T15:30"
            raise ConfigError(f"where={self}: {self.typed} is not a date", hint) from None

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.typed}"


def values_of(run: RunSummary) -> dict[str, Any]:
    """Everything that a condition or a column may name: settings before metrics before FIELDS."""
    fields = {name: value(run) for name, value in FIELDS.items()}
    return fields | run.so_far | run.results | run.settings


def matching(runs: Sequence[RunSummary], where: str | None) -> list[RunSummary]:
    """The runs that meet all conditions. Raises ConfigError for invalid conditions, for names
    that no run has, and if no run is left."""
    if where is None:
        return list(runs)
    conditions = parse(where)
    names = {name for run in runs for name in values_of(run)}
    for condition in conditions:
        if condition.name not in names:
            hint = nearest(condition.name, [*names])
            raise ConfigError(f"where={condition}: no run has {condition.name}", hint)
    chosen = [run for run in runs if all(condition.holds(run) for condition in conditions)]
    if not chosen:
        others = f"{counted(len(runs), 'run')} {'does' if len(runs) == 1 else 'do'} not"
        raise ConfigError(f"no run matches where={where}", others)
    return chosen


def sorted_by(items: Sequence[T], value: Callable[[T], Any], is_descending: bool) -> list[T]:
    """Items by a value: numbers before text, and those without a value last."""

    def key(item: T) -> tuple[bool, float, str]:
        number = finite_or_none(value(item))
        return number is None, number or 0.0, "" if number is not None else as_typed(value(item))

    known = [item for item in items if value(item) is not None]
    missing = [item for item in items if value(item) is None]
    return sorted(known, key=key, reverse=is_descending) + missing


def check_column(key: str, name: str, names: list[str]) -> None:
    """Raises ConfigError for a value of columns= or sort= that names no column."""
    if name not in names:
        raise ConfigError(f"{key}={name} is not a column", nearest(name, names))


def parse(where: str) -> list[Condition]:
    """The conditions, which commas separate. Raises ConfigError."""
    conditions = []
    for text in SEPARATOR.split(where):
        match = CONDITION.fullmatch(text.strip())
        if match is None or not match[3].strip():
            hint = f"write NAME and a value with one of {' '.join(OPERATORS)} between them"
            raise ConfigError(f"where={text.strip()} is not a condition", hint)
        conditions.append(Condition(match[1], match[2], match[3].strip()))
    return conditions


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _date(text: str) -> datetime.datetime:
    """A time; without a zone, in this machine's. Raises ValueError."""
    try:
        return datetime.datetime.fromisoformat(text).astimezone()
    except OverflowError as error:  # at the ends of the calendar, by the zone
        raise ValueError(error) from None
