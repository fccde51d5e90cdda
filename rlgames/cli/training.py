"""`rlgames train` and `rlgames resume`: trainings with a view of their progress.

What a training needs is imported once its words are checked, so that errors are reported at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rlgames.cli.table import SWEEP_FLAGS
from rlgames.commands.launch import load_training
from rlgames.config.compose import split
from rlgames.config.training import LaunchConfig, TrainConfig
from rlgames.config.typed import to_yaml
from rlgames.core.errors import report_error, to_user_error
from rlgames.core.processes import no_garbage_collection
from rlgames.core.text import printable

if TYPE_CHECKING:
    from rlgames.core.callbacks import Callback
    from rlgames.training.run import TrainingResult


def train_command(words: list[str]) -> int:
    """Train one run or, with -m, the runs of a sweep; the exit code."""
    overrides = [word for word in words if word not in SWEEP_FLAGS]
    launch, rest = split(LaunchConfig, overrides)
    if {*SWEEP_FLAGS} & {*words}:
        from rlgames.cli.busy_bar import busy_bar
        from rlgames.cli.sweep_view import sweep_view
        from rlgames.commands.sweep import sweep_command

        base = [word for word in overrides if word.startswith("config=")]
        checking = busy_bar("checking the jobs")
        return sweep_command([*base, *rest], launch, sweep_view, checking)
    with no_garbage_collection():
        config, files = load_training(overrides)
    if launch.dry_run:
        from rlgames.training.components import build_components

        build_components(config)  # which checks that they fit together
        print(to_yaml(config), end="")
        return 0
    return train_config(config, files, launch.exist_ok)


def resume_command(run: Path, overrides: list[str]) -> int:
    """Resume a run or a sweep; the exit code."""
    if (run / "sweep.json").exists():
        from rlgames.cli.sweep_view import sweep_view
        from rlgames.commands.sweep import resume_sweep

        return resume_sweep(run, overrides, sweep_view)
    from rlgames.commands.resume import load_resumable, reason_finished
    from rlgames.training.run import resume

    cfg, checkpoint, lock = load_resumable(run, overrides)
    reason = reason_finished(run, cfg, checkpoint)
    if reason:
        lock.release()
        print(printable(f"{run} {reason}; nothing was changed"))
        return 0
    return _run(cfg, lambda callback: resume(run, cfg, checkpoint, lock, callback))


def train_config(
    cfg: TrainConfig, files: Mapping[str, str] | None = None, exist_ok: bool = False
) -> int:
    """Train by a config; the exit code. files, exist_ok: as for train."""
    with no_garbage_collection():
        from rlgames.training.run import train

    return _run(cfg, lambda callback: train(cfg, callback, files, exist_ok))


def _run(cfg: TrainConfig, training: Callable[[Callback | None], TrainingResult]) -> int:
    """Call the training of a config with a live view, then print its result and what comes next."""
    from rlgames.cli.display import print_next_commands, print_result
    from rlgames.cli.live_view import training_view
    from rlgames.core.errors import NonFiniteError

    try:
        with training_view(cfg.games) as callback:
            result = training(callback)
    except NonFiniteError as error:
        return report_error(to_user_error(error), False, 3)
    print_result(result)
    print_next_commands(result.directory, cfg.plugins, cfg.logger)
    return 0
