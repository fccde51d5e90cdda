"""Prints what `rlgames report` found; follow=true refreshes its table until no run is running."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import replace

from rich.console import Console
from rich.live import Live
from rich.text import Text

from rlgames.cli.report_tables import columns, print_comparison, print_report_as, title
from rlgames.commands.report import ReportResult
from rlgames.commands.report_rows import Report
from rlgames.core.text import printable
from rlgames.terminal.tables import table_lines

REFRESH_SECONDS = 2.0

MAX_FRACTION = 0.02
"""The most of one core's time that following may take; many runs are looked at less often."""

MARGIN_ROWS = 8
"""Lines of a terminal besides the rows of the table."""

IDLE_SECONDS = 6.0
"""Seconds without a running run after which nothing more is expected: a sweep needs a moment to
start its next job."""


def print_report(result: ReportResult) -> None:
    """Print a report in the format of its command; a comparison replaces the runs."""
    if result.follow is not None:
        follow_report(result)
    elif result.comparison is not None:
        print_comparison(result.comparison, result.cfg.format)
    else:
        print_report_as(result.report, result.cfg.format, result.cfg.columns)
    if result.comparison is not None and result.cfg.format == "table":
        every = [*result.report.runs, *result.report.damaged]
        if left_out := sum(not run.results for run in every):
            print(
                f"left out, because they are not done or damaged: {left_out} of {len(every)} runs"
            )
    if result.cfg.curves and result.cfg.format == "table":
        print(f"curves: {printable(result.cfg.curves)}")


def follow_report(result: ReportResult) -> None:
    """Show a report until no run is running, or until Ctrl-C: in place on a terminal, otherwise
    again whenever it has changed."""
    console = Console()
    with suppress(KeyboardInterrupt):
        if sys.stdout.isatty() and not console.is_dumb_terminal:
            with Live(console=console, auto_refresh=False) as live:
                for report in _reports(result):
                    running_first = sorted(report.rows, key=lambda r: "running" not in r.status)
                    rows = running_first[: max(1, console.height - MARGIN_ROWS)]
                    shown = replace(report, rows=rows)
                    table = columns(shown, result.cfg.columns)
                    lines = table_lines(title(shown), table, console.width)
                    live.update(Text("\n".join(lines)), refresh=True)
        else:
            printed = ""
            for report in _reports(result):
                text = io.StringIO()
                with redirect_stdout(text):
                    print_report_as(report, "table", result.cfg.columns)
                if text.getvalue() != printed:
                    printed = text.getvalue()
                    print(printed, flush=True)


def _reports(result: ReportResult) -> Iterator[Report]:
    """The report as time passes, until nothing is running."""
    assert result.follow is not None
    report, idle_since, spent = result.report, time.monotonic(), 0.0
    while True:
        begun = time.process_time()
        yield report
        if any(run.status == "running" for run in report.runs):
            idle_since = time.monotonic()
        elif time.monotonic() - idle_since >= IDLE_SECONDS:
            return
        spent += time.process_time() - begun
        time.sleep(max(REFRESH_SECONDS, spent / MAX_FRACTION))
        begun = time.process_time()
        report = result.follow().report
        spent = time.process_time() - begun
