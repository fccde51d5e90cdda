"""The files of TensorBoard's events in the directory of a run."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from rlgames.runs import storage

PREFIX, SUFFIX = "events.out.tfevents.", ".rlgames"
"""How TensorBoard knows event files, and how a run knows its own; the creation time, in seconds,
and the host are between them."""


def event_files_size(directory: Path) -> int:
    """The size of all event files of a run. Raises OSError."""
    return sum(path.stat().st_size for path in _event_files(directory))


def cut_events(directory: Path, num_bytes: int) -> None:
    """Remove everything but the first bytes of a run's event files. Raises OSError."""
    for path in _event_files(directory):
        size = path.stat().st_size
        if num_bytes <= 0:
            storage.remove_file(directory, path.name)
        elif num_bytes < size:
            storage.cut_file(directory, path.name, num_bytes)
        num_bytes -= size


def _event_files(directory: Path) -> list[Path]:
    """The event files of a run, in the order in which TensorBoard reads them."""
    return sorted(directory.glob(f"{PREFIX}*{SUFFIX}"))


def next_name(directory: Path) -> str:
    """A name that sorts after all event files in a directory, also if the clock went back.

    TensorBoard reads the files of a run in the order of their names.
    """
    fields = [path.name.split(".")[3] for path in directory.glob(f"{PREFIX}*")]
    last = max((int(field) for field in fields if field.isdecimal()), default=0)
    seconds = max(int(time.time()), last + 1)
    return f"{PREFIX}{seconds:010d}.{socket.gethostname()}{SUFFIX}"
