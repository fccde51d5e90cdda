"""Runs jobs in processes, several at a time: the jobs of a sweep and of a study.

A process is started, never forked, and runs one job after another. Jobs come through its standard
input. When that closes, because the jobs are to stop or because this process was killed, a job that
runs gets SIGTERM, so it saves, and the process ends.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO, Self

from rlgames.core.errors import ConfigError, to_user_error
from rlgames.core.signals import Interrupted, Interrupts

OUTPUT = "output.log"
"""The file in the directory of a job that holds what the job prints."""

START = "import sys; sys.path[:] = {}; from rlgames.core.jobs import serve_jobs; serve_jobs({})"

STOP_SECONDS = 1.0
"""Between two signals to a job that is to stop: one that arrives during an import is lost."""

EXIT_SECONDS = 5.0
"""A process without a job that takes longer to end is killed."""


@dataclass(frozen=True)
class Task:
    """What a job does: call a function of a module.

    Args:
        function, arguments, result: sent to and from the process by pickle.
        directory: where the job writes; created if it is missing.
        games: the games of the training, for its progress; None if unknown.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    directory: Path
    games: int | None = None


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Args:
        status: "done", "failed" or "interrupted".
        value: what the function returned.
        error: why the job is not done, in one line, and a hint.
    """

    status: str
    value: Any = None
    error: str = ""
    hint: str = ""


@dataclass(eq=False)
class Job:
    """A job and its state.

    Args:
        name: for people.
        prepare: makes the task when a process is free.
        needs: the jobs that have to be done before it starts.
        task: None before it starts.
        outcome: None before it ends.
    """

    name: str
    prepare: Callable[[], Task]
    needs: Sequence[Job] = ()
    task: Task | None = None
    outcome: Outcome | None = field(default=None, init=False)

    @property
    def status(self) -> str:
        """waiting, running, or as Outcome.status."""
        if self.outcome is not None:
            return self.outcome.status
        return "waiting" if self.task is None else "running"


class JobView:
    """Shows jobs to a person. Every hook is called in the thread of Runner.run."""

    def on_jobs(self, jobs: Sequence[Job]) -> None:
        """These jobs are about to run."""

    def on_start(self, job: Job) -> None:
        """A job starts: it has a task."""

    def on_end(self, job: Job) -> None:
        """A job has ended: it has an outcome."""

    def on_stop(self, jobs: Sequence[Job]) -> None:
        """No other job starts; these save and end."""


def num_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Runner:
    """Runs jobs; a context that keeps its processes until it ends.

    Args:
        parallel: how many jobs run at a time. The libraries of each use this fraction of the cores,
            unless OMP_NUM_THREADS is set.
    """

    def __init__(self, parallel: int, view: JobView) -> None:
        self.parallel, self.view = parallel, view
        self._events: SimpleQueue[tuple[_Process, Outcome | None] | None] = SimpleQueue()
        self._idle: list[_Process] = []
        self._running: dict[_Process, Job] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._idle:
            process.close()
        self._idle.clear()

    def stop(self) -> None:
        """Called in another thread: no other job starts, and those that run save and end."""
        self._events.put(None)

    def run(self, jobs: Sequence[Job]) -> None:
        """Run jobs until each has an outcome, except those that need one that is not done.

        Raises Interrupted: after a stop signal the jobs that run have saved and ended; after a
        second Ctrl-C they are killed.
        """
        self.view.on_jobs(jobs)
        with Interrupts(on_first_signal=self.stop) as interrupts:
            try:
                with interrupts.shielded():
                    self._run([*jobs])
            finally:
                for process in self._running:  # after an error or a second Ctrl-C
                    process.kill()
                self._running.clear()

    def _run(self, waiting: list[Job]) -> None:
        is_stopping = False
        while True:
            for job in [] if is_stopping else waiting[:]:
                if len(self._running) >= self.parallel:
                    break
                if all(other.status == "done" for other in job.needs):
                    waiting.remove(job)
                    self._start(job)
            if not self._running:
                return
            event = self._events.get()
            if event is None:
                is_stopping = True
                self.view.on_stop([*self._running.values()])
                for process in self._running:
                    process.stop()
                continue
            process, outcome = event
            if process not in self._running:  # an idle process has ended
                self._idle = [each for each in self._idle if each is not process]
                continue
            job = self._running.pop(process)
            job.outcome = outcome or process.death(job, is_stopping)
            if outcome is not None and outcome.status == "done" and not is_stopping:
                self._idle.append(process)
            else:  # after an error, the next job gets a new process with all of its memory
                process.close()
            self.view.on_end(job)

    def _start(self, job: Job) -> None:
        """Start a job, or end it at once if that fails."""
        try:
            job.task = job.prepare()
            work = pickle.dumps(pickle.dumps(job.task))  # read in a thread, but not imported there
            process = self._idle.pop() if self._idle else _Process(self.parallel, self._events.put)
        except Exception as error:
            job.outcome = _failure(error)
            self.view.on_end(job)
            return
        self._running[process] = job
        self.view.on_start(job)
        process.send(work)


class _Process:
    """A process that runs jobs."""

    def __init__(self, parallel: int, report: Callable[[tuple[_Process, Any]], object]) -> None:
        threads = str(max(1, num_cores() // parallel))
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-c", START.format(sys.path, sys.argv)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            env={"OMP_NUM_THREADS": threads, **os.environ},
            process_group=0,  # so that the terminal sends it no signals
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # on Windows
        )
        threading.Thread(target=self._listen, args=(report,), daemon=True).start()

    def _listen(self, report: Callable[[tuple[_Process, Any]], object]) -> None:
        """Report the outcome of each job, and None when the process has ended."""
        output = self._process.stdout
        assert output is not None
        with suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                report((self, pickle.load(output)))
        self._process.wait()
        report((self, None))

    def send(self, work: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it has ended, which is reported
            self._process.stdin.write(work)
            self._process.stdin.flush()

    def stop(self) -> None:
        """Let a job save and end, and the process with it."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def close(self) -> None:
        """Wait for the end of a process without a job."""
        self.stop()
        try:
            self._process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._messages.close()

    def kill(self) -> None:
        self._process.kill()
        self.close()

    def death(self, job: Job, is_stopping: bool) -> Outcome:
        """The outcome of a job whose process has ended."""
        code = self._process.wait()
        if is_stopping and code == -signal.SIGTERM:  # while there was nothing to save
            return Outcome("interrupted", error="stopped")
        reason = f"its process ended with exit code {code}"
        if code < 0:
            reason = f"its process was killed by {signal.Signals(-code).name}"
        self._messages.seek(0)
        lines = self._messages.read().decode(errors="replace").split("\n")
        assert job.task is not None
        hint = f"its output is in {job.task.directory / OUTPUT}"
        return Outcome("failed", error=": ".join([reason, *filter(None, lines[-2:])]), hint=hint)


def _failure(error: Exception, hint: str = "") -> Outcome:
    """The outcome of a job that raised an error; hint: of an unexpected one."""
    known = error if isinstance(error, ConfigError) else to_user_error(error, hint)
    return Outcome("failed", error=known.error, hint=known.hint)


def serve_jobs(argv: list[str]) -> None:
    """What a process does: run the jobs that come through standard input, until it closes.

    argv: of the program that the jobs belong to.
    """
    source, results = (os.fdopen(os.dup(number), mode) for number, mode in ((0, "rb"), (1, "wb")))
    messages = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    faulthandler.enable()
    sys.argv = argv
    work, has_job = SimpleQueue[bytes | None](), threading.Event()
    threading.Thread(target=_read_jobs, args=(source, work, has_job), daemon=True).start()
    while (task := work.get()) is not None:
        outcome = _run_task(task)
        sys.stdout.flush()
        for number in (1, 2):
            os.dup2(messages, number)
        has_job.clear()
        try:
            results.write(outcome)
            results.flush()
        except OSError:  # nobody listens anymore
            return


def _read_jobs(source: BinaryIO, work: SimpleQueue[bytes | None], has_job: threading.Event) -> None:
    """Read jobs, in a thread; when there are no others, stop the one that runs."""
    with suppress(EOFError, OSError):
        while True:
            task = pickle.load(source)
            has_job.set()
            work.put(task)
    work.put(None)
    pause = threading.Event()
    while has_job.is_set():
        if sys.platform == "win32":
            signal.raise_signal(signal.SIGTERM)  # os.kill would end the process at once
        else:
            os.kill(os.getpid(), signal.SIGTERM)  # reaches a main thread that waits
        pause.wait(STOP_SECONDS)


def _run_task(work: bytes) -> bytes:
    """Run a pickled task, whose output goes to the file of its directory; the pickled outcome."""
    hint = ""
    try:
        task: Task = pickle.loads(work)
        hint = f"{task.directory / OUTPUT} shows where"
        task.directory.mkdir(parents=True, exist_ok=True)
        with open(task.directory / OUTPUT, "ab") as output:
            for number in (1, 2):
                os.dup2(output.fileno(), number)
        return pickle.dumps(Outcome("done", task.function(*task.arguments)))
    except KeyboardInterrupt as error:
        text = error.message if isinstance(error, Interrupted) else "interrupted"
        return pickle.dumps(Outcome("interrupted", error=text))
    except Exception as error:
        if not isinstance(error, ConfigError):
            traceback.print_exc()
        return pickle.dumps(_failure(error, hint))
