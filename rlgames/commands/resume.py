"""`rlgames resume`: continue a run from its latest checkpoint, or a sweep; the jobs of a sweep."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlgames.commands import train
from rlgames.config import plugins
from rlgames.config.commands import MOVABLE_PLAYERS, RESUMABLE_KEYS, TrainConfig
from rlgames.config.options.players import RunPlayerConfig
from rlgames.config.overrides import quoted
from rlgames.config.typed import as_words, from_plain
from rlgames.core.errors import ConfigError
from rlgames.core.text import printable
from rlgames.runs.checkpoint import BadCheckpoint, Checkpoint
from rlgames.runs.directory import DirectoryLock, lock_directory
from rlgames.runs.files import BEST, LATEST, read_info, sweep_start
from rlgames.runs.find import find_run, located, newest_run, run_name

LAUNCHER_WORDS = re.compile(
    r"hydra/(launcher|sweeper)=\w+|hydra\.launcher\.jobs=\d+"
    r"|hydra\.sweeper\.(n_trials|n_jobs|seed|direction)=\w+"
)
"""Hydra's own words that a resumed sweep keeps: none of them runs code that a file names."""


def run(config: Any) -> train.Result | None:
    """Resume a run, with a view of the progress; None if it is finished."""
    run = _found(config)
    if config.jobs is not None:
        raise ConfigError(f"jobs= is for a sweep, and {run_name(run)} is a run", "omit it")
    cfg, checkpoint, lock = load_resumable(run, config)
    if reason := reason_finished(run, cfg, checkpoint):
        lock.release()
        print(printable(f"{run} {reason}; nothing was changed"))
        return None
    from rlgames.terminal.progress import training_view
    from rlgames.training.train import resume

    with training_view(cfg.games, train.in_words(cfg, None)) as callback:
        return train.Result(cfg, resume(run, cfg, checkpoint, lock, callback))


show = train.show


def _found(config: Any) -> Path:
    if config.run is None:
        raise ConfigError("resume needs a run", "as in: rlgames resume RUN games=500000")
    return find_run(config.run, is_player=False)


def sweep_words(config: Any, folders: Sequence[Path]) -> list[str]:
    """How a sweep was started, which may be a stranger's, and what its resumption changes; none
    for a run. Typed again, jobs that are done return at once.

    folders: from --config-dir, which the sweep's file may name but not choose: configs may run
    code. Raises ConfigError for words that run code.
    """
    directory = _found(config)
    start = sweep_start(directory)
    if start is None:
        return []
    words = start.words
    if unsafe := start.unsafe_words:
        raise ConfigError(
            f"the sweep was started with {unsafe[0]}", "type its words again if you trust them"
        )
    if start.folder and not folders:
        again = shlex.join(["rlgames", "resume", config.run, "--config-dir", start.folder])
        raise ConfigError(
            f"the sweep was started with --config-dir {start.folder}",
            f"if you trust this folder: {again}",
        )
    kept = [word for word in start.hydra if LAUNCHER_WORDS.fullmatch(word)]
    more = as_words(config, *(name for name in vars(config) if name != "run"))
    if not any(word.startswith("experiment=") for word in words):
        words = [*words, "experiment=null"]  # Hydra was told of no preset
    own = [f"--config-dir={folder}" for folder in folders]
    return [*own, "-m", *words, *kept, f"hydra.sweep.dir={quoted(str(directory))}", *more]


def load_resumable(run: Path, config: Any) -> tuple[TrainConfig, Checkpoint, DirectoryLock]:
    """The checked config and the checkpoint of a run, and its lock, which is taken first: another
    process could replace a checkpoint read before.

    Raises ConfigError for what differs from the run's training and may not, and BadCheckpoint.
    """
    if not run.is_dir():
        hint = f"name the directory, or start a new run from its weights: init_from={run_name(run)}"
        raise ConfigError(f"{run_name(run)} is not the directory of a run", hint)
    if not os.path.lexists(run / "run.json") and (newest := newest_run(run)) is not None:
        raise ConfigError(f"{run} is not the directory of a run", f"its newest run is {newest}")
    lock = lock_directory(run)
    try:
        return *_resumable(run, config), lock
    except BaseException:
        lock.release()
        raise


def _resumable(run: Path, config: Any) -> tuple[TrainConfig, Checkpoint]:
    checkpoint = _latest(run)
    trained = from_plain(checkpoint.config)
    changed = {name: value for name, value in vars(config).items() if value is not None}
    changed.pop("run", None)
    for name in MOVABLE_PLAYERS:
        players = (getattr(trained, name), changed.get(name))
        is_moved = all(isinstance(player, RunPlayerConfig) for player in players)
        if name in changed and not (is_moved or players[0] == players[1]):
            raise ConfigError(f"{name}= differs from the training", f"a run keeps it; omit {name}=")
    cfg = located(dataclasses.replace(trained, **changed), has_started=True)
    # A run with window= may play more games than it has to.
    enough = min(checkpoint.games, trained.games)
    if cfg.games < enough:
        raise ConfigError(
            f"games={cfg.games} is too few: {checkpoint.games:,} games are already played",
            f"the run has games={trained.games}",
        )
    if not can_resume(checkpoint) and not reason_finished(run, cfg, checkpoint):
        raise BadCheckpoint(
            f"{run / 'checkpoints' / LATEST} holds a policy only and cannot be resumed",
            f"start a new run from its weights: init_from={run}",
        )
    return cfg, checkpoint


def train_job(config: TrainConfig, name: str) -> float | None:
    """Train a job of a sweep unless it is done, from its checkpoint if it has one; the value of
    best_by. name: for people.

    Raises ConfigError if the run there differs from the job in more than a run may change.
    """
    from rlgames.training.train import resume, train

    assert config.out is not None
    directory = Path(config.out)
    has_started = os.path.lexists(directory / "checkpoints" / LATEST)
    config = located(config, has_started)
    with contextlib.ExitStack() as stack:
        if not has_started:
            print(f"{name}: starts", flush=True)
            train(config)
        else:
            lock = lock_directory(directory)
            stack.callback(lock.release)
            checkpoint = _latest(directory)
            _check_same(directory, config, from_plain(checkpoint.config))
            if reason_finished(directory, config, checkpoint):
                print(f"{name}: done before", flush=True)
                return _reached(directory)[1]
            print(f"{name}: goes on after {checkpoint.games:,} games", flush=True)
            resume(directory, config, checkpoint, lock)
    best_by, value = _reached(directory)
    shown = "" if value is None else f", {best_by} {value:.4g}"
    print(f"{name}: done{shown}", flush=True)
    return value


def _check_same(directory: Path, cfg: TrainConfig, trained: TrainConfig) -> None:
    """Raises ConfigError if a job differs from its run in keys that a run keeps."""
    kept = {*RESUMABLE_KEYS, "engine", "out"}
    if cfg.init_from and trained.init_from and not os.path.exists(trained.init_from):
        kept.add("init_from")  # which was moved, perhaps together with the sweep
    names = [name for name, value in vars(cfg).items() if value != getattr(trained, name)]
    if names := [name for name in names if name not in kept]:
        raise ConfigError(
            f"{directory} holds a run with another {', '.join(names)}", "name another out="
        )


def _reached(directory: Path) -> tuple[str, float | None]:
    """The metric that selected the best checkpoint of a run that is done, and its value."""
    info = read_info(directory)
    return info.best_by, info.results.get(info.best_by)


def can_resume(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint has more than a policy and its progress."""
    return "learner" in checkpoint.state


def reason_finished(run: Path, cfg: TrainConfig, checkpoint: Checkpoint) -> str:
    """Why a run is finished, unless cfg has more games; empty for an unfinished run.

    Raises OSError.
    """
    progress, played = checkpoint.state.get("progress"), checkpoint.games
    if read_info(run).status != "done":
        return ""
    if isinstance(progress, dict) and progress.get("has_converged"):
        return f"has converged, after {played:,} games"
    if cfg.games > played:
        return ""
    longer = plugins.command_for_run("resume", run, cfg.plugins, f"games={2 * played}")
    hint = f"; extend it with: {longer}" if can_resume(checkpoint) else ""
    return f"is finished, after {played:,} games{hint}"


def _is_readable(path: Path) -> bool:
    """Whether a file is a checkpoint that is not damaged."""
    try:
        Checkpoint.read(path)
    except BadCheckpoint:
        return False
    return True


def _latest(run: Path) -> Checkpoint:
    """The latest checkpoint; raises BadCheckpoint with an alternative."""
    path = run / "checkpoints" / LATEST
    try:
        return Checkpoint.read(path)
    except BadCheckpoint as error:
        kept = path.parent.glob("games_*.safetensors")
        others = [*path.parent.glob(BEST), *sorted(kept, key=lambda each: (len(each.name), each))]
        others = [each for each in others if _is_readable(each)]
        hint = f"start a new run from other weights: init_from={others[-1]}" if others else ""
        is_new = not others and not os.path.lexists(path)
        if is_new and read_info(run).status in ("running", "interrupted", "failed"):
            again = shlex.join(["rlgames", "train", str(run), f"out={run}"])
            hint = f"it ended before its first checkpoint; start it again: {again}"
        raise BadCheckpoint(error.error, hint) from None
