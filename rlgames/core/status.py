"""What the program is doing before it has something to print: a line on a terminal, which is
erased afterwards."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from shutil import get_terminal_size

PATIENCE_SECONDS = 0.3
"""Shorter work is not mentioned."""

ERASE = "\r\x1b[K"


class StatusLine:
    """A line on standard error, if that is a terminal; a view may show its text instead.

    text: what the program is doing, or nothing.
    """

    def __init__(self) -> None:
        self.text = ""
        self._is_drawn, self._num_views = False, 0
        self._timer: threading.Timer | None = None
        self._lock = threading.RLock()

    def say(self, text: str) -> None:
        """Show what the program is doing from now on."""
        with self._lock:
            self._stop_timer()
            self.text = text
            if not self._num_views and can_erase():
                columns = get_terminal_size().columns
                self._write(f"{ERASE}{f'rlgames: {text}'[: columns - 1]}")
                self._is_drawn = True

    def say_soon(self, text: str) -> None:
        """The same, unless something else is said before the user gets impatient."""

        def say() -> None:
            with self._lock:
                if self._timer is timer:
                    self.say(text)

        with self._lock:
            self._stop_timer()
            self._timer = timer = threading.Timer(PATIENCE_SECONDS, say)
            timer.daemon = True
            timer.start()

    def clear(self) -> None:
        """Erase the line: something will be printed."""
        with self._lock:
            self._stop_timer()
            self.text = ""
            if self._is_drawn:
                self._write(ERASE)
                self._is_drawn = False

    @contextmanager
    def shown_in_a_view(self) -> Iterator[None]:
        """While this block runs, a view shows the text."""
        self.clear()
        self._num_views += 1
        try:
            yield
        finally:
            self._num_views -= 1

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @staticmethod
    def _write(text: str) -> None:
        with suppress(OSError, ValueError):  # standard error may be closed by now
            sys.stderr.write(text)
            sys.stderr.flush()


def can_erase() -> bool:
    """Whether standard error is a terminal that can erase a line."""
    return sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


STATUS = StatusLine()
"""The program's."""
