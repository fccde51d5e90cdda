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
from rlgames.runs.files import STATUSES
from rlgames.runs.table import Run

T = TypeVar("T")

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
LIST = r"\[(?:[^][]|\[[^][]*\])*\]"
CONDITION = re.compile(
    r"\s*(?P<name>[\w./-]+)\s*(?P<sign>[<>!]=|[=<>])\s*"
    rf"""(?:(?P<quote>["'])(?P<quoted>.+?)(?P=quote)|(?P<list>{LIST})|(?P<word>[^][\s,=<>!|&'"]+))"""
    r"\s*(?P<comma>,|$)",
    re.DOTALL,
)
HINT = """as in lr<=0.1,status!=done,path="a,b=1": a comma means and, odd values are quoted"""

KINDS = [*STATUSES, "died", "damaged"]
"""What the status of a run may be."""


@dataclass(frozen=True)
class Condition:
    """One condition: a name, an operator and the value as typed, where * is any text."""

    name: str
    sign: str
    typed: str

    def holds(self, run: Run) -> bool:
        """Whether it holds for a run; never for a name that the run does not have."""
        value, compare = run.value(self.name), OPERATORS[self.sign]
        if not run.knows(self.name):
            return False
        if self.name == "started":
            moment = self._moment()
            return run.start is not None and compare(_local(run.start_time, len(moment)), moment)
        number = _number(value)
        if number is not None and (limit := _number(self.typed)) is not None:
            return compare(number, limit)
        if self.sign not in ("=", "!="):
            if _number(self.typed) is None:
                hint = "text has no order; use = or !="
                raise ConfigError(f"where={self}: {self.typed} is not a number", hint)
            return False
        return self.matches(as_typed(value)) == (self.sign == "=")

    def matches(self, text: str) -> bool:
        """Whether a text is the typed one."""
        pattern = ".*".join(map(re.escape, self.typed.split("*")))
        return re.fullmatch(pattern, text, re.DOTALL) is not None

    def _moment(self) -> str:
        """The typed day, minute or second, in local time. The run may have started at any moment of
        it."""
        try:
            start = datetime.datetime.fromisoformat(self.typed)
            return _local(start, {10: 10, 16: 16}.get(len(self.typed), 19))
        except (OverflowError, ValueError):
            hint = "write 2026-11-20 or 2026-11-20T15:30"
            raise ConfigError(f"where={self}: {self.typed} is not a date", hint) from None

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.typed}"


def matching(runs: Sequence[Run], where: str | None) -> list[Run]:
    """The runs that meet all conditions. Raises ConfigError for invalid conditions, for names
    that no run has, and if no run is left."""
    if where is None:
        return list(runs)
    conditions = parse(where)
    for condition in conditions:
        if not any(run.knows(condition.name) for run in runs):
            hint = nearest(condition.name, sorted({name for run in runs for name in run.values}))
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


def parse(where: str) -> list[Condition]:
    """The conditions, which commas separate. Raises ConfigError."""
    conditions, place, has_more = [], 0, True
    while has_more:
        match = CONDITION.match(where, place)
        if match is None:
            raise ConfigError(f"where={where[place:].strip()} is not a condition", HINT)
        typed = match["quoted"] or match["word"] or match["list"].replace(" ", "")
        condition = Condition(match["name"], match["sign"], typed)
        if condition.name == "status" and not any(map(condition.matches, KINDS)):
            hint = f"available: {', '.join(KINDS)}"
            raise ConfigError(f"where={condition}: {typed} is not a status", hint)
        conditions.append(condition)
        place, has_more = match.end(), bool(match["comma"])
    return conditions


def _local(time: datetime.datetime, length: int) -> str:
    """The first characters of a time in ISO 8601: earlier ones come first."""
    return time.astimezone().isoformat()[:length]


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
