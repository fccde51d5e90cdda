"""`rlgames train`: one run, or one job of a sweep.

What a training needs is imported once its words are checked, so that errors are reported at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlgames.config.commands import TrainConfig
from rlgames.core.processes import no_garbage_collection
from rlgames.runs.files import read_run
from rlgames.runs.find import located

if TYPE_CHECKING:
    from rlgames.training.train import TrainingResult


@dataclass(frozen=True)
class Result:
    """What a training reached, and its config."""

    config: TrainConfig
    training: TrainingResult


def run(config: TrainConfig) -> Result:
    """Train, with a view of the progress."""
    config = located(config)
    with no_garbage_collection():
        from rlgames.terminal.progress import training_view
        from rlgames.training.train import train
    with training_view(config.games) as callback:
        return Result(config, train(config, callback))


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


def show(result: Result) -> None:
    """Print what the training reached, and what comes next."""
    from rlgames.cli.display import print_next_commands, print_result

    print_result(result.training)
    config = result.config
    print_next_commands(result.training.directory, config.plugins, config.logger)
