"""`rlgames study`: runs a study and prints its tables; the sections of pages made from records."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlgames.commands.study_file import REPORTED, TRAINING, Study, StudyColumn, StudyTable
from rlgames.commands.study_jobs import RECORDS, Job, StudyJobs
from rlgames.commands.study_plan import command_text, plan_study, run_command
from rlgames.commands.study_record import (
    Cell,
    Record,
    cell_text,
    make_record,
    read_record,
    write_record,
)
from rlgames.config.commands import StudyConfig
from rlgames.core.errors import ConfigError, report_error
from rlgames.core.text import markdown_table, printable, with_section
from rlgames.runs import storage
from rlgames.terminal.tables import Column, latex_table, print_table
from rlgames.terminal.tables import rows as table_rows

MISSING = "–"

NOTE = (
    "± is half of a 95% interval: of the mean over training seeds by Student's t, and of a single "
    "seed over its games. Of two seeds, both values are in parentheses."
)


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
    _check_paths(work, path.parent, page)
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
        update_page(page, study, record)
    return Result(cfg, study, record, code)


def _check_paths(work: StudyJobs, records: Path, page: Path | None) -> None:
    """Raises ConfigError, before the first job, for paths where nothing could be written."""
    work.check_owner()
    parent = next(each for each in (records, *records.parents) if each.exists())
    if not parent.is_dir():
        raise ConfigError(f"{parent} is not a directory", "name another out= or records=")
    if page:
        if not page.parent.is_dir():
            raise ConfigError(f"page={page}: there is no directory {page.parent}", "create it")
        _page_with(page, work.study.name, "")


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
    if column.source != REPORTED:
        cell = cell_of(record, run, column)
        return MISSING if cell is None else cell_text(cell, column)
    text = study.reported[column.metric].get(run, MISSING)
    try:
        return f"{column.factor * float(text):{column.format}}"
    except ValueError:
        return text


def cell_of(record: Record, run: str, column: StudyColumn) -> Cell | None:
    """The value of a run in a column; None without one."""
    part = record.get("runs", {}).get(run, {})
    if column.source != TRAINING:
        part = part.get("evaluations", {}).get(column.source, {})
    cell: Cell | None = part.get("cells", {}).get(column.metric)
    return cell


def section(study: Study, record: Record) -> str:
    """The section of a study in a page, in Markdown."""
    parts = [study.before]
    for table, columns in tables(study, record):
        head, *lines = ([cell.replace("|", "\\|") for cell in row] for row in table_rows(columns))
        parts += [f"### {table.title}" if table.title else "", table.before]
        parts += [markdown_table(head, lines), table.after]
    texts = [part.strip() for part in (*parts, study.after, _commands(study, record))]
    return "\n\n".join(text for text in texts if text) + "\n"


def _commands(study: Study, record: Record) -> str:
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


def update_page(page: Path, study: Study, record: Record) -> None:
    """Write the section of a study into a page. Raises ConfigError."""
    text = _page_with(page, study.name, section(study, record))
    storage.write_file(page.parent, page.name, text)


def show(result: Result) -> None:
    """Print the tables of a study."""
    study, record, format = result.study, result.record, result.config.format
    if format == "markdown":
        print(f"{section(study, record)}\n{NOTE}")
        return
    for table, columns in tables(study, record):
        title, plain = table.title or study.name, [*map(_plain, columns)]
        if format == "latex":
            print(f"% {printable(title)}\n{latex_table(plain)}\n")
        else:
            print_table(title, plain, format)
    print(f"% {NOTE}" if format == "latex" else NOTE)


def _plain(column: Column) -> Column:
    """A column without the marks of Markdown."""
    cells = [cell.replace("`", "") for cell in column.cells]
    return replace(column, heading=column.heading.replace("`", ""), cells=cells)
