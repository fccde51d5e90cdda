"""Logs to Weights & Biases."""

from __future__ import annotations

import io
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgames.runs.loggers.logger import TABLE_COLUMNS, Logger, RunResults, RunStart, TrackedRun

LOGIN_SECONDS, FINISH_SECONDS = 30.0, 300.0
"""How long the start of a run waits for the server, and its end for the last uploads."""


class WandbLogger(Logger):
    """A run on a server of W&B or, offline, in the folder wandb of the run directory, which
    `wandb sync` uploads. The variables WANDB_API_KEY, WANDB_ENTITY and WANDB_BASE_URL apply.

    mode: "online", "offline" or None, which is WANDB_MODE or else online. checkpoint: whether the
    best checkpoint of a run that is done is logged as an artifact.
    """

    def __init__(self, project: str, mode: str | None, checkpoint: bool) -> None:
        self._project, self._mode, self._logs_checkpoint = project, mode, checkpoint
        self._run: Any = None
        self._games = self._step = 0

    def start(self, run: RunStart) -> None:
        import wandb

        # Without a key, wandb would ask for one where the live view is.
        settings = wandb.Settings(
            silent=True,
            symlink=False,  # links in the directory of a run are refused
            console="off",
            init_timeout=LOGIN_SECONDS,
            login_timeout=LOGIN_SECONDS,
            finish_timeout=FINISH_SECONDS,
        )
        self.tracked = run.earlier or TrackedRun(secrets.token_hex(4))
        self._run = wandb.init(
            project=self._project,
            id=self.tracked.id,
            name=run.label,
            group=run.sweep,
            tags=run.tags,
            dir=str(run.directory),
            mode=self._mode,
            resume="allow",
            config=run.config,
            settings=settings,
        )
        self._run.define_metric("games")
        self._run.define_metric("*", step_metric="games")
        self._games = self._step = run.resume_point.games

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        self._log(games, metrics)

    def histogram(self, games: int, name: str, values: NDArray[np.float64]) -> None:
        import wandb

        self._log(games, {name: wandb.Histogram(values.tolist())})

    def image(self, games: int, name: str, encoded: bytes) -> None:
        import wandb
        from PIL import Image

        is_gif = encoded.startswith(b"GIF")
        file = io.BytesIO(encoded)
        picture = wandb.Video(file, format="gif") if is_gif else wandb.Image(Image.open(fp=file))
        self._log(games, {name: picture})

    def results(self, games: int, results: RunResults) -> None:
        import wandb

        rows = [list(row) for row in results.table]
        self._log(games, {"results": wandb.Table([*TABLE_COLUMNS], data=rows)})
        self._run.summary.update({f"result/{name}": value for name, value in results.best.items()})

    def artifact(self, path: Path) -> None:
        import wandb

        if self._logs_checkpoint and self.tracked is not None:
            artifact = wandb.Artifact(f"checkpoint-{self.tracked.id}", type="model")
            artifact.add_file(str(path), name=path.name)
            self._run.log_artifact(artifact, aliases=["best"])

    def close(self, status: str) -> None:
        if self._run is not None:
            self._run.summary["status"] = status
            self._run.finish(exit_code=1 if status == "failed" else 0)

    def abandon(self) -> None:
        self._run = None

    def _log(self, games: int, values: Mapping[str, Any]) -> None:
        """Log values at the step of W&B that equals games, so that the pictures of an evaluation
        line up and a resumed run continues. W&B drops what is logged at an earlier step, so a
        reference line, which starts at 0 games, gets the next step."""
        if games != self._games:
            self._games, self._step = games, max(games, self._step + 1)
        self._run.log({"games": games, **values}, step=self._step)
