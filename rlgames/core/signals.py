"""Ctrl-C and SIGTERM: work that must not be torn is finished first."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self


def is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported where the program stands. Some modules swallow whatever
    is raised then, by a bare `except:`."""
    while frame is not None and "importlib._bootstrap" not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None


@contextmanager
def exit_on_interrupted_import(tell: Callable[[], object]) -> Iterator[None]:
    """While it is entered, Ctrl-C ends the process at once where a module is being imported, once
    tell has said so; elsewhere it raises KeyboardInterrupt, as usual."""

    def handle(number: int, frame: FrameType | None) -> None:
        if not is_importing(frame):
            raise KeyboardInterrupt
        tell()
        os._exit(128 + number)

    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler:  # as nohup and & have it, or in a thread
        yield
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


class Interrupted(KeyboardInterrupt):
    """Somebody wants the process to end; it exits with 128 + the signal's number.

    told: what to tell a person, if there is more to say than that.
    """

    def __init__(self, number: int, told: str = "") -> None:
        super().__init__(told)
        self.number, self.told = number, told

    @property
    def code(self) -> int:
        return 128 + self.number


class Interrupts:
    """While it is entered, SIGINT and SIGTERM raise Interrupted where the program stands, or at
    the end of the shielded block that it is in, or, in an import, of the next one; a second signal
    raises at once.

    pending: a signal that a shield holds back. twice: whether there was a second one.
    first: called at once by the first signal.
    """

    def __init__(self, first: Callable[[], object] | None = None) -> None:
        self.pending: int | None = None
        self._first = first
        self.twice = False
        self._raised = False
        self._shields = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Only the main thread may say what a signal does.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup and & have it
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.twice = self._raised or self.pending is not None
        self.pending = number
        if self._first and not self.twice:
            self._first()
        if self.twice or not (self._shields or is_importing(frame)):
            self._raise()

    def _raise(self) -> None:
        number, self.pending, self._raised = self.pending, None, True
        assert number is not None
        raise Interrupted(number)

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """A block that a first signal does not tear."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if self.pending is not None and not self._shields:
            self._raise()
