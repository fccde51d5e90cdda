"""TensorBoard's event file, written by the thread that logs.

torch.utils.tensorboard.SummaryWriter hands its events to a thread, whose errors appear late and as
tracebacks, and which a signal in the wrong moment makes the program wait for forever.
"""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.summary.writer.record_writer import RecordWriter

from rlgames.runs import storage

PREFIX, SUFFIX = "events.out.tfevents.", ".rlgames"
"""How TensorBoard knows event files, and how a run knows its own; the creation time, in seconds,
and the host are between them."""


class EventFile:
    """One event file in a run's directory. All methods raise OSError.

    first_games: a TensorBoard that is open forgets events of earlier files from this many games on,
    unless it uses its fast loader, which forgets a tag's events when an earlier one follows.
    """

    def __init__(self, directory: Path, first_games: int) -> None:
        self._path = directory / _next_name(directory)
        self._file = storage.create_file(directory, self._path.name)
        self._records = RecordWriter(self._file)
        self._write(Event(file_version="brain.Event:2"))
        start = SessionLog(status=SessionLog.START)
        self._write(Event(step=first_games, session_log=start))
        self.flush()

    def add(self, summary: Any, games: int | None = None) -> None:
        """Write a summary, as of this many games."""
        self._write(Event(summary=summary, step=games))

    def flush(self) -> None:
        with storage.errors_name(self._path):
            self._file.flush()

    def sync(self) -> None:
        """Force the events to the disk."""
        with storage.errors_name(self._path):
            storage.sync_file(self._file)

    def close(self) -> None:
        self.sync()
        with storage.errors_name(self._path):
            self._file.close()

    def abandon(self) -> None:
        """Close after an error, whether or not the rest can be written."""
        with contextlib.suppress(OSError):
            self._file.close()

    def _write(self, event: Any) -> None:
        event.wall_time = time.time()
        with storage.errors_name(self._path):
            self._records.write(event.SerializeToString())


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
    """The regular event files of a run, in the order in which TensorBoard reads them."""
    paths = sorted(directory.glob(f"{PREFIX}*{SUFFIX}"))
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def _next_name(directory: Path) -> str:
    """A name that sorts after all event files in a directory, also if the clock went back.

    TensorBoard reads the files of a run in the order of their names.
    """
    fields = [path.name.split(".")[3] for path in directory.glob(f"{PREFIX}*")]
    last = max((int(field) for field in fields if field.isdecimal()), default=0)
    seconds = max(int(time.time()), last + 1)
    return f"{PREFIX}{seconds:010d}.{socket.gethostname()}{SUFFIX}"
