"""Runs that scripts/checks/storm.py kills at random times lose nothing and leave no process."""

import json
import os
import shutil
import subprocess

import pytest
import storm
from processes import has_ended, run
from run_files import differing_files
from storm import KINDS

WORDS = (*KINDS["ppo"].split(), "games=20")


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_killed_runs_end_as_if_they_had_not_been_killed(name, tmp_path):
    seconds, errors = storm.run_whole(name, tmp_path / "out")
    assert not errors
    outcome = storm.storm(name, tmp_path / "out", seed=1, kills=3, seconds=seconds)
    assert not outcome.failures
    assert outcome.signals.total() == 3
    assert outcome.completed


def test_a_process_that_stays_is_reported_and_killed(tmp_path, monkeypatch):
    def leave_a_process():
        os.setsid()
        subprocess.Popen(["sleep", "60"])

    monkeypatch.setattr(storm, "_begin_session", leave_a_process)
    monkeypatch.setattr(storm, "EXIT_SECONDS", 0.1)
    command = storm.Command(["--version"], tmp_path)
    assert command.wait(60)
    assert command.code == 0
    (left,) = command.clean_up()
    pid, _, line = left.partition(": ")
    assert line.strip() == "sleep 60"
    assert has_ended(int(pid))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    code, output = run(folder, *WORDS, "out=run")
    assert code == 0, output
    return folder / "run"


def test_a_lost_checkpoint_is_reported(whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    ((path, games),) = storm.saved_games(folder).items()
    assert games == 20
    assert storm.losses(folder, {path: 20}) == []
    assert storm.losses(folder, {path: 40}) == [f"{path} had 40 games, now 20"]
    path.write_bytes(path.read_bytes()[:-1])
    assert "is damaged" in storm.losses(folder, {})[0]
    path.unlink()
    assert "there is no checkpoint" in storm.losses(folder, {path: 20})[0]


def test_files_that_differ_are_named(whole, tmp_path):
    one, two = whole, tmp_path / "two"
    shutil.copytree(one, two)
    assert differing_files(one, two) == []
    (two / "checkpoints/latest.safetensors.tmp").touch()
    with open(two / "metrics.jsonl", "a") as file:
        file.write('{"games": 21, "train/loss": 0.0}\n')
    shutil.copy(one / "checkpoints/best.safetensors", two / "checkpoints/latest.safetensors")
    (events,) = two.glob("events.*")
    events.write_bytes(events.read_bytes()[: events.stat().st_size // 2])
    summary = json.loads((two / "run.json").read_text())
    (two / "run.json").write_text(json.dumps(summary | {"end": "later", "games": 21}))
    assert differing_files(one, two) == [
        *("checkpoints/latest.safetensors", "checkpoints/latest.safetensors.tmp"),
        *("events", "metrics.jsonl", "run.json"),
    ]
