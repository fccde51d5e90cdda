"""Processes that end with their parent, whatever ended it, and that start without delay."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # loaded here: not after a fork


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """A block of a command's start that makes many objects and little garbage, as imports do.

    Later collections skip these objects.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def kill_with_parent(parent: int) -> None:
    """Have Linux kill this process when its parent, a process of this number, ends.

    More exactly, when the parent's thread that started it ends: for a child that is joined there.
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os._exit(1)


_SAY_AT_END = "import sys; sys.stdin.read() or print(sys.argv[1], file=sys.stderr)"


@contextmanager
def last_words(message: str) -> Iterator[None]:
    """A block after which nothing is printed, unless this process ends in it without an exception,
    as by SIGKILL or in a library: then the message is, on standard error."""
    words = [sys.executable, "-I", "-S", "-c", _SAY_AT_END, f"rlgames: {message}"]
    # Another process hears when this one ends; Ctrl-C does not reach it.
    with subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True) as witness:
        try:
            yield
        finally:
            witness.communicate(b"the block was left")
