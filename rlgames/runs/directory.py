"""The directory of a run: created once, locked by its process, written atomically."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import filelock

from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import sanitized
from rlgames.runs.files import read_run

RUN_FILES = (
    *("lock", "config.yaml", "run.json", "metrics.jsonl", "train.log"),
    *("checkpoints", "pictures"),
)
"""Files and folders of a run that are written in place or read."""

MAX_RUNS_PER_SECOND = 10_000


def make_run_directory(parent: Path) -> Path:
    """Create a directory named by date, time and a counter; no two runs get the same one."""
    stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H%M%S")
    for counter in range(MAX_RUNS_PER_SECOND):
        path = parent / f"{stamp}_{counter}"
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{parent} has {MAX_RUNS_PER_SECOND:,} runs of this second")


def check_regular_files(directory: Path) -> None:
    """Raises ConfigError if a run's file is a link, a pipe or a device: writing would change
    something else, and reading might never end."""
    paths = [directory / name for name in RUN_FILES]
    paths += [inner for path in paths if path.is_dir() for inner in path.iterdir()]
    for path in paths:
        if path.is_symlink() or (path.exists() and not (path.is_file() or path.is_dir())):
            raise ConfigError(
                f"{sanitized(path)} is a link or no plain file",
                "remove it from the run's directory",
            )


def write_atomically(path: Path, text: str) -> None:
    """Write a temporary file and rename it: path always holds the whole old or new text."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def lock_directory(directory: Path, seconds: float = 0) -> filelock.BaseFileLock:
    """Lock a run or a sweep; the system releases the lock when its owner dies.

    seconds: how long to wait for another owner.
    Raises ConfigError if another process holds the lock, and for a directory with links in it.
    """
    check_regular_files(directory)
    lock = filelock.FileLock(directory / "lock")
    try:
        lock.acquire(timeout=seconds)
    except filelock.Timeout:
        owner = read_run(directory).get("pid")
        owner = owner if isinstance(owner, int) else None
        raise ConfigError(
            f"another process{f' ({owner})' if owner else ''} is running in {directory}",
            "wait until it ends, or name another directory",
        ) from None
    return lock
