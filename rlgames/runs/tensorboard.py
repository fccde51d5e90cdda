"""Logs to TensorBoard. If its file cannot be written, the run continues without it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import accumulate, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensorboard.compat.proto.summary_pb2 import Summary
from torch.utils.tensorboard import summary as summaries

from rlgames.core.signals import Interrupts
from rlgames.runs.event_file import EventFile, count_events, cut_events

MAX_EXACT_INTEGER = 2**53
"""TensorBoard stores numbers as doubles."""

_POSITIVE_EDGES = list(accumulate(repeat(1.1, 773), operator.mul, initial=1e-12))
HISTOGRAM_EDGES = [*(-edge for edge in reversed(_POSITIVE_EDGES)), 0.0, *_POSITIVE_EDGES]
"""Those of TensorBoard's own writers: 1e-12 to 1e20, each 10 % above the last."""


class TensorBoardLogger:
    """Writes until an error, reports that once by warn, and does nothing from then on.

    interrupts: a second signal may have torn a record; nothing is written after it.
    kept_events: events of earlier processes that belong to the run; the others are removed. None:
        unknown; TensorBoard then forgets those from first_games on.
    num_events: those in all files of the run, where no error has ended writing.
    """

    def __init__(
        self,
        directory: Path,
        first_games: int,
        warn: Callable[[str], None],
        interrupts: Interrupts,
        kept_events: int | None = None,
    ) -> None:
        self._warn, self._interrupts = warn, interrupts
        self._directory, self.num_events = directory, kept_events or 0
        self._metric = ""
        self._end_of_session: Any = None
        self._file: EventFile | None = None

        def open_file() -> None:
            if kept_events is None:
                self.num_events = count_events(directory)
                self._file = EventFile(directory, first_games)
            else:
                cut_events(directory, kept_events)
                self._file = EventFile(directory, first_games + 1)

        self._guard(open_file)

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        self._add(games, lambda: [summaries.scalar(*item) for item in metrics.items()])

    def text(self, games: int, name: str, text: str) -> None:
        """Text, shown as it is and in a fixed width."""
        indented = "    " + text.replace("\n", "\n    ")
        self._add(games, lambda: [summaries.text(name, indented)])

    def histogram(self, games: int, name: str, values: NDArray[np.float64]) -> None:
        self._add(games, lambda: [summaries.histogram(name, values, HISTOGRAM_EDGES)])

    def image(self, games: int, name: str, encoded: bytes) -> None:
        """A PNG, or a GIF, which TensorBoard plays."""
        image = Summary.Image(encoded_image_string=encoded)
        self._add(games, lambda: [Summary(value=[Summary.Value(tag=name, image=image)])])

    def hyperparameters(self, settings: dict[str, Any]) -> None:
        """Settings by name, which TensorBoard lists beside all scalars of each run."""
        values = {name: _exact(value) for name, value in settings.items()}
        _, start, self._end_of_session = summaries.hparams(values, {})
        self._add(None, lambda: [start])

    def layout(self, metric: str, best_by: str, write: bool = True) -> None:
        """A page with a chart of the game's metric and its references, and one of best_by.

        write: False where an earlier process of the run has written it.
        """
        self._metric = metric
        if not write:
            return
        charts = {metric: ["Multiline", [f"^eval/{metric}$", f"^reference/{metric}/"]]}
        if best_by != metric:
            charts[best_by] = ["Multiline", [f"^eval/{best_by}$"]]
        page = {"greedy play, random play and the optimum": charts}
        self._add(None, lambda: [summaries.custom_scalars(page)])

    def reference(self, name: str, value: float, steps: tuple[int, ...]) -> None:
        """Points of a flat line in the chart of the metric that layout was called with."""
        for games in steps:
            self.scalars(games, {f"reference/{self._metric}/{name}": value})

    def results(self, games: int, best: dict[str, float]) -> None:
        """The metrics of the best checkpoint of a run that is done, for the list of runs."""
        self.scalars(games, {f"best/{name}": value for name, value in best.items()})
        self._add(None, lambda: [self._end_of_session])

    def sync(self) -> None:
        """Force the events to the disk."""
        if self._file is not None:
            self._guard(self._file.sync)

    def close(self) -> None:
        if self._file is not None:
            self._guard(self._file.close)
            self._file = None

    def _add(self, games: int | None, make_summaries: Callable[[], list[Any]]) -> None:
        """Write summaries and hand them to the system."""

        def write() -> None:
            assert self._file is not None
            for summary in make_summaries():
                self._file.add(summary, games)
                self.num_events += 1
            self._file.flush()

        if self._file is not None:
            self._guard(write)

    def _guard(self, write: Callable[[], None]) -> None:
        if self._interrupts.twice:
            return
        try:
            with self._interrupts.shielded():
                write()
        except Exception as error:
            if self._file is not None:
                self._file.abandon()
            self._file = None
            reason = f"in {self._directory}: {error}"
            self._warn(f"TensorBoard's file cannot be written ({reason}); the run goes on")


def _exact(value: Any) -> bool | int | float | str:
    """A value as TensorBoard stores it, as text if it would lose digits."""
    if not isinstance(value, bool | int | float | str):
        return str(value)
    is_exact = not isinstance(value, int) or abs(value) < MAX_EXACT_INTEGER
    return value if is_exact else str(value)
