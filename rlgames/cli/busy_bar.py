"""A bar on the terminal while a command computes for long."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rlgames.core import progress

QUIET_SECONDS = 1.0
"""Shorter computations have no bar."""


@contextmanager
def busy_bar(label: str) -> Iterator[None]:
    """A block whose progress is shown after a label on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

    columns = (label, BarColumn(), TaskProgressColumn(), TimeRemainingColumn(compact=True))
    bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
    task = bar.add_task(label, total=1.0)
    begun = time.monotonic()
    with ExitStack() as stack:

        def show(fraction: float) -> None:
            if not bar.live.is_started and time.monotonic() - begun > QUIET_SECONDS:
                stack.enter_context(bar)
            bar.update(task, completed=fraction)

        with progress.listening(show):
            yield
