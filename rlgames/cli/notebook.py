"""The progress of a training in a Jupyter notebook, with its learning curve."""

from __future__ import annotations

import io
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from rlgames.cli.live_view import RenderedView
from rlgames.cli.progress import Progress

UPDATE_SECONDS = 0.5
"""The least time between two updates of the page."""

COLUMNS, ROWS = 88, 30

PAGE = '<pre style="line-height:1.2;font-family:Menlo,Consolas,monospace">{code}</pre>'


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class NotebookProgress(Progress):
    """Shows the progress of a training in the output of the cell, updated in place."""

    def __init__(self, total: int) -> None:
        super().__init__(total)
        self._display: Any = import_module("IPython.display")
        self._page: Any = self._display.display(self._display.HTML(page_of(self)), display_id=True)
        self._updated = time.monotonic()

    def on_phase(self, phase: str) -> None:
        super().on_phase(phase)
        if time.monotonic() - self._updated >= UPDATE_SECONDS:
            self._update()

    def on_run_end(self, directory: Path) -> None:
        super().on_run_end(directory)
        self._update()

    def _update(self) -> None:
        self._updated = time.monotonic()
        self._page.update(self._display.HTML(page_of(self)))


def page_of(progress: Progress) -> str:
    """The view of a training as HTML."""
    console = Console(
        record=True,
        width=COLUMNS,
        height=ROWS,
        force_terminal=True,
        force_jupyter=False,  # it would show each page a second time
        file=io.StringIO(),
    )
    console.print(RenderedView(progress))
    return console.export_html(inline_styles=True, code_format=PAGE)
