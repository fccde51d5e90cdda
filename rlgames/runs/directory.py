"""The directory of a run: created once, overwriting nothing, and locked by its process."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import sys
import time
from pathlib import Path
from typing import BinaryIO

from rlgames.core.errors import ConfigError
from rlgames.core.locks import NO_LOCKS, lock, unlock
from rlgames.core.text import printable
from rlgames.core.untrusted import sanitized
from rlgames.runs import storage
from rlgames.runs.files import BEST, SWEEP_FILE, read_info

LOCK = "lock"
NEW_FILES = ("config.yaml", "run.json", "metrics.jsonl", "train.log")
"""The files that a new run creates next to its checkpoints and pictures."""

FILES = (LOCK, *NEW_FILES, "output.log", SWEEP_FILE)
FOLDERS = ("checkpoints", "pictures")
"""The files and folders of a run, a sweep or a study, except reports."""

TRIALS = "doctor"
"""The folder in a run with the trainings that doctor tries, which no other command finds."""

LEFTOVERS = tuple(
    f"{name}*{storage.TEMPORARY}" for name in (*NEW_FILES, *(f"{f}/" for f in FOLDERS))
)
"""Temporary files that only the owner of the lock writes."""

LOCK_WAITS = (0.01, 0.02, 0.03, 0.04, 0)
"""Seconds after each attempt to lock a directory: a report may be looking whether it is locked."""

LOOK_WAITS = (0.001, 0)
"""Seconds after each look whether a directory is locked: another report may be looking, too."""


def claim_directory(out: str | None, parent: Path) -> DirectoryLock:
    """Create the directory of a new run, out, and lock it. Of several processes that start at the
    same moment, each gets its own directory or none.

    out: None: a directory in parent, named by date, time and a counter.
    Raises ConfigError for a directory that is in use, holds files that would be overwritten, or
    cannot be written.
    """
    base = parent / datetime.datetime.now().strftime("%Y-%m-%d_%H%M%S")
    numbered = (Path(f"{base}_{number}") for number in itertools.count())
    unused = (path for path in numbered if not os.path.lexists(path))
    while True:
        directory = Path(out) if out else next(unused)
        try:
            return _claim(directory)
        except ConfigError:
            if out:
                raise
        except OSError as error:
            path = sanitized(error.filename or directory)
            hint = "name another out="
            raise ConfigError(f"{path} cannot be written: {error.strerror}", hint) from None


def claim_sweep(path: Path, is_dated: bool) -> DirectoryLock:
    """Create the directory of a sweep, or of one that continues, and lock it.

    is_dated: the path is named by the time. Then the directory is new: if another sweep has it, a
    number is added.
    Raises ConfigError for the directory of a run, one that is in use, or cannot be written.
    """
    numbered = (path.with_name(f"{path.name}_{number}") for number in itertools.count(1))
    hint = "name another out="
    for directory in itertools.chain([path], numbered if is_dated else ()):
        if os.path.lexists(directory / "run.json"):
            raise ConfigError(f"{sanitized(directory)} already holds a run", hint)
        try:
            storage.make_directory(directory, is_new=is_dated)
            return lock_directory(directory)
        except FileExistsError:
            continue
        except OSError as error:
            reason = f"{sanitized(error.filename or directory)} cannot be written"
            raise ConfigError(f"{reason}: {error.strerror}", hint) from None
    raise ConfigError(f"{sanitized(path)} is not a directory", hint)


def _claim(directory: Path) -> DirectoryLock:
    if directory.is_dir():
        storage.check_plain(directory)
    if not (directory / LOCK).exists():  # nothing is created where there is no place for a run
        check_new_run(directory)
    storage.make_directory(directory)
    lock = lock_directory(directory)
    try:
        check_new_run(directory)
    except BaseException:
        lock.release()
        raise
    return lock


def check_new_run(directory: Path) -> None:
    """Raises ConfigError unless every file that a new run writes is new, and for a directory inside
    a run or around other runs: commands would find only the outer one. A run that ended before its
    first checkpoint may be started again, also if an evaluation has selected its weights."""
    shown = sanitized(directory)
    info = read_info(directory)
    is_unfinished = info.status in ("running", "interrupted", "failed")
    saved = {path.name for path in (directory / "checkpoints").glob("*.safetensors")}
    if saved - ({BEST} if is_unfinished else set()):
        hint = f"name another out=, or resume it: rlgames resume {directory}"
        raise ConfigError(f"{shown} already holds a run", hint)
    hint = "name another out="
    if any(next(directory.glob(f"{each}/checkpoints"), None) for each in ("*", "*/*")):
        raise ConfigError(f"{shown} holds other runs", hint)
    for parent in directory.absolute().parents:
        is_trial = directory.absolute().relative_to(parent).parts[0] == TRIALS
        if not is_trial and (parent / "run.json").exists() and (parent / "checkpoints").is_dir():
            raise ConfigError(f"{shown} is inside the run {sanitized(parent)}", hint)
    if is_unfinished:
        return
    for name in (*NEW_FILES, *FOLDERS):
        path = directory / name
        is_empty_folder = name in FOLDERS and path.is_dir() and not any(path.iterdir())
        if os.path.lexists(path) and not is_empty_folder:
            raise ConfigError(f"{sanitized(path)} exists, and a run would overwrite it", hint)


class DirectoryLock:
    """The lock of a run or a study, which the system releases when its owner dies."""

    def __init__(self, directory: Path, file: BinaryIO) -> None:
        self.directory, self._file = directory, file

    def release(self) -> None:
        """Let others lock the directory; does nothing the second time."""
        if not self._file.closed:
            unlock(self._file.fileno())  # closing is not enough while a fork of it is alive
            self._file.close()

    __del__ = release


def lock_directory(directory: Path) -> DirectoryLock:
    """Lock a run or a study. Says so if the file system has no locks.

    Raises ConfigError if another process holds the lock and as storage.check_plain, and OSError.
    """
    storage.check_plain(directory)
    with contextlib.ExitStack() as stack, storage.errors_name(directory / LOCK):
        file = stack.enter_context(storage.open_to_append(directory, LOCK))
        for seconds in LOCK_WAITS:
            if _lock_or_warn(file, directory):
                break
            time.sleep(seconds)
        else:
            raise ConfigError(
                f"another process is running in {directory}",
                "wait until it ends, or name another directory",
            )
        for path in (path for pattern in LEFTOVERS for path in directory.glob(pattern)):
            storage.remove_file(directory, path.relative_to(directory).as_posix())
        stack.pop_all()
        return DirectoryLock(directory, file)


def _lock_or_warn(file: BinaryIO, directory: Path) -> bool:
    """Whether the directory is locked now, or would be if its file system had locks."""
    try:
        return lock(file.fileno())
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        line = f"rlgames: {directory} is not locked ({error.strerror}); start nothing else in it"
        print(printable(line), file=sys.stderr)
        return True


def has_owner(directory: Path) -> bool:
    """Whether a process may hold the lock of a directory: not if the lock is there to be taken."""
    try:
        with storage.open_to_lock(directory, LOCK) as file:
            for seconds in LOOK_WAITS:
                if lock(file.fileno()):
                    unlock(file.fileno())
                    return False
                time.sleep(seconds)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True
