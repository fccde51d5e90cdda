"""`rlgames resume`: go on with a run where it stopped."""

from __future__ import annotations

from pathlib import Path

import filelock
from omegaconf import DictConfig

from rlgames.commands.run_config import drop_training_overrides
from rlgames.config import plugins
from rlgames.config.checks import from_plain, to_plain
from rlgames.config.compose import load_config
from rlgames.core import distributed
from rlgames.core.errors import ConfigError
from rlgames.runs.checkpoint import BEST, LATEST, BadCheckpoint, Checkpoint
from rlgames.runs.directory import lock_directory
from rlgames.runs.files import read_run


def load_resumable(
    run: Path, overrides: list[str]
) -> tuple[DictConfig, Checkpoint, filelock.BaseFileLock | None]:
    """The checked config to go on with, the checkpoint to go on from, and the run's lock, for the
    first of several processes; a checkpoint that was read before could be another's past.

    Raises ConfigError for what differs from the run's training and may not, and BadCheckpoint.
    """
    if not run.is_dir():
        raise ConfigError(f"{run} is no run's directory", "resume names the directory")
    overrides = plugins.load_plugins(overrides)
    lock = lock_directory(run) if distributed.rank() == 0 else None
    try:
        return *_resumable(run, overrides), lock
    except BaseException:
        if lock is not None:
            lock.release()
        raise


def _resumable(run: Path, overrides: list[str]) -> tuple[DictConfig, Checkpoint]:
    found = _latest(run)
    own = from_plain(found.config)
    words = drop_training_overrides("resume", overrides, own)
    given = to_plain(load_config("resume", words))
    changed = {name: value for name, value in given.items() if value is not None}
    cfg = from_plain(to_plain(own) | changed)
    if cfg.games < found.games and not reason_finished(run, own, found):
        raise ConfigError(
            f"games={cfg.games}, and {found.games:,} are played already",
            f"games={own.games} is what the run was to have",
        )
    return cfg, found


def reason_finished(run: Path, cfg: DictConfig, found: Checkpoint) -> str:
    """That a run has come to its end, where cfg wants no more of it; otherwise nothing."""
    progress, played = found.state.get("progress"), found.games
    if read_run(run).get("status") != "done":
        return ""
    if isinstance(progress, dict) and progress.get("has_converged"):
        return f"has converged, after {played:,} games"
    longer = plugins.command_for_run("resume", run, list(cfg.plugins), f"games={2 * played}")
    told = f"is finished, after {played:,} games, and this makes it longer: {longer}"
    return told if cfg.games <= played else ""


def _latest(run: Path) -> Checkpoint:
    """Raises BadCheckpoint with what else could be done."""
    path = run / "checkpoints" / LATEST
    try:
        found = Checkpoint.read(path)
    except BadCheckpoint as error:
        kept = [*path.parent.glob("games_*.safetensors"), *path.parent.glob(BEST)]
        newest = max(kept, key=lambda other: other.stat().st_mtime, default=None)
        hint = f"a new run can begin with other weights: init_from={newest}" if newest else ""
        raise BadCheckpoint(error.error, hint) from None
    if not found.state:
        raise BadCheckpoint(f"{path} holds a policy only, and nothing to go on from")
    return found
