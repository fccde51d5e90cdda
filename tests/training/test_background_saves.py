"""Large checkpoints are written by a fork while training goes on; here all of them are."""

import errno
import os
import signal
import time

import pytest
from helpers import SMALL_SALVO
from processes import final_state, has_ended, metrics_without_times, run, same

from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.files import LATEST, read_metrics
from rlgames.training import checkpointer

WORDS = [*SMALL_SALVO, "log_every=40", "save_every=60", "eval_every=100", "solve_seconds=0"]
TRAIN = ["train", *WORDS, "games=400", "out=run"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was never stopped and saved in the foreground."""
    folder = tmp_path_factory.mktemp("whole")
    code, output = run(folder, *TRAIN)
    assert code == 0, output
    return folder / "run"


def in_background(what=lambda: None, games=180):
    """Save in the background; before the latest checkpoint of so many games, have something
    happen in the process that writes it."""

    def prepare():
        checkpointer.BACKGROUND_BYTES = range(1 << 30)
        write = Checkpoint.write

        def there(self, path):
            if self.games == games and path.name == LATEST:
                what()
            write(self, path)

        Checkpoint.write = there

    return prepare


def ends_as(whole, folder):
    code, output = run(folder, "resume", "run", prepare=in_background())
    assert code == 0, output
    is_same(whole, folder / "run")


def is_same(whole, directory):
    same(final_state(whole), final_state(directory))
    assert metrics_without_times(whole) == metrics_without_times(directory)
    left = sorted(path.name for path in (directory / "checkpoints").iterdir())
    assert left == ["best.safetensors", "latest.safetensors"]


def latest(folder):
    return Checkpoint.read(folder / "run" / "checkpoints" / LATEST)


def test_they_hold_the_same(whole, tmp_path):
    code, output = run(tmp_path, *TRAIN, prepare=in_background())
    assert code == 0, output
    is_same(whole, tmp_path / "run")


@pytest.mark.slow
def test_training_goes_on_meanwhile(whole, tmp_path):
    """The file of another process tells what was logged while a checkpoint was being written."""

    def wait_for_a_line():
        deadline = time.monotonic() + 30
        while read_metrics(tmp_path / "run/metrics.jsonl")[-1]["games"] <= 180:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    code, output = run(tmp_path, *TRAIN, prepare=in_background(wait_for_a_line))
    assert code == 0, output
    is_same(whole, tmp_path / "run")


@pytest.mark.slow
def test_a_kill_leaves_no_process_and_loses_one_checkpoint(whole, tmp_path):
    def kill():
        (tmp_path / "writer").write_text(str(os.getpid()))
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)

    code, output = run(tmp_path, *TRAIN, prepare=in_background(kill))
    assert code == -signal.SIGKILL, output
    assert latest(tmp_path).games == 120
    deadline = time.monotonic() + 10
    while not has_ended(int((tmp_path / "writer").read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    ends_as(whole, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_all_processes_waits_for_the_checkpoint(number, whole, tmp_path):
    def stop():
        if (tmp_path / "stopped").exists():  # it saves again after the signal
            return
        (tmp_path / "stopped").touch()
        os.kill(os.getppid(), number)
        os.kill(os.getpid(), number)
        time.sleep(0.2)

    code, output = run(tmp_path, *TRAIN, prepare=in_background(stop))
    assert code == 128 + number, output
    assert f"saved after {latest(tmp_path).games} games" in output
    ends_as(whole, tmp_path)


@pytest.mark.slow
def test_a_second_ctrl_c_does_not_wait(whole, tmp_path):
    def interrupt():
        for _ in range(2):
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(0.5)
        time.sleep(60)

    code, output = run(tmp_path, *TRAIN, prepare=in_background(interrupt))
    assert code == 130, output
    assert "resume from the last checkpoint" in output
    assert latest(tmp_path).games == 120
    ends_as(whole, tmp_path)


@pytest.mark.slow
def test_what_cannot_be_written_ends_the_run(whole, tmp_path):
    def fail():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "run/checkpoints/latest.safetensors")

    for what, told in (
        (fail, "No space left on device"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "the process that wrote it was killed"),
    ):
        folder = tmp_path / told.partition(" ")[0]
        folder.mkdir()
        code, output = run(folder, *TRAIN, prepare=in_background(what))
        assert code == 3, output
        assert f"{told}: 'run/checkpoints/latest.safetensors'" in output
        assert "Traceback" not in output
        assert latest(folder).games == 120
        ends_as(whole, folder)
