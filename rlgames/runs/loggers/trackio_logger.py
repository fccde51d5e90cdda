"""Logs to trackio, on this machine or wherever trackio's own variables say."""

from __future__ import annotations

import contextlib
import io
import re
import secrets
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgames.runs.files import flatten
from rlgames.runs.loggers.logger import TABLE_COLUMNS, Logger, RunResults, RunStart

MAX_NAME_LENGTH = 50


class TrackioLogger(Logger):
    """A run in trackio's database, which `trackio show` displays.

    checkpoint: whether the best checkpoint of a run that is done is logged as an artifact.
    """

    def __init__(self, project: str, checkpoint: bool) -> None:
        self._project, self._logs_checkpoint = project, checkpoint
        self._run: Any = None

    def start(self, run: RunStart) -> None:
        """trackio knows runs by their names, so a new one gets a name that no other has."""
        import trackio

        name = re.sub(r"[^\w-]", "_", run.directory.name, flags=re.ASCII)[:MAX_NAME_LENGTH]
        self.run_id = run.run_id or f"{name}-{secrets.token_hex(3)}"
        with contextlib.redirect_stdout(io.StringIO()):  # trackio explains its commands
            self._run = trackio.init(
                self._project,
                name=self.run_id,
                config=flatten(run.config),
                resume="allow",
                embed=False,
                auto_log_cpu=False,
            )

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        self._run.log(metrics, step=games)

    def histogram(self, games: int, name: str, values: NDArray[np.float64]) -> None:
        import trackio

        self._run.log({name: trackio.Histogram(values.tolist())}, step=games)

    def image(self, games: int, name: str, encoded: bytes) -> None:
        import trackio
        from PIL import Image

        if not encoded.startswith(b"GIF"):
            self._run.log({name: trackio.Image(Image.open(fp=io.BytesIO(encoded)))}, step=games)
            return
        with tempfile.NamedTemporaryFile(suffix=".gif") as file:
            file.write(encoded)
            file.flush()
            self._run.log({name: trackio.Video(file.name, format="gif")}, step=games)

    def results(self, games: int, results: RunResults) -> None:
        import trackio

        rows = [list(row) for row in results.table]
        self._run.log({"results": trackio.Table([*TABLE_COLUMNS], rows)}, step=games)
        self.scalars(games, {f"best/{name}": value for name, value in results.best.items()})

    def artifact(self, path: Path) -> None:
        if self._logs_checkpoint:
            self._run.log_artifact(path, f"checkpoint-{self.run_id}", "model", ["best"])

    def close(self, status: str) -> None:
        import trackio

        if self._run is not None:
            with contextlib.redirect_stdout(io.StringIO()):  # trackio tells of its progress
                trackio.finish()
