"""The directory of a run: created once, overwriting nothing, and locked by its process."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import sanitized
from rlgames.runs import storage
from rlgames.runs.files import read_run

NEW_FILES = (
    *("config.yaml", "run.json", "metrics.jsonl", "train.log"),
    *("metrics.csv", "results.csv"),
)
"""The files that a new run creates beside its checkpoints and pictures."""

SWEEP_FILES = ("sweep.json", "stop", "multirun.yaml", "optuna.db")
FILES = (
    *("lock", *NEW_FILES, "eval.json", "output.log"),
    *(*SWEEP_FILES, "optuna.db-journal", "optuna.db-wal", "optuna.db-shm"),
)
FOLDERS = ("checkpoints", "pictures", ".hydra")
"""The files and folders of a run or a sweep that are written in place or read."""

MAX_RUNS_PER_SECOND = 10_000
LOCK_POLL_SECONDS = 0.05
MAX_PID_DIGITS = 20


def make_run_directory(parent: Path) -> Path:
    """Create a directory named by date, time and a counter; no two runs get the same one."""
    stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H%M%S")
    storage.make_directory(parent)
    for counter in range(MAX_RUNS_PER_SECOND):
        path = parent / f"{stamp}_{counter}"
        try:
            path.mkdir()
        except FileExistsError:
            continue
        storage.sync_directory(parent)
        return path
    raise FileExistsError(f"{parent} has {MAX_RUNS_PER_SECOND:,} runs of this second")


def make_sibling(directory: Path, check: Callable[[Path], None]) -> Path:
    """The directory if check allows it, otherwise a new one with a number after its name. No two
    processes get the same one.

    check: raises ConfigError for a directory that is in use. Raises OSError.
    """
    with contextlib.suppress(FileExistsError):
        storage.make_directory(directory.parent)
        directory.mkdir()
        storage.sync_directory(directory.parent)
        return directory
    if not os.path.lexists(directory / "lock"):
        with contextlib.suppress(ConfigError):
            check(directory)
            return directory
    for counter in range(1, MAX_RUNS_PER_SECOND):
        path = directory.with_name(f"{directory.name}_{counter}")
        with contextlib.suppress(FileExistsError):
            path.mkdir()
            storage.sync_directory(path.parent)
            return path
    raise FileExistsError(f"{directory} has {MAX_RUNS_PER_SECOND:,} siblings")


def remove_new_directories(created: list[Path]) -> None:
    """Remove directories that this process has just created, outermost first in the list."""
    for path in reversed(created):
        if path == created[-1]:
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.rmdir()


def check_new_run(directory: Path, more: Iterable[str] = ()) -> None:
    """Raises ConfigError unless every file that a new run writes is new.

    more: folders that it writes besides FOLDERS. A run that ended before its first checkpoint may
    be started again.
    """
    if any((directory / "checkpoints").glob("*.safetensors")):
        hint = f"name another out=, or resume it: rlgames resume {directory}"
        raise ConfigError(f"{sanitized(directory)} already holds a run", hint)
    if _is_unsaved_run(directory):
        return
    folders = {*FOLDERS, *more}
    names = [*NEW_FILES, *sorted(folders)]
    if os.path.lexists(directory.parent / "sweep.json"):
        names.remove("train.log")  # tells why this job did not start
    for name in names:
        path = directory / name
        is_free = not os.path.lexists(path) or (
            name in folders and not path.is_symlink() and path.is_dir() and not any(path.iterdir())
        )
        if not is_free:
            raise ConfigError(
                f"{sanitized(path)} exists, and a run would overwrite it", "name another out="
            )


def _is_unsaved_run(directory: Path) -> bool:
    """Whether a directory without checkpoints is what a run left that ended before its first."""
    run = read_run(directory)
    return isinstance(run.get("versions"), dict) and run.get("status") != "done"


def check_regular_files(directory: Path) -> None:
    """Raises ConfigError if a file of a run or a sweep is a link, a FIFO or a device: writing
    would change something else, and reading might never end."""
    paths = [directory / name for name in (*FILES, *FOLDERS)]
    paths += directory.glob("events.out.tfevents.*")
    for name in FOLDERS:
        with contextlib.suppress(OSError):
            if not (directory / name).is_symlink():
                paths += (directory / name).iterdir()
    for path in paths:
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            continue
        expected = stat.S_ISDIR(mode) if path.name in FOLDERS else stat.S_ISREG(mode)
        if stat.S_ISLNK(mode) or not (expected or stat.S_ISDIR(mode)):
            raise ConfigError(
                f"{sanitized(path)} is a link or no plain file",
                "remove it from the run's directory",
            )


class DirectoryLock:
    """The lock of a run or a sweep, which the system releases when its owner dies."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

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


def lock_directory(directory: Path, seconds: float = 0) -> DirectoryLock:
    """Lock a run or a sweep.

    seconds: how long to wait for another owner.
    Raises ConfigError if another process holds the lock, and for a directory with links in it, and
    OSError.
    """
    check_regular_files(directory)
    file = storage.open_to_append(directory, "lock")
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(OSError):  # on a full disk the owner has no name
                os.ftruncate(file.fileno(), 0)
                os.write(file.fileno(), str(os.getpid()).encode())
            return DirectoryLock(file)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(LOCK_POLL_SECONDS)
                continue
        except OSError as error:
            file.close()
            error.filename = str(directory / "lock")
            raise
        file.close()
        raise ConfigError(
            f"another process{_owner(directory)} is running in {directory}",
            "wait until it ends, or name another directory",
        )


def _owner(directory: Path) -> str:
    """The PID of the process that holds the lock, in parentheses, as far as the file tells."""
    with contextlib.suppress(ConfigError, OSError):
        pid = storage.read_file(directory, "lock", MAX_PID_DIGITS)
        return f" ({pid.decode()})" if pid.isdigit() else ""
    return ""
