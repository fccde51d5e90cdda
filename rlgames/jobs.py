"""One job of a sweep: what a launcher of Hydra calls, and the process in which the job runs.

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
import time
import traceback
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rlgames import config, errors, plugins
from rlgames.interrupts import Interrupted, Interrupts

if TYPE_CHECKING:
    from rlgames.sweeps import Sweep

STOP = "stop"
"""While a sweep's directory has a file of this name, its jobs save and end, and none begins."""


def here() -> str:
    """This process, as other hosts see it."""
    return f"{socket.gethostname()}:{os.getpid()}"


def job(cfg: Any) -> None:
    """Do what is left of a job. cfg: as conf/job.yaml.

    It has a process of its own: whatever ends that leaves the launcher and the other jobs alone.
    """
    path, owner = Path(cfg.directory), str(cfg.owner)
    if owner == here():
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
        return told or (sweep / STOP).exists() or not _alive(owner)

    if over():
        return
    number, path = str(cfg.job).partition("_")[0], sweep / str(cfg.job)
    told = errors.printable(f"job {number}, in {path}")
    sys.stdout.write(f"{told}\n")  # whole, beside those of others
    sys.stdout.flush()
    words = [str(sweep), number, *map(str, cfg.options)]
    with contextlib.ExitStack() as stack:
        output = None
        if interrupts is not None:
            path.mkdir(exist_ok=True)
            output = stack.enter_context(open(path / "output.log", "a"))
        process = start(words, output)
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


def start(words: list[str], output: IO[str] | None) -> subprocess.Popen[bytes]:
    """A process of `main`, which saves and ends when its standard input is closed.

    output: what it writes to, None for where this process does.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "rlgames.jobs", *words],
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


def main() -> None:
    """The job's own process: its sweep's directory, its number, plugins= of the sweep."""
    threading.Thread(target=_end_with_whoever_started_this, daemon=True).start()
    from rlgames.sweeps import Sweep

    directory, number, *words = sys.argv[1:]
    plugins.with_parts(words)
    sys.exit(_done(Sweep.read(Path(directory)), int(number)))


def _end_with_whoever_started_this() -> None:
    """Its end, however it comes, closes our standard input, and so it tells us to save and end."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _done(sweep: Sweep, number: int) -> int:
    """Train or go on; the exit code. Whatever goes wrong is told in a line, and in train.log."""
    from rlgames import cli

    path = sweep.path(number)
    try:
        if sweep.status(number) == "done":
            return 0
        if sweep.status(number) == "broken off":
            return cli.resume(path, [])
        return cli.train(config.from_plain(sweep.jobs[number].config | {"out": str(path)}))
    except Interrupted as stop:
        told = stop.told.partition(";")[0]
        told = f"interrupted{told and ', '}{told}"
        return errors.stop(errors.ConfigError(told), False, stop.code)
    except errors.ConfigError as error:
        _note(path, error.error)
        return errors.stop(error, False)
    except Exception as error:
        told = f"{type(error).__name__}: {' '.join(str(error).split())}"
        _note(path, f"{traceback.format_exc()}{told}")
        return errors.stop(errors.ConfigError(told, f"{path}/train.log shows where"), False, 3)


def _note(path: Path, text: str) -> None:
    """Add to the log of a run that has ended; where that fails, the error stands in the output."""
    with contextlib.suppress(OSError):
        path.mkdir(exist_ok=True)
        with open(path / "train.log", "a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")


if __name__ == "__main__":
    main()
