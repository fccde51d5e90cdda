"""The process of one job of a sweep: python -m rlgames.cli.job_worker SWEEP NUMBER."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from rlgames.cli.table import COMMANDS
from rlgames.cli.training import resume_command, train_config
from rlgames.cli.words import arguments
from rlgames.config import plugins
from rlgames.config.commands import MOVABLE_PLAYERS
from rlgames.config.compose import hydra_files
from rlgames.config.study_file import check_evaluation
from rlgames.config.typed import from_plain
from rlgames.core.errors import ConfigError, report_error, to_user_error
from rlgames.core.signals import Interrupted
from rlgames.core.text import printable
from rlgames.runs import storage
from rlgames.sweeps.evaluations import JobEvaluation
from rlgames.sweeps.sweep import Sweep


def main() -> None:
    """The words are the sweep's directory, the number of the job, --config-dir= and plugins=."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    directory, number, *words = sys.argv[1:]
    plugins.import_plugins(words)
    sys.exit(_run(Sweep.read_job(Path(directory), int(number)), 0, words))


def _exit_with_parent() -> None:
    """Save and exit once the parent process closes our standard input, or exits itself."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _run(sweep: Sweep, number: int, options: list[str]) -> int:
    """Train or resume, then evaluate with these options; the exit code. An error is reported in a
    line, and in train.log."""
    path = sweep.path(number)
    try:
        if not sweep.is_trained(number) and (code := _train(sweep, number)):
            return code
        for evaluation in sweep.missing(number):
            _evaluate(sweep, number, evaluation, options)
        return 0
    except Interrupted as stop:
        message = stop.message.partition(";")[0]
        message = f"interrupted{message and ', '}{message}"
        return report_error(ConfigError(message), False, stop.code)
    except ConfigError as error:
        _note(sweep, path, error.error)
        return report_error(error)
    except Exception as error:
        error.__notes__ = []  # how to resume this run by itself
        told = to_user_error(error, "its train.log shows where")
        _note(sweep, path, f"{traceback.format_exc()}{told}")
        return report_error(told, False, 3)


def _train(sweep: Sweep, number: int) -> int:
    path, job = sweep.path(number), sweep.jobs[number]
    if sweep.status(number) == "unfinished":
        return resume_command(path, [])
    links: dict[str, Any] = {}
    for key, name in job.links.items():
        linked = str(sweep.directory.absolute() / name)
        links[key] = {"name": "run", "path": linked} if key in MOVABLE_PLAYERS else linked
    cfg = from_plain(job.config | links | {"out": str(path)})
    return train_config(cfg, hydra_files(cfg, job.overrides))


def _evaluate(sweep: Sweep, number: int, evaluation: JobEvaluation, options: list[str]) -> None:
    """Make an evaluation and keep its report. Raises ConfigError."""
    own = sweep.name(number)
    name, *words = [*evaluation.filled(sweep.directory, own), *options]
    print(f"{evaluation.name}: rlgames {shlex.join([name, *words])}", flush=True)
    check_evaluation(name, evaluation.words[1:])
    for word in words:
        if word.startswith("record="):  # which holds the games of one evaluation, played once
            path = Path(word.partition("=")[2]).relative_to(sweep.directory)
            storage.remove_file(sweep.directory, str(path))
    command, started = COMMANDS[name], time.perf_counter()
    result = command.load_function()(*arguments(command, words))
    saved = {
        "report": result if isinstance(result, dict) else result.as_dict(),
        "date": time.strftime("%Y-%m-%d"),
        "seconds": time.perf_counter() - started,
    }
    evaluation.write(sweep.directory, own, saved)


def _note(sweep: Sweep, path: Path, text: str) -> None:
    """Append to train.log after the run has ended, each line in printable characters, because
    files may have put anything into it. The error is printed in any case."""
    lines = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}".split("\n")
    with contextlib.suppress(OSError):
        name = path.relative_to(sweep.directory).as_posix()
        storage.make_folder(sweep.directory, name)
        with storage.open_to_append(sweep.directory, f"{name}/train.log") as file:
            file.write("".join(f"{printable(line)}\n" for line in lines).encode())


if __name__ == "__main__":
    main()
