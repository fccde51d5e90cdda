"""`rlgames study`: makes the runs and reports of a study, and the tables of a page.

Tables look as in `rlgames report`, with the columns of the file. They are made only from a record:
JSON with each value, its interval, seeds, checkpoint and command. A value stays in its record while
the commands that it depends on stay the same, so that several days and machines add up.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from rlgames.commands.study_file import REPORTED, Study, StudyRun, StudyTable
from rlgames.commands.study_jobs import RECORDS, Job, StudyJobs, refer
from rlgames.commands.study_plan import (
    command_text,
    commands_needed,
    evaluation_words,
    plan_study,
    run_command,
)
from rlgames.config.commands import StudyConfig
from rlgames.core.errors import ConfigError, nearest, report_error
from rlgames.core.text import counted, markdown_table, printable, with_section
from rlgames.core.untrusted import parse_json
from rlgames.runs import storage
from rlgames.runs.checkpoint import LARGE_BYTES
from rlgames.runs.files import read_info
from rlgames.runs.table import LOGGED, ColumnText, Row, Run
from rlgames.terminal.progress import clock_text
from rlgames.terminal.tables import Column, latex_table, print_note, print_table
from rlgames.terminal.tables import rows as table_rows

MISSING = "–"

NOTE = (
    "± is half of a 95% interval: of the mean over training seeds by Student's t, and of a single "
    "seed over its games. Of two seeds, both values are in parentheses."
)

DIGITS = 6
"""Significant digits of a recorded value."""


PARTIAL = (
    *("exploitability_seats", "trained_on", "held_out", "reach"),
    *("proven_moves", "opponent_proven_moves"),
)
"""Parts of reports that only some games and players have."""


@dataclass(frozen=True)
class Result:
    """A study and its record. exit_code: 3 if some jobs are not done."""

    config: StudyConfig
    study: Study
    record: dict[str, Any]
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
        _print_jobs(work, work.selected(cfg.only), old)
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


def _print_jobs(work: StudyJobs, chosen: list[Job], old: dict[str, Any]) -> None:
    """The jobs that would run or be replaced, among them those that start from others, and about
    what they cost. old: the record so far."""
    replaced = work.replaced(chosen)
    left = [job for job in chosen if work.status(job) != "done"]
    for job in [job for job in work.jobs.values() if job in left or job in replaced]:
        missing = ", ".join(each.name for each in work.missing(job))
        made = f"; evaluations: {missing}" if missing else ""
        difference = f" ({text})" if (text := work.difference(job)) else ""
        words = " ".join(refer(job.words, job.seed, job.name))
        print(printable(f"{job.name}: {work.status(job)}{difference}: {words}{made}"))
    print(printable(f"{len(left)} of {len(work.jobs)} jobs would run, in {work.directory}"))
    trainings = [job for job in left if job.config and not work.is_trained(job)]
    if text := "; ".join([*_time(work, trainings, old), *_space(work, trainings)]):
        print(text)


def _time(work: StudyJobs, trainings: list[Job], old: dict[str, Any]) -> Iterator[str]:
    """About how long trainings take, in words, by seeds that are done, here or in a record."""
    seconds, unknown = 0.0, set[str]()
    for job in trainings:
        own = work.jobs_of(work.study.runs[job.run])
        done = [read_info(work.path(each)).seconds for each in own if work.is_trained(each)]
        cell = cells_of(old.get("runs", {}).get(job.run, {})).get("train.seconds", {})
        if whole := fmean(filter(None, done)) if any(done) else cell.get("mean"):
            seconds += max(0.0, whole - (read_info(work.path(job)).seconds or 0.0))
        else:
            unknown.add(job.run)
    if seconds:
        yield f"they train for about {clock_text(seconds)} one after another, by earlier seeds"
    if unknown:
        only = f", as by only={sorted(unknown)[0]} seeds=1"
        runs = counted(len(unknown), "run")
        yield f"how long {runs} will take is known after a seed of each{only}"


def _space(work: StudyJobs, trainings: list[Job]) -> Iterator[str]:
    """What the weights of trainings take if it is much, in words."""
    disk = sum(job.nbytes * 2 for job in trainings)  # the best and the latest
    if disk >= LARGE_BYTES:
        parent = next(each for each in work.directory.absolute().parents if each.exists())
        free, most = shutil.disk_usage(parent).free, max(job.nbytes for job in trainings)
        yield f"checkpoints take about {disk / 1e9:.1f} GB, {free / 1e9:.1f} GB are free"
        yield f"the largest training takes at least {most / 1e9:.1f} GB of memory"


def read_record(path: Path) -> dict[str, Any]:
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


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write a record, a line for each run."""
    storage.make_directory(path.parent)
    lines = [f"  {json.dumps(name)}: {json.dumps(run)}" for name, run in record["runs"].items()]
    head = json.dumps({key: value for key, value in record.items() if key != "runs"})[:-1]
    text = head + ', "runs": {\n' + ",\n".join(lines) + "\n}}\n"
    storage.write_file(path.parent, path.name, text)


def rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def make_record(work: StudyJobs, old: dict[str, Any]) -> dict[str, Any]:
    """The record of what is done in the study's directory, and of what an old record adds."""
    study, former = work.study, old.get("runs", {})
    runs, dates = {}, {*(old.get("dates", []) if former else [])}
    every = {run.name: _runs(work, run) for run in study.runs.values()}
    for table in study.tables:
        columns = [column for column in table.columns if column.source != REPORTED]
        check_metrics([run for name in table.rows for run in every[name]], columns)
    for run in study.runs.values():
        done = every[run.name]
        dates |= {report.date for each in done for report in each.reports.values()}
        columns = study.columns_of(run.name)
        names = [each.name for each in study.evaluations_of(run.name)]
        trained = [each for each in done if each.status == "done"]
        training: dict[str, Any] = _commands(study, run_command(run), run.words)
        training |= {"seeds": [each.settings["seed"] for each in trained], "n": len(trained)}
        own = [column.metric for column in columns if column.source not in names]
        training["cells"] = {metric: _cell(Row(trained), metric) for metric in own}
        known = _comparable(former.get(run.name, {}), training)
        parts = {}
        for each in study.evaluations_of(run.name):
            words = evaluation_words(each, run)
            part: dict[str, Any] = _commands(study, command_text(words), each.words)
            made = [one for one in done if each.name in one.reports]
            for key in ("checkpoint", "games") if made else ():
                result = made[0].reports[each.name].result
                part |= {key: result[key]} if key in result else {}
            own = [column.metric for column in columns if column.source == each.name]
            cells = {metric.partition(".")[2]: _cell(Row(made), metric) for metric in own}
            part |= {"n": len(made), "cells": cells}
            older = _comparable(known.get("evaluations", {}).get(each.name, {}), part)
            parts[each.name] = _merged(older, part, len(run.seeds))
        runs[run.name] = _merged(known, training, len(run.seeds)) | {"evaluations": parts}
    ordered = sorted(dates)
    return {"study": study.name, "dates": [*ordered[:1], *ordered[1:][-1:]], "runs": runs}


def check_metrics(runs: Sequence[Run], columns: Sequence[ColumnText]) -> None:
    """Raises ConfigError for a metric that no run has although it has the report or the log."""
    for column in columns:
        name, (source, *path) = column.metric, column.metric.split(".")
        match = LOGGED.fullmatch(name)
        about = [run for run in runs if (run.lines if match else source in run.reports)]
        if about and not any(run.knows(name) for run in about) and not {*path[:1]} & {*PARTIAL}:
            known = {each for run in about for each in run.measured}
            if match:
                keys = {key for run in about for line in run.lines for key in line}
                known = {f"{key.replace('/', '.')}.{match[3]}{match[4] or ''}" for key in keys}
            raise ConfigError(f"no run has {name}", nearest(name, sorted(known)))


def _runs(work: StudyJobs, run: StudyRun) -> list[Run]:
    """The runs of a row of the study that count, with the reports that count."""
    runs = []
    for job in work.jobs_of(run):
        found = {each.name: work.saved(job, each) for each in job.reports}
        reports = {name: report for name, report in found.items() if report is not None}
        if not job.config:
            settings = {"seed": job.seed}
            runs.append(Run(path=work.path(job), status="", settings=settings, reports=reports))
        elif work.is_trained(job):
            runs.append(Run.read(work.path(job), reports))
    return runs


def _cell(row: Row, metric: str) -> dict[str, Any]:
    """A value of a record: its mean, half of its 95% interval or None, n, and the values of several
    seeds; empty if no run has it."""
    estimate, values = row.estimate(metric), [*map(rounded, row.values(metric))]
    if estimate is None:
        return {}
    half = None if estimate.half is None else rounded(estimate.half)
    cell = {"mean": rounded(estimate.value), "half": half, "n": len(values)}
    return cell | ({"values": values} if len(values) > 1 else {})


def _comparable(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A part of an old record; empty if it was made by other commands."""
    return old if all(old.get(key) == new.get(key) for key in ("command", "needs")) else {}


def _merged(old: dict[str, Any], new: dict[str, Any], num_seeds: int) -> dict[str, Any]:
    """A part of a record, plus values of more of the study's seeds from an old one."""

    def fuller(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        return old if new.get("n", 0) < old.get("n", 0) <= num_seeds else new

    known = old.get("cells", {})
    cells = {metric: fuller(known.get(metric, {}), cell) for metric, cell in new["cells"].items()}
    return fuller(old, new) | {"cells": {metric: cell for metric, cell in cells.items() if cell}}


def _commands(study: Study, command: str, words: Sequence[str]) -> dict[str, Any]:
    """The first fields of a part: its command, and the commands of the runs that it needs."""
    needs = commands_needed(study, words)
    return {"command": command} | ({"needs": needs} if needs else {})


def tables(study: Study, record: dict[str, Any]) -> Iterator[tuple[StudyTable, list[Column]]]:
    """The tables of a study."""
    for table in study.tables:
        head = Column(table.head, [*table.rows.values()], is_text=True)
        values = [
            Column(column.heading, [_shown(study, record, run, column) for run in table.rows])
            for column in table.columns
        ]
        yield table, [head, *values]


def _shown(study: Study, record: dict[str, Any], run: str, column: ColumnText) -> str:
    """A cell as text; a reported one may be text."""
    source, _, name = column.metric.partition(".")
    if source == REPORTED:
        text = study.reported[name].get(run, MISSING)
        try:
            return column.text(float(text))
        except ValueError:
            return text
    cell = cells_of(record.get("runs", {}).get(run, {})).get(column.metric)
    if cell is None:
        return MISSING
    return column.cell(cell["mean"], cell["half"], cell.get("values", [cell["mean"]]))


def seeds_left_out(study: Study, record: dict[str, Any], table: StudyTable) -> str:
    """The rows whose runs or evaluations lack seeds of the study, in words; "" for none."""
    rows, sources = list[str](), {column.source for column in table.columns}
    for name, label in table.rows.items():
        run, part = study.runs[name], record.get("runs", {}).get(name, {"n": 0, "evaluations": {}})
        every, of_each = {*run.seeds}, part["evaluations"]
        counts = [(part["n"], len(every))] if run.is_training else []
        for each in study.evaluations_of(name):
            if each.name in sources and each.name in of_each:
                asked = every & {*each.seeds} if each.seeds else every
                counts.append((of_each[each.name]["n"], len(asked)))
        if few := [f"{count} of {asked}" for count, asked in sorted(counts) if 0 < count < asked]:
            rows.append(f"{label.replace('`', '')} {few[0]}")
    return f"values of fewer seeds than the study has: {', '.join(rows)}" if rows else ""


def cells_of(run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The cells in the part of a record about a run, by the metrics of columns."""
    cells = dict(run.get("cells", {}))
    for name, part in run.get("evaluations", {}).items():
        cells |= {f"{name}.{path}": cell for path, cell in part["cells"].items()}
    return cells


def section(study: Study, record: dict[str, Any]) -> str:
    """The section of a study in a page, in Markdown."""
    parts = [study.before]
    for table, columns in tables(study, record):
        head, *lines = ([cell.replace("|", "\\|") for cell in row] for row in table_rows(columns))
        parts += [f"### {table.title}" if table.title else "", table.before]
        parts += [markdown_table(head, lines), seeds_left_out(study, record, table), table.after]
    texts = [part.strip() for part in (*parts, study.after, _commands_in_words(study, record))]
    return "\n\n".join(text for text in texts if text) + "\n"


def _commands_in_words(study: Study, record: dict[str, Any]) -> str:
    dates = record.get("dates") or [MISSING]
    title = f"Commands, measured on {' to '.join(dates)} by <code>rlgames study {study.name}</code>"
    lines = ['<details markdown="1">', f"<summary>{title}</summary>", ""]
    for run in study.runs.values():
        lines.append(f"- `{run.name}`: `{run_command(run)}`")
    for each in study.evaluations:
        named = " of " + ", ".join(f"`{name}`" for name in each.patterns) if each.patterns else ""
        lines.append(f"- {each.name}{named}: `{command_text([each.command, 'RUN', *each.words])}`")
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
        if few := seeds_left_out(study, record, table):
            print_note(few, format)
    print_note(NOTE, format)
