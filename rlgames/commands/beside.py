"""The config of a command beside a run: the game is the run's, and may not differ; who plays."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlgames import build, config, errors, plugins
from rlgames.agents import build_player, load_agent, searching, trained_config
from rlgames.command_schemas import GROUPS, known_keys
from rlgames.errors import ConfigError
from rlgames.found_runs import newest
from rlgames.games.game import Game
from rlgames.players.player import Player
from rlgames.untrusted import shown


def config_beside(command: str, run: Path | None, overrides: list[str]) -> DictConfig:
    """A command's checked config; raises ConfigError for what differs from a run's training."""
    overrides = plugins.with_parts(overrides)
    if run is None:
        cfg = config.load(command, overrides)
        if "game" not in cfg:
            latest = newest(Path("outputs"))
            example = "RUN" if latest is None else shlex.quote(str(latest))
            player = "player=random " if "player" in GROUPS[command] else ""
            raise ConfigError(
                f"{command} needs a run or a game",
                f"as in: rlgames {command} {example}, or with {player}game=tictactoe",
            )
        return cfg
    own = trained_config(run)
    fixed = [f"game={own.game.name}"]
    fixed += [
        f"{name}={errors.json_text(value)}" for name, value in build.arguments(own.game).items()
    ]
    kept = without_what_was_trained(command, overrides, own)
    if any(text.startswith("player=") for text in kept):
        raise ConfigError("player= has no place beside a run", "leave one of the two out")
    cfg = config.load(command, fixed + kept)
    for name, value in own.game.items():
        if cfg.game.get(name) != value:
            raise ConfigError(
                f"{name}={cfg.game.get(name)} differs from the trained {name}={shown(value, 100)}",
                "a run plays the game it was trained on",
            )
    return cfg


def without_what_was_trained(command: str, overrides: list[str], own: DictConfig) -> list[str]:
    """The overrides but for those that repeat a key which only training has.

    Raises ConfigError naming all that differ.
    """
    kept, wrong = [], []
    for text in overrides:
        name, _, value = text.partition("=")
        top = name.split(".")[0]
        of_game = name in own.game and "game" not in GROUPS[command]
        if not of_game and (top not in known_keys("train") or top in known_keys(command)):
            kept.append(text)
            continue
        found = own.game.get(name) if of_game else OmegaConf.select(own, name)
        current = found.get("name") if isinstance(found, DictConfig) else found
        if str(current) != value:
            wrong.append(f"{text} differs from the trained {name}={shown(current, 100)}")
    if wrong:
        raise ConfigError(", ".join(wrong), "a run is used as it was trained; leave it out")
    return kept


def game_and_player(cfg: DictConfig, run: Path | None) -> tuple[Game[Any], Player | None]:
    """The game of cfg, and the run's agent or the player that cfg names, looking ahead as it says.

    The player is None where nobody is named.
    """
    device, search = build.build_device(cfg), cfg.get("search")
    if run is not None:
        agent = load_agent(run, cfg)
        return agent.game, searching(agent, agent.game, search, run)
    game = build.build_game(cfg).to(device)
    return game, build_player(cfg.player, cfg, game, search) if "player" in cfg else None


def player_name(
    node: DictConfig | None, run: Path | None = None, search: DictConfig | None = None
) -> str:
    """What a player is called where it is looked at: a run by its path, random where no node names
    anybody, and behind a plus how it looks ahead."""
    if run is None and node is not None and node.name == "run":
        run = Path(node.path)
    name = str(run) if run is not None else "random" if node is None else str(node.name)
    return errors.printable(name) + ("" if search is None else f"+{search.name}")
