"""`rlgames resume`: go on with a run where it stopped."""

from __future__ import annotations

from pathlib import Path

from omegaconf import DictConfig

from rlgames import config
from rlgames.checkpoint import BadCheckpoint, Checkpoint
from rlgames.commands.beside import without_what_was_trained
from rlgames.config import ConfigError
from rlgames.run_files import read_run
from rlgames.training import BEST, LATEST


def resume_command(run: Path, overrides: list[str]) -> tuple[DictConfig, Checkpoint]:
    """The checked config to go on with, and the checkpoint to go on from.

    Raises ConfigError for what differs from the run's training and may not, and BadCheckpoint.
    """
    if not run.is_dir():
        raise ConfigError(f"{run} is no run's directory", "resume names the directory")
    overrides = config.with_parts(overrides)
    found = _latest(run)
    own = config.from_plain(found.config)
    words = without_what_was_trained("resume", overrides, own)
    given = config.plain(config.load("resume", words))
    changed = {name: value for name, value in given.items() if value is not None}
    cfg = config.from_plain(config.plain(own) | changed)
    if cfg.games < found.games and not finished(run, own, found):
        raise ConfigError(
            f"games={cfg.games}, and {found.games:,} are played already",
            f"games={own.games} is what the run was to have",
        )
    return cfg, found


def finished(run: Path, cfg: DictConfig, found: Checkpoint) -> bool:
    """Whether a run has come to its end, and cfg wants no more games of it."""
    marks = found.state.get("marks")
    converged = isinstance(marks, dict) and marks.get("converged")
    return read_run(run).get("status") == "done" and (converged or cfg.games <= found.games)


def _latest(run: Path) -> Checkpoint:
    """Raises BadCheckpoint with what else could be done."""
    path = run / "checkpoints" / LATEST
    try:
        found = Checkpoint.read(path)
    except BadCheckpoint as error:
        kept = [*path.parent.glob("games_*.safetensors"), *path.parent.glob(BEST)]
        newest = max(kept, key=lambda other: other.stat().st_mtime, default=None)
        hint = f"a new run can begin with other weights: start={newest}" if newest else ""
        raise BadCheckpoint(error.error, hint) from None
    if not found.state:
        raise BadCheckpoint(f"{path} holds a policy only, and nothing to go on from")
    return found
