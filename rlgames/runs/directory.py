"""The directory of a run: created once, overwriting nothing, and locked by its process."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import sanitized
from rlgames.runs import storage
from rlgames.runs.run_info import read_info

LOCK = "lock"
NEW_FILES = ("config.yaml", "run.json", "metrics.jsonl", "train.log")
"""The files that a new run creates next to its checkpoints and pictures."""

SWEEP_FILES = ("multirun.yaml",)
FILES = (LOCK, *NEW_FILES, "eval.json", "output.log", *SWEEP_FILES)
FOLDERS = ("checkpoints", "pictures")
"""The files and folders of a run or a sweep."""

LEFTOVERS = (
    *(f"{name}*{storage.TEMPORARY}" for name in (*NEW_FILES, *SWEEP_FILES)),
    *(f"{folder}/*{storage.TEMPORARY}" for folder in FOLDERS),
)
"""Temporary files that only the owner of the lock writes."""

MAX_ATTEMPTS = 100
LOCK_POLL_SECONDS = 0.05
MAX_PID_DIGITS = 20


@contextmanager
def claim_directory(
    out: str | None, parent: Path, check: Callable[[Path], None]
) -> Iterator[DirectoryLock]:
    """Create the directory of a new run or sweep and lock it, before anything is written in it.

    The block writes the first files. If it fails, nothing is left; otherwise the lock stays. Of
    several processes that start at the same moment, each gets its own directory or none.

    Args:
        out: The directory. None: one in `parent`, named by date, time and a counter.
        parent: Holds the directories that have no other name.
        check: Raises ConfigError for a directory with files that would be overwritten.

    Raises:
        ConfigError: The directory is in use or cannot be written.
    """
    base = parent / datetime.datetime.now().strftime("%Y-%m-%d_%H%M%S")
    numbered = (Path(f"{base}_{number}") for number in itertools.count())
    unused = (path for path in numbered if not os.path.lexists(path))
    directory, lock = Path(out) if out else next(unused), None
    try:
        while lock is None:
            try:
                lock = _claim(directory, check)
            except ConfigError:
                if out:
                    raise
                directory = next(unused)
        try:
            yield lock
        except BaseException:
            lock.undo()
            raise
    except OSError as error:
        path = sanitized(error.filename or directory)
        hint = "name another out="
        raise ConfigError(f"{path} cannot be written: {error.strerror}", hint) from None


def _claim(directory: Path, check: Callable[[Path], None]) -> DirectoryLock:
    attempts = 0
    while True:
        attempts += 1
        created: list[Path] = []
        lock = None
        try:
            if directory.is_dir():
                storage.check_plain(directory)
            if not os.path.lexists(directory / LOCK):  # nothing is created where check refuses
                check(directory)
            created = storage.make_directory(directory)
            lock = lock_directory(directory, created=created)
            check(directory)
            return lock
        except BaseException as error:
            lock.undo() if lock else _remove_empty(created)
            # The process that created the directory may have failed and removed it just now.
            if not isinstance(error, FileNotFoundError) or attempts == MAX_ATTEMPTS:
                raise


def _remove_empty(created: Sequence[Path]) -> None:
    """Remove directories, outermost first in the list, unless somebody has entered them."""
    for path in reversed(created):
        with contextlib.suppress(OSError):
            path.rmdir()


def check_new_run(directory: Path) -> None:
    """Raises ConfigError unless every file that a new run writes is new. A run that ended before
    its first checkpoint may be started again."""
    if any((directory / "checkpoints").glob("*.safetensors")):
        hint = f"name another out=, or resume it: rlgames resume {directory}"
        raise ConfigError(f"{sanitized(directory)} already holds a run", hint)
    _check_separate(directory)
    info = read_info(directory)
    if info.versions and info.status != "done":  # a run that ended before its first checkpoint
        return
    for name in (*NEW_FILES, *FOLDERS):
        path = directory / name
        is_free = not os.path.lexists(path) or (
            name in FOLDERS and not path.is_symlink() and path.is_dir() and not any(path.iterdir())
        )
        if not is_free:
            raise ConfigError(
                f"{sanitized(path)} exists, and a run would overwrite it", "name another out="
            )


def _check_separate(directory: Path) -> None:
    """Raises ConfigError for a directory of a sweep or of other runs, and for one inside a run:
    what lists, compares or deletes the one would take the other for a part of it."""
    what = ""
    if os.path.lexists(directory / "multirun.yaml"):
        what = "already holds a sweep"
    elif any(next(directory.glob(f"{each}/checkpoints"), None) for each in ("*", "*/*")):
        what = "holds other runs"
    for parent in directory.absolute().parents:
        if (parent / "run.json").exists() and (parent / "checkpoints").is_dir():
            what = f"is inside the run {sanitized(parent)}"
    if what:
        raise ConfigError(f"{sanitized(directory)} {what}", "name another out=")


class DirectoryLock:
    """The lock of a run or a sweep, which the system releases when its owner dies.

    created: the directories that were created to claim it, outermost first.
    """

    def __init__(self, directory: Path, file: BinaryIO, created: Sequence[Path] = ()) -> None:
        self.directory, self._file, self._created = directory, file, created
        self._was_empty = os.listdir(directory) == [LOCK]

    def undo(self) -> None:
        """Release the directory as it was claimed: what was empty is empty again.

        Others write only while they hold the lock, so all files are this process's own. The lock
        goes last, and the directory only if nobody has entered it.
        """
        with contextlib.suppress(OSError):
            paths = sorted(self.directory.rglob("*"), reverse=True) if self._was_empty else []
            for path in sorted(paths, key=lambda path: path.name == LOCK):
                with contextlib.suppress(OSError):  # what cannot be removed keeps nothing else
                    path.rmdir() if path.is_dir() else path.unlink()
        self.release()
        _remove_empty(self._created)

    def release(self) -> None:
        """Let others lock the directory; does nothing the second time."""
        if not self._file.closed:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file.fileno(), 0)
            # Closing is not enough while a fork of this process is alive.
            with contextlib.suppress(OSError):
                fcntl.flock(self._file.fileno(), fcntl.LOCK_UN)
            self._file.close()

    __del__ = release


def lock_directory(
    directory: Path, seconds: float = 0, created: Sequence[Path] = ()
) -> DirectoryLock:
    """Lock a run or a sweep.

    seconds: how long to wait for another owner. created: as for DirectoryLock.
    Raises ConfigError if another process holds the lock and as storage.check_plain, and OSError.
    """
    storage.check_plain(directory)
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.ExitStack() as stack, storage.errors_name(directory / LOCK):
            file = stack.enter_context(storage.open_to_append(directory, LOCK))
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise ConfigError(
                        f"another process{_owner(directory)} is running in {directory}",
                        "wait until it ends, or name another directory",
                    ) from None
                time.sleep(LOCK_POLL_SECONDS)
                continue
            if os.fstat(file.fileno()).st_nlink == 0:  # its owner has failed and removed it
                continue
            with contextlib.suppress(OSError):  # on a full disk the owner has no name
                os.ftruncate(file.fileno(), 0)
                os.write(file.fileno(), str(os.getpid()).encode())
            for path in (path for pattern in LEFTOVERS for path in directory.glob(pattern)):
                storage.remove_file(directory, path.relative_to(directory).as_posix())
            lock = DirectoryLock(directory, file, created)
            stack.pop_all()
            return lock


def _owner(directory: Path) -> str:
    """The PID of the process that holds the lock, in parentheses, as far as the file tells."""
    with contextlib.suppress(OSError):
        pid = storage.read_file(directory, LOCK, MAX_PID_DIGITS)
        return f" ({pid.decode()})" if pid.isdigit() else ""
    return ""
