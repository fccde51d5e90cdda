"""Loggers: TensorBoard, Weights & Biases and MLflow get the config, metrics, pictures and results
of a run. Their packages are imported when a run starts."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from rlgames.config.registry import check_installed, load_option
from rlgames.core.metrics import HEADLINES
from rlgames.core.signals import Interrupts
from rlgames.core.text import markdown_table
from rlgames.core.untrusted import sanitized
from rlgames.runs import storage
from rlgames.runs.files import SWEEP_FILE, flatten

TAGGED = ("game", "learner", "policy")
"""Groups whose options are tags of a run."""

MAX_REASON_LENGTH = 300
"""Characters of a library's error that a warning repeats."""

TABLE_COLUMNS = ("metric", "best checkpoint", "final network")

Table = list[tuple[str, float | None, float | None]]
"""Results: names with their values; None: not measured."""


class ResumePoint(NamedTuple):
    """Where a run resumes: games played, and lines of metrics.jsonl that belong to them.

    num_event_bytes: of TensorBoard's files that belong to them. is_changed: the run resumes with
    another config.
    """

    games: int
    num_lines: int
    num_event_bytes: int = 0
    is_changed: bool = False


@dataclass(frozen=True)
class RunStart:
    """What a logger is given when a process of a run starts.

    id: of the run, the same when it resumes. config: plain; yaml: the same as text. metric: of the
    game; best_by: the metric that selects the best checkpoint. resume_point: of 0 games for a new
    run. warn: prints a line.
    """

    directory: Path
    id: str
    config: dict[str, Any]
    yaml: str
    metric: str
    best_by: str
    resume_point: ResumePoint = ResumePoint(0, 0)
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

    @property
    def tags(self) -> list[str]:
        """The options that people look for."""
        return list(dict.fromkeys(self.config[group]["name"] for group in TAGGED))


class Logger:
    """Where a run is logged. Each method may raise; the run then continues without the logger.

    A logger is made with the keys of its option. start is called first, close or abandon last.
    """

    def start(self, run: RunStart) -> None:
        """Create or continue the run, and log its config."""

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        """Metrics by name after this many games; reference/METRIC/random is random play's."""

    def picture(self, games: int, name: str, encoded: bytes) -> None:
        """A PNG or a GIF."""

    def results(self, games: int, best: dict[str, float], table: Table, checkpoint: Path) -> None:
        """The metrics of the best checkpoint of a run that is done, all results, and this file."""

    def sync(self) -> None:
        """Force what was logged to the disk."""

    def close(self, status: str) -> None:
        """The run ends: "done", "interrupted" or "failed"."""

    def abandon(self) -> None:
        """Let go of everything at once, writing nothing more."""


class Loggers:
    """The loggers of a run. One that fails is reported once, by warn, and dropped.

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
                self._warn(f"logger={name} failed ({reason}); the run continues without it")
                logger.abandon()

    def close(self, status: str) -> None:
        self.call("close", status)
        self._loggers.clear()

    def abandon(self) -> None:
        """Let go of loggers that were not closed."""
        for logger in self._loggers.values():
            with contextlib.suppress(Exception):
                logger.abandon()


def build_loggers(config: Mapping[str, Any]) -> dict[str, Logger]:
    """The loggers that a training's plain config names. Raises ConfigError for one whose package is
    not installed."""
    loggers = {}
    for name, node in config["logger"].items():
        check_installed("logger", name)
        keys = {key: value for key, value in node.items() if key != "name"}
        loggers[name] = load_option("logger", name)(**keys)
    return loggers


# ---------------------------------------------------------------- TensorBoard

EVENT_FILES = ("events.out.tfevents.", ".rlgames")
"""How TensorBoard knows event files, and how a run knows its own; the creation time, in seconds,
and the host are between them."""


def event_files(directory: Path) -> list[Path]:
    """The event files of a run, in the order TensorBoard reads them."""
    return sorted(directory.glob("*".join(EVENT_FILES)))


class TensorBoardLogger(Logger):
    """TensorBoard's event files in the run directory, one for each process of the run.

    torch.utils.tensorboard.SummaryWriter hands its events to a thread, whose errors appear late and
    as tracebacks, and which a signal in the wrong moment makes the program wait for forever.
    """

    def __init__(self) -> None:
        self._settings: dict[str, Any] = {}
        self._file: BinaryIO | None = None

    def start(self, run: RunStart) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.summary.writer.record_writer import RecordWriter

        games, _, num_bytes, is_changed = run.resume_point
        self._cut(run.directory, num_bytes)
        prefix, suffix = EVENT_FILES
        fields = [path.name.split(".")[3] for path in run.directory.glob(f"{prefix}*")]
        last = max((int(field) for field in fields if field.isdecimal()), default=0)
        seconds = max(int(time.time()), last + 1)  # sorts last, also if the clock went back
        self._path = run.directory / f"{prefix}{seconds:010d}.{socket.gethostname()}{suffix}"
        storage.write_file(run.directory, self._path.name, b"")
        self._file = storage.open_to_append(run.directory, self._path.name)
        self._records = RecordWriter(self._file)
        self._write(Event(file_version="brain.Event:2"))
        self._settings = {
            name: value if isinstance(value, bool | int | float | str) else str(value)
            for name, value in flatten(run.config).items()
        }
        if not num_bytes or is_changed:
            indented = "    " + run.yaml.replace("\n", "\n    ")  # shown as it is
            self._add(games, "text", "config", indented)
            self._add_settings({}, 1)  # which TensorBoard lists for each run
        if not num_bytes:
            self._add_layout(run.metric, run.best_by)

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            self._add(games, "scalar", name, value)

    def picture(self, games: int, name: str, encoded: bytes) -> None:
        """A PNG, or a GIF, which TensorBoard plays."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        image = Summary.Image(encoded_image_string=encoded)
        summary = Summary(value=[Summary.Value(tag=name, image=image)])
        self._write(Event(summary=summary, step=games))

    def _add_layout(self, metric: str, best_by: str) -> None:
        """A page with a chart of the game's metric and its references, and one of best_by; and what
        HParams lists."""
        charts = {metric: ["Multiline", [f"^eval/{metric}$", f"^reference/{metric}/"]]}
        if best_by != metric:
            charts[best_by] = ["Multiline", [f"^eval/{best_by}$"]]
        self._add(None, "custom_scalars", {"greedy play, random play and the optimum": charts})
        # TensorBoard takes the columns of all runs in a folder from one of them, so they have the
        # metrics of every game.
        names = dict.fromkeys((metric, best_by, *HEADLINES))
        self._add_settings({f"{at}/{name}": 0.0 for name in names for at in ("result", "eval")}, 0)

    def results(self, games: int, best: dict[str, float], table: Table, checkpoint: Path) -> None:
        """The metrics of the best checkpoint, for the list of runs, and all results as a table."""
        self.scalars(games, {f"result/{name}": value for name, value in best.items()})
        rows = [
            [name, *("" if value is None else f"{value:.6g}" for value in values)]
            for name, *values in table
        ]
        self._add(games, "text", "results", markdown_table(TABLE_COLUMNS, rows))
        self._add_settings({}, 2)

    def sync(self) -> None:
        if self._file is not None:
            with storage.errors_name(self._path):
                storage.sync_file(self._file)

    def close(self, status: str) -> None:
        self.sync()
        self.abandon()

    def abandon(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    @staticmethod
    def _cut(directory: Path, num_bytes: int) -> None:
        """Remove everything but the first bytes of a run's event files: no step is shown twice."""
        for path in event_files(directory):
            size = path.stat().st_size
            if num_bytes <= 0:
                storage.remove_file(directory, path.name)
            elif num_bytes < size:
                storage.cut_file(directory, path.name, num_bytes)
            num_bytes -= size

    def _add_settings(self, metrics: dict[str, float], part: int) -> None:
        """What HParams needs: 0: the columns of settings and metrics; 1: the settings of this run;
        2: its end."""
        from tensorboard.compat.proto.event_pb2 import Event
        from torch.utils.tensorboard.summary import hparams

        self._write(Event(summary=hparams(self._settings, metrics)[part]))

    def _add(self, games: int | None, kind: str, *arguments: Any) -> None:
        """Write what PyTorch's function of this name makes of the arguments."""
        from tensorboard.compat.proto.event_pb2 import Event
        from torch.utils.tensorboard import summary

        self._write(Event(summary=getattr(summary, kind)(*arguments), step=games))

    def _write(self, event: Any) -> None:
        """Write an event and hand it to the system."""
        assert self._file is not None
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
            tags=run.tags,
            dir=str(run.directory),
            mode=self._mode,
            resume="allow",
            config=run.config,
            settings=settings,
        )
        for path in (run.directory / "wandb").rglob("*"):
            if path.is_symlink():  # W&B's program makes one; a run with links is not read
                storage.remove_file(path.parent, path.name)
        self._run.define_metric("games")
        self._run.define_metric("*", step_metric="games")
        self._games = self._step = run.resume_point.games

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        self._log(games, metrics)

    def picture(self, games: int, name: str, encoded: bytes) -> None:
        import wandb
        from PIL import Image

        is_gif, file = encoded.startswith(b"GIF"), io.BytesIO(encoded)
        picture = wandb.Video(file, format="gif") if is_gif else wandb.Image(Image.open(fp=file))
        self._log(games, {name: picture})

    def results(self, games: int, best: dict[str, float], table: Table, checkpoint: Path) -> None:
        import wandb

        rows = [list(row) for row in table]
        self._log(games, {"results": wandb.Table([*TABLE_COLUMNS], data=rows)})
        self._run.summary.update({f"result/{name}": value for name, value in best.items()})
        if self._logs_checkpoint:
            artifact = wandb.Artifact(f"checkpoint-{self._run.id}", type="model")
            artifact.add_file(str(checkpoint), name=checkpoint.name)
            self._run.log_artifact(artifact, aliases=["best"])

    def close(self, status: str) -> None:
        self._run.summary["status"] = status
        self._run.finish(exit_code=1 if status == "failed" else 0)

    def _log(self, games: int, values: Mapping[str, Any]) -> None:
        """Log values at the step of W&B that equals games, so that the pictures of an evaluation
        line up and a resumed run continues. W&B drops what is logged at an earlier step, so a
        reference line, which starts at 0 games, gets the next step."""
        if games != self._games:
            self._games, self._step = games, max(games, self._step + 1)
        self._run.log({"games": games, **values}, step=self._step)


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
    mlflow.db in the current folder.

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
        from mlflow.tracking.context import registry

        logging.getLogger("mlflow").setLevel(logging.WARNING)
        client = self._client = mlflow.MlflowClient()
        known = client.get_experiment_by_name(self._experiment)
        experiment = known.experiment_id if known else client.create_experiment(self._experiment)
        earlier = client.search_runs([experiment], f"tags.`{MLFLOW_ID}` = '{run.id}'")
        tags = registry.resolve_tags()  # the user and the source
        tags |= {MLFLOW_ID: run.id, "rlgames.tags": ", ".join(run.tags)}
        tags |= {} if run.sweep is None else {"rlgames.sweep": run.sweep}
        created = earlier[:1] or [client.create_run(experiment, run_name=run.label, tags=tags)]
        self._run_id = created[0].info.run_id
        client.update_run(self._run_id, status="RUNNING")
        client.log_text(self._run_id, run.yaml, "config.yaml")
        if not earlier:
            self._log_params(run.config)
            if run.resume_point.games:
                run.warn("logger=mlflow no longer has this run; a new one starts from here")

    def scalars(self, games: int, metrics: dict[str, float]) -> None:
        from mlflow.entities import Metric

        now = time.time_ns() // 1_000_000
        points = [Metric(name, float(value), now, games) for name, value in metrics.items()]
        self._client.log_batch(self._run_id, metrics=points)

    def picture(self, games: int, name: str, encoded: bytes) -> None:
        """A PNG, indexed by games; of a GIF, which MLflow cannot index, the latest one."""
        from PIL import Image

        key, file = name.replace("/", "_"), io.BytesIO(encoded)
        if encoded.startswith(b"GIF"):
            self._client.log_stream(self._run_id, file, f"pictures/{key}.gif")
        else:
            self._client.log_image(self._run_id, Image.open(fp=file), key=key, step=games)

    def results(self, games: int, best: dict[str, float], table: Table, checkpoint: Path) -> None:
        self.scalars(games, {f"result/{name}": value for name, value in best.items()})
        columns = dict(zip(TABLE_COLUMNS, map(list, zip(*table, strict=True)), strict=True))
        self._client.log_table(self._run_id, columns, "results.json")
        if self._logs_checkpoint:
            self._client.log_artifact(self._run_id, str(checkpoint), "checkpoints")

    def close(self, status: str) -> None:
        self._client.set_terminated(self._run_id, MLFLOW_STATUSES[status])

    def _log_params(self, config: dict[str, Any]) -> None:
        """All settings as text. Nobody can change them later."""
        from mlflow.entities import Param

        settings = flatten(config).items()
        params = [Param(name, str(value)[:MAX_PARAM_LENGTH]) for name, value in settings]
        for start in range(0, len(params), MAX_PARAMS):
            self._client.log_batch(self._run_id, params=params[start : start + MAX_PARAMS])
