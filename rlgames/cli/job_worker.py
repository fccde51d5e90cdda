"""The process of one job of a sweep: python -m rlgames.cli.job_worker SWEEP NUMBER."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

from rlgames.cli.training import resume_command, train_config
from rlgames.config import plugins
from rlgames.config.compose import from_plain
from rlgames.core.errors import ConfigError, report_error
from rlgames.core.signals import Interrupted
from rlgames.sweeps.sweep import Sweep


def main() -> None:
    """Its words are its sweep's directory, its number, and plugins= of the sweep."""
    threading.Thread(target=_end_with_whoever_started_this, daemon=True).start()
    directory, number, *words = sys.argv[1:]
    plugins.load_plugins(words)
    sys.exit(_done(Sweep.read(Path(directory)), int(number)))


def _end_with_whoever_started_this() -> None:
    """Its end, however it comes, closes our standard input, and so it tells us to save and end."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _done(sweep: Sweep, number: int) -> int:
    """Train or go on; the exit code. Whatever goes wrong is told in a line, and in train.log."""
    path = sweep.path(number)
    try:
        if sweep.status(number) == "done":
            return 0
        if sweep.status(number) == "broken off":
            return resume_command(path, [])
        return train_config(from_plain(sweep.jobs[number].config | {"out": str(path)}))
    except Interrupted as stop:
        message = stop.message.partition(";")[0]
        message = f"interrupted{message and ', '}{message}"
        return report_error(ConfigError(message), False, stop.code)
    except ConfigError as error:
        _note(path, error.error)
        return report_error(error, False)
    except Exception as error:
        told = f"{type(error).__name__}: {' '.join(str(error).split())}"
        _note(path, f"{traceback.format_exc()}{told}")
        return report_error(ConfigError(told, f"{path}/train.log shows where"), False, 3)


def _note(path: Path, text: str) -> None:
    """Add to the log of a run that has ended; where that fails, the error stands in the output."""
    with contextlib.suppress(OSError):
        path.mkdir(exist_ok=True)
        with open(path / "train.log", "a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")


if __name__ == "__main__":
    main()
