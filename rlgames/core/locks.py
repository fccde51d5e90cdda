"""Locks of open files, which the system releases when their process ends."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""The errors of a system, or of a file system, that has no locks."""

POLL_SECONDS = 0.005
"""Between two attempts to take a lock."""


def lock(file: int, wait: bool = False) -> bool:
    """Lock an open file for this process.

    Args:
        file: its descriptor. Some network file systems lock only files that are open for writing.
        wait: until the lock is free.

    Returns:
        Whether this process has the lock now. False: another descriptor has it.

    Raises:
        OSError: with one of NO_LOCKS, or for a descriptor that cannot be locked.
    """
    from filelock import lock_descriptor  # takes 0.05 s to import

    return lock_descriptor(file, blocking=wait, poll_interval=POLL_SECONDS)


def unlock(file: int) -> None:
    """Release the lock of an open file; does nothing if it is not locked."""
    with suppress(OSError, ImportError):  # at the end of the process nothing can be imported
        from filelock import unlock_descriptor

        unlock_descriptor(file)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """A block that one process at a time runs: it holds a lock file, which is removed at the end.

    Without locks, or if the file cannot be created, several processes may run the block. On Windows
    the file stays.
    """
    with ExitStack() as stack:
        with suppress(OSError):
            file = stack.enter_context(_lock_file(path))
            stack.callback(unlock, file)
            stack.callback(_remove, path)
        yield


@contextmanager
def _lock_file(path: Path) -> Iterator[int]:
    """The locked file of a path, not one that another process has removed in the meantime."""
    while True:
        with open(path, "ab") as file:
            lock(file.fileno(), wait=True)
            if os.fstat(file.fileno()).st_nlink:
                yield file.fileno()
                return


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
