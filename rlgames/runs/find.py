"""Finds runs by their names, paths and folders, and sums them up; imports nothing heavy.

A name is a path, `latest`, or a game that a bundled agent plays.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from rlgames.config.commands import TrainConfig
from rlgames.config.options.players import RunPlayerConfig
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import groups_of
from rlgames.config.typed import from_plain
from rlgames.core.errors import ConfigError, closest, nearest
from rlgames.core.untrusted import YAML_LOADER, sanitized
from rlgames.runs import storage
from rlgames.runs.files import (
    CONFIG_FILE,
    MAX_FILE_BYTES,
    read_info,
)

LATEST_RUN = "latest"
"""Names the newest run in outputs/."""

AGENTS = Path(__file__).parents[1] / "agents"
"""The folder of the bundled agents."""


def shipped_agent(game: str) -> Path | None:
    """The checkpoint of the bundled agent for a game of this name, if any."""
    return shipped_agents().get(game)


def shipped_agents() -> dict[str, Path]:
    """All bundled agents, by the names of their games."""
    return {path.stem: path for path in sorted(AGENTS.glob("*.safetensors"))}


def agent_strengths() -> dict[str, str]:
    """How strong each bundled agent is, as a phrase, by the name of its game."""
    measured = yaml.load((AGENTS / "strength.yaml").read_text(encoding="utf-8"), YAML_LOADER)
    return {name: each["text"] for name, each in measured.items()}


def run_path(name: str) -> Path:
    """The path of a named run, which may not exist.

    An existing path comes first. RUN/checkpoints is RUN, `latest` the newest run in outputs/, and
    the name of a game its bundled agent. Raises ConfigError if no run is the newest.
    """
    path = Path(os.path.expanduser(name))
    if os.path.exists(path):
        is_folder = path.name == "checkpoints" and os.path.exists(path.parent / "run.json")
        return path.parent if is_folder else path
    if name == LATEST_RUN:
        run = newest_run(Path("outputs"))
        if run is None:
            raise ConfigError("outputs/ holds no run", "name the directory of a run")
        return run
    return shipped_agent(name) or path


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
    names = [*shipped_agents()]
    error = f"there is no run {name!r}, and no agent of this name"
    if is_player:
        names += [
            player
            for player, option in REGISTRY["player"].items()
            if player != "run" and (is_training or not option.training_only)
        ]
        error = f"no player is called {name!r}, and there is no run there"
    raise ConfigError(error, _nearest_folder(name) or nearest(name, names))


def _nearest_folder(name: str) -> str:
    """A hint for a folder that is missing: one next to it with a similar name, or nothing."""
    parent, slash, _ = name.rpartition("/")
    siblings: list[str] = []
    with contextlib.suppress(OSError, ValueError), os.scandir(parent + slash or ".") as entries:
        siblings = [f"{parent}{slash}{entry.name}" for entry in entries if entry.is_dir()]
    return nearest(name, siblings) if closest(name, siblings) else ""


def located(cfg: TrainConfig, has_started: bool = False) -> TrainConfig:
    """A training whose runs and records are named by absolute paths, so that it can resume from
    any folder. Typed paths are relative to the folder where the command is typed.

    has_started: it has the weights of init_from=, which may be gone.
    Raises ConfigError for a run that is not there.
    """
    changed: dict[str, Any] = {}
    for name, group in groups_of(TrainConfig).items():
        player = getattr(cfg, name)
        if isinstance(player, RunPlayerConfig):
            path = find_run(player.path, group.is_training).absolute()
            changed[name] = dataclasses.replace(player, path=str(path))
    if cfg.init_from:
        find = run_path if has_started else partial(find_run, is_player=False)
        changed["init_from"] = str(find(cfg.init_from).absolute())
    if cfg.demonstrations:
        changed["demonstrations"] = os.path.abspath(cfg.demonstrations)
    return dataclasses.replace(cfg, **changed)


def read_config(run: Path) -> TrainConfig:
    """The config of a run, of its directory or of a checkpoint. Raises ConfigError."""
    if not run.is_dir():
        from rlgames.runs.checkpoint import Checkpoint

        return from_plain(Checkpoint.read(run).config)
    path = run / CONFIG_FILE
    try:
        storage.check_plain(run)
        values = yaml.load(storage.read_file(run, CONFIG_FILE, MAX_FILE_BYTES), YAML_LOADER)
        if not isinstance(values, dict):
            raise ConfigError("it holds no keys")
        return from_plain({str(name): value for name, value in values.items()})
    except FileNotFoundError:
        newest = newest_run(run)
        hint = f"its newest run is {newest}" if newest else "name the directory of a run"
        raise ConfigError(f"{run} holds no {CONFIG_FILE}", hint) from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.error}", error.hint) from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = sanitized(" ".join(str(error).split()), 200)
        raise ConfigError(f"{path} cannot be read: {reason}") from None


def newest_run(top: Path) -> Path | None:
    """The run with a checkpoint inside a directory that started last, None if there is none."""
    runs = [Path(run) for run in _runs_inside(str(top))]
    runs = [run for run in runs if any((run / "checkpoints").glob("*.safetensors"))]
    return max(runs[::-1], key=lambda run: read_info(run).start_time, default=None)


def find_runs(directories: list[str]) -> list[Path]:
    """The runs in each of the directories in turn, sorted by name; each run once.

    Raises ConfigError for a directory that does not exist or contains no run.
    """
    runs: dict[str, Path] = {}
    for name in directories:
        top = Path(name)
        if not top.exists():
            raise ConfigError(f"there is no directory {name}", _nearest_folder(name))
        inside = list(_runs_inside(str(top)))
        if not inside:
            raise ConfigError(f"there is no run in {name}", "a run is a directory with run.json")
        real = os.path.realpath(top)  # no link is followed below it
        for path in inside:
            runs.setdefault(real + path[len(str(top)) :], Path(path))
    return list(runs.values())


def _runs_inside(top: str) -> Iterator[str]:
    """Sorted by name, with numbers by size. Hidden directories and links are skipped, and so is
    what lies inside a run. A directory without permission counts as an unreadable run."""
    errors: list[OSError] = []
    for directory, folders, files in os.walk(top, onerror=errors.append):
        if "run.json" in (*folders, *files):
            folders.clear()
            yield directory
        visible = [name for name in folders if not name.startswith(".")]
        folders[:] = sorted(visible, key=_natural)
    yield from (str(error.filename) for error in errors if isinstance(error, PermissionError))


def _natural(name: str) -> list[str | int]:
    """A sort key that puts seed=10 after seed=9."""
    parts = re.split("([0-9]{1,9})", name)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]
