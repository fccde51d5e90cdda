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

_file_counter = itertools.count()


class EventFile:
    """One event file in a run's directory. All methods raise OSError.

    first_games: TensorBoard forgets events of earlier files from this many games on.
    """

    def __init__(self, directory: Path, first_games: int) -> None:
        _wait_for_a_later_name(directory)
        name = f"{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_file_counter)}"
        self._file = open(directory / f"events.out.tfevents.{name}", "xb")  # noqa: SIM115
        self._records = RecordWriter(self._file)
        self._write(Event(file_version="brain.Event:2"))
        start = SessionLog(status=SessionLog.START)
        self._write(Event(step=first_games, session_log=start))
        self.flush()

    def add(self, summary: Any, games: int | None = None) -> None:
        """Write a summary, as of this many games."""
        self._write(Event(summary=summary, step=games))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def abandon(self) -> None:
        """Close after an error, whether or not the rest can be written."""
        with contextlib.suppress(OSError):
            self._file.close()

    def _write(self, event: Any) -> None:
        event.wall_time = time.time()
        self._records.write(event.SerializeToString())


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
