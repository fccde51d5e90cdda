"""How a process starts without delay, and what it says if something ends it."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


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
