"""Jobs that one process forks: as if each had been started by itself."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers import SMALL_SALVO
from processes import metrics_without_times, run

import rlgames
from rlgames.sweeps import job_process
from rlgames.sweeps.job_process import start_process

WORDS = [*SMALL_SALVO, "games=40", "solve_seconds=0", "eval_games=10"]


@pytest.fixture
def sweep(tmp_path):
    """A sweep of three jobs that were all started by themselves, and a folder for output."""
    code, told = run(tmp_path, "train", "-m", *WORDS, "seed=0,1,2", "out=sweep")
    assert code == 0, told
    return tmp_path / "sweep"


def test_a_forked_job_learns_what_a_training_learns(sweep, tmp_path):
    for seed, folder in enumerate(["0_seed=0", "1_seed=1", "2_seed=2"]):
        alone = rlgames.train([*WORDS, f"seed={seed}", f"out={tmp_path}/{seed}"])
        assert metrics_without_times(alone) == metrics_without_times(sweep / folder)
        assert json.loads((sweep / folder / "run.json").read_text())["status"] == "done"
        assert "trained, greedy" in (sweep / folder / "output.log").read_text()


@pytest.fixture
def start(tmp_path, monkeypatch):
    """A function that starts a process of a job with some words, and its output."""
    monkeypatch.setattr(job_process, "_forks", [])
    with open(tmp_path / "output.log", "ab") as output:
        yield lambda *words: start_process([*map(str, words)], output)
    for forking in job_process._forks:
        forking.process.kill()
        forking.process.wait()


@pytest.mark.slow
def test_a_job_ends_as_its_process_does(start, tmp_path):
    failed = start(tmp_path / "nothing", 0)
    assert failed.wait(30) == 1
    assert failed.poll() == 1
    assert (tmp_path / "output.log").read_text()
    long = words_of_a_long_job(tmp_path)
    job = start(*long)
    with pytest.raises(subprocess.TimeoutExpired):
        job.wait(0.2)
    assert job.poll() is None
    job.kill()
    assert job.wait(30) == -signal.SIGKILL
    job = start(*long)
    time.sleep(1)
    job.stdin.close()  # it saves and exits
    assert job.wait(30) == 128 + signal.SIGTERM


@pytest.mark.slow
def test_without_the_process_that_forks_a_job_is_started_by_itself(start, tmp_path):
    job = start(*words_of_a_long_job(tmp_path))
    [forking] = job_process._forks
    forking.process.kill()
    assert job.wait(30) == -signal.SIGKILL
    job.stdin.close()
    forking.process.wait()
    plain = start(tmp_path / "nothing", 0)
    assert isinstance(plain, subprocess.Popen)
    assert plain.wait(30) == 1
    plain.stdin.close()
    assert not isinstance(start(tmp_path / "nothing", 0), subprocess.Popen)


@pytest.mark.slow
def test_each_job_has_its_own_answers(start, tmp_path):
    long = words_of_a_long_job(tmp_path)
    killed = start(*long)
    killed.kill()  # its exit code is never read
    with ThreadPoolExecutor(3) as pool:
        codes = pool.map(lambda number: start(tmp_path / "nothing", number).wait(60), range(3))
        assert [*codes] == [1, 1, 1]
    job = start(*long)
    assert job._pid > 1
    job.kill()
    assert job.wait(30) == -signal.SIGKILL


@pytest.mark.slow
def test_a_process_with_threads_is_asked_once(start, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    first = start(tmp_path / "nothing", 0)
    assert isinstance(first, subprocess.Popen)  # NumPy has started threads
    [forking] = job_process._forks
    second = start(tmp_path / "nothing", 0)
    assert isinstance(second, subprocess.Popen)
    assert job_process._forks == [forking]
    assert [first.wait(60), second.wait(60)] == [1, 1]
    first.stdin.close()
    second.stdin.close()


@pytest.mark.slow
def test_another_environment_has_another_process_that_forks(start, tmp_path, monkeypatch):
    start(tmp_path / "nothing", 0).wait(30)
    first = job_process._forks[0].process
    monkeypatch.setenv("ANOTHER", "2")
    start(tmp_path / "nothing", 0).wait(30)
    assert job_process._forks[0].process is not first
    first.wait(30)  # it ends with its socket


def words_of_a_long_job(tmp_path):
    """Of a sweep whose jobs were never started."""
    path = tmp_path / "long"
    if not path.exists():
        words = ["train", "-m", *SMALL_SALVO, "games=10000000", "seed=0,1", f"out={path}"]
        code = "from rlgames.sweeps import jobs; jobs.start_process = lambda *_: 1 / 0\n"
        code += "import sys; from rlgames.app import main; main()"
        subprocess.run([sys.executable, "-c", code, *words], capture_output=True, env=os.environ)
        assert (path / "sweep.json").exists()
    return path, 0
