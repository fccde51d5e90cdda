"""Actors on Ray play and one learner trains; whatever is killed is replaced, or resumed."""

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from importlib import util
from pathlib import Path

import pytest
import torch

if util.find_spec("ray") is None:  # ray_source imports it with variables of its own
    pytest.skip("ray is not installed", allow_module_level=True)

from rlgames.core.errors import ConfigError
from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.files import read_metrics, read_run
from rlgames.training.ray_source import AUTH_MODE, check_address

ROOT = Path(__file__).parents[2]
SMALL = ["experiment=tictactoe_alphazero", "policy.layers=[16]", "search.simulations=8"]
SMALL += ["batch=20", "learner.updates_per_batch=2", "learner.minibatch_size=16", "eval_games=4"]
SMALL += ["solve_seconds=0", "logger=[]", "out=run"]
ACTORS = ["engine=ray", "engine.actors=2"]
ACTOR = "ray::SelfPlayActor"
PATIENCE = 400
"""Seconds: on a busy machine Ray takes a minute to start."""

QUICKLY = 15
AGENTS_SECONDS = 90
"""What two processes of Ray, which do no work, may outlive a killed learner: they try to report it
to one that is gone, with a timeout of 60 s."""


STARTED: list["Training"] = []
"""The trainings of a test."""


class Training:
    """A training in a new process, and the processes that descend from it, wherever they are."""

    def __init__(self, folder, *words, **variables):
        STARTED.append(self)
        self.folder, self.mark = folder, uuid.uuid4().hex
        folders = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {"PYTHONPATH": folders, "OMP_NUM_THREADS": "1", "MARK": self.mark}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rlgames", *words],
            cwd=folder,
            env=os.environ | environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def family(self):
        """The command lines of the living processes that descend from the training, by PID."""
        processes = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if f"MARK={self.mark}" in (path / "environ").read_text(errors="replace"):
                    command = (path / "cmdline").read_text(errors="replace").replace("\0", " ")
                    if command and int(path.name) != self.process.pid:
                        processes[int(path.name)] = command
            except OSError:  # it has ended, or belongs to somebody else
                continue
        return processes

    def actors(self):
        return [pid for pid, command in self.family().items() if command.startswith(ACTOR)]

    def lines(self):
        path = self.folder / "run/metrics.jsonl"
        return (
            [line for line in read_metrics(path) if "train/loss" in line] if path.exists() else []
        )

    def wait_for_lines(self, count, seconds=PATIENCE):
        wait_until(lambda: len(self.lines()) >= count or self.process.poll() is not None, seconds)
        assert self.process.poll() is None, self.process.communicate()[0]

    def ended(self, seconds=QUICKLY):
        """The exit code and the output; a few seconds later nobody is left."""
        output, _ = self.process.communicate(timeout=PATIENCE)
        wait_until(lambda: not self.family(), seconds)
        return self.process.returncode, output


@pytest.fixture(autouse=True)
def _kill_what_is_left():
    yield
    while STARTED:
        STARTED.pop().process.kill()


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, condition
        time.sleep(0.05)


def check_done(folder, games):
    assert read_run(folder / "run")["status"] == "done"
    checkpoint = Checkpoint.read(folder / "run/checkpoints/latest.safetensors")
    assert checkpoint.games == games
    return checkpoint


@pytest.mark.slow
def test_the_number_of_actors_does_not_change_a_training(tmp_path):
    words = ["train", *SMALL, "games=100", "save_every=100", "log_every=20"]
    trained = []
    for actors in ("1", "2", "3"):
        engine = ["engine=ray", f"engine.actors={actors}", f"out={actors}"]
        code, output = Training(tmp_path, *words, *engine).ended()
        assert code == 0, output
        path = tmp_path / actors / "checkpoints/latest.safetensors"
        trained.append(Checkpoint.read(path).policy)
    for other in trained[1:]:
        assert all(torch.equal(trained[0][name], other[name]) for name in other)


@pytest.mark.slow
def test_an_actor_that_is_killed_is_replaced(tmp_path):
    """Its tasks are repeated; nobody is told, and Ctrl-C saves and ends everybody."""
    training = Training(tmp_path, "train", *SMALL, *ACTORS, "games=1000000", "log_every=20")
    training.wait_for_lines(3)
    actors = training.actors()
    assert len(actors) == 2
    os.kill(actors[0], signal.SIGKILL)
    wait_until(lambda: any(line["train/actor_restarts"] for line in training.lines()), PATIENCE)
    replaced = training.actors()
    assert len(replaced) == 2
    assert {*actors} & {*replaced} == {actors[1]}
    os.killpg(training.process.pid, signal.SIGINT)
    code, output = training.ended()
    assert code == 130, output
    assert not re.search(r"\bray|raylet|actor\.py", output, re.IGNORECASE), output
    lines = training.lines()
    assert [line["games"] for line in lines] == list(range(20, 20 * len(lines) + 1, 20))
    assert sum(line["train/actor_restarts"] for line in lines) == 1
    assert all(line["train/wait_seconds"] > 0 < line["train/game_seconds"] for line in lines)


@pytest.mark.slow
def test_a_killed_learner_resumes_from_its_checkpoint(tmp_path):
    words = [*SMALL, *ACTORS, "games=600", "log_every=20", "save_every=100"]
    training = Training(tmp_path, "train", *words)
    training.wait_for_lines(8)
    training.process.kill()
    wait_until(lambda: not training.actors(), QUICKLY)
    assert training.ended(AGENTS_SECONDS)[0] == -signal.SIGKILL
    saved = Checkpoint.read(tmp_path / "run/checkpoints/latest.safetensors").games
    assert 100 <= saved < 600
    resumed = Training(tmp_path, "resume", "run")
    code, output = resumed.ended()
    assert code == 0, output
    assert "engine=ray plays other games than a run that never stopped" in output
    check_done(tmp_path, 600)
    games = [line["games"] for line in resumed.lines()]
    assert games == sorted({*games})


@pytest.mark.slow
def test_sigterm_saves_and_ends_everybody(tmp_path):
    training = Training(tmp_path, "train", *SMALL, *ACTORS, "games=100000", "log_every=20")
    training.wait_for_lines(2)
    os.kill(training.process.pid, signal.SIGTERM)
    code, output = training.ended(QUICKLY)
    assert code == 143, output
    assert "resume with: rlgames resume run" in output
    assert read_run(tmp_path / "run")["status"] == "interrupted"
    saved = Checkpoint.read(tmp_path / "run/checkpoints/latest.safetensors").games
    assert f"saved after {saved:,} games" in output
    assert saved >= 40


@pytest.mark.slow
def test_a_run_resumes_with_another_engine(tmp_path):
    code, output = Training(tmp_path, "train", *SMALL, *ACTORS, "games=60").ended()
    assert code == 0, output
    resumed = Training(tmp_path, "resume", "run", "games=120", "engine=local")
    assert resumed.ended()[0] == 0
    checkpoint = check_done(tmp_path, 120)
    assert checkpoint.config["engine"] == {"name": "local"}
    again = ["resume", "run", "games=180", "engine=ray", "engine.actors=1"]
    assert Training(tmp_path, *again).ended()[0] == 0
    assert check_done(tmp_path, 180).config["engine"]["actors"] == 1


@pytest.mark.slow
def test_an_error_in_an_actor_ends_the_run_with_its_message(tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN)
    words = [*SMALL, *ACTORS, "plugins=[broken]", "opponent=broken", "games=60"]
    code, output = Training(tmp_path, "train", *words).ended()
    assert code == 3, output
    assert "no more moves" in output
    assert len(output.strip().splitlines()) < 10, output


BROKEN = """
from dataclasses import dataclass
from rlgames import register
from rlgames.players.player import Player


class Broken(Player):
    def __init__(self, game):
        self.game = game

    def choose(self, state, rng):
        raise RuntimeError("no more moves")


register("player", "broken", Broken)
"""


@pytest.mark.slow
def test_nobody_at_the_address_is_reported_after_join_seconds(tmp_path):
    words = [*SMALL, *ACTORS, "engine.address=127.0.0.1:9", "join_seconds=2"]
    code, output = Training(tmp_path, "train", *words).ended()
    assert code == 3
    assert "Ray at 127.0.0.1:9 did not join within join_seconds=2" in output


@pytest.mark.parametrize("address", ["10.0.0.1:6379", "auto"])
def test_an_address_on_the_network_needs_a_token(address, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "head.example:6379")
    monkeypatch.delenv(AUTH_MODE, raising=False)
    with pytest.raises(ConfigError, match="open to the network, but Ray has no token"):
        check_address(address)
    for here in (None, "127.0.0.1:6379", "localhost:6379", "[::1]:6379"):
        check_address(here)
    for mode in ("token", "disabled"):
        monkeypatch.setenv(AUTH_MODE, mode)
        check_address(address)
