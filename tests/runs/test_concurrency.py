"""A run is read while it trains: readers disturb nobody."""

import json
import time
from pathlib import Path

import pytest
from helpers import SMALL_SALVO
from processes import Process, run
from run_files import final_state, metrics_without_times, same

from rlgames.runs.files import LATEST
from rlgames.training.loop import TrainingLoop

pytestmark = pytest.mark.slow

WORDS = [*SMALL_SALVO, "log_every=20", "save_every=20", "eval_every=100", "solve_seconds=0"]
WORDS += ["eval_games=10"]
EVALUATIONS = 20
PARALLEL = 3
"""Evaluations at a time."""


def has_checkpoint(folder):
    """Wait until the run or job in this folder has saved."""
    deadline = time.monotonic() + 60
    while not (folder / "checkpoints" / LATEST).exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def slowly():
    """Pause after each save, and after the last one for as long as a file `hold` exists."""
    write = TrainingLoop.save_state

    def slow(self, *names):
        write(self, *names)
        time.sleep(0.1)
        while self.progress.is_over and Path("hold").exists():
            time.sleep(0.05)

    TrainingLoop.save_state = slow


@pytest.mark.parametrize("checkpoint", ["best", "latest"])
def test_a_run_is_evaluated_while_it_trains_and_saves(checkpoint, tmp_path):
    words = ["train", *WORDS, "games=600", "keep_every=20"]
    (tmp_path / "hold").touch()
    training = Process(tmp_path, *words, "out=run", prepare=slowly)
    has_checkpoint(tmp_path / "run")
    while not (tmp_path / "run/checkpoints/best.safetensors").exists():
        time.sleep(0.02)
    command = ["eval", "run", "games=10", f"checkpoint={checkpoint}", "solve_seconds=0"]
    evaluated, started = [], 0
    active: list[Process] = []
    while started < EVALUATIONS or active:
        while started < EVALUATIONS and len(active) < PARALLEL:
            active.append(Process(tmp_path, *command, "format=json", apart=True))
            started += 1
        ended = active.pop(0).ended(120)
        assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
        evaluated.append(json.loads(ended.stdout)["checkpoint_games"])
    (tmp_path / "hold").unlink()
    code, output = training.wait(60)
    assert code == 0, output
    names = (tmp_path / "run/checkpoints").glob("games_*.safetensors")
    saved = {0, *(int(path.stem.removeprefix("games_")) for path in names)}
    assert {*evaluated} <= saved
    assert checkpoint == "best" or len({*evaluated}) > 1
    code, output = run(tmp_path, *words, "out=whole")
    assert code == 0, output
    same(final_state(tmp_path / "whole"), final_state(tmp_path / "run"))
    assert metrics_without_times(tmp_path / "whole") == metrics_without_times(tmp_path / "run")
