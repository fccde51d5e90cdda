"""Ctrl-C, SIGTERM and SIGHUP: critical sections finish before the program stops."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self


def is_importing(frame: FrameType | None) -> bool:
    """Whether the interrupted code is importing a module. Some modules swallow every exception at
    import with a bare `except:`."""
    while frame is not None and "importlib._bootstrap" not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None


@contextmanager
def exit_on_interrupted_import(report: Callable[[], object]) -> Iterator[None]:
    """In this context Ctrl-C during an import calls report and ends the process at once; elsewhere
    it raises KeyboardInterrupt as usual."""

    def handle(number: int, frame: FrameType | None) -> None:
        if not is_importing(frame):
            raise KeyboardInterrupt
        report()
        os._exit(128 + number)

    previous = signal.getsignal(signal.SIGINT)
    if previous is not signal.default_int_handler:  # ignored by nohup and &, or in a thread
        yield
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals after which a run saves and stops."""


@contextmanager
def held_back() -> Iterator[None]:
    """A block in which the stop signals wait, even a second one."""
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _detach_closed_terminal() -> None:
    """Redirect standard output and error to null if their terminal is gone: writing would fail."""
    for descriptor in (1, 2):
        poll = select.poll()
        poll.register(descriptor, 0)
        if any(events & select.POLLHUP for _, events in poll.poll(0)):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, descriptor)
            os.close(null)


class Interrupted(KeyboardInterrupt):
    """SIGINT, SIGTERM or SIGHUP arrived. The process exits with code 128 + the signal's number.

    message: what to add for the user, for example how to resume.
    """

    def __init__(self, number: int, message: str = "") -> None:
        super().__init__(message)
        self.number, self.message = number, message

    @property
    def code(self) -> int:
        return 128 + self.number


class Interrupts:
    """A context in which SIGINT, SIGTERM and SIGHUP raise Interrupted.

    The exception is raised at once, or at the end of the current shielded block; a signal during
    an import waits for the end of the next shielded block. A second signal raises at once,
    except SIGHUP: a terminal that is closed may send several.

    pending: a signal that waits for the end of a block. twice: whether a second signal arrived.
    on_first_signal: called at once by the first signal.
    """

    def __init__(self, on_first_signal: Callable[[], object] | None = None) -> None:
        self.pending: int | None = None
        self._on_first_signal = on_first_signal
        self.twice = False
        self._raised = False
        self._shields = 0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Python sets signal handlers in the main thread only.
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:  # ignored by nohup and &
                    self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            if self._raised or self.pending is not None:
                return
            _detach_closed_terminal()
        self.twice = self._raised or self.pending is not None
        self.pending = number
        if self._on_first_signal and not self.twice:
            self._on_first_signal()
        if self.twice or not (self._shields or is_importing(frame)):
            self._raise()

    def _raise(self) -> None:
        number, self.pending, self._raised = self.pending, None, True
        assert number is not None
        raise Interrupted(number)

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """A block that a first signal does not interrupt."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if self.pending is not None and not self._shields:
            self._raise()
