"""`rlgames train` and `rlgames resume`: trainings with a view of their progress.

What a training needs is imported once its words are checked, so that errors are reported at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlgames.config.commands import TrainConfig
from rlgames.config.typed import as_words
from rlgames.config.words import quoted
from rlgames.core.errors import ConfigError, report_error, to_user_error
from rlgames.core.processes import no_garbage_collection
from rlgames.core.text import printable
from rlgames.runs.files import SWEEP_FILE, read_run, sweep_overrides
from rlgames.runs.find import find_run, located

if TYPE_CHECKING:
    from rlgames.core.callbacks import Callback
    from rlgames.training.train import TrainingResult

LAUNCHER_WORDS = re.compile(r"hydra/(launcher|sweeper)=\w+|hydra\.launcher\.n_jobs=-?\d+")
"""Hydra's own words that a resumed sweep keeps: none of them runs code that a file names."""


def train_command(config: TrainConfig) -> int:
    """Train one run; the exit code."""
    config = located(config)
    with no_garbage_collection():
        from rlgames.training.train import train

    return _run(config, lambda callback: train(config, callback))


def train_job(config: TrainConfig, name: str) -> float | None:
    """Train a job of a sweep unless it is done, from its checkpoint if it has one; the value of
    best_by. name: for people."""
    from rlgames.commands.resume import resumable_job
    from rlgames.training.train import resume, train

    assert config.out is not None
    directory, config = Path(config.out), located(config)
    found = resumable_job(directory, config)
    if found is None:
        print(f"{name}: starts", flush=True)
        train(config)
    elif found.is_done:
        print(f"{name}: done before", flush=True)
        return _reached(directory)[1]
    else:
        print(f"{name}: goes on after {found.checkpoint.games:,} games", flush=True)
        resume(directory, found.config, found.checkpoint, found.lock)
    best_by, value = _reached(directory)
    shown = "" if value is None else f", {best_by} {value:.4g}"
    print(f"{name}: done{shown}", flush=True)
    return value


def _reached(directory: Path) -> tuple[str, float | None]:
    """The metric that selected the best checkpoint of a run that is done, and its value."""
    record = read_run(directory)
    best_by = str(record.get("best_by"))
    value = record.get("results", {}).get(best_by)
    return best_by, None if value is None else float(value)


def resume_command(config: Any) -> int:
    """Resume a run; the exit code."""
    run = _found(config)
    from rlgames.commands.resume import load_resumable, reason_finished
    from rlgames.training.train import resume

    cfg, checkpoint, lock = load_resumable(run, config)
    reason = reason_finished(run, cfg, checkpoint)
    if reason:
        lock.release()
        print(printable(f"{run} {reason}; nothing was changed"))
        return 0
    return _run(cfg, lambda callback: resume(run, cfg, checkpoint, lock, callback))


def _found(config: Any) -> Path:
    if config.run is None:
        raise ConfigError("resume needs a run", "as in: rlgames resume RUN games=500000")
    return find_run(config.run, is_player=False)


def sweep_words(config: Any) -> list[str]:
    """How a sweep was started, which may be a stranger's, and what its resumption changes; none
    for a run. Typed again, jobs that are done return at once.

    Raises ConfigError for words that run code.
    """
    directory = _found(config)
    if not (directory / SWEEP_FILE).is_file():
        return []
    overrides = sweep_overrides(directory)
    task, own = overrides["task"], overrides["hydra"]
    unsafe = [word for word in task if re.match(r"[+~]*(plugins|hydra)\b", word) or "${" in word]
    if unsafe:
        raise ConfigError(
            f"the sweep was started with {unsafe[0]}", "type its words again if you trust them"
        )
    kept = [word for word in own if LAUNCHER_WORDS.fullmatch(word)]
    more = as_words(config, "games", "device", "threads")
    if not any(word.startswith("experiment=") for word in task):
        task = [*task, "experiment=null"]  # of which Hydra was told nothing
    return ["-m", *task, *kept, f"hydra.sweep.dir={quoted(str(directory))}", *more]


def _run(cfg: TrainConfig, training: Callable[[Callback | None], TrainingResult]) -> int:
    """Call the training of a config with a live view, then print its result and what comes next."""
    from rlgames.cli.live_view import training_view
    from rlgames.commands.training_table import print_next_commands, print_result
    from rlgames.core.errors import NonFiniteError

    try:
        with training_view(cfg.games) as callback:
            result = training(callback)
    except NonFiniteError as error:
        return report_error(to_user_error(error), False, 3)
    print_result(result)
    print_next_commands(result.directory, cfg.plugins, cfg.logger)
    return 0
