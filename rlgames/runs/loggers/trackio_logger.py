"""Logs to trackio."""

from __future__ import annotations

import contextlib
import io
import re
import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgames.runs.loggers.logger import TABLE_COLUMNS, Logger, RunResults, RunStart, TrackedRun

MAX_LABEL_LENGTH = 48


class TrackioLogger(Logger):
    """A run in trackio's folder (TRACKIO_DIR), in the Space of TRACKIO_SPACE_ID or on the server of
    TRACKIO_SERVER_URL. A run is known by its name there, so the name ends in a random part."""

    def __init__(self, project: str) -> None:
        self._project = project
        self._run: Any = None

    def start(self, run: RunStart) -> None:
        import trackio

        label = re.sub("[^A-Za-z0-9_-]", "_", run.label)[:MAX_LABEL_LENGTH]
        self.tracked = run.earlier or TrackedRun(f"{label}-{secrets.token_hex(4)}")
        with contextlib.redirect_stdout(io.StringIO()):  # which the live view needs
            self._run = trackio.init(
                project=self._project,
                name=self.tracked.id,
                group=run.sweep,
                config=run.config | {"tags": run.tags},
                resume="allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        self._run.log(metrics, step=games)

    def histogram(self, games: int, name: str, values: NDArray[np.float64]) -> None:
        import trackio

        self._run.log({name: trackio.Histogram(values)}, step=games)

    def image(self, games: int, name: str, encoded: bytes) -> None:
        import trackio
        from PIL import Image

        if not encoded.startswith(b"GIF"):  # it has none that move, except videos by ffmpeg
            picture = trackio.Image(Image.open(fp=io.BytesIO(encoded)))
            self._run.log({name: picture}, step=games)

    def results(self, games: int, results: RunResults) -> None:
        import trackio

        rows = [list(row) for row in results.table]
        table = trackio.Table(columns=[*TABLE_COLUMNS], data=rows)
        best = {f"result/{name}": value for name, value in results.best.items()}
        self._run.log({"results": table, **best}, step=games)

    def close(self, status: str) -> None:
        if self._run is not None:
            import trackio

            with contextlib.redirect_stdout(io.StringIO()):
                trackio.finish()

    def abandon(self) -> None:
        self._run = None
