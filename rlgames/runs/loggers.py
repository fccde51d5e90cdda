"""Loggers: TensorBoard, Weights & Biases and MLflow get the config, metrics and results of a run,
TensorBoard also its pictures. Their packages are imported when a run starts."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from rlgames.config.registry import check_installed, load_option
from rlgames.core.metrics import HEADLINES
from rlgames.core.signals import Interrupts
from rlgames.core.untrusted import sanitized
from rlgames.runs import storage
from rlgames.runs.files import SWEEP_FILE, flatten

MAX_REASON_LENGTH = 300
"""Characters of a library's error that a warning repeats."""


@dataclass(frozen=True)
class RunStart:
    """What a logger is given when a process of a run starts.

    id: of the run, the same when it resumes. config: plain; yaml: the same as text. metric: of the
    game. games: played by earlier processes, None for a new run. warn: prints a line.
    """

    directory: Path
    id: str
    config: dict[str, Any]
    yaml: str
    metric: str
    games: int | None = None
    warn: Callable[[str], None] = print

    @property
    def sweep(self) -> str | None:
        """The name of the sweep that the run is a job of."""
        folder = self.directory.absolute().parent
        return folder.name if os.path.lexists(folder / SWEEP_FILE) else None

    @property
    def label(self) -> str:
        """A name for the run: its directory's, with the game if that is only a date."""
        game, name = self.config["game"]["name"], self.directory.name
        return name if self.sweep or not name[:4].isdecimal() else f"{game} {name}"


class Logger:
    """Where a run is logged. Each method may raise; the run then continues without the logger, and
    calls none again. A logger is made with the keys of its option; start is called first.
    """

    def start(self, run: RunStart) -> None:
        """Create or continue the run, and log its config."""

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        """Metrics by name after this many games. With each evaluation, reference/random and
        reference/optimal are what these reach in the metric of the game. When the run is done,
        result/NAME is a metric of the best checkpoint."""

    def picture(self, games: int, name: str, encoded: bytes) -> None:
        """A PNG or a GIF."""

    def close(self, status: str) -> None:
        """The run ends: "done", "interrupted" or "failed"."""


class Loggers:
    """The loggers of a run, by what a warning calls them. One that fails is reported once, by warn,
    and dropped.

    interrupts: a second Ctrl-C may have torn a record; nothing is logged after it.
    """

    def __init__(
        self, loggers: Mapping[str, Logger], warn: Callable[[str], None], interrupts: Interrupts
    ) -> None:
        self._loggers, self._warn, self._interrupts = dict(loggers), warn, interrupts

    def call(self, method: str, *args: Any) -> None:
        """Call a method of each logger."""
        for name, logger in [*self._loggers.items()]:
            if self._interrupts.is_forced:
                return
            try:
                with self._interrupts.shielded():
                    getattr(logger, method)(*args)
            except Exception as error:
                del self._loggers[name]
                reason = sanitized(error, MAX_REASON_LENGTH) or type(error).__name__
                self._warn(f"{name} failed ({reason}); the run continues without it")

    def close(self, status: str) -> None:
        self.call("close", status)
        self._loggers.clear()


def build_loggers(config: Mapping[str, Any]) -> dict[str, Logger]:
    """The loggers that a training's plain config names, and the pictures in its directory. Raises
    ConfigError for one whose package is not installed."""
    loggers: dict[str, Logger] = {"pictures": PictureFiles()}
    for name, node in config["logger"].items():
        check_installed("logger", name)
        keys = {key: value for key, value in node.items() if key != "name"}
        loggers[f"logger={name}"] = load_option("logger", name)(**keys)
    return loggers


class PictureFiles(Logger):
    """The latest pictures, in the folder pictures of the run directory."""

    def start(self, run: RunStart) -> None:
        self._directory = run.directory

    def picture(self, games: int, name: str, encoded: bytes) -> None:
        suffix = "gif" if encoded.startswith(b"GIF") else "png"
        storage.make_directory(self._directory / "pictures")
        storage.write_file(self._directory, f"pictures/{name.replace('/', '_')}.{suffix}", encoded)


# ---------------------------------------------------------------- TensorBoard

EVENT_FILES = "events.out.tfevents."
"""How TensorBoard knows event files; the creation time, in seconds, and the host come next."""


class TensorBoardLogger(Logger):
    """TensorBoard's event files in the run directory, one for each process of the run.

    torch.utils.tensorboard.SummaryWriter hands its events to a thread, whose errors appear late and
    as tracebacks, and which a signal in the wrong moment makes the program wait for forever.
    """

    _file: BinaryIO

    def start(self, run: RunStart) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.record_writer import RecordWriter
        from torch.utils.tensorboard.summary import custom_scalars, hparams, text

        names = [path.name.split(".")[3] for path in run.directory.glob(f"{EVENT_FILES}*")]
        last = max((int(name) for name in names if name.isdecimal()), default=0)
        seconds = max(int(time.time()), last + 1)  # sorts last, also if the clock went back
        self._path = run.directory / f"{EVENT_FILES}{seconds:010d}.{socket.gethostname()}.rlgames"
        self._file = storage.open_to_append(run.directory, self._path.name)
        self._records = RecordWriter(self._file)
        self._write(Event(file_version="brain.Event:2"))
        # TensorBoard forgets what an earlier process logged from this step on.
        first = 0 if run.games is None else run.games + 1
        self._write(Event(session_log=SessionLog(status=SessionLog.START), step=first))
        indented = "    " + run.yaml.replace("\n", "\n    ")  # shown as it is
        self._write(Event(summary=text("config", indented), step=run.games or 0))
        if run.games is not None:
            return
        chart = ["Multiline", [f"^eval/{run.metric}$", "^reference/"]]
        layout = {"between random play and the optimum": {run.metric: chart}}
        settings = {
            name: value if isinstance(value, bool | int | float | str) else str(value)
            for name, value in flatten(run.config).items()
        }
        # HParams takes its columns from one of the runs in a folder, which may be of any game.
        columns = {f"result/{name}": 0.0 for name in HEADLINES}
        for summary in (custom_scalars(layout), *hparams(settings, columns)):
            self._write(Event(summary=summary))

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from torch.utils.tensorboard.summary import scalar

        for name, value in metrics.items():
            self._write(Event(summary=scalar(name, value), step=games))

    def picture(self, games: int, name: str, encoded: bytes) -> None:
        """A PNG, or a GIF, which TensorBoard plays."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        image = Summary.Image(encoded_image_string=encoded)
        summary = Summary(value=[Summary.Value(tag=name, image=image)])
        self._write(Event(summary=summary, step=games))

    def close(self, status: str) -> None:
        self._file.close()

    def _write(self, event: Any) -> None:
        """Write an event and hand it to the system."""
        event.wall_time = time.time()
        with storage.errors_name(self._path):
            self._records.write(event.SerializeToString())
            self._file.flush()


# ---------------------------------------------------------------- Weights & Biases

LOGIN_SECONDS, FINISH_SECONDS = 30.0, 300.0
"""How long the start of a run waits for the server, and its end for the last uploads."""


class WandbLogger(Logger):
    """A run on a server of W&B or, offline, in the folder wandb of the run directory, which
    `wandb sync` uploads. The variables WANDB_API_KEY, WANDB_ENTITY and WANDB_BASE_URL apply.
    """

    _run: Any

    def __init__(self, project: str, mode: str | None) -> None:
        self._project, self._mode = project, mode

    def start(self, run: RunStart) -> None:
        import wandb

        # Without a key, wandb would ask for one where the live view is.
        settings = wandb.Settings(
            silent=True,
            symlink=False,
            console="off",
            init_timeout=LOGIN_SECONDS,
            login_timeout=LOGIN_SECONDS,
            finish_timeout=FINISH_SECONDS,
        )
        self._run = wandb.init(
            project=self._project,
            id=run.id,
            name=run.label,
            group=run.sweep,
            dir=str(run.directory),
            mode=self._mode,
            resume="allow",
            config=run.config,
            settings=settings,
        )
        for path in (run.directory / "wandb").rglob("*"):
            if path.is_symlink():  # W&B's program makes one; a run with links is not read
                storage.remove_file(path.parent, path.name)

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        """At the step of W&B that equals games: a resumed run continues its steps."""
        self._run.log({"games": games, **metrics}, step=games)

    def close(self, status: str) -> None:
        self._run.summary["status"] = status
        self._run.finish(exit_code=1 if status == "failed" else 0)


# ---------------------------------------------------------------- MLflow

MAX_PARAM_LENGTH, MAX_PARAMS = 6000, 100
"""Of the characters of a value and of the parameters in one call; MLflow refuses more."""

MAX_RETRIES, TIMEOUT_SECONDS = 2, 15
"""For each call to a server, unless MLflow's variables say otherwise: its own defaults let a run
wait for many minutes."""

MLFLOW_ID = "rlgames.id"
"""The tag that finds a resumed run."""

MLFLOW_STATUSES = {"done": "FINISHED", "interrupted": "KILLED", "failed": "FAILED"}


class MlflowLogger(Logger):
    """A run in MLflow's store: MLFLOW_TRACKING_URI or else MLflow's default, a database
    mlflow.db in the current folder."""

    _client: Any
    _run_id: str

    def __init__(self, experiment: str) -> None:
        self._experiment = experiment

    def start(self, run: RunStart) -> None:
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", str(MAX_RETRIES))
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", str(TIMEOUT_SECONDS))
        import mlflow
        from mlflow.entities import Param
        from mlflow.tracking.context import registry

        logging.getLogger("mlflow").setLevel(logging.WARNING)
        client = self._client = mlflow.MlflowClient()
        known = client.get_experiment_by_name(self._experiment)
        experiment = known.experiment_id if known else client.create_experiment(self._experiment)
        earlier = client.search_runs([experiment], f"tags.`{MLFLOW_ID}` = '{run.id}'")
        tags = registry.resolve_tags()  # the user and the source
        tags |= {MLFLOW_ID: run.id} | ({"rlgames.sweep": run.sweep} if run.sweep else {})
        created = earlier[:1] or [client.create_run(experiment, run_name=run.label, tags=tags)]
        self._run_id = created[0].info.run_id
        client.update_run(self._run_id, status="RUNNING")
        client.log_text(self._run_id, run.yaml, "config.yaml")
        if not earlier:
            settings = flatten(run.config).items()
            params = [Param(name, str(value)[:MAX_PARAM_LENGTH]) for name, value in settings]
            for start in range(0, len(params), MAX_PARAMS):  # nobody can change them later
                client.log_batch(self._run_id, params=params[start : start + MAX_PARAMS])
            if run.games is not None:
                run.warn("logger=mlflow no longer has this run; a new one starts from here")

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        from mlflow.entities import Metric

        now = time.time_ns() // 1_000_000
        points = [Metric(name, float(value), now, games) for name, value in metrics.items()]
        self._client.log_batch(self._run_id, metrics=points)

    def close(self, status: str) -> None:
        self._client.set_terminated(self._run_id, MLFLOW_STATUSES[status])
