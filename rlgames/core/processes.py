"""Processes that end with their parent, whatever ended it."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import threading
import time

GRACE_SECONDS = 8.0
"""What a process has to save after its parent has ended."""

POLL_SECONDS = 0.5

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # loaded here: not after a fork


def kill_with_parent(parent: int) -> None:
    """Have Linux kill this process when its parent, a process of this number, ends.

    More exactly, when the parent's thread that started it ends: for a child that is joined there.
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os._exit(1)


def stop_with_parent() -> None:
    """Start a thread that stops this process when its parent ends: by SIGTERM, so that it can save,
    and GRACE_SECONDS later by SIGKILL, as it may wait for others or be in a long computation.

    Does nothing in a process that has this thread.
    """
    if any(thread.name == "stop_with_parent" for thread in threading.enumerate()):
        return
    parent = os.getppid()

    def watch() -> None:
        _wait_for_end(parent)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="stop_with_parent", daemon=True).start()


def _wait_for_end(parent: int) -> None:
    """Wait until the parent of this process is another one, or has ended."""
    if hasattr(os, "pidfd_open"):
        try:
            descriptor = os.pidfd_open(parent)
        except OSError:  # an old kernel, a sandbox, or it has just ended
            pass
        else:
            if os.getppid() == parent:
                select.select([descriptor], [], [])
            return
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
