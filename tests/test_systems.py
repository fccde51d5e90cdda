"""rlgames runs on systems with less than Linux has: see other_systems.py for what is imitated."""

import errno
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import filelock
import pytest

from rlgames.core import locks
from rlgames.runs import storage

HERE = Path(__file__).parent
TINY = ["game=tictactoe", "experiment=null", "learner=reinforce", "policy.layers=[2]", "games=8"]
TINY += ["batch=4", "eval_games=4", "solve_seconds=0"]


def printed(folder, code, extras=""):
    """What a program prints on such a system."""
    environment = {name: text for name, text in os.environ.items() if name != "HOME"}
    environment |= {"PYTHONPATH": f"{HERE}:{HERE.parent}", "PYTHONWARNDEFAULTENCODING": "1"}
    code = f"from other_systems import *\nas_on_windows({extras})\n{code}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.slow
def test_every_module_is_imported_as_on_windows(tmp_path):
    done = printed(tmp_path, "import_everything()", extras="EXTRAS")
    assert (done.stdout, done.stderr) == ("", "")


def test_a_run_is_trained_resumed_and_evaluated_as_on_windows(tmp_path):
    commands = [
        ["train", *TINY, "out=run"],
        ["resume", "run", "games=16"],
        ["eval", "run", "games=4", "record=games.jsonl"],
    ]
    done = printed(tmp_path, f"main(*{commands})")
    assert json.loads((tmp_path / "run/run.json").read_text())["status"] == "done"
    assert done.stderr.count("run is not locked (fcntl is unavailable); start nothing else") == 2
    assert len((tmp_path / "games.jsonl").read_text().splitlines()) == 5


@pytest.mark.slow
def test_a_sweep_is_run_as_on_windows(tmp_path):
    sweep = ["train", "-m", *TINY, "lr=0.1,0.2", "hydra.sweep.dir=sweep"]
    printed(tmp_path, f"main({sweep}, {['report', 'sweep']})")
    assert {path.name for path in (tmp_path / "sweep").glob("*/")} == {"lr=0.1", "lr=0.2"}


def test_a_job_that_windows_has_no_directory_for_is_refused(typed, monkeypatch):
    monkeypatch.setattr(storage, "IS_WINDOWS", True)
    done = typed("train", "-m", *TINY, "init_from=a:b,c")
    assert done.returncode == 2
    assert done.stderr.startswith("rlgames: Windows allows no : in the name of a job's directory; ")


@pytest.fixture
def no_locks(monkeypatch):
    """As some network file systems have none."""

    def refuse(file, *, blocking, poll_interval):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(filelock, "lock_descriptor", refuse)


def test_a_run_without_locks_says_so_and_runs(no_locks, typed, tmp_path):
    done = typed("train", *TINY, "out=run")
    line = "rlgames: run is not locked (No locks available); start nothing else in it\n"
    assert (done.returncode, done.stderr) == (0, line)
    done = typed("eval", "run", "games=4", "record=games")
    assert (done.returncode, done.stderr) == (0, "")
    assert len((tmp_path / "games").read_text().splitlines()) == 5


def test_a_lock_file_is_held_by_one_at_a_time_and_removed(tmp_path):
    path, order = tmp_path / "lock", []

    def hold(number):
        with locks.locked(path):
            order.append(number)
            time.sleep(0.002)
            order.append(number)

    with ThreadPoolExecutor(4) as pool:
        [*pool.map(hold, range(12))]
    assert order[::2] == order[1::2]
    assert not path.exists()


def test_a_lock_that_is_held_is_not_waited_for(tmp_path):
    with open(tmp_path / "lock", "ab") as first, open(tmp_path / "lock", "ab") as second:
        assert locks.lock(first.fileno())
        assert not locks.lock(second.fileno())
        locks.unlock(first.fileno())
        assert locks.lock(second.fileno())


def test_a_file_that_windows_keeps_open_is_replaced_when_it_is_closed(tmp_path, monkeypatch):
    replace, refused = os.replace, list[tuple[str, ...]]()

    def refuse_twice(*paths):
        if len(refused) < 2:
            refused.append(paths)
            raise PermissionError(errno.EACCES, "Access is denied", *paths)
        replace(*paths)

    monkeypatch.setattr(storage, "IS_WINDOWS", True)
    monkeypatch.setattr(os, "replace", refuse_twice)
    storage.write_file(tmp_path, "run.json", "{}")
    assert (tmp_path / "run.json").read_text() == "{}"
    assert len(refused) == 2
