"""Logs to Weights & Biases."""

from __future__ import annotations

import io
import secrets
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlgames.runs.loggers.logger import TABLE_COLUMNS, Logger, RunResults, RunStart

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

    def start(self, run: RunStart) -> None:
        import wandb

        # Without a key, wandb would ask for one where the live view is.
        settings = wandb.Settings(
            silent=True,
            console="off",
            init_timeout=LOGIN_SECONDS,
            login_timeout=LOGIN_SECONDS,
            finish_timeout=FINISH_SECONDS,
        )
        self.run_id = run.run_id or secrets.token_hex(4)
        self._run = wandb.init(
            project=self._project,
            id=self.run_id,
            name=run.label,
            group=run.sweep,
            tags=run.tags,
            dir=str(run.directory),
            mode=self._mode,
            resume="allow",
            config=run.config,
            settings=settings,
        )
        # By games instead of wandb's own steps, which a resumed run could not repeat.
        self._run.define_metric("games")
        self._run.define_metric("*", step_metric="games")

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        self._run.log({"games": games, **metrics})

    def histogram(self, games: int, name: str, values: NDArray[np.float64]) -> None:
        import wandb

        self._run.log({"games": games, name: wandb.Histogram(values.tolist())})

    def image(self, games: int, name: str, encoded: bytes) -> None:
        import wandb
        from PIL import Image

        is_gif = encoded.startswith(b"GIF")
        file = io.BytesIO(encoded)
        picture = wandb.Video(file, format="gif") if is_gif else wandb.Image(Image.open(fp=file))
        self._run.log({"games": games, name: picture})

    def results(self, games: int, results: RunResults) -> None:
        import wandb

        rows = [list(row) for row in results.table]
        self._run.log({"games": games, "results": wandb.Table([*TABLE_COLUMNS], data=rows)})
        self._run.summary.update({f"result/{name}": value for name, value in results.best.items()})

    def artifact(self, path: Path) -> None:
        import wandb

        if self._logs_checkpoint:
            artifact = wandb.Artifact(f"checkpoint-{self.run_id}", type="model")
            artifact.add_file(str(path), name=path.name)
            self._run.log_artifact(artifact, aliases=["best"])

    def close(self, status: str) -> None:
        if self._run is not None:
            self._run.summary["status"] = status
            self._run.finish(exit_code=1 if status == "failed" else 0)

    def abandon(self) -> None:
        self._run = None
