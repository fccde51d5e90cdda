"""`rlgames study`: runs a study, keeps a record of its values, and prints tables of them.

Tables and sections of pages are made only from records: JSON with each value, its interval, seeds,
checkpoint and command. A value stays in its record while the commands that it depends on stay the
same, so that several days and machines add up.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rlgames.commands.study_file import (
    REPORTED,
    TRAINING,
    Study,
    StudyColumn,
    StudyEvaluation,
    StudyRun,
    StudyTable,
)
from rlgames.commands.study_jobs import RECORDS, Job, StudyJobs, jobs_in
from rlgames.commands.study_plan import command_text, commands_needed, plan_study, run_command
from rlgames.config.commands import StudyConfig
from rlgames.core.errors import ConfigError, nearest, report_error
from rlgames.core.text import markdown_table, printable, with_section
from rlgames.core.untrusted import parse_json
from rlgames.evaluation.curves import moving_mean, points
from rlgames.evaluation.estimates import Estimate
from rlgames.runs import storage
from rlgames.runs.files import read_metrics
from rlgames.terminal.tables import Column, latex_table, print_table
from rlgames.terminal.tables import rows as table_rows

MISSING = "–"

NOTE = (
    "± is half of a 95% interval: of the mean over training seeds by Student's t, and of a single "
    "seed over its games. Of two seeds, both values are in parentheses."
)

DIGITS = 6
"""Significant digits of a recorded value."""

OPTIONAL = (
    *("exploitability_seats", "trained_on", "held_out", "reach"),
    *("proven_moves", "opponent_proven_moves"),
)
"""Metrics that only some games and players have."""

Record = dict[str, Any]
"""As in the file. A training, and each evaluation of a run, has its command, those of the runs that
it needs, n (the number of seeds) and cells by metric."""

Cell = dict[str, Any]
"""A value: its mean, half of its 95% interval or None, n, and the values of several seeds."""


@dataclass(frozen=True)
class Result:
    """A study and its record. exit_code: 3 if some jobs are not done."""

    config: StudyConfig
    study: Study
    record: Record
    exit_code: int

    def as_dict(self) -> dict[str, Any]:
        return self.record


def run(cfg: StudyConfig) -> Result | None:
    """Run what is missing of a study, and write its record and page; None for dry_run=true, which
    lists the jobs."""
    work = plan_study(cfg)
    study = work.study
    if cfg.dry_run and cfg.format != "table":
        raise ConfigError(f"dry_run= prints text, not {cfg.format}", "omit format=")
    path = (Path(cfg.records) if cfg.records else work.directory / RECORDS) / f"{study.name}.json"
    page = Path(cfg.page) if cfg.page else None
    work.check_owner()
    parent = next(each for each in path.parents if each.exists())
    if not parent.is_dir():
        raise ConfigError(f"{parent} is not a directory", "name another out= or records=")
    if page:
        if not page.parent.is_dir():
            raise ConfigError(f"page={page}: there is no directory {page.parent}", "create it")
        _page_with(page, study.name, "")  # what cannot be written is said before the first job
    old = read_record(path)
    if cfg.dry_run:
        _print_jobs(work, work.selected(cfg.only))
        return None
    code = 0
    if cfg.run:
        # Standard output is only for the tables, in a format that another program may read.
        with redirect_stdout(sys.stdout if cfg.format == "table" else sys.stderr):
            code = work.complete(work.selected(cfg.only), cfg.jobs)
    for job in work.jobs.values():
        if difference := work.difference(job):
            report_error(ConfigError(f"{work.path(job)} does not count: {difference}"))
    record = make_record(work, old)
    write_record(path, record)
    if page:
        text = _page_with(page, study.name, section(study, record))
        storage.write_file(page.parent, page.name, text)
    return Result(cfg, study, record, code)


def _print_jobs(work: StudyJobs, chosen: list[Job]) -> None:
    """The jobs that would run or be replaced, among them those that start from others."""
    replaced = work.replaced(chosen)
    left = [job for job in chosen if work.status(job) != "done"]
    for job in [job for job in work.jobs.values() if job in left or job in replaced]:
        missing = ", ".join(each.name for each in work.missing(job))
        made = f"; evaluations: {missing}" if missing else ""
        difference = f" ({text})" if (text := work.difference(job)) else ""
        words = " ".join(job.words)
        print(printable(f"{job.name}: {work.status(job)}{difference}: {words}{made}"))
    print(printable(f"{len(left)} of {len(work.jobs)} jobs would run, in {work.directory}"))


def make_cell(values: Sequence[float], half: float | None = None) -> Cell:
    """The cell of the values of all seeds; half: of the games of a single seed."""
    is_many = len(values) > 1
    if is_many:
        half = Estimate.of_seeds([np.array(values)]).half if len(values) > 2 else None
    mean, half = rounded(sum(values) / len(values)), None if half is None else rounded(half)
    cell = {"mean": mean, "half": half, "n": len(values)}
    return cell | ({"values": [*map(rounded, values)]} if is_many else {})


def rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def cell_text(cell: Cell, column: StudyColumn) -> str:
    """A cell as its column shows it.

    Of two seeds, both values are in parentheses, and three or more equal ones are marked, because
    they say nothing of how much others would differ.
    """

    def text(value: float) -> str:
        return f"{column.factor * value:{column.format}}"

    mean, n = text(cell["mean"]), cell["n"]
    values = cell.get("values", [cell["mean"]])
    if column.option == "by seed":
        return ", ".join(map(text, values))
    if column.option == "highest":
        return text(max(values))
    if column.option == "mean":
        return mean
    if n == 2 == len(values):
        return f"{mean} ({text(min(values))}, {text(max(values))})"
    if cell["half"] is None:
        return f"{mean} ({n} equal)" if n > 2 else mean
    return f"{mean} ± {abs(column.factor) * cell['half']:{column.format.replace('+', '')}}"


def read_record(path: Path) -> Record:
    """A record from its file; empty without one. Raises ConfigError."""
    try:
        record = parse_json(path.read_bytes()) if path.exists() else {}
        for run in record["runs"].values() if record else ():
            for part in (run, *run["evaluations"].values()):
                _ = part["command"], part["n"] + 1
                for cell in part["cells"].values():
                    _ = cell["mean"] + cell["n"] + (cell["half"] or 0.0)
        return dict(record)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path} is not a record of a study ({error})", "remove it") from None


def write_record(path: Path, record: Record) -> None:
    """Write a record, a line for each run."""
    storage.make_directory(path.parent)
    lines = [f"  {json.dumps(name)}: {json.dumps(run)}" for name, run in record["runs"].items()]
    head = json.dumps({key: value for key, value in record.items() if key != "runs"})[:-1]
    text = head + ', "runs": {\n' + ",\n".join(lines) + "\n}}\n"
    storage.write_file(path.parent, path.name, text)


def make_record(work: StudyJobs, old: Record) -> Record:
    """The record of what is done in the study's directory, and of what an old record adds."""
    study, former = work.study, old.get("runs", {})
    runs, dates = {}, {*(old.get("dates", []) if former else [])}
    for run in study.runs.values():
        training = _training_part(work, run)
        known = _comparable(former.get(run.name, {}), training)
        parts = {}
        for each in study.evaluations_of(run.name):
            part, own = _evaluation_part(work, run, each)
            dates |= own
            older = _comparable(known.get("evaluations", {}).get(each.name, {}), part)
            parts[each.name] = _merged(older, part, len(run.seeds))
        runs[run.name] = _merged(known, training, len(run.seeds)) | {"evaluations": parts}
    ordered = sorted(dates)
    return {"study": study.name, "dates": [*ordered[:1], *ordered[1:][-1:]], "runs": runs}


def _comparable(old: Record, new: Record) -> Record:
    """A part of an old record; empty if it was made by other commands."""
    return old if all(old.get(key) == new.get(key) for key in ("command", "needs")) else {}


def _merged(old: Record, new: Record, num_seeds: int) -> Record:
    """A part of a record, with what an old one adds: values of more of the study's seeds."""

    def fuller(old: Record, new: Record) -> Record:
        return old if new.get("n", 0) < old.get("n", 0) <= num_seeds else new

    known = old.get("cells", {})
    cells = {metric: fuller(known.get(metric, {}), cell) for metric, cell in new["cells"].items()}
    return fuller(old, new) | {"cells": {metric: cell for metric, cell in cells.items() if cell}}


def _commands(study: Study, command: str, words: Sequence[str]) -> Record:
    """The first fields of a part: its command, and those of the runs that it needs."""
    needs = commands_needed(study, words)
    return {"command": command} | ({"needs": needs} if needs else {})


def _cells(
    columns: Iterable[StudyColumn],
    measured: Sequence[Any],
    measure: Callable[[Any, str], tuple[float, float | None]],
) -> dict[str, Cell]:
    """A cell for each column, by metric; measured: of each seed; measure: a metric of it, NaN
    without one, and half of its interval over games."""
    cells: dict[str, Cell] = {}
    for metric in (column.metric for column in columns):
        numbers = [measure(each, metric) for each in measured]
        known = [each for each in numbers if not math.isnan(each[0])]
        cells[metric] = make_cell([value for value, _ in known], known[0][1]) if known else {}
    return cells


def _training_part(work: StudyJobs, run: StudyRun) -> Record:
    """What is known of the trainings of a run."""
    jobs = zip(run.seeds, work.jobs_of(run), strict=True)
    trained = {seed: job for seed, job in jobs if job.config and work.is_trained(job)}
    part = _commands(work.study, run_command(run), run.words)
    part |= {"seeds": [*trained], "n": len(trained)}
    columns = work.study.columns_of(run.name, TRAINING)
    return part | {"cells": _cells(columns, [*trained.values()], partial(_training_value, work))}


def _training_value(work: StudyJobs, job: Job, metric: str) -> tuple[float, None]:
    lines = read_metrics(work.path(job) / "metrics.jsonl")
    seconds = max(line["time/seconds"] for line in lines if "time/seconds" in line)
    if metric == "seconds":
        return seconds, None
    if metric == "ms_per_game":
        return 1000 * seconds / max(line["games"] for line in lines), None
    if metric != "total_seconds":
        return logged(lines, metric), None
    start = jobs_in(word for word in job.words if word.startswith("init_from="))
    before = sum(_training_value(work, work.jobs[name], metric)[0] for name in start)
    return seconds + before, None


def logged(lines: list[dict[str, float]], metric: str) -> float:
    """The mean of a metric of training over the first or the last games, such as turns.last2000;
    NaN if there were fewer. If lines of the log cover more games, the value of the first or the
    last line. Raises ConfigError for a metric that was not logged."""
    match = re.fullmatch(r"(.+)\.(first|last)(\d+)", metric)
    assert match is not None
    name, end, count = match.groups()
    played = [line for line in lines if line["games"] > 0]
    names = {key.removeprefix("train/") for line in played for key in line if "train/" in key}
    if names and name not in names:
        raise ConfigError(f"the training logged no metric {name}", nearest(name, sorted(names)))
    known = [line for line in played if f"train/{name}" in line]
    curve = points([line["games"] for line in known], [line[f"train/{name}"] for line in known])
    try:
        means = moving_mean(curve, int(count))[1]
    except ConfigError:
        means = curve[1]
    return float(means[0 if end == "first" else -1]) if len(means) else math.nan


def _evaluation_part(
    work: StudyJobs, run: StudyRun, evaluation: StudyEvaluation
) -> tuple[Record, set[str]]:
    """What is known of an evaluation of a run, and the dates when it was made."""
    name = evaluation.name
    jobs = [(job, each) for job in work.jobs_of(run) for each in job.evaluations]
    every = [work.saved(job, each) for job, each in jobs if each.name == name]
    saved = [each for each in every if each is not None]

    def measure(report: Record, metric: str) -> tuple[float, float | None]:
        path = metric.split(".")
        if path[0] not in {*report, *OPTIONAL}:
            hint = nearest(path[0], [*report])
            raise ConfigError(f"{name} of {run.name} has no metric {path[0]}", hint)
        return _value(report, path)

    reports = [each["report"] for each in saved]
    part = _commands(work.study, work.commands[run.name, name], evaluation.words)
    part |= {
        key: reports[0][key] for key in ("checkpoint", "games") if reports and key in reports[0]
    }
    cells = _cells(work.study.columns_of(run.name, name), reports, measure)
    return part | {"n": len(saved), "cells": cells}, {str(each["date"]) for each in saved}


def _value(report: Any, path: Sequence[str]) -> tuple[float, float | None]:
    """A number deep in a report, NaN without one, and half of its interval over games."""
    node, parent = report, report
    for name in path:
        parent = node
        if isinstance(node, list):
            node = dict(enumerate(node)).get(int(name) if name.isdigit() else -1)
        elif isinstance(node, dict) and path[0] == "reach" and name not in node:
            node = {"rate": 0.0, "count": 0}
        else:
            node = node.get(name) if isinstance(node, dict) else None
    if not isinstance(node, int | float):
        return math.nan, None
    interval = parent.get("ci95") if isinstance(parent, dict) else None
    is_mean = path[-1] in ("mean", "rate", "elo") and isinstance(interval, list)
    return rounded(node), (interval[1] - interval[0]) / 2 if is_mean and interval else None


def tables(study: Study, record: Record) -> Iterator[tuple[StudyTable, list[Column]]]:
    """The tables of a study."""
    for table in study.tables:
        head = Column(table.head, [*table.rows.values()], is_text=True)
        values = [
            Column(column.heading, [_shown(study, record, run, column) for run in table.rows])
            for column in table.columns
        ]
        yield table, [head, *values]


def _shown(study: Study, record: Record, run: str, column: StudyColumn) -> str:
    """A cell as text; a reported one may be text."""
    if column.source == REPORTED:
        text = study.reported[column.metric].get(run, MISSING)
        try:
            return f"{column.factor * float(text):{column.format}}"
        except ValueError:
            return text
    part = record.get("runs", {}).get(run, {})
    if column.source != TRAINING:
        part = part.get("evaluations", {}).get(column.source, {})
    cell = part.get("cells", {}).get(column.metric)
    return MISSING if cell is None else cell_text(cell, column)


def section(study: Study, record: Record) -> str:
    """The section of a study in a page, in Markdown."""
    parts = [study.before]
    for table, columns in tables(study, record):
        head, *lines = ([cell.replace("|", "\\|") for cell in row] for row in table_rows(columns))
        parts += [f"### {table.title}" if table.title else "", table.before]
        parts += [markdown_table(head, lines), table.after]
    texts = [part.strip() for part in (*parts, study.after, _commands_in_words(study, record))]
    return "\n\n".join(text for text in texts if text) + "\n"


def _commands_in_words(study: Study, record: Record) -> str:
    dates = record.get("dates") or [MISSING]
    title = f"Commands, measured on {' to '.join(dates)} by <code>rlgames study {study.name}</code>"
    lines = ['<details markdown="1">', f"<summary>{title}</summary>", ""]
    for run in study.runs.values():
        lines.append(f"- `{run.name}`: `{run_command(run)}`")
    for each in study.evaluations:
        named = " of " + ", ".join(f"`{name}`" for name in each.patterns) if each.patterns else ""
        first = "GAME" if each.command == "solve" else "RUN"
        lines.append(f"- {each.name}{named}: `{command_text([each.command, first, *each.words])}`")
    return "\n".join([*lines, "", "</details>"])


def _page_with(page: Path, name: str, text: str) -> str:
    """A page with the section of a study between its comments, or at the end of the page. Raises
    ConfigError for comments that do not enclose it, and for a page that is not text."""
    try:
        # Bytes, because text would have other ends of lines.
        old = page.read_bytes().decode() if page.exists() else ""
        return with_section(old, f"study {name}", text)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeError) else reason
        raise ConfigError(f"page={page} cannot be updated: {reason}", "correct it first") from None


def show(result: Result) -> None:
    """Print the tables of a study."""
    study, record, format = result.study, result.record, result.config.format
    if format == "markdown":
        print(f"{section(study, record)}\n{NOTE}")
        return
    for table, columns in tables(study, record):
        title, plain = table.title or study.name, []
        for each in columns:  # without the marks of Markdown
            cells = [cell.replace("`", "") for cell in each.cells]
            plain.append(replace(each, heading=each.heading.replace("`", ""), cells=cells))
        if format == "latex":
            print(f"% {printable(title)}\n{latex_table(plain)}\n")
        else:
            print_table(title, plain, format)
    print(f"% {NOTE}" if format == "latex" else NOTE)
