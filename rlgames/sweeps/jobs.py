"""One job of a sweep: what a launcher of Hydra calls, which watches over the job's process.

Launchers import this file in their workers, so that nothing heavy is imported when it is loaded.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

from rlgames.core.signals import Interrupted, Interrupts
from rlgames.core.text import printable

STOP_FILE = "stop"
"""While a sweep's directory has a file of this name, its jobs save and end, and none begins."""


def this_process() -> str:
    """This process, as other hosts see it."""
    return f"{socket.gethostname()}:{os.getpid()}"


def run_job(cfg: Any) -> None:
    """Do what is left of a job. cfg: as conf/job.yaml.

    It has a process of its own: whatever ends that leaves the launcher and the other jobs alone.
    """
    path, owner = Path(cfg.directory), str(cfg.owner)
    if owner == this_process():
        _watched(cfg, path, owner, None)
        return
    if threading.current_thread() is threading.main_thread():
        # Ctrl-C reaches all processes of a terminal; the sweep tells its jobs itself.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(Interrupted), Interrupts() as interrupts, interrupts.shielded():
        _watched(cfg, path, owner, interrupts)


def _watched(cfg: Any, sweep: Path, owner: str, interrupts: Interrupts | None) -> None:
    """Start the job's process, have it save and end where it should, and wait for it.

    The job is named by its directory in the sweep's, whose name begins with its number.
    interrupts: of a worker, which leaves what its job prints in the job's output.log.
    """

    def over() -> bool:
        told = interrupts is not None and interrupts.pending is not None
        return told or (sweep / STOP_FILE).exists() or not _alive(owner)

    if over():
        return
    number, path = str(cfg.job).partition("_")[0], sweep / str(cfg.job)
    told = printable(f"job {number}, in {path}")
    sys.stdout.write(f"{told}\n")  # whole, beside those of others
    sys.stdout.flush()
    words = [str(sweep), number, *map(str, cfg.options)]
    with contextlib.ExitStack() as stack:
        output = None
        if interrupts is not None:
            path.mkdir(exist_ok=True)
            output = stack.enter_context(open(path / "output.log", "a"))
        process = start_process(words, output)
        assert process.stdin is not None
        try:
            while process.poll() is None:
                if over():
                    process.stdin.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)
        except Interrupted:  # a second signal, which is passed on
            process.terminate()
            raise
        finally:
            process.stdin.close()


def start_process(words: list[str], output: IO[str] | None) -> subprocess.Popen[bytes]:
    """The job's process, which saves and ends when its standard input is closed.

    output: what it writes to, None for where this process does.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "rlgames.cli.job_worker", *words],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
        env={"OMP_NUM_THREADS": "1", **os.environ},
        start_new_session=True,  # out of the terminal's reach, which would tell it twice
    )


def _alive(owner: str) -> bool:
    """Whether the sweep's process is there, as far as can be seen from this host."""
    host, _, number = owner.rpartition(":")
    if host != socket.gethostname():
        return True
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
