"""Loggers: what they get, what a failure of one costs, and the real libraries."""

import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from importlib import util
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from helpers import SMALL_TRAINING, resume_run

import rlgames as package
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.typed import from_plain, to_plain
from rlgames.core.errors import ConfigError
from rlgames.core.signals import Interrupts
from rlgames.runs.files import read_metrics, read_run
from rlgames.runs.loggers import Logger, Loggers, RunStart

WORDS = [*SMALL_TRAINING, "log_every=10", "eval_every=10", "solve_seconds=0"]


def train(directory, *words):
    return package.train([*WORDS, *words, f"out={directory}"])


MLFLOW = {"name": "mlflow", "experiment": "rlgames"}


def loggers_of(*words):
    return to_plain(load_config(TrainConfig, list(words)))["logger"]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ([], ["tensorboard"]),
        (["experiment=connect4", "logger=[tensorboard,mlflow]"], ["tensorboard", "mlflow"]),
        (["logger=null"], []),
    ],
)
def test_one_logger_several_or_none_can_be_chosen(words, names):
    assert [*loggers_of(*words)] == names


def test_each_logger_has_its_own_keys():
    words = ["logger=[wandb,mlflow]", "logger.wandb.mode=offline", "logger.mlflow.experiment=mine"]
    chosen = loggers_of(*words)
    assert chosen["wandb"]["mode"] == "offline"
    assert chosen["mlflow"] == MLFLOW | {"experiment": "mine"}


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["logger=[mlflow,tensorbord]"], "did you mean tensorboard"),
        (["logger.wandb.project=mine"], "it is a key of logger=wandb"),
        (["logger=wandb", "logger.wandb.mode=of"], "logger.wandb.mode=of is not a choice"),
        (["learner=[ppo,dqn]"], "learner= takes one option"),
    ],
)
def test_a_wrong_logger_or_key_gets_the_nearest_name(words, hint):
    with pytest.raises(ConfigError) as error:
        load_config(TrainConfig, words)
    assert hint in f"{error.value.error}; {error.value.hint}"


@pytest.mark.parametrize("node", [["mlflow"], {"mlflow": {"name": "ttt"}}])
def test_a_checkpoint_that_names_no_proper_loggers_is_refused(node):
    config = to_plain(load_config(TrainConfig, [])) | {"logger": node}
    with pytest.raises(ConfigError, match="logger"):
        from_plain(config)


def test_a_missing_package_is_named_with_its_extra_before_anything_is_written(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("rlgames.core.errors.find_spec", lambda name: None)
    with pytest.raises(ConfigError) as error:
        train(tmp_path / "run", "logger=[tensorboard,mlflow]")
    assert error.value.error == "logger=mlflow needs mlflow"
    assert error.value.hint == "pip install 'rlgames-lab[mlflow]'"
    assert not (tmp_path / "run").exists()


class Recorder(Logger):
    """Writes down what it is given; fails in one method."""

    def __init__(self, failing=""):
        self.calls = []
        for name in CONTRACT:
            setattr(self, name, self._method(name, name == failing))

    def _method(self, name, fails):
        def call(*arguments):
            self.calls.append(name)
            if fails:
                raise RuntimeError("the server\nis gone")

        return call


CONTRACT = ("start", "scalars", "picture", "close")


def use_all(loggers, directory):
    loggers.call("start", RunStart(directory, "1", {}, "", "turns"))
    loggers.call("scalars", 10, {"train/loss": 1.0})
    loggers.call("picture", 10, "values", b"GIF")
    loggers.close("done")


@pytest.mark.parametrize("failing", CONTRACT)
def test_a_logger_that_fails_is_reported_once_and_costs_the_others_nothing(failing, tmp_path):
    bad, good = Recorder(failing), Recorder()
    warnings: list[str] = []
    with Interrupts() as interrupts:
        use_all(Loggers({"bad": bad, "good": good}, warnings.append, interrupts), tmp_path)
    assert good.calls == [*CONTRACT]
    assert bad.calls == [*CONTRACT[: CONTRACT.index(failing) + 1]]
    (warning,) = warnings
    assert warning.startswith("bad failed (the server")
    assert "\n" not in warning


def test_a_run_keeps_its_id_unless_it_is_not_one(tmp_path):
    run = train(tmp_path / "run", "logger=null")
    first = read_run(run)["id"]
    resume_run(run, "games=40")
    assert read_run(run)["id"] == first
    (run / "run.json").write_text(json.dumps(read_run(run) | {"id": "../../x"}))
    resume_run(run, "games=60")
    assert re.fullmatch("[0-9a-f]{8}", read_run(run)["id"])


def needs(package_name):
    missing = util.find_spec(package_name) is None
    return pytest.mark.skipif(missing, reason=f"{package_name} is not installed")


def interrupted(directory, *words):
    """The id of a run that was trained for a part of its games, and resumed twice."""
    train(directory, *words)
    resume_run(directory, "games=40")
    resume_run(directory, "games=60")
    return read_run(directory)["id"]


def wandb_records(file):
    """The records of a run of W&B that was logged offline: LevelDB's log format after 7 bytes."""
    from wandb.proto import wandb_internal_pb2

    data, position, record = file.read_bytes(), 7, b""
    while position + 7 <= len(data):
        left_in_block = 32768 - position % 32768
        if left_in_block < 7:
            position += left_in_block
            continue
        length, kind = (
            int.from_bytes(data[position + 4 : position + 6], "little"),
            data[position + 6],
        )
        record += data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield wandb_internal_pb2.Record.FromString(record)
            record = b""


@pytest.mark.slow
@needs("wandb")
def test_wandb_has_a_run_and_its_resumptions_offline(tmp_path):
    run, words = tmp_path / "run", ["logger=wandb", "logger.wandb.mode=offline"]
    run_id = interrupted(run, *words)
    files = sorted(run.glob(f"wandb/offline-run-*/run-{run_id}.wandb"))
    assert len(files) == 3
    losses: list[Any] = []
    steps: list[tuple[int, float]] = []
    config: dict[str, Any] = {}
    for record in (record for file in files for record in wandb_records(file)):
        if record.HasField("run"):
            assert record.run.run_id == run_id
            assert record.run.display_name == "run"
            config |= {u.key: json.loads(u.value_json) for u in record.run.config.update if u.key}
        items = {
            "/".join([item.key, *item.nested_key]).strip("/"): json.loads(item.value_json)
            for item in record.history.item
        }
        if items:
            steps.append((record.history.step.num, items["games"]))
        if "train/loss" in items:
            losses.append((items["games"], items["train/loss"]))
    lines = read_metrics(run / "metrics.jsonl")
    assert steps == sorted(steps), "a resumed run continues the steps"
    assert all(step == games for step, games in steps)
    assert losses == [(row["games"], row["train/loss"]) for row in lines if "train/loss" in row]
    assert config["lr"] == 0.002


def test_trackers_show_a_run_by_its_sweep_and_a_readable_name(tmp_path):
    options = {"game": {"name": "salvo"}, "learner": {"name": "ppo"}, "policy": {"name": "mlp"}}
    alone = RunStart(tmp_path / "salvo" / "2026-11-25_120000_0", "1", options, "", "turns")
    assert (alone.label, alone.sweep) == ("salvo 2026-11-25_120000_0", None)
    (tmp_path / "multirun.yaml").write_text("")
    job = RunStart(tmp_path / "lr=0.1", "1", options, "", "turns")
    assert (job.label, job.sweep) == ("lr=0.1", tmp_path.name)


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def fetched(url, seconds=90):
    """What a server answers, once it has started."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.read().decode()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


@pytest.mark.slow
@needs("mlflow")
def test_mlflow_has_a_run_and_its_resumptions_and_shows_them(tmp_path, monkeypatch):
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("USER", "ada")
    run, words = tmp_path / "run", ["logger=mlflow", "logger.mlflow.experiment=mine"]
    store = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    own_id = interrupted(run, *words)
    client = MlflowClient(store)
    (logged,) = client.search_runs([client.get_experiment_by_name("mine").experiment_id])
    run_id = logged.info.run_id
    assert logged.info.status == "FINISHED"
    assert (logged.data.params["learner"], logged.data.params["games"]) == ("ppo", "20")
    expected = {"mlflow.user": "ada", "mlflow.source.name": sys.argv[0], "rlgames.id": own_id}
    assert {name: logged.data.tags.get(name) for name in expected} == expected
    points = client.get_metric_history(run_id, "train/loss")
    lines = [line for line in read_metrics(run / "metrics.jsonl") if "train/loss" in line]
    assert [(point.step, point.value) for point in points] == [
        (line["games"], line["train/loss"]) for line in lines
    ]
    assert "config.yaml" in {file.path for file in client.list_artifacts(run_id)}
    assert logged.data.metrics["result/points"] > 0
    port = free_port()
    words = ["-m", "mlflow", "ui", "--port", str(port), "--backend-store-uri", store]
    with subprocess.Popen([sys.executable, *words, "--workers", "1"]) as server:
        try:
            address = f"http://127.0.0.1:{port}"
            assert "<title>MLflow</title>" in fetched(address)
            answer = json.loads(fetched(f"{address}/api/2.0/mlflow/runs/get?run_id={run_id}"))
            assert answer["run"]["info"]["run_name"] == "run"
        finally:
            server.terminate()


class FakeMlflow:
    """The calls of MLflow's client that a run makes, with the errors of MLflow's own store."""

    def __init__(self):
        self.experiments, self.runs, self.points = {}, {}, []

    def get_experiment_by_name(self, name):
        return self.experiments.get(name)

    def create_experiment(self, name):
        self.experiments[name] = SimpleNamespace(experiment_id=name)
        return name

    def search_runs(self, experiments, text):
        found = [run for run in self.runs.values() if run.info.experiment_id in experiments]
        return [run for run in found if run.stage == "active" and run.tags["rlgames.id"] in text]

    def create_run(self, experiment, run_name, tags):
        info = SimpleNamespace(run_id=str(len(self.runs)), experiment_id=experiment)
        self.runs[info.run_id] = SimpleNamespace(info=info, tags=tags, stage="active")
        return self.runs[info.run_id]

    def log_batch(self, run_id, metrics=(), params=()):
        self._check(self.runs[run_id])
        self.points += [(run_id, *point) for point in metrics]

    def __getattr__(self, name):
        return lambda run_id, *_, **__: self._check(self.runs[run_id])

    @staticmethod
    def _check(run):
        if run.stage != "active":
            raise RuntimeError(f"The run {run.info.run_id} must be in the 'active' state.")


@pytest.fixture
def fake_mlflow(monkeypatch):
    client = FakeMlflow()
    names = ("mlflow", "mlflow.entities", "mlflow.tracking", "mlflow.tracking.context")
    for name in names:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["mlflow"].MlflowClient = lambda: client
    sys.modules["mlflow.entities"].Metric = lambda *point: point
    sys.modules["mlflow.entities"].Param = lambda *param: param
    registry = SimpleNamespace(resolve_tags=dict)
    sys.modules["mlflow.tracking.context"].registry = registry
    monkeypatch.setattr("rlgames.core.errors.find_spec", lambda name: name)
    return client


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_new_run_starts_with_a_warning_if_mlflows_was_deleted(
    is_deleted, fake_mlflow, tmp_path, capsys
):
    run = train(tmp_path / "run", "logger=mlflow")
    assert capsys.readouterr().err == ""
    fake_mlflow.runs["0"].stage = "deleted" if is_deleted else "active"
    fake_mlflow.points.clear()
    resume_run(run, "games=40")
    assert {point[0] for point in fake_mlflow.points} == {"1" if is_deleted else "0"}
    lines = [line for line in capsys.readouterr().err.splitlines() if "mlflow" in line]
    assert ["no longer has this run; a new one" in line for line in lines] == [True] * is_deleted


@pytest.mark.slow
@needs("mlflow")
def test_a_server_that_cannot_be_reached_stops_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    run = train(tmp_path / "run", "logger=[mlflow]")
    assert capsys.readouterr().err.count("logger=mlflow failed") == 1
    assert read_run(run)["status"] == "done"
