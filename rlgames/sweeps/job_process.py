"""Starts the processes of jobs, on Linux as forks of a process that has imported torch.

Importing torch takes longer than a small job. A launcher's process may start many jobs, one after
the other; imports nothing heavy itself.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from typing import IO, BinaryIO

WORKER = [sys.executable, "-P", "-m", "rlgames.cli.job_worker"]
"""The command of a job, before its words; without words it forks jobs, see fork_jobs there."""

CANNOT_FORK = 4
"""The exit code of a process without words that has other threads than its own."""


def start_process(words: list[str], output: BinaryIO) -> ForkedJob | subprocess.Popen[bytes]:
    """Start the process of a job, which saves and exits when its standard input is closed.

    output: its standard output and error. Raises OSError.
    """
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    if sys.platform == "linux":
        with _lock:
            forking = _forking(environment)
            try:
                return forking.start(words, output)
            except (ConnectionError, EOFError):
                if forking.process.wait() != CANNOT_FORK:  # it was killed
                    _forks.clear()  # the next job gets a new one
    return subprocess.Popen(
        [*WORKER, *words],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,  # so that the terminal sends it no second signal
    )


class ForkedJob:
    """A job that another process has forked, and whose PID and exit code that process sends."""

    def __init__(self, answers: socket.socket, stdin: IO[bytes]) -> None:
        """Raises ConnectionError and EOFError if no job was forked."""
        self.stdin: IO[bytes] | None = stdin
        self._answers, answer = answers, answers.recv(16)
        if not answer:
            raise EOFError
        self._pid = int(answer)
        self._code: int | None = None

    def poll(self) -> int | None:
        """As of subprocess.Popen, like the other methods."""
        if self._code is None and select.select([self._answers], [], [], 0)[0]:
            # Nothing comes from a process that was killed; then its job ends, too.
            self._code = int(self._answers.recv(16) or -signal.SIGKILL)
            self._answers.close()
        return self._code

    def wait(self, timeout: float) -> int:
        if self._code is None:
            select.select([self._answers], [], [], timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(WORKER, timeout)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self._pid, signal.SIGKILL)


class _Forking:
    """The process that forks jobs for this one, and ends with it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment, self.owner = environment, os.getpid()
        self._channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            # Its children set their own output; until then errors are those of this process.
            self.process = subprocess.Popen(
                WORKER, stdin=other.fileno(), env=environment, start_new_session=True
            )

    def start(self, words: list[str], output: BinaryIO) -> ForkedJob:
        """Raises ConnectionError and EOFError if it has ended."""
        reading, writing = os.pipe()
        stdin = os.fdopen(writing, "wb")
        answers, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            request = json.dumps({"words": words, "folder": os.getcwd()}).encode()
            handles = [reading, output.fileno(), other.fileno()]
            with other:
                socket.send_fds(self._channel, [request], handles)
            return ForkedJob(answers, stdin)
        except BaseException:
            answers.close()
            stdin.close()
            raise
        finally:
            os.close(reading)


def _forking(environment: dict[str, str]) -> _Forking:
    """The one of this process; a new one for another environment, which forks would not see."""
    if not _forks or (_forks[0].environment, _forks[0].owner) != (environment, os.getpid()):
        _forks[:] = [_Forking(environment)]
    return _forks[0]


_forks: list[_Forking] = []
_lock = threading.Lock()
