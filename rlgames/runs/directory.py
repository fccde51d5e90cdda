"""A run's directory: made once, locked by its process, written atomically."""

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
"""What is written in place in a run's directory, or read from it."""


def make_run_directory(parent: Path) -> Path:
    """Make a new directory named by date, time and a counter; two runs never get the same one."""
    stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H%M%S")
    for counter in range(10_000):
        path = parent / f"{stamp}_{counter}"
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{parent} has 10 000 runs of this second")


def check_plain(directory: Path) -> None:
    """Raises ConfigError where a run's own file is a link, a pipe or a device: what is written
    into it would come out elsewhere, and what is read might never end."""
    paths = [directory / name for name in RUN_FILES]
    paths += [inner for path in paths if path.is_dir() for inner in path.iterdir()]
    for path in paths:
        if path.is_symlink() or (path.exists() and not (path.is_file() or path.is_dir())):
            raise ConfigError(
                f"{sanitized(path)} is a link or no plain file",
                "take it out of the run's directory",
            )


def write_atomically(path: Path, text: str) -> None:
    """Write beside path, then rename: whoever reads it finds the old or the new, whole."""
    aside = path.with_name(path.name + ".tmp")
    aside.unlink(missing_ok=True)
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, path)


def lock_directory(directory: Path, seconds: float = 0) -> filelock.BaseFileLock:
    """The lock of a run or a sweep, which the system takes back when its owner dies.

    seconds: how long to wait for it.
    Raises ConfigError where another process has it, and for a directory with links in it.
    """
    check_plain(directory)
    lock = filelock.FileLock(directory / "lock")
    try:
        lock.acquire(timeout=seconds)
    except filelock.Timeout:
        owner = read_run(directory).get("pid")
        owner = owner if isinstance(owner, int) else None
        raise ConfigError(
            f"another process{f' ({owner})' if owner else ''} is running in {directory}",
            "wait for its end, or name another directory",
        ) from None
    return lock
