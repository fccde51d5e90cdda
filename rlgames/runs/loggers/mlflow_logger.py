"""Logs to MLflow."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

from rlgames.runs.files import flatten
from rlgames.runs.loggers.logger import TABLE_COLUMNS, Logger, RunResults, RunStart, TrackedRun

MAX_PARAM_LENGTH = 6000
"""Of a value; MLflow refuses longer ones."""

MAX_PARAMS = 100
"""Parameters that a call of MLflow takes."""

SQLITE = "sqlite:///"
"""The start of the address of a local database; its path follows."""

MAX_RETRIES, TIMEOUT_SECONDS = 2, 15
"""For each call to a server, unless MLflow's variables say otherwise: its own defaults let a run
wait for many minutes."""

STATUSES = {"done": "FINISHED", "interrupted": "KILLED", "failed": "FAILED"}
"""MLflow's words for how a run ended."""


class MlflowLogger(Logger):
    """A run in MLflow's store: MLFLOW_TRACKING_URI or else MLflow's default, a database
    mlflow.db in the current folder. A resumed run stays in its local store, from any folder.

    checkpoint: whether the best checkpoint of a run that is done is logged as an artifact.
    """

    def __init__(self, experiment: str, checkpoint: bool) -> None:
        self._experiment, self._logs_checkpoint = experiment, checkpoint
        self._client: Any = None
        self._run_id = ""

    def start(self, run: RunStart) -> None:
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", str(MAX_RETRIES))
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", str(TIMEOUT_SECONDS))
        import mlflow

        logging.getLogger("mlflow").setLevel(logging.WARNING)
        address = kept_store(run) or str(mlflow.get_tracking_uri())
        self._client = mlflow.MlflowClient(address)
        self._run_id = self._existing_run(run) or self._new_run(run)
        store = os.path.relpath(address.removeprefix(SQLITE), run.directory)
        self.tracked = TrackedRun(self._run_id, store if address.startswith(SQLITE) else None)
        self._client.update_run(self._run_id, status="RUNNING")
        self._client.log_text(self._run_id, run.yaml, "config.yaml")
        self._log_changes(run)

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        from mlflow.entities import Metric

        now = time.time_ns() // 1_000_000
        points = [Metric(name, float(value), now, games) for name, value in metrics.items()]
        self._client.log_batch(self._run_id, metrics=points)

    def image(self, games: int, name: str, encoded: bytes) -> None:
        """A PNG, indexed by games; of a GIF, which MLflow cannot index, the latest one."""
        from PIL import Image

        key, file = name.replace("/", "_"), io.BytesIO(encoded)
        if encoded.startswith(b"GIF"):
            self._client.log_stream(self._run_id, file, f"pictures/{key}.gif")
        else:
            self._client.log_image(self._run_id, Image.open(fp=file), key=key, step=games)

    def results(self, games: int, results: RunResults) -> None:
        self.scalars(games, {f"result/{name}": value for name, value in results.best.items()})
        columns = zip(*results.table, strict=True)
        table = dict(zip(TABLE_COLUMNS, map(list, columns), strict=True))
        self._client.log_table(self._run_id, table, "results.json")

    def artifact(self, path: Path) -> None:
        if self._logs_checkpoint:
            self._client.log_artifact(self._run_id, str(path), "checkpoints")

    def close(self, status: str) -> None:
        self._client.set_terminated(self._run_id, STATUSES[status])

    def _existing_run(self, run: RunStart) -> str | None:
        """The id of an earlier process, if the store has this run."""
        from mlflow.exceptions import MlflowException

        try:
            found = run.earlier and self._client.get_run(run.earlier.id)
            return str(found.info.run_id) if found else None
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None

    def _new_run(self, run: RunStart) -> str:
        """Create a run with its settings, which MLflow lets nobody change, in the experiment."""
        from mlflow.entities import Param
        from mlflow.tracking.context import registry
        from mlflow.utils import mlflow_tags

        experiment = self._client.get_experiment_by_name(self._experiment)
        if experiment is None:
            experiment_id = self._client.create_experiment(self._experiment)
        else:
            experiment_id = experiment.experiment_id
        tags = registry.resolve_tags()  # the user and the source
        tags["rlgames.tags"] = ", ".join(run.tags)
        tags |= {} if run.sweep is None else {"rlgames.sweep": run.sweep}
        tags |= {} if run.commit is None else {mlflow_tags.MLFLOW_GIT_COMMIT: run.commit}
        created = self._client.create_run(experiment_id, run_name=run.label, tags=tags)
        run_id = str(created.info.run_id)
        params = [Param(name, value) for name, value in _params(run).items()]
        for start in range(0, len(params), MAX_PARAMS):
            self._client.log_batch(run_id, params=params[start : start + MAX_PARAMS])
        return run_id

    def _log_changes(self, run: RunStart) -> None:
        """Tags for the number of games and for what else a resume has changed; MLflow's parameters
        stay as the run started."""
        first, now = self._client.get_run(self._run_id).data.params, _params(run)
        for name, value in now.items():
            if name == "games" or value != first.get(name):
                self._client.set_tag(self._run_id, f"rlgames.{name}", value)


def _params(run: RunStart) -> dict[str, str]:
    """All settings as text."""
    return {k: str(value)[:MAX_PARAM_LENGTH] for k, value in flatten(run.config).items()}


def kept_store(run: RunStart) -> str | None:
    """The tracking URI of an earlier process's database, if it has the run. A stranger's run.json
    may name any file, so MLflow opens only what proves to be a store with this run."""
    if run.earlier is None or run.earlier.store is None:
        return None
    path = os.path.abspath(run.directory / run.earlier.store)
    with contextlib.suppress(sqlite3.Error, ValueError):
        if os.path.isfile(path):
            database = sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True)
            with contextlib.closing(database):
                query = "SELECT 1 FROM runs WHERE run_uuid = ?"
                if database.execute(query, [run.earlier.id]).fetchone():
                    return f"{SQLITE}{path}"
    return None
