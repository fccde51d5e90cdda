"""The config of a command for a run, whose game may not differ; the players of a command."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from rlgames.config import plugins
from rlgames.config.command_schemas import CONFIGS, TRAIN
from rlgames.config.compose import load_config
from rlgames.config.overrides import parse_overrides
from rlgames.config.registry import LIST_GROUPS
from rlgames.core.errors import ConfigError
from rlgames.core.text import json_text, printable
from rlgames.core.untrusted import sanitized
from rlgames.factory.agents import build_player, load_agent, trained_config, with_search
from rlgames.factory.components import arguments, build_device, build_game
from rlgames.games.game import Game
from rlgames.players.player import Player
from rlgames.runs.hub import agent_name
from rlgames.runs.index import newest_run


def config_for_run(command: str, run: Path | None, overrides: list[str]) -> DictConfig:
    """A command's checked config; raises ConfigError for what differs from a run's training."""
    overrides = plugins.load_plugins(overrides)
    if run is None:
        cfg = load_config(command, overrides)
        if cfg.get("checkpoint") is not None:
            raise ConfigError(f"checkpoint={cfg.checkpoint} needs a run", "omit checkpoint=")
        if "game" not in cfg:
            latest = newest_run(Path("outputs"))
            example = "RUN" if latest is None else shlex.quote(str(latest))
            player = "player=random " if "player" in CONFIGS[command].group_names else ""
            raise ConfigError(
                f"{command} needs a run or a game",
                f"as in: rlgames {command} {example}, or with {player}game=tictactoe",
            )
        return cfg
    trained = trained_config(run)
    cfg = load_config(command, overrides_for_run(command, run, overrides))
    for name, value in trained.game.items():
        if cfg.game.get(name) != value:
            trained_value = sanitized(value, 100)
            raise ConfigError(
                f"{name}={cfg.game.get(name)} differs from the trained {name}={trained_value}",
                "a run plays the game it was trained on",
            )
    return cfg


def overrides_for_run(command: str, run: Path, overrides: list[str]) -> list[str]:
    """The overrides of a command for a run: its game, and what was typed besides its training.

    Raises ConfigError for what differs from the training.
    """
    trained = trained_config(run)
    for text in overrides:
        name = text.partition("=")[2].strip("'\"")
        if text.startswith("game=") and name != trained.game.name:
            raise ConfigError(
                f"{text} differs from the trained game={trained.game.name}",
                "a run plays the game it was trained on",
            )
    fixed = [f"game={trained.game.name}"]
    fixed += [f"{name}={json_text(value)}" for name, value in arguments(trained.game).items()]
    remaining = drop_training_overrides(command, overrides, trained)
    if any(text.startswith("player=") for text in remaining):
        raise ConfigError("player= cannot be combined with a run", "omit one of the two")
    return fixed + remaining


def drop_training_overrides(command: str, overrides: list[str], trained: DictConfig) -> list[str]:
    """The overrides without those that repeat a training setting of the run.

    Raises ConfigError that names all that differ.
    """
    remaining, wrong = [], []
    for text in overrides:
        name = text.partition("=")[0]
        top = name.split(".")[0]
        is_game_key = name in trained.game and "game" not in CONFIGS[command].group_names
        if not is_game_key and (top not in TRAIN.key_names or top in CONFIGS[command].key_names):
            remaining.append(text)
            continue
        node = trained.game if is_game_key else trained
        if not _repeats(text, node, name):
            current = _plain(OmegaConf.select(node, name), name)
            wrong.append(f"{text} differs from the trained {name}={sanitized(current, 100)}")
    if wrong:
        raise ConfigError(", ".join(wrong), "a run keeps its training settings; omit it")
    return remaining


def _repeats(text: str, trained: DictConfig, name: str) -> bool:
    """Whether an override has the trained value, however that is written."""
    parent, _, key = name.rpartition(".")
    node = OmegaConf.select(trained, parent) if parent else trained
    if not isinstance(node, DictConfig) or key not in node:
        return False
    current = _plain(node[key], name)
    typed = text.partition("=")[2]
    if str(current) == typed:
        return True
    value = parse_overrides([text])[0].value()
    if name in LIST_GROUPS:
        value = [value] if isinstance(value, str) else value or []
    # True is 1 for Python.
    return bool(value == current) and isinstance(value, bool) == isinstance(current, bool)


def _plain(node: Any, name: str) -> Any:
    """A setting as a value: of a group its option, of a group of LIST_GROUPS a list of them."""
    if name in LIST_GROUPS:
        return [*(node or ())]
    if isinstance(node, DictConfig):
        return node.get("name")
    return OmegaConf.to_container(node) if isinstance(node, ListConfig) else node


def game_and_player(
    cfg: DictConfig, run: Path | None, prepare: Callable[[Game[Any]], Game[Any]] = lambda game: game
) -> tuple[Game[Any], Player | None]:
    """The game of cfg, and the run's agent or the player that cfg names, with the search of cfg.

    prepare: makes the game that is played from the one that is built. The player is None where
    none is named.
    """
    device, search = build_device(cfg), cfg.get("search")
    if run is not None:
        agent = load_agent(run, cfg, cfg.checkpoint)
        agent.game = prepare(agent.game)
        return agent.game, with_search(agent, agent.game, search, run)
    game = prepare(build_game(cfg).to(device))
    return game, build_player(cfg.player, cfg, game, search) if "player" in cfg else None


def player_name(
    node: DictConfig | None, run: Path | None = None, search: DictConfig | None = None
) -> str:
    """What a player is called where it is looked at: a run by its path, random where no node names
    anybody, and behind a plus how it looks ahead."""
    if run is None and node is not None and node.name == "run":
        run = Path(node.path)
    name = agent_name(run) if run is not None else "random" if node is None else str(node.name)
    return printable(name) + ("" if search is None else f"+{search.name}")
