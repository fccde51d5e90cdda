"""`rlgames study`: runs a study and prints its tables; the sections of pages made from records."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlgames.commands.study_file import PLACEHOLDER, Study, StudyColumn, StudyTable, parse_value
from rlgames.commands.study_plan import RECORDS, PlannedStudy, plan_study, run_study, selected
from rlgames.commands.study_record import (
    MISSING,
    NOTE,
    Cell,
    Record,
    make_record,
    read_record,
    train_command,
    typed_word,
    write_record,
)
from rlgames.config.commands import ReportConfig, StudyConfig
from rlgames.config.words import quoted
from rlgames.core.errors import ConfigError
from rlgames.core.text import markdown_table, printable, with_section
from rlgames.runs import storage
from rlgames.terminal.tables import Column, latex_table, print_table
from rlgames.terminal.tables import rows as table_rows

BEST = ("⟦", "⟧")
"""Around the best value of a column, until a format says how it is marked."""

TEST = (
    "† lies outside the 95% interval of {metric}: one-sample t-test over seeds at 5%. Without †, "
    "no difference is shown."
)


@dataclass(frozen=True)
class Result:
    """A study and the record of each of its parts. exit_code: 3 if some jobs are not done."""

    planned: PlannedStudy
    records: dict[str, Record]
    exit_code: int

    def as_dict(self) -> dict[str, Any]:
        return self.records


def run(cfg: StudyConfig) -> Result | None:
    """Run what is missing of a study, and write its records, page and pictures; None for
    dry_run=true, which lists the jobs."""
    planned = plan_study(cfg)
    directory = planned.work.directory
    if cfg.dry_run and cfg.format != "table":
        raise ConfigError(f"dry_run= prints text, not {cfg.format}", "omit format=")
    folder = Path(cfg.records) if cfg.records else directory / RECORDS
    _check_paths(folder, cfg.page)
    old = {leaf.name: read_record(folder / f"{leaf.name}.json") for leaf in planned.study.leaves}
    if cfg.dry_run:
        _print_jobs(planned, old)
        return None
    code = 0
    if cfg.run:
        # Standard output is only for the tables, in a format that another program may read.
        with redirect_stdout(sys.stdout if cfg.format == "table" else sys.stderr):
            code = run_study(planned)
    records = {}
    for leaf in planned.study.leaves:
        records[leaf.name] = make_record(planned, leaf, old[leaf.name])
        write_record(folder / f"{leaf.name}.json", records[leaf.name])
    if cfg.page:
        update_page(Path(cfg.page), planned.study, records)
    _draw_curves(planned, code == 0)
    return Result(planned, records, code)


def _check_paths(records: Path, page: str | None) -> None:
    """Raises ConfigError, before the first job, for paths where nothing could be written."""
    parent = next(each for each in (records, *records.parents) if each.exists())
    if not parent.is_dir():
        raise ConfigError(f"{parent} is not a directory", "name another out= or records=")
    if page and not Path(page).parent.is_dir():
        raise ConfigError(f"page={page}: there is no directory {Path(page).parent}", "create it")


def _print_jobs(planned: PlannedStudy, old: dict[str, Record]) -> None:
    """The jobs that would run, each with the seconds that earlier runs of it took."""
    work, total = planned.work, 0.0
    known = {}
    for record in old.values():
        for name, run in record.get("runs", {}).items():
            parts = [run, *run["evaluations"].values()]
            known[name] = sum(float(each["seconds"]["mean"]) for each in parts if "seconds" in each)
    left = [job for job in selected(planned) if work.status(job) != "done"]
    for job in left:
        seconds = known.get(job.name.partition("/")[0], 0.0)
        total += seconds
        about = f", about {seconds:.0f} s" if seconds else ""
        missing = ", ".join(each.name.partition(".")[2] for each in work.missing(job))
        made = f"; evaluations: {missing}" if missing else ""
        words = " ".join(job.words)
        print(printable(f"{job.name}: {work.status(job)}{about}: {words}{made}"))
    about = f", about {total:.0f} s of work" if total else ""
    print(printable(f"{len(left)} of {len(work.jobs)} jobs would run{about}, in {work.directory}"))


def _draw_curves(planned: PlannedStudy, is_done: bool) -> None:
    """Draw the learning curves of the study, if all of its runs are done."""
    from rlgames.commands import report
    from rlgames.config.compose import load_config

    page, directory = planned.config.page, planned.work.directory
    for study in planned.study.leaves if is_done else []:
        folder = Path(page).parent / "pictures" if page else directory / "pictures"
        for name, words in study.curves.items():
            runs = [word for word in words.split() if "=" not in word]
            overrides = [word for word in words.split() if "=" in word]
            if all((directory / run).is_dir() for run in runs):
                storage.make_directory(folder)
                curves = f"curves={(folder / name).absolute()}.png"
                with contextlib.chdir(directory):  # so that labels are the names of the runs
                    listed = f"runs=[{','.join(map(quoted, runs))}]"
                    report.run(load_config(ReportConfig, [listed, curves, *overrides]))


def tables(study: Study, record: Record) -> Iterator[tuple[StudyTable, list[Column]]]:
    """The tables of a study, with BEST around the best value of a column."""
    for table in study.tables:
        head = Column(table.head, [*table.rows.values()], is_text=True)
        values = [_column(study, record, [*table.rows], column) for column in table.columns]
        yield table, [head, *values]


def _column(study: Study, record: Record, runs: Sequence[str], column: StudyColumn) -> Column:
    cells = [cell_of(record, run, column.metric) for run in runs]
    means = [cell.mean for cell in cells if cell is not None]
    choose = {"lowest is best": min, "highest is best": max}.get(column.option)
    best = choose(means) if choose and means else None
    texts = []
    for run, cell in zip(runs, cells, strict=True):
        text = _shown(study, record, run, column, cell)
        is_best = cell is not None and cell.mean == best
        texts.append(f"{BEST[0]}{text}{BEST[1]}" if is_best else text)
    return Column(column.heading, texts)


def cell_of(record: Record, run: str, metric: str) -> Cell | None:
    cell = record.get("runs", {}).get(run, {}).get("cells", {}).get(metric)
    return None if cell is None else Cell.from_record(cell)


def _shown(study: Study, record: Record, run: str, column: StudyColumn, cell: Cell | None) -> str:
    """A cell as text; a reported one may be text, or is marked where a test finds a difference."""
    if not column.metric.startswith("reported.") or len(column.terms) > 1:
        return MISSING if cell is None else cell.shown(column.factor, column.format, column.option)
    reported = study.reported[column.metric.partition(".")[2]]
    value = (reported.values or {}).get(run, MISSING)
    text = f"{column.factor * value:{column.format}}" if isinstance(value, int | float) else value
    other = cell_of(record, run, reported.compared) if reported.compared else None
    differs = other and cell and other.contains(cell.mean) is False
    return f"{text}†" if differs else str(text)


def section(study: Study, records: dict[str, Record]) -> str:
    """The section of a study in a page, in Markdown; its parts have comments around them."""
    record = records.get(study.name, {})
    parts = [filled(study, record, study.before)]
    for table, columns in tables(study, record):
        parts.append(f"### {table.title}" if table.title else "")
        parts.append(filled(study, record, table.before or ""))
        head, *lines = ([cell.replace("|", "\\|") for cell in row] for row in table_rows(columns))
        parts.append(_marked(markdown_table(head, lines), "**", "**").strip())
        parts.append(filled(study, record, table.after or ""))
    parts += notes(study)
    for part in study.parts:
        parts.append(with_section("", f"study {part.name}", section(part, records)).strip())
    parts += [filled(study, record, study.after), *_commands(study, record)]
    return "\n\n".join(part for part in parts if part) + "\n"


def filled(study: Study, record: Record, text: str) -> str:
    """A text with its values."""

    def value(match: re.Match[str]) -> str:
        run, column = parse_value(match[1])
        cell = cell_of(record, run, column.metric)
        return MISSING if cell is None else cell.shown(column.factor, column.format, column.option)

    return PLACEHOLDER.sub(value, text).strip()


def notes(study: Study) -> list[str]:
    """The test of each set of reported values, and the source."""
    texts = []
    for reported in study.reported.values():
        test = TEST.format(metric=f"`{reported.compared}`") if reported.compared else ""
        source = f"Source: {reported.source.rstrip('.')}." if reported.source else ""
        texts.append(f"{source} {test}".strip())
    return [text for text in texts if text]


def _commands(study: Study, record: Record) -> list[str]:
    if not study.runs:
        return []
    dates = record.get("dates") or [MISSING]
    title = f"Commands, measured on {' to '.join(dates)} by <code>rlgames study {study.name}</code>"
    lines = ['<details markdown="1">', f"<summary>{title}</summary>", ""]
    for run in study.runs.values():
        words = train_command(run) or " ".join(run.words)
        lines.append(f"- `{run.name}`: `{words}`")
    for each in study.evaluations:
        named = " of " + ", ".join(f"`{name}`" for name in each.patterns) if each.patterns else ""
        first = "GAME" if each.command == "solve" else "RUN"
        words = " ".join([each.command, first, *map(typed_word, each.words)])
        lines.append(f"- {each.name}{named}: `rlgames {words}`")
    return ["\n".join([*lines, "", "</details>"])]


def update_page(page: Path, study: Study, records: dict[str, Record]) -> None:
    """Write the section of a study between its comments, or at the end of the page."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    text = with_section(text, f"study {study.name}", section(study, records))
    storage.write_file(page.parent, page.name, text)


def show(result: Result) -> None:
    """Print the tables of a study."""
    study, records, format = result.planned.study, result.records, result.planned.config.format
    if format == "markdown":
        print(f"{section(study, records)}\n{NOTE}")
    else:
        for leaf in study.leaves:
            for table, columns in tables(leaf, records[leaf.name]):
                title, plain = table.title or leaf.name, [*map(_plain, columns)]
                if format == "latex":
                    text = _marked(latex_table(plain), "\\textbf{", "}")
                    print(f"% {printable(title)}\n{text}\n")
                else:
                    cells = [[_marked(each, "", " (best)") for each in c.cells] for c in plain]
                    shown = [replace(c, cells=own) for c, own in zip(plain, cells, strict=True)]
                    print_table(title, shown, format)
            for note in notes(leaf):
                print(f"% {printable(note)}" if format == "latex" else printable(note))
        print(f"% {NOTE}" if format == "latex" else NOTE)


def _plain(column: Column) -> Column:
    cells = [cell.replace("`", "") for cell in column.cells]
    return replace(column, heading=column.heading.replace("`", ""), cells=cells)


def _marked(text: str, begin: str, end: str) -> str:
    """A text with these marks around the best values."""
    return text.replace(BEST[0], begin).replace(BEST[1], end)
