"""Logs to MLflow."""

from __future__ import annotations

import io
import logging
import os
import time
from pathlib import Path
from typing import Any

from rlgames.runs.files import flatten
from rlgames.runs.loggers.logger import TABLE_COLUMNS, Logger, RunResults, RunStart

MAX_PARAM_LENGTH = 6000
"""Of a value; MLflow refuses longer ones."""

MAX_PARAMS = 100
"""Parameters that a call of MLflow takes."""

MAX_RETRIES, TIMEOUT_SECONDS = 2, 15
"""For each call to a server, unless MLflow's variables say otherwise: its own defaults let a run
wait for many minutes."""

STATUSES = {"done": "FINISHED", "interrupted": "KILLED", "failed": "FAILED"}
"""MLflow's words for how a run ended."""


class MlflowLogger(Logger):
    """A run in MLflow's store: MLFLOW_TRACKING_URI or else MLflow's default, a database
    mlflow.db in the current folder.

    checkpoint: whether the best checkpoint of a run that is done is logged as an artifact.
    """

    def __init__(self, experiment: str, checkpoint: bool) -> None:
        self._experiment, self._logs_checkpoint = experiment, checkpoint
        self._client: Any = None

    def start(self, run: RunStart) -> None:
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", str(MAX_RETRIES))
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", str(TIMEOUT_SECONDS))
        from mlflow import MlflowClient

        logging.getLogger("mlflow").setLevel(logging.WARNING)
        self._client = MlflowClient()
        self.run_id = self._existing_run(run.run_id) or self._new_run(run)
        self._client.update_run(self.run_id, status="RUNNING")
        self._client.log_text(self.run_id, run.yaml, "config.yaml")

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        from mlflow.entities import Metric

        now = time.time_ns() // 1_000_000
        points = [Metric(name, float(value), now, games) for name, value in metrics.items()]
        self._client.log_batch(self.run_id, metrics=points)

    def image(self, games: int, name: str, encoded: bytes) -> None:
        """A PNG, indexed by games; of a GIF, which MLflow cannot index, the latest one."""
        from PIL import Image

        key, file = name.replace("/", "_"), io.BytesIO(encoded)
        if encoded.startswith(b"GIF"):
            self._client.log_stream(self.run_id, file, f"pictures/{key}.gif")
        else:
            self._client.log_image(self.run_id, Image.open(fp=file), key=key, step=games)

    def results(self, games: int, results: RunResults) -> None:
        self.scalars(games, {f"result/{name}": value for name, value in results.best.items()})
        columns = zip(*results.table, strict=True)
        table = dict(zip(TABLE_COLUMNS, map(list, columns), strict=True))
        self._client.log_table(self.run_id, table, "results.json")

    def artifact(self, path: Path) -> None:
        if self._logs_checkpoint:
            self._client.log_artifact(self.run_id, str(path), "checkpoints")

    def close(self, status: str) -> None:
        self._client.set_terminated(self.run_id, STATUSES[status])

    def _existing_run(self, run_id: str | None) -> str | None:
        """The id, if the store has this run."""
        from mlflow.exceptions import MlflowException

        try:
            return None if run_id is None else str(self._client.get_run(run_id).info.run_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None

    def _new_run(self, run: RunStart) -> str:
        """Create a run with its settings, which MLflow lets nobody change, in the experiment."""
        from mlflow.entities import Param

        experiment = self._client.get_experiment_by_name(self._experiment)
        if experiment is None:
            experiment_id = self._client.create_experiment(self._experiment)
        else:
            experiment_id = experiment.experiment_id
        tags = {"rlgames.tags": ", ".join(run.tags)}
        tags |= {} if run.sweep is None else {"rlgames.sweep": run.sweep}
        created = self._client.create_run(experiment_id, run_name=run.label, tags=tags)
        run_id = str(created.info.run_id)
        settings = flatten(run.config).items()
        params = [Param(name, str(value)[:MAX_PARAM_LENGTH]) for name, value in settings]
        for start in range(0, len(params), MAX_PARAMS):
            self._client.log_batch(run_id, params=params[start : start + MAX_PARAMS])
        return run_id
