"""Logs to CSV files: metrics.csv, a row per line of metrics.jsonl, and results.csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from rlgames.runs import storage
from rlgames.runs.files import MAX_METRICS_BYTES, read_metrics
from rlgames.runs.loggers.logger import TABLE_COLUMNS, Logger, RunResults, RunStart

METRICS, RESULTS = "metrics.csv", "results.csv"


class CsvLogger(Logger):
    """Tables for spreadsheets and data frames, in the run directory.

    A row of metrics.csv has `games` and a column for each metric, empty where it was not logged.
    When a metric appears for the first time, the file is written again with one more column.
    """

    def __init__(self) -> None:
        self._directory = Path()
        self._columns = ["games"]
        self._file: BinaryIO | None = None

    def start(self, run: RunStart) -> None:
        """The lines that earlier processes logged, up to the resume point, become rows again."""
        self._directory = run.directory
        path = run.directory / "metrics.jsonl"
        lines = read_metrics(path) if path.exists() else []
        self._rewrite(lines[: run.resume_point.num_lines])

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        if not {*metrics} <= {*self._columns}:
            self.sync()
            text = storage.read_file(self._directory, METRICS, MAX_METRICS_BYTES).decode()
            rows = csv.DictReader(io.StringIO(text, newline=""))
            self._rewrite(list(rows), metrics)
        assert self._file is not None
        with storage.errors_name(self._directory / METRICS):
            row = {"games": games, **metrics}
            self._file.write(_as_csv([[row.get(name, "") for name in self._columns]]))
            self._file.flush()

    def reference(self, games: int, name: str, value: float) -> None:
        """Nothing: references are in results.csv."""

    def results(self, games: int, results: RunResults) -> None:
        """results.csv: a row for each metric of the final evaluations."""
        rows = [["" if value is None else value for value in row] for row in results.table]
        storage.write_file(self._directory, RESULTS, _as_csv([TABLE_COLUMNS, *rows]))

    def sync(self) -> None:
        if self._file is not None:
            with storage.errors_name(self._directory / METRICS):
                storage.sync_file(self._file)

    def close(self, status: str) -> None:
        self.sync()
        self.abandon()

    def abandon(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _rewrite(self, rows: Sequence[Mapping[str, Any]], more: Iterable[str] = ()) -> None:
        """Write the file with these rows and further columns."""
        self.abandon()
        self._columns = [*dict.fromkeys(("games", *(name for row in rows for name in row), *more))]
        table: list[list[Any]] = [
            self._columns,
            *([row.get(name, "") for name in self._columns] for row in rows),
        ]
        storage.write_file(self._directory, METRICS, _as_csv(table))
        self._file = storage.open_to_append(self._directory, METRICS)


def _as_csv(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
