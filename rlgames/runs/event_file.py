"""TensorBoard's event file, written by the thread that logs.

torch.utils.tensorboard.SummaryWriter hands its events to a thread, whose errors appear late and as
tracebacks, and which a signal in the wrong moment makes the program wait for forever.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import time
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import (
    Event,
    SessionLog,
)
from tensorboard.summary.writer.record_writer import (
    RecordWriter,
)

from rlgames.runs import storage

NUM_HEADER_EVENTS = 2
"""Each file starts with its version and the start of a session."""

_file_counter = itertools.count()


class EventFile:
    """One event file in a run's directory. All methods raise OSError.

    first_games: TensorBoard forgets events of earlier files from this many games on.
    """

    def __init__(self, directory: Path, first_games: int) -> None:
        _wait_for_a_later_name(directory)
        name = f"{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_file_counter)}"
        self._path = directory / f"events.out.tfevents.{name}"
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


def count_events(directory: Path) -> int:
    """The events in the files of a directory, their headers not counted. Raises OSError."""
    return sum(len(_event_ends(path)) for path in _event_files(directory))


def cut_events(directory: Path, count: int) -> None:
    """Remove everything but the first events of a directory's files. Raises OSError."""
    for path in _event_files(directory):
        ends = _event_ends(path)[:count]
        count -= len(ends)
        if not ends:
            storage.remove_file(directory, path.name)
        elif ends[-1] < path.stat().st_size:  # the rest may be torn
            storage.cut_file(directory, path.name, ends[-1])


def remove_events(directory: Path, pid: int) -> None:
    """Remove the event files that a process of this number wrote. Raises OSError."""
    for path in _event_files(directory):
        if path.name.split(".")[-2] == str(pid):
            storage.remove_file(directory, path.name)


def _event_files(directory: Path) -> list[Path]:
    """The regular event files of a directory, in the order in which TensorBoard reads them."""
    paths = sorted(directory.glob("events.out.tfevents.*"))
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def _event_ends(path: Path) -> list[int]:
    """Where each whole event ends in a file, in bytes, except those of the file's header.

    A record is its length in 8 bytes, a checksum of that in 4, the event, and its checksum in 4.
    """
    ends, position, size = list[int](), 0, path.stat().st_size
    with storage.open_to_read(path.parent, path.name) as file:
        while len(length := file.read(8)) == 8:
            event_length = int.from_bytes(length, "little")
            position += 8 + 4 + event_length + 4
            if event_length == 0 or position > size:  # no event is empty
                break
            ends.append(position)
            file.seek(position)
    return ends[NUM_HEADER_EVENTS:]


def _wait_for_a_later_name(directory: Path) -> None:
    """Wait until no file of this second exists.

    TensorBoard reads the files of a run in the order of their names, and decides by it what to
    forget. A name starts with the second and the process number, so that two files of one second
    may be read in the wrong order. Wait for the next second and no longer, whatever the clock says.
    """
    seconds = [path.name.split(".")[3] for path in directory.glob("events.out.tfevents.*.*")]
    now = time.time()
    if f"{int(now):010d}" in seconds:
        time.sleep(1.0 - now % 1.0)
