"""Signals that stop a program: its critical sections finish first."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, Self


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
        if is_importing(frame):
            report()
            os._exit(128 + number)
        raise KeyboardInterrupt

    usual = signal.default_int_handler
    is_usual = signal.getsignal(signal.SIGINT) is usual  # not under nohup and &, or in a thread
    if is_usual:
        signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        if is_usual:
            signal.signal(signal.SIGINT, usual)


INTERRUPTED = 128 + signal.SIGINT
"""The exit code after Ctrl-C."""

BEFORE_FORCED_EXIT: list[Callable[[], object]] = []
"""Called before the process ends without Python's cleanup."""

PATIENCE_SECONDS = 1.0
"""A command that takes longer to stop says so after the first Ctrl-C, and is ended after the
second."""


@contextmanager
def exit_on_second_interrupt(report: Callable[[str], object]) -> Iterator[None]:
    """A context where a second Ctrl-C ends the process even during a long call of a library,
    when Python runs no handler of signals. report: called in a thread, with a line to print.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    reader, writer = socket.socketpair()  # Windows waits for sockets only
    writer.setblocking(False)
    previous = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch_interrupts, args=(reader, report), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous)
        writer.close()  # which ends the thread


def exit_without_cleanup(code: int) -> NoReturn:
    """End the process without Python's cleanup, which may take seconds, or crash after a library
    was interrupted."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    end_at_once(code)


def end_at_once(code: int) -> NoReturn:
    """End the process after what has to be done before."""
    for clean_up in BEFORE_FORCED_EXIT:
        clean_up()
    os._exit(code)


def _watch_interrupts(reader: socket.socket, report: Callable[[str], object]) -> None:
    """Read the numbers of signals as they arrive."""
    count = 0
    while numbers := reader.recv(1 if count else 1024):
        count += numbers.count(signal.SIGINT)
        if count == 1 and not select.select([reader], [], [], PATIENCE_SECONDS)[0]:
            report("stopping; a second Ctrl-C ends this at once")
        elif count > 1:
            time.sleep(PATIENCE_SECONDS)
            report("ended by a second Ctrl-C")
            end_at_once(INTERRUPTED)
    reader.close()


def _signals(*names: str) -> tuple[signal.Signals, ...]:
    """Those signals that this system has."""
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


BATCH_SIGNALS = _signals("SIGUSR1", "SIGUSR2", "SIGXCPU")
"""What batch systems send some time before they kill a job; a limit of time sends it repeatedly."""

CLOSED_TERMINAL = _signals("SIGHUP", "SIGBREAK")
"""What arrives when a terminal closes; the second on Windows, where Ctrl-Break also sends it."""

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, *CLOSED_TERMINAL, *BATCH_SIGNALS)
"""The signals after which a run saves and stops."""


def _detach_closed_terminal() -> None:
    """Redirect standard output and error to null if their terminal is gone: writing would fail."""
    if sys.platform == "win32":  # which cannot ask
        return
    for descriptor in (1, 2):
        poll = select.poll()
        poll.register(descriptor, 0)
        if any(events & select.POLLHUP for _, events in poll.poll(0)):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, descriptor)
            os.close(null)


class Interrupted(KeyboardInterrupt):
    """A stop signal arrived. The process exits with code 128 + the signal's number.

    message: what to add for the user, for example how to resume.
    """

    def __init__(self, number: int, message: str = "") -> None:
        super().__init__(message)
        self.number, self.message = number, message

    @property
    def code(self) -> int:
        return 128 + self.number


class Interrupts:
    """A context where the stop signals raise Interrupted.

    The exception is raised at once, or at the end of the current shielded block; a signal during
    an import waits for the end of the next shielded block. A second Ctrl-C raises at once. Other
    signals after the first one change nothing: a terminal or a batch system may send several. A
    handler that the program had for a batch signal, for example submitit's, which requeues the
    job, is called at the end of the context, after everything is saved.

    pending: a signal that waits for the end of a block. is_forced: whether a second Ctrl-C arrived.
    on_first_signal: called at once by the first signal.
    """

    def __init__(self, on_first_signal: Callable[[], object] | None = None) -> None:
        self.pending: int | None = None
        self._on_first_signal = on_first_signal
        self.is_forced = False
        self._arrived: list[int] = []
        self._shields = 0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Python sets signal handlers in the main thread only.
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                # Ignored by nohup and &; None: not set by Python.
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        previous, self._previous = self._previous, {}
        for number, handler in previous.items():
            signal.signal(number, handler)
        for number in self._arrived:
            if number in BATCH_SIGNALS and callable(previous[number]):
                signal.raise_signal(number)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number in CLOSED_TERMINAL:
            _detach_closed_terminal()
        is_first = not self._arrived
        is_second_ctrl_c = number == signal.SIGINT and number in self._arrived
        self.is_forced |= is_second_ctrl_c
        self._arrived.append(number)
        if not (is_first or is_second_ctrl_c):
            return
        self.pending = number
        if self._on_first_signal and is_first:
            self._on_first_signal()
        if is_second_ctrl_c or not (self._shields or is_importing(frame)):
            self._raise()

    def _raise(self) -> None:
        number, self.pending = self.pending, None
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
