"""One job of a sweep: a launcher of Hydra calls run_job, which supervises the job's process.

Launchers import this file in their workers, so it imports nothing heavy.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

from rlgames.core.errors import ConfigError, report_error
from rlgames.core.processes import is_alive
from rlgames.core.signals import Interrupted, Interrupts
from rlgames.runs import storage

STOP_FILE = "stop"
"""While a sweep's directory has a file of this name, its jobs save and exit, and none starts."""

POLL_SECONDS = 0.2

MIN_FREE_BYTES = 1 << 24
"""With less on the disk, a job could write neither its first checkpoint nor why it failed."""


def start_process(words: list[str], output: BinaryIO) -> subprocess.Popen[bytes]:
    """Start the process of a job, which saves and exits when its standard input is closed.

    output: its standard output and error. Raises OSError.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "rlgames.cli.job_worker", *words],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        env={"OMP_NUM_THREADS": "1", **os.environ},
        start_new_session=True,  # so that the terminal sends it no second signal
    )


def this_process() -> str:
    """The host and the PID of this process."""
    return f"{socket.gethostname()}:{os.getpid()}"


def run_job(cfg: Any) -> None:
    """Run or resume a job. cfg: as conf/job.yaml.

    It runs in its own process, whose end affects neither the launcher nor the other jobs. Raises
    Interrupted once the sweep stops: the launcher then starts none of the jobs that wait.
    """
    path, owner = Path(cfg.directory), str(cfg.owner)
    if (path / STOP_FILE).exists() or not _is_alive(owner):
        raise Interrupted(signal.SIGINT)
    if shutil.disk_usage(path).free < MIN_FREE_BYTES:
        report_error(ConfigError(f"no space left in {path}: no more jobs are started"))
        raise Interrupted(signal.SIGINT)
    if owner == this_process():
        _supervise(cfg, path, owner, None)
        return
    exit_with(owner)
    if threading.current_thread() is threading.main_thread():
        # Ctrl-C reaches all processes of a terminal; the sweep stops its jobs itself.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with (
        _supervising,
        contextlib.suppress(Interrupted),
        Interrupts() as interrupts,
        interrupts.shielded(),
    ):
        _supervise(cfg, path, owner, interrupts)


_supervising = threading.Lock()
"""Held while a launcher's worker has a job."""

_owners: set[str] = set()
"""The processes that this worker ends with."""


def exit_with(owner: str) -> None:
    """Have a launcher's worker exit once the sweep's process and its own current job have ended:
    joblib's workers would wait for more jobs for minutes."""
    if owner in _owners:
        return
    _owners.add(owner)

    def watch() -> None:
        while _is_alive(owner):
            time.sleep(POLL_SECONDS)
        with _supervising:
            os._exit(1)

    threading.Thread(target=watch, name="exit_with_sweep", daemon=True).start()


def _supervise(cfg: Any, sweep: Path, owner: str, interrupts: Interrupts | None) -> None:
    """Start the job's process and wait for it; make it save and exit when the sweep stops.

    cfg.job is the number of the job, a colon, and the path of its directory in the sweep. The job
    prints to its output.log. interrupts: a worker's; None in the sweep's process.
    """

    def must_stop() -> bool:
        is_interrupted = interrupts is not None and interrupts.pending is not None
        return is_interrupted or (sweep / STOP_FILE).exists() or not _is_alive(owner)

    if must_stop():
        return
    number, _, name = str(cfg.job).partition(":")
    path = sweep / name
    words = [str(sweep), number, *map(str, cfg.options)]
    with contextlib.ExitStack() as stack:
        try:
            storage.make_folder(sweep, name)
            output = stack.enter_context(storage.open_to_append(sweep, f"{name}/output.log"))
            process = start_process(words, output)
        except OSError as error:  # raising it would end the other jobs
            report_error(ConfigError(f"{path} was not started: {error}"))
            return
        assert process.stdin is not None
        try:
            while process.poll() is None:
                if must_stop():
                    process.stdin.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_SECONDS)
        except Interrupted:  # a second Ctrl-C
            process.kill()
            raise
        finally:
            process.stdin.close()


def _is_alive(owner: str) -> bool:
    """Whether the sweep's process exists; assumed on another host."""
    host, _, number = owner.rpartition(":")
    return host != socket.gethostname() or is_alive(int(number))
