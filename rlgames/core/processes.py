"""Processes that end with their parent, whatever ended it, and that start without delay."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
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
