"""The names of runs: paths, `latest`, and the agents that come with rlgames.

Nothing heavy is imported.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import yaml

from rlgames.config.commands import TrainConfig
from rlgames.config.options.players import RunPlayerConfig
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import groups_of
from rlgames.core.errors import ConfigError, nearest, nearest_path
from rlgames.core.untrusted import YAML_LOADER

LATEST_RUN = "latest"
"""Names the newest run in outputs/."""

AGENTS = Path(__file__).parents[1] / "agents"
"""The folder of the agents that come with rlgames."""


def shipped_agent(game: str) -> Path | None:
    """The checkpoint of the agent that comes with rlgames for a game of this name, if any."""
    return shipped_agents().get(game)


def shipped_agents() -> dict[str, Path]:
    """All agents that come with rlgames, by the names of their games."""
    return {path.stem: path for path in sorted(AGENTS.glob("*.safetensors"))}


def agent_strengths() -> dict[str, str]:
    """How strong each agent that comes with rlgames is, as a phrase, by the name of its game."""
    measured = yaml.load((AGENTS / "strength.yaml").read_text(encoding="utf-8"), YAML_LOADER)
    return {name: each["text"] for name, each in measured.items()}


def run_path(name: str) -> Path:
    """The path of a named run, which may not exist.

    An existing path comes first. RUN/checkpoints is RUN, `latest` the newest run in outputs/, and
    the name of a game the agent that comes with it.

    Raises:
        ConfigError: if no run is the newest.
    """
    path = Path(os.path.expanduser(name))
    if os.path.exists(path):
        is_folder = path.name == "checkpoints" and os.path.exists(path.parent / "run.json")
        return path.parent if is_folder else path
    if name == LATEST_RUN:
        from rlgames.runs.index import newest_run  # which imports NumPy

        run = newest_run(Path("outputs"))
        if run is None:
            raise ConfigError("outputs/ holds no run", "name the directory of a run")
        return run
    return shipped_agent(name) or path


def is_run(name: str) -> bool:
    """Whether a word names a run."""
    is_there = os.path.exists(os.path.expanduser(name))
    return is_there or name in (LATEST_RUN, *shipped_agents())


def run_name(run: str | Path) -> str:
    """What a person types for a run, and reports call it: the inverse of run_path."""
    path = Path(run)
    is_shipped = path.parent == AGENTS and not os.path.exists(path.stem)
    return path.stem if is_shipped else str(run)


def find_run(name: str, is_training: bool = False, is_player: bool = True) -> Path:
    """The run of a path or an agent's name. Raises ConfigError if there is none.

    is_player: a player may be named instead, so they are suggested too; is_training: also those
    that exist only in training.
    """
    path = run_path(name)
    if os.path.exists(path):
        return path
    if not is_player:
        hint = nearest_path(name, is_directory=True) or nearest(name, [*shipped_agents()])
        raise ConfigError(f"there is no run {name!r}, and no agent of this name", hint)
    names = [
        player
        for player, option in REGISTRY["player"].items()
        if player != "run" and (is_training or not option.training_only)
    ]
    hint = nearest_path(name, is_directory=True) or nearest(name, [*names, *shipped_agents()])
    raise ConfigError(f"no player is called {name!r}, and there is no run there", hint)


def located(cfg: TrainConfig) -> TrainConfig:
    """A training whose runs and records are named by absolute paths, so that it can resume from
    any folder. Typed paths are relative to the folder where the command is typed.

    Raises ConfigError for a player who is not there.
    """
    changed: dict[str, object] = {}
    for name, group in groups_of(TrainConfig).items():
        player = getattr(cfg, name)
        if isinstance(player, RunPlayerConfig):
            path = find_run(player.path, group.is_training).absolute()
            changed[name] = dataclasses.replace(player, path=str(path))
    if cfg.init_from:
        path = run_path(cfg.init_from)
        if not os.path.exists(path):
            raise ConfigError(
                f"there is no run at {cfg.init_from}", "init_from= names a run or a checkpoint"
            )
        changed["init_from"] = str(path.absolute())
    if cfg.demonstrations:
        changed["demonstrations"] = os.path.abspath(cfg.demonstrations)
    return dataclasses.replace(cfg, **changed)  # type: ignore[arg-type]
