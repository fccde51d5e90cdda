"""Studies: runs, evaluations of each, and tables of their values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rlgames.config.schema import Config, key, schema
from rlgames.core.errors import ConfigError, nearest

OPTIONS = ("by seed", "highest", "mean", "lowest is best", "highest is best")
"""What a column may say after its metric and its format."""

PLACEHOLDER = re.compile(r"\{\{(.+?)\}\}")
"""A value within text: {{RUN:METRIC | FORMAT}}."""

REFERENCE = re.compile(r"\{([\w.-]*)(?:/(\d+))?\}")
"""The directory of a run within an override: {RUN}, {RUN/SEED}, or {} for the run's own."""

OPERATOR = re.compile(r"\s([-*/])\s")

ZERO_DIVISOR = re.compile(r"\s/\s+-?0+(\.0+)?(\s|$)")

MANY_DIGITS = re.compile(r"\d{3}")
"""Of a format: text as wide as a page or wider."""


@schema
class StudyTable(Config):
    """A table: a row for each run, a column for each metric. In a Study, rows are the labels by
    run, and columns StudyColumns."""

    title: str | None = key(value=None)
    before: str | None = key(value=None, help="text above the table, in Markdown")
    after: str | None = key(value=None)
    head: str = key(value="run", help="heading of the first column")
    rows: Any = key(value=None, help="runs, or their labels by name; null: all")
    columns: Any = key(value=None, help="metrics, or metrics by heading")


@schema
class ReportedValues(Config):
    """Values that others report."""

    values: Any = key(value=None, help="numbers or texts by run")
    source: str | None = key(value=None)
    compared: str | None = key(value=None, help="metric that is tested against them")


@dataclass(frozen=True)
class StudyRun:
    """A row: a training, or a player that is only evaluated. words: as after `rlgames train`."""

    name: str
    words: tuple[str, ...]
    seeds: tuple[int, ...]

    @property
    def is_training(self) -> bool:
        return not any(word.startswith("player=") for word in self.words)


@dataclass(frozen=True)
class StudyEvaluation:
    """An evaluation of each seed of some runs. words: as after the command; runs: their names;
    patterns: as the file has them, empty for all."""

    name: str
    command: str
    words: tuple[str, ...]
    runs: tuple[str, ...]
    patterns: tuple[str, ...]
    seeds: tuple[int, ...] | None


@dataclass(frozen=True)
class StudyColumn:
    """A column of a table, or a value within text.

    Args:
        metric: an expression: metrics and numbers with -, * and / between them, from the left.
        factor: what values are multiplied by, as 100 for percentages.
        format: of Python, as .2f.
        option: one of OPTIONS, or empty.
    """

    heading: str
    metric: str
    factor: float
    format: str
    option: str

    @property
    def terms(self) -> list[str]:
        """The metrics of the expression, without its numbers."""
        return [term for term in OPERATOR.split(self.metric)[::2] if not is_number(term)]


@dataclass(frozen=True)
class Study:
    """A study that was checked by itself; whether it fits the games is checked later.

    Args:
        curves: the words of `rlgames report` that draw a picture, by its name.
        parts: other studies, which this one consists of.
    """

    name: str
    runs: dict[str, StudyRun]
    evaluations: tuple[StudyEvaluation, ...]
    tables: tuple[StudyTable, ...]
    reported: dict[str, ReportedValues]
    curves: dict[str, str]
    before: str
    after: str
    parts: tuple[Study, ...]

    def evaluation(self, name: str, run: str) -> StudyEvaluation | None:
        """The evaluation of this name that a run has."""
        named = (each for each in self.evaluations if each.name == name)
        return next((each for each in named if run in each.runs), None)

    @property
    def leaves(self) -> list[Study]:
        """The studies that have runs: this one, or its parts."""
        return [leaf for part in self.parts for leaf in part.leaves] or [self]

    @property
    def values(self) -> list[tuple[str, StudyColumn]]:
        """The values within its texts, each with its run."""
        texts = [self.before, self.after]
        texts += [text or "" for table in self.tables for text in (table.before, table.after)]
        return [parse_value(match) for text in texts for match in PLACEHOLDER.findall(text)]


def is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None


def parse_column(heading: str, text: str) -> StudyColumn:
    """A column from METRIC | FORMAT | OPTION. Raises ConfigError."""
    metric, format, option, *rest = [*(part.strip() for part in text.split("|")), "", ""]
    *factor, spec = format.rpartition("*")[::2] if "*" in format else (format,)
    if any(rest) or not all(map(is_number, factor)):
        raise ConfigError(f"{text!r} is not a column", "as in METRIC | 100*.1f | by seed")
    try:
        is_format = not MANY_DIGITS.search(spec) and bool(f"{1.0:{spec}}")
    except ValueError:
        is_format = False
    if not is_format:
        raise ConfigError(f"{text!r}: {spec} is not a format", "as in .2f")
    if ZERO_DIVISOR.search(metric):
        raise ConfigError(f"{text!r} divides by 0", "as in METRIC / 1000")
    if option and option not in OPTIONS:
        raise ConfigError(f"{text!r}: {option} is not an option", nearest(option, list(OPTIONS)))
    return StudyColumn(heading, metric, float(factor[0]) if factor else 1.0, spec or ",.4g", option)


def values_of(study: Study) -> Iterator[tuple[str, StudyColumn]]:
    """Each value of the tables and texts of a study, with the run that it belongs to."""
    for table in study.tables:
        yield from ((run, column) for column in table.columns for run in table.rows)
    yield from study.values
    for reported in study.reported.values():
        if reported.compared:
            column = StudyColumn("", reported.compared, 1.0, "", "")
            yield from ((run, column) for run in reported.values)


def parse_value(text: str) -> tuple[str, StudyColumn]:
    """The run and the column of a value within text. Raises ConfigError."""
    run, colon, rest = text.partition(":")
    if not colon:
        raise ConfigError(f"{{{{{text}}}}} names no run", "as in {{RUN:METRIC}}")
    return run.strip(), parse_column("", rest)
