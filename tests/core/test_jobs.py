"""Jobs in processes: what one job does to the others, and how all of them stop."""

import operator
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rlgames.core.jobs import OUTPUT, Job, JobView, Runner, Task
from rlgames.core.signals import Interrupted


class Events(JobView):
    """Keeps what happens, and calls a function at the first event of a kind."""

    def __init__(self, **calls):
        self.events, self.calls = [], calls

    def _happens(self, kind, job):
        self.events.append((kind, job.name if job else ""))
        self.calls.pop(kind, lambda: None)()

    def on_start(self, job):
        self._happens("start", job)

    def on_end(self, job):
        self._happens("end", job)

    def on_stop(self, jobs):
        self._happens("stop", None)


def job(folder, name, function, *arguments, needs=()):
    return Job(name, lambda: Task(function, arguments, folder / name), needs)


def code(folder, name, *lines, needs=()):
    return job(folder, name, exec, "\n".join(["import os, signal, time", *lines]), needs=needs)


def run(jobs, parallel=2, view=None):
    with Runner(parallel, view or JobView()) as runner:
        runner.run(jobs)
    return [each.status for each in jobs]


def test_a_job_that_fails_or_dies_ends_no_other(tmp_path):
    jobs = [
        code(tmp_path, "killed", "print('so far')", "os.kill(os.getpid(), signal.SIGKILL)"),
        job(tmp_path, "wrong", operator.truediv, 1, 0),
        code(tmp_path, "left", "os._exit(7)"),
        job(tmp_path, "unpickled", lambda: None),
        job(tmp_path, "fine", operator.add, 2, 3),
    ]
    assert run(jobs) == ["failed"] * 4 + ["done"]
    killed, wrong, left, unpickled, fine = (each.outcome for each in jobs)
    assert killed.error == "its process was killed by SIGKILL"
    assert killed.hint == f"its output is in {tmp_path / 'killed' / OUTPUT}"
    assert wrong.error == "division by zero"
    assert "Traceback" in (tmp_path / "wrong" / OUTPUT).read_text()
    assert left.error == "its process ended with exit code 7"
    assert "<lambda>" in unpickled.error
    assert fine.value == 5


def test_a_runner_that_is_stopped_lets_jobs_save_and_starts_no_other(tmp_path):
    jobs = [code(tmp_path, name, "time.sleep(60)") for name in ("first", "second")]
    view = Events()
    with Runner(1, view) as runner:
        view.calls["start"] = runner.stop
        begun = time.monotonic()
        runner.run(jobs)
    assert time.monotonic() - begun < 30
    assert [each.status for each in jobs] == ["interrupted", "waiting"]
    assert view.events == [("start", "first"), ("stop", ""), ("end", "first")]


def test_a_process_runs_one_job_after_another_and_divides_the_cores(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("rlgames.core.jobs.num_cores", lambda: 8)
    pids = [job(tmp_path, f"{number}", os.getpid) for number in range(3)]
    threads = job(tmp_path, "threads", os.getenv, "OMP_NUM_THREADS")
    assert run([*pids, threads], parallel=1) == ["done"] * 4
    assert len({each.outcome.value for each in pids}) == 1
    assert threads.outcome.value == "8"
    threads = job(tmp_path, "threads", os.getenv, "OMP_NUM_THREADS")
    run([threads], parallel=3)
    assert threads.outcome.value == "2"


def test_jobs_run_at_the_same_time(tmp_path):
    wait = ["open('{}', 'w').close()", "while not os.path.exists('{}'): time.sleep(0.01)"]
    pairs = [(tmp_path / "a.txt", tmp_path / "b.txt"), (tmp_path / "b.txt", tmp_path / "a.txt")]
    jobs = [
        code(
            tmp_path,
            own.stem,
            *(line.format(path) for line, path in zip(wait, (own, other), strict=True)),
        )
        for own, other in pairs
    ]
    assert run(jobs) == ["done", "done"]


def test_a_job_waits_for_those_it_needs(tmp_path):
    first = job(tmp_path, "first", operator.add, 1, 1)
    wrong = job(tmp_path, "wrong", operator.truediv, 1, 0)
    second = job(tmp_path, "second", operator.add, 1, 2, needs=[first])
    never = job(tmp_path, "never", operator.add, 1, 3, needs=[second, wrong])
    view = Events()
    assert run([never, second, wrong, first], view=view) == ["waiting", "done", "failed", "done"]
    assert view.events.index(("end", "first")) < view.events.index(("start", "second"))


SLEEPING = "time.sleep(60)"


def interrupt_once_there(path):
    """Ctrl-C as soon as a file has content; a list of the time when that is."""
    times = []

    def wait():
        wait_for_content(path)
        times.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()
    return times


def wait_for_content(path):
    end = time.monotonic() + 30
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return path.read_text()


def writing(path):
    """Writes the number of the process into a file."""
    return f"with open({str(path)!r}, 'w') as file: file.write(str(os.getpid()))"


def test_ctrl_c_lets_jobs_end_and_starts_no_other(tmp_path):
    ready, saved = tmp_path / "ready", tmp_path / "saved"
    save = f"def save(*_): open({str(saved)!r}, 'w').close(); raise KeyboardInterrupt"
    lines = [save, "signal.signal(signal.SIGTERM, save)", writing(ready), SLEEPING]
    first = code(tmp_path, "first", *lines)
    second = job(tmp_path, "second", operator.add, 1, 2)
    interrupt_once_there(ready)
    with pytest.raises(Interrupted) as raised:
        run([first, second], parallel=1)
    assert raised.value.number == signal.SIGINT
    assert (first.status, second.status) == ("interrupted", "waiting")
    assert saved.exists()


def test_a_second_ctrl_c_kills_jobs(tmp_path):
    ready = tmp_path / "ready"
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    stubborn = code(tmp_path, "stubborn", ignore, writing(ready), SLEEPING)
    begun = interrupt_once_there(ready)
    with pytest.raises(Interrupted):
        run([stubborn], view=Events(stop=lambda: signal.raise_signal(signal.SIGINT)))
    assert time.monotonic() - begun[0] < 2
    assert not Path("/proc", ready.read_text()).exists()


def test_jobs_stop_when_their_owner_is_killed(tmp_path):
    ready = tmp_path / "ready"
    work = "\n".join(["import os, time", writing(ready), SLEEPING])
    owner = f"""
from pathlib import Path
from rlgames.core.jobs import *
with Runner(1, JobView()) as runner:
    runner.run([Job("sleeps", lambda: Task(exec, ({work!r},), Path({str(tmp_path)!r})))])
"""
    process = subprocess.Popen([sys.executable, "-c", owner])
    pid = wait_for_content(ready)
    process.kill()
    process.wait()
    end = time.monotonic() + 10
    while Path("/proc", pid).exists():
        assert time.monotonic() < end
        time.sleep(0.01)
