"""The record of a study: its values, each with interval, seeds, checkpoint and command, as JSON.

Tables and pages are made only from records. A value stays in its record while the commands that
it depends on stay the same, so that several days and machines add up.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rlgames.commands.study_file import (
    OPERATOR,
    REFERENCE,
    Study,
    StudyEvaluation,
    StudyRun,
    is_number,
    values_of,
)
from rlgames.commands.study_jobs import Job
from rlgames.commands.study_plan import PlannedStudy, run_of
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.untrusted import parse_json
from rlgames.evaluation.curves import moving_mean, points
from rlgames.evaluation.estimates import Estimate
from rlgames.runs import storage
from rlgames.runs.files import read_metrics

DIGITS = 6
"""Significant digits of a recorded value."""

MISSING = "–"

OPTIONAL = (
    *("exploitability_seats", "trained_on", "held_out", "reach", "search_losses"),
    *("proven_moves", "opponent_proven_moves"),
)
"""Metrics that only some games and players have."""

NEVER = 1e300
"""A number of games that was never reached, which JSON can hold."""

NOTE = (
    "± is half of a 95% interval: of the mean over training seeds by Student's t, of a difference "
    "by Welch's, and of a single seed over its games. Of two seeds, both values are in parentheses."
)

Record = dict[str, Any]


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


def read_record(path: Path) -> Record:
    """A record from its file; empty without one. Raises ConfigError."""
    try:
        record = parse_json(path.read_bytes()) if path.exists() else {}
        if record:
            for run in record["runs"].values():
                parts = [run, *run["evaluations"].values()]
                cells = [part["seconds"] for part in parts if "seconds" in part]
                _ = [Cell.from_record(cell) for cell in [*cells, *run["cells"].values()]]
        return dict(record)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path} is not a record of a study ({error})") from None


def make_record(planned: PlannedStudy, study: Study, old: Record) -> Record:
    """The record of what is done in the study's directory, and of what an old record adds."""
    reader = _Reader(planned, study)
    runs: dict[str, Any] = {}
    former = old.get("runs", {})
    for run in study.runs.values():
        known = former.get(run.name, {})
        entry = {"command": train_command(run), **reader.about(run)}
        is_same = known.get("command") == entry["command"]
        if is_same and {*entry["seeds"]} < {*known["seeds"]} <= {*run.seeds}:
            entry |= {key: known[key] for key in ("seeds", "seconds") if key in known}
        evaluations = {}
        for each in (each for each in study.evaluations if run.name in each.runs):
            made = {"command": evaluation_command(run, each, planned), **reader.about(run, each)}
            same = known.get("evaluations", {}).get(each.name, {})
            is_known = _has_more_seeds(same, made, run) and same["command"] == made["command"]
            evaluations[each.name] = same if is_known else made
        runs[run.name] = entry | {"evaluations": evaluations, "cells": {}}
    for name, column in values_of(study):
        cell = reader.cell(name, column.metric)
        made = {} if cell is None else cell.as_record()
        known = former.get(name, {}).get("cells", {}).get(column.metric, {})
        if _has_more_seeds(known, made, study.runs[name]) and all(
            _is_same(runs, former, name, term) for term in column.terms
        ):
            made = known
        if made:
            runs[name]["cells"][column.metric] = made
    dates = sorted({*reader.dates, *(old.get("dates", []) if former else [])})
    return {"study": study.name, "dates": [*dates[:1], *dates[1:][-1:]], "runs": runs}


def write_record(path: Path, record: Record) -> None:
    """Write a record, a line for each run."""
    storage.make_directory(path.parent)
    lines = [f"  {json.dumps(name)}: {json.dumps(run)}" for name, run in record["runs"].items()]
    head = json.dumps({key: value for key, value in record.items() if key != "runs"})[:-1]
    text = head + ', "runs": {\n' + ",\n".join(lines) + "\n}}\n"
    storage.write_file(path.parent, path.name, text)


def _has_more_seeds(known: Record, made: Record, run: StudyRun) -> bool:
    """Whether an older part of a record has more of the seeds that the study asks for."""
    return made.get("n", 0) < known.get("n", 0) and known["n"] <= max(1, len(run.seeds))


def _is_same(runs: Record, former: Record, row: str, term: str) -> bool:
    """Whether an older record has the same commands for a term."""
    run, _, path = term.rpartition(":")
    source = path.partition(".")[0]
    entries = [each.get(run or row, {}) for each in (runs, former)]
    evaluations = [each.get("evaluations", {}).get(source, {}) for each in entries]
    pairs = zip(entries, evaluations, strict=True)
    now, then = ([each.get("command") for each in pair] for pair in pairs)
    return now == then


def train_command(run: StudyRun) -> str:
    """The command that trains a run, with SEED for its seed; empty for a player."""
    words = ["train", *map(typed_word, run.words), "seed=SEED"]
    return f"rlgames {shlex.join(words)}" if run.is_training else ""


def evaluation_command(run: StudyRun, evaluation: StudyEvaluation, planned: PlannedStudy) -> str:
    """The command that makes an evaluation, with RUN for the directory of its run."""
    first = ["RUN"] if run.is_training else [*run.words]
    if evaluation.command == "arena" and not run.is_training:
        first = []  # its words name the player
    if evaluation.command == "solve":
        first = planned.rules[run.name]
    words = [evaluation.command, *first, *map(typed_word, evaluation.words)]
    return f"rlgames {shlex.join(words)}"


def typed_word(word: str) -> str:
    """A word with the names of runs that it refers to."""
    return REFERENCE.sub(lambda m: f"{m[1]}/{m[2] or 'SEED'}" if m[1] else "RUN", word)


class _Reader:
    """Reads the values of a study from its directory."""

    def __init__(self, planned: PlannedStudy, study: Study) -> None:
        self.planned, self.study, self.dates = planned, study, set[str]()
        self._saved: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def about(self, run: StudyRun, evaluation: StudyEvaluation | None = None) -> Record:
        """The seeds of a training or an evaluation that are done, and the seconds of each."""
        if evaluation is None:
            cell = self.cell(run.name, "training.seconds") if run.is_training else None
            return {"seeds": [*self._trained(run)]} | (
                {"seconds": cell.as_record()} if cell else {}
            )
        saved = self.saved(run.name, evaluation.name)
        if not saved:
            return {}
        report = saved[0]["report"]
        fields = {key: report[key] for key in ("checkpoint", "games") if key in report}
        seconds = Cell.of([each["seconds"] for each in saved])
        return fields | {"n": len(saved), "seconds": seconds.as_record()}

    def saved(self, run: str, evaluation: str) -> list[dict[str, Any]]:
        """The evaluations of the seeds of a run that were made, in their order."""
        if (run, evaluation) not in self._saved:
            directory, name = self.planned.work.directory, f"{self.study.name}.{evaluation}"
            every = [
                each.read(directory, job.name)
                for job in self.planned.jobs_of(self.study.runs[run])
                for each in job.evaluations
                if each.name == name
            ]
            self._saved[run, evaluation] = [each for each in every if each is not None]
            self.dates |= {str(each["date"]) for each in self._saved[run, evaluation]}
        return self._saved[run, evaluation]

    def cell(self, row: str, metric: str) -> Cell | None:
        """The value of an expression; None where something is missing, and for a row that is
        compared with itself."""
        parts = OPERATOR.split(metric)
        if parts[1:] == ["-", f"{row}:{parts[0]}"]:
            return None
        return evaluate_expression(parts, lambda term: self._term(row, term))

    def _term(self, row: str, term: str) -> Cell | None:
        if is_number(term):
            return Cell.of([float(term)])
        run, _, path = term.rpartition(":")
        source, _, name = path.partition(".")
        run = run or row
        if source == "reported":
            value = str((self.study.reported[name].values or {}).get(run))
            return Cell.of([float(value)]) if is_number(value) else None
        if source == "training":
            return self._training(self.study.runs[run], name)
        saved, (first, *_) = self.saved(run, source), name.split(".")
        if saved and first not in {*saved[0]["report"], *OPTIONAL}:
            hint = nearest(first, [*saved[0]["report"]])
            raise ConfigError(f"{source} of {run} has no metric {first}", hint)
        numbers = [_value(each["report"], name.split(".")) for each in saved]
        values = [value for value, _ in numbers if value is not None]
        return Cell.of(values, numbers[0][1]) if values else None

    def _trained(self, run: StudyRun) -> dict[int, Job]:
        """The jobs whose training is done, by their seeds."""
        work = self.planned.work
        jobs = zip(run.seeds, self.planned.jobs_of(run), strict=True)
        return {seed: job for seed, job in jobs if job.config and work.is_trained(job)}

    def _training(self, run: StudyRun, name: str) -> Cell | None:
        work, values = self.planned.work, []
        for job in self._trained(run).values():
            lines = read_metrics(work.path(job) / "metrics.jsonl")
            seconds = max(line["time/seconds"] for line in lines if "time/seconds" in line)
            if name == "total_seconds" and (start := job.links.get("init_from")):
                first = read_metrics(work.directory / run_of(start) / "metrics.jsonl")
                seconds += max(line["time/seconds"] for line in first if "time/seconds" in line)
            if name in ("seconds", "total_seconds"):
                values.append(seconds)
            elif name == "ms_per_game":
                values.append(1000 * seconds / max(line["games"] for line in lines))
            else:
                values.append(logged(lines, name))
        values = [value for value in values if not math.isnan(value)]
        return Cell.of(values) if values else None


def logged(lines: list[dict[str, float]], name: str) -> float:
    """A statistic of a metric of training, such as turns.last2000; NaN where the training was too
    short for it. Raises ConfigError for a metric that it did not log."""
    match = re.fullmatch(r"(.+?)\.(last|first|at|below([\d.]+)over)(\d+)", name)
    assert match is not None
    metric, kind, bound, count = match.groups()
    name = f"train/{metric}"
    played = [line for line in lines if line["games"] > 0]
    names = {key.removeprefix("train/") for line in played for key in line if "train/" in key}
    if names and metric not in names:
        raise ConfigError(f"the training logged no metric {metric}", nearest(metric, sorted(names)))
    known = [line for line in played if name in line]
    games, means = points([line["games"] for line in known], [line[name] for line in known])
    if not len(games):
        return math.nan
    if kind == "at":
        means = means[games <= int(count)]
        return float(means[-1]) if len(means) else math.nan
    try:
        games, means = moving_mean((games, means), int(count))
    except ConfigError:  # a line covers more games
        if bound:
            return math.nan
    if bound:
        below = (means < float(bound)).nonzero()[0]
        return float(games[below[0]]) if len(below) else NEVER
    return float(means[0 if kind == "first" else -1]) if len(means) else math.nan


def _value(report: Any, path: list[str]) -> tuple[float | None, float | None]:
    """A number deep in a report, and half of its interval over games."""
    node, parent = report, report
    for name in path:
        parent = node
        if isinstance(node, list):
            node = node[int(name)] if int(name) < len(node) else None
        elif isinstance(node, dict) and path[0] == "reach" and name not in node:
            node = {"rate": 0.0, "count": 0}
        else:
            node = None if node is None else node.get(name)
    if not isinstance(node, int | float):
        return None, None
    interval = parent.get("ci95") if isinstance(parent, dict) else None
    is_mean = path[-1] in ("mean", "rate", "elo") and isinstance(interval, list)
    return rounded(node), (interval[1] - interval[0]) / 2 if is_mean and interval else None
