"""Prints what `rlgames report` found; follow=true refreshes its table until no run is running."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live

from rlgames.cli.report_tables import columns, print_comparison, print_report_as, title
from rlgames.cli.text_tables import fitted_table
from rlgames.commands.report import ReportResult
from rlgames.commands.report_rows import Report
from rlgames.core.text import printable

REFRESH_SECONDS = 2.0

IDLE_SECONDS = 6.0
"""Seconds without a running run after which nothing more is expected: a sweep needs a moment to
start its next job."""


def print_report(result: ReportResult) -> None:
    """Print a report in the format of its command; a comparison takes the place of the runs."""
    if result.follow is not None:
        follow_report(result)
    elif result.comparison is not None:
        print_comparison(result.comparison, result.format)
    else:
        print_report_as(result.report, result.format)
    if result.comparison is not None and result.format == "table":
        every = [*result.report.runs, *result.report.damaged]
        if left_out := sum(not run.results for run in every):
            print(
                f"left out, because they are not done or damaged: {left_out} of {len(every)} runs"
            )
    if result.profile and result.format == "table":
        print(f"performance profiles: {printable(result.profile)}")
    if result.curves and result.format == "table":
        print(f"curves: {printable(result.curves)}")


def follow_report(result: ReportResult) -> None:
    """Show a report until no run is running, or until Ctrl-C: in place on a terminal, otherwise
    again whenever it has changed."""
    console = Console()
    with suppress(KeyboardInterrupt):
        if sys.stdout.isatty() and not console.is_dumb_terminal:
            view = _RenderedReport(result.report)
            with Live(view, console=console):
                for view.report in _reports(result):
                    pass
        else:
            shown = ""
            for report in _reports(result):
                text = io.StringIO()
                with redirect_stdout(text):
                    print_report_as(report, "table")
                if text.getvalue() != shown:
                    shown = text.getvalue()
                    print(shown, flush=True)


def _reports(result: ReportResult) -> Iterator[Report]:
    """The report as time passes, until nothing is running."""
    assert result.follow is not None
    report, idle_since = result.report, time.monotonic()
    while True:
        yield report
        if any(run.status == "running" for run in report.runs):
            idle_since = time.monotonic()
        elif time.monotonic() - idle_since >= IDLE_SECONDS:
            return
        time.sleep(REFRESH_SECONDS)
        report = result.follow().report


class _RenderedReport:
    def __init__(self, report: Report) -> None:
        self.report = report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield fitted_table(title(self.report), columns(self.report), console)
