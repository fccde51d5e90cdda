"""Deletes runs, and what finished runs keep only to be extended; never follows a link."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rlgames.core.errors import ConfigError
from rlgames.runs import storage
from rlgames.runs.directory import FILES, FOLDERS, LOCK, lock_directory
from rlgames.runs.event_file import PREFIX, SUFFIX
from rlgames.runs.files import LATEST, read_header
from rlgames.runs.hyperparameters import MANIFEST

WRITTEN = (*FILES, *FOLDERS, "evaluations", "wandb", "mlruns")
"""The files and folders that rlgames writes into the directory of a run, besides event files."""


def size_of(directory: Path) -> int:
    """The bytes of all files of a run; links count nothing."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_size
    return total


def delete_run(directory: Path) -> None:
    """Delete what rlgames wrote into the directory of a run, and the directory if nothing else is
    in it; with the last job of a sweep also the sweep.

    Raises ConfigError for a run or a sweep in progress and for links in them, and OSError.
    """
    above = [*directory.absolute().parents][:2]  # a run of a study lies in a folder of its row
    sweep = next((path for path in above if os.path.lexists(path / MANIFEST)), None)
    with _locked(*([] if sweep is None else [sweep]), directory):
        _remove(directory)
        if sweep is not None and directory.parent != sweep:
            storage.remove_empty_directory(directory.parent)
        if sweep is not None and not any(path.is_dir() for path in sweep.iterdir()):
            _remove(sweep)  # it was the last of its jobs


def _remove(directory: Path) -> None:
    """Remove a locked directory, with its lock last; somebody's own files stay."""
    for path in _written(directory):
        if path.is_dir():
            storage.remove_folder(directory, path.name)
        elif path.name != LOCK:
            storage.remove_file(directory, path.name)
    storage.remove_file(directory, LOCK)
    storage.remove_empty_directory(directory)


@contextmanager
def _locked(*directories: Path) -> Iterator[None]:
    """A block in which this process owns runs and sweeps. Raises ConfigError for one in use."""
    with contextlib.ExitStack() as stack:
        for directory in directories:
            stack.callback(lock_directory(directory).release)
        yield


def _written(directory: Path) -> Iterator[Path]:
    """What rlgames wrote into a run, run.json last: until it is gone the run can be named."""
    names = [name for name in WRITTEN if name != "run.json"]
    for path in (*(directory / name for name in names), *directory.glob(f"{PREFIX}*{SUFFIX}")):
        if os.path.lexists(path):
            yield path
    yield directory / "run.json"


def checkpoints_beyond(directory: Path, keep: Sequence[str]) -> list[Path]:
    """The checkpoints of a run besides those to keep: best, latest."""
    folder = directory / "checkpoints"
    paths = [path for path in sorted(folder.glob("*.safetensors")) if path.stem not in keep]
    return [path for path in paths if stat.S_ISREG(os.lstat(path).st_mode)]


def resume_state_bytes(directory: Path) -> int:
    """The bytes of the tensors that only a resume needs; 0 without any."""
    try:
        header, _ = read_header(directory, f"checkpoints/{LATEST}")
        sizes = [
            entry["data_offsets"][1] - entry["data_offsets"][0]
            for name, entry in header.items()
            if name.startswith("state/")
        ]
    except (ConfigError, LookupError, OSError, TypeError, ValueError):
        return 0  # no checkpoint of ours
    return sum(map(int, sizes))


def drop_resume_state(directory: Path) -> None:
    """Keep only the policy in the latest checkpoint of a run that is done.

    Raises ConfigError for a run in progress, BadCheckpoint, and OSError.
    """
    from rlgames.runs.checkpoint import drop_state  # which imports torch

    with _locked(directory):
        drop_state(directory / "checkpoints" / LATEST)


def remove_checkpoints(directory: Path, paths: Sequence[Path]) -> None:
    """Remove checkpoints of a run. Raises ConfigError for a run in progress, and OSError."""
    with _locked(directory):
        for path in paths:
            storage.remove_file(directory, f"checkpoints/{path.name}")
