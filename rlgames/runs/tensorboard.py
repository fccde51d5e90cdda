"""TensorBoard's files, without which a run goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer import event_file_writer  # type: ignore[import-untyped]
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams

from rlgames.core.signals import Interrupts
from rlgames.runs.files import flatten


class TensorBoardLogger:
    """Writes until it cannot, says so once, and is silent from then on.

    first: what was written for so many games or more before is forgotten. complain: told why.
    interrupts: a signal must not tear a write, for its thread could wait for what never comes.
    """

    def __init__(
        self, directory: Path, first: int, complain: Callable[[str], None], interrupts: Interrupts
    ) -> None:
        self._complain, self._interrupts, self._figure = complain, interrupts, ""
        self._writer: SummaryWriter | None = None
        threading.excepthook = _but_for_charts(threading.excepthook)
        self._try(lambda: self._open(directory, first))

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            self._do("add_scalar", name, value, games)

    def text(self, games: int, name: str, text: str) -> None:
        """Text is shown as it is, in a fixed width."""
        self._do("add_text", name, "    " + text.replace("\n", "\n    "), games)

    def spread(self, games: int, name: str, values: NDArray[np.float64]) -> None:
        """How numbers are spread, as a histogram."""
        self._do("add_histogram", name, values, games)

    def picture(self, games: int, name: str, encoded: bytes) -> None:
        """A PNG, or a GIF, which plays among the images."""
        self._try(lambda: self._image(games, name, encoded))

    def settings(self, config: dict[str, Any]) -> None:
        """Hyper-parameters, beside which TensorBoard sets all scalars."""
        self._try(lambda: self._parameters(config))

    def layout(self, figure: str, best_by: str) -> None:
        """A page with one chart for each figure that a run is judged by, the references in it."""
        self._figure = figure
        own = {figure: ["Multiline", [f"^eval/{figure}$", f"^reference/{figure}/"]]}
        if best_by != figure:
            own |= {best_by: ["Multiline", [f"^eval/{best_by}$"]]}
        self._do("add_custom_scalars", {"greedy play, random play and the optimum": own})

    def reference(self, name: str, value: float, steps: tuple[int, ...]) -> None:
        """A flat line, drawn beside the figure that the page was laid out for."""
        for games in steps:
            self._do("add_scalar", f"reference/{self._figure}/{name}", value, games)

    def final(self, games: int, results: dict[str, float]) -> None:
        """The last figures, and that the run came to its end."""
        self.scalars(games, {f"final/{name}": value for name, value in results.items()})
        self._try(self._ended)

    def flush(self) -> None:
        self._do("flush")

    def close(self) -> None:
        self._do("close")

    def _open(self, directory: Path, first: int) -> None:
        _wait_for_a_later_name(directory)
        self._writer = SummaryWriter(str(directory), purge_step=first)

    def _parameters(self, config: dict[str, Any]) -> None:
        """TensorBoard finds the columns itself: all keys and figures that any run has."""
        values = {name: _simple(value) for name, value in flatten(config).items()}
        _, begun, self._end = hparams(values, {})
        self._add(begun)

    def _image(self, games: int, name: str, encoded: bytes) -> None:
        value = Summary.Value(tag=name, image=Summary.Image(encoded_image_string=encoded))
        self._add(Summary(value=[value]), games)

    def _ended(self) -> None:
        self._add(self._end)

    def _add(self, summary: Any, games: int | None = None) -> None:
        if self._writer is not None:
            self._writer._get_file_writer().add_summary(summary, games)

    def _do(self, name: str, *values: Any, **named: Any) -> None:
        if self._writer is not None:
            call = getattr(self._writer, name)
            self._try(lambda: call(*values, **named))

    def _try(self, write: Callable[[], None]) -> None:
        if self._interrupts.twice:  # a write may have been torn
            return
        try:
            with self._interrupts.shielded():
                write()
        except Exception as error:
            self._writer = None
            self._complain(f"TensorBoard's file cannot be written ({error}); the run goes on")


def _wait_for_a_later_name(directory: Path) -> None:
    """TensorBoard reads a run's files in order of name, and what is to be forgotten by that: the
    second in which a file was begun, then the number of its process. One begun in this second may
    come after the next, so wait for the next second, and no longer, whatever the clock says."""
    begun = [path.name.split(".")[3] for path in directory.glob("events.out.tfevents.*.*")]
    now = time.time()
    if f"{int(now):010d}" in begun:
        time.sleep(1.0 - now % 1.0)


def _but_for_charts(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What a thread could not write is told by whoever wrote next, not by a traceback as well."""

    def quiet(told: Any) -> None:
        if not isinstance(told.thread, event_file_writer._AsyncWriterThread):
            hook(told)

    return quiet


def _simple(value: Any) -> bool | int | float | str:
    """A value as TensorBoard takes it, text where it would lose anything."""
    simple = isinstance(value, bool | int | float | str)
    # TensorBoard keeps numbers as doubles; a larger seed would lose digits.
    exact = not isinstance(value, int) or abs(value) < 2**53
    return value if simple and exact else str(value)
