"""`rlgames resume`: continue a run from its latest checkpoint."""

from __future__ import annotations

import dataclasses
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlgames.config import plugins
from rlgames.config.commands import MOVABLE_PLAYERS, RESUMABLE_KEYS, TrainConfig
from rlgames.config.options.players import RunPlayerConfig
from rlgames.config.typed import from_plain
from rlgames.core.errors import ConfigError
from rlgames.runs.checkpoint import BadCheckpoint, Checkpoint
from rlgames.runs.directory import DirectoryLock, lock_directory
from rlgames.runs.files import BEST, LATEST, read_run
from rlgames.runs.find import located, newest_run, run_name


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
    cfg = located(dataclasses.replace(trained, **changed))
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
            f"start a new run from its weights: init_from={run}, "
            "or train with keep_resume_state=true",
        )
    return cfg, checkpoint


@dataclass(frozen=True)
class ResumableJob:
    """A job of a sweep that was started before. lock: of its directory, None if it is done."""

    config: TrainConfig
    checkpoint: Checkpoint
    lock: DirectoryLock | None

    @property
    def is_done(self) -> bool:
        return self.lock is None


def resumable_job(directory: Path, cfg: TrainConfig) -> ResumableJob | None:
    """What a sweep finds in the directory of a job; None without a checkpoint.

    Raises ConfigError if the run there differs from the job in more than a run may change.
    """
    if not os.path.lexists(directory / "checkpoints" / LATEST):
        return None
    lock = lock_directory(directory)
    try:
        checkpoint = _latest(directory)
        trained = from_plain(checkpoint.config)
        kept = {name: getattr(trained, name) for name in (*RESUMABLE_KEYS, "engine", "out")}
        if dataclasses.replace(cfg, **kept) != trained:
            names = [name for name, value in vars(cfg).items() if value != getattr(trained, name)]
            names = [name for name in names if name not in kept]
            raise ConfigError(
                f"{directory} holds a run with another {', '.join(names)}", "name another out="
            )
        is_done = bool(reason_finished(directory, cfg, checkpoint))
    except BaseException:
        lock.release()
        raise
    if is_done:
        lock.release()
    return ResumableJob(cfg, checkpoint, None if is_done else lock)


def can_resume(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint has more than a policy and its progress."""
    return "learner" in checkpoint.state


def reason_finished(run: Path, cfg: TrainConfig, checkpoint: Checkpoint) -> str:
    """Why a run is finished, unless cfg has more games; empty for an unfinished run.

    Raises OSError.
    """
    progress, played = checkpoint.state.get("progress"), checkpoint.games
    if read_run(run).get("status") != "done":
        return ""
    if isinstance(progress, dict) and progress.get("has_converged"):
        return f"has converged, after {played:,} games"
    if not can_resume(checkpoint):
        text = f"is finished, after {played:,} games"
        return text if cfg.games <= played else ""
    longer = plugins.command_for_run("resume", run, cfg.plugins, f"games={2 * played}")
    text = f"is finished, after {played:,} games; extend it with: {longer}"
    return text if cfg.games <= played else ""


def _latest(run: Path) -> Checkpoint:
    """The latest checkpoint; raises BadCheckpoint with an alternative."""
    path = run / "checkpoints" / LATEST
    try:
        checkpoint = Checkpoint.read(path)
    except BadCheckpoint as error:
        checkpoints = [*path.parent.glob("games_*.safetensors"), *path.parent.glob(BEST)]
        newest = max(checkpoints, key=lambda other: other.stat().st_mtime, default=None)
        hint = f"start a new run from other weights: init_from={newest}" if newest else ""
        is_new = not checkpoints and not os.path.lexists(path)
        if is_new and read_run(run).get("status") not in (None, "done"):
            again = shlex.join(
                [
                    "rlgames",
                    "train",
                    "--config-dir",
                    str(run),
                    "--config-name",
                    "config",
                    f"out={run}",
                ]
            )
            hint = f"it ended before its first checkpoint; start it again: {again}"
        raise BadCheckpoint(error.error, hint) from None
    return checkpoint
