"""Power loss loses no more than what came after the last checkpoint, whatever the disk then holds.

A command is recorded. Each state in which it may leave the disk is made, and opened as `rlgames
resume` opens it: that must find one of the command's own checkpoints, no older than the last one
that was complete, with the metrics that belong to it. Some are resumed to the end.
"""

import hashlib
import os
import random
import shutil
import signal

import pytest
from helpers import SMALL_SALVO, read_result
from power_loss import Disk, Recorder, write_state
from processes import run
from run_files import final_state, metrics_without_times, same

from rlgames.core.signals import Interrupts
from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.directory import check_new_run, lock_directory
from rlgames.runs.files import BEST, LATEST, read_run
from rlgames.runs.log import RunLog
from rlgames.runs.reports import OF_TRAINING
from rlgames.training.loop import TrainingLoop
from rlgames.training.sources import GameSource

pytestmark = pytest.mark.usefixtures("shown_games")

WORDS = [*SMALL_SALVO, "log_every=20", "save_every=20", "eval_every=40", "eval_games=10"]
WORDS += ["solve_seconds=0"]
TRAIN = ["train", *WORDS, "games=120", "out=run"]

COMMANDS = {
    "training": [TRAIN],
    "resume": [TRAIN, ["resume", "run"]],
    "extension": [TRAIN, ["resume", "run", "games=200"]],
}
"""The last command is recorded. One before it is killed in each second batch, unless the last one
extends its run."""


def recorded(kind, folder):
    """A recorded command's disk; folder/whole is what it left."""
    root = folder / "whole"
    root.mkdir()
    *earlier, words = COMMANDS[kind]
    for each in earlier:
        code, output = run(root, *each, prepare=None if kind == "extension" else killed)
        assert (code != 0) == (kind != "extension"), output
    recorder = Recorder(root, folder / "recording")

    def prepare():
        write, finish = TrainingLoop.save_state, RunLog.finish

        def written(self, *names):
            write(self, *names)
            recorder.mark(**{self.log.directory.name: self.progress.games})

        def finished(self, status, *more):
            finish(self, status, *more)
            recorder.mark(**{f"{self.directory.name} is": status})

        TrainingLoop.save_state, RunLog.finish = written, finished
        recorder.install()

    code, output = run(root, *words, prepare=prepare)
    assert code == 0, output
    return Disk(folder / "recording")


def killed():
    calls, collect = 0, GameSource.prepare

    def there(self, *args):
        nonlocal calls
        calls += 1
        if calls == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return collect(self, *args)

    GameSource.prepare = there


def is_opened(directory, whole, promised, recording):
    """Open a run as `resume` does, and assert that what it finds is right; False if there is none,
    and none was promised."""
    path, name = directory / "checkpoints" / LATEST, directory.name
    if not path.exists():
        assert name not in promised, "a checkpoint is lost"
        return False
    if promised.get(f"{name} is") == "done":
        assert read_result(directory) == read_result(whole)
    lock = lock_directory(directory)
    content = path.read_bytes()
    assert (recording / hashlib.sha1(content).hexdigest()).exists(), "nobody wrote this"
    checkpoint = Checkpoint.read(path)
    assert checkpoint.games >= promised.get(name, 0), "games are lost"
    if checkpoint.games >= 40:
        assert Checkpoint.read(path.with_name(BEST)).policy.keys() == checkpoint.policy.keys()
    num_lines, games = checkpoint.state["progress"]["num_log_lines"], checkpoint.games
    with Interrupts() as interrupts:
        log = RunLog(
            lock, checkpoint.config, "yaml", "turns", "turns", interrupts, games, num_lines
        )
        assert log.num_lines == num_lines
        log.finish("interrupted", checkpoint.games, 0.0)
    assert metrics_without_times(directory) == metrics_without_times(whole)[:num_lines]
    return True


def ends_as(root, whole):
    same(final_state(whole), final_state(root))
    assert metrics_without_times(whole) == metrics_without_times(root)
    one, two = read_run(whole), read_run(root)
    assert one["status"] == two["status"]
    for name in OF_TRAINING:
        assert read_result(whole, name) == read_result(root, name)


@pytest.mark.parametrize(
    ("kind", "num_opened", "num_resumed"),
    [
        ("training", 25, 1),
        *(pytest.param(kind, 150, 4, marks=pytest.mark.slow) for kind in COMMANDS),
        *(pytest.param(kind, 2000, 20, marks=pytest.mark.long) for kind in COMMANDS),
    ],
)
def test_power_loss(kind, num_opened, num_resumed, tmp_path):
    disk, whole = recorded(kind, tmp_path), tmp_path / "whole/run"
    states = [(state, dict(disk.promised)) for state in disk.states()]
    num_states = len(states)
    assert num_states >= num_opened
    random.Random(0).shuffle(states)
    for number, (state, promised) in enumerate(states[:num_opened]):
        root = tmp_path / "state"
        write_state(state, root)
        run_there = root / "run"
        can_resume = is_opened(run_there, whole, promised, disk.recording)
        if not can_resume:
            check_new_run(run_there)
        if number < num_resumed:
            shutil.rmtree(root)
            write_state(state, root)
            words = COMMANDS[kind][-1]
            if words[0] == "train" and can_resume:
                words = ["resume", words[-1].removeprefix("out=")]
            code, output = run(root, *words)
            assert code == 0, output
            ends_as(run_there, whole)
        shutil.rmtree(root)
    print(f"{kind}: {num_states} states, {num_opened} opened, {num_resumed} resumed")
