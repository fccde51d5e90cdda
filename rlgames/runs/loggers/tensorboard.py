"""Logs to TensorBoard."""

from __future__ import annotations

import contextlib
import operator
import time
from itertools import accumulate, repeat
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter
from torch.utils.tensorboard import summary as summaries

from rlgames.core.metrics import HEADLINES
from rlgames.runs import storage
from rlgames.runs.event_file import next_name
from rlgames.runs.loggers.logger import TABLE_COLUMNS, Logger, RunResults, RunStart

MAX_EXACT_INTEGER = 2**53
"""TensorBoard stores numbers as doubles."""

_POSITIVE_EDGES = list(accumulate(repeat(1.1, 773), operator.mul, initial=1e-12))
HISTOGRAM_EDGES = [*(-edge for edge in reversed(_POSITIVE_EDGES)), 0.0, *_POSITIVE_EDGES]
"""Those of TensorBoard's own writers: 1e-12 to 1e20, each 10% above the last."""


class TensorBoardLogger(Logger):
    """TensorBoard's event files in the run directory, one for each process of the run.

    torch.utils.tensorboard.SummaryWriter hands its events to a thread, whose errors appear late and
    as tracebacks, and which a signal in the wrong moment makes the program wait for forever.
    """

    def __init__(self) -> None:
        self._is_laid_out = False
        self._end_of_session: Any = None
        self._settings: dict[str, Any] = {}
        self._file: BinaryIO | None = None

    def start(self, run: RunStart) -> None:
        games, _, num_bytes, is_changed = run.resume_point
        self._path = run.directory / next_name(run.directory)
        self._file = storage.create_file(run.directory, self._path.name)
        self._records = RecordWriter(self._file)
        # From this step on, a TensorBoard that is open forgets events of earlier files, unless it
        # uses its fast loader, which forgets a tag's events when an earlier one follows.
        start = Event(step=games + 1, session_log=SessionLog(status=SessionLog.START))
        self._write(Event(file_version="brain.Event:2"), start)
        self._is_laid_out = bool(num_bytes)
        self._settings = {name: _exact(value) for name, value in run.settings.items()}
        if not num_bytes or is_changed:
            self.text(games, "config", run.yaml)
            _, begun, self._end_of_session = summaries.hparams(self._settings, {})
            self._add(None, [begun])  # settings by name, which TensorBoard lists for each run

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        self._add(games, [summaries.scalar(*item) for item in metrics.items()])

    def text(self, games: int, name: str, text: str) -> None:
        """Text, shown as it is and in a fixed width."""
        indented = "    " + text.replace("\n", "\n    ")
        self._add(games, [summaries.text(name, indented)])

    def histogram(self, games: int, name: str, values: NDArray[np.float64]) -> None:
        self._add(games, [summaries.histogram(name, values, HISTOGRAM_EDGES)])

    def image(self, games: int, name: str, encoded: bytes) -> None:
        """A PNG, or a GIF, which TensorBoard plays."""
        image = Summary.Image(encoded_image_string=encoded)
        self._add(games, [Summary(value=[Summary.Value(tag=name, image=image)])])

    def layout(self, metric: str, best_by: str) -> None:
        """A page with a chart of the game's metric and its references, and one of best_by; and what
        HParams lists. An earlier process of the run may have written them."""
        if self._is_laid_out:
            return
        charts = {metric: ["Multiline", [f"^eval/{metric}$", f"^reference/{metric}/"]]}
        if best_by != metric:
            charts[best_by] = ["Multiline", [f"^eval/{best_by}$"]]
        page = {"greedy play, random play and the optimum": charts}
        self._add(None, [summaries.custom_scalars(page), self._columns(metric, best_by)])

    def results(self, games: int, results: RunResults) -> None:
        """The metrics of the best checkpoint, for the list of runs, and all results as a table."""
        self.scalars(games, {f"result/{name}": value for name, value in results.best.items()})
        rows = [TABLE_COLUMNS, ("---", "---:", "---:"), *results.table]
        lines = ("| " + " | ".join(map(_cell, row)) + " |" for row in rows)
        self._add(games, [summaries.text("results", "\n".join(lines))])
        self._add(None, [self._end_of_session])

    def sync(self) -> None:
        if self._file is not None:
            with storage.errors_name(self._path):
                storage.sync_file(self._file)

    def close(self, status: str) -> None:
        self.sync()
        self.abandon()

    def abandon(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def _columns(self, metric: str, best_by: str) -> Any:
        """What HParams lists: the settings, and headline metrics only, this run's own first.

        TensorBoard takes the columns of all runs in a folder from one of them, so they have the
        metrics of every game.
        """
        names = dict.fromkeys((metric, best_by, *HEADLINES))
        tags = {f"{prefix}/{name}": 0.0 for name in names for prefix in ("result", "eval")}
        columns, *_ = summaries.hparams(self._settings, tags)
        return columns

    def _add(self, games: int | None, events: list[Any]) -> None:
        self._write(*(Event(summary=summary, step=games) for summary in events))

    def _write(self, *events: Event) -> None:
        """Write events and hand them to the system."""
        assert self._file is not None
        with storage.errors_name(self._path):
            for event in events:
                event.wall_time = time.time()
                self._records.write(event.SerializeToString())
            self._file.flush()


def _cell(value: str | float | None) -> str:
    """A value of a table in Markdown."""
    return "" if value is None else value if isinstance(value, str) else f"{value:.6g}"


def _exact(value: Any) -> bool | int | float | str:
    """A value as TensorBoard stores it, as text if it would lose digits."""
    if not isinstance(value, bool | int | float | str):
        return str(value)
    is_exact = not isinstance(value, int) or abs(value) < MAX_EXACT_INTEGER
    return value if is_exact else str(value)
