"""The config of a command for a run, whose game may not differ; the players of a command."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any, TypeVar

import torch

from rlgames.commands.configs import MatchConfig, PlayerConfig, WatchConfig
from rlgames.config.compose import load_config
from rlgames.config.files import OptionFiles
from rlgames.config.options.players import RandomConfig, RunPlayerConfig
from rlgames.config.schema import OptionConfig, as_typed, groups_of, names_of
from rlgames.config.training import TrainConfig
from rlgames.config.typed import checked_value
from rlgames.config.words import Grammar, key_of, parse
from rlgames.core.errors import ConfigError
from rlgames.core.text import printable
from rlgames.core.untrusted import sanitized
from rlgames.factory.agents import build_player, load_agent, trained_config, with_search
from rlgames.factory.components import build_game
from rlgames.games.game import Game
from rlgames.players.player import Player
from rlgames.runs.index import newest_run
from rlgames.runs.names import run_name, run_path

C = TypeVar("C")


def config_for_run(schema: type[C], run: Path | None, words: list[str]) -> C:
    """A command's config; raises ConfigError for what differs from a run's training."""
    if run is None:
        return _config_without_run(schema, words)
    trained = trained_config(run)
    if "player" in groups_of(schema) and any(word.startswith("player=") for word in words):
        raise ConfigError("player= cannot be combined with a run", "omit one of the two")
    words = drop_training_words(schema, words, trained)
    return dataclasses.replace(load_config(schema, words), game=trained.game)  # type: ignore[type-var]


def _config_without_run(schema: type[C], words: list[str]) -> C:
    cfg: Any = load_config(schema, words)
    command = schema.__name__.removesuffix("Config").lower()
    if getattr(cfg, "checkpoint", None) is not None:
        raise ConfigError(f"checkpoint={cfg.checkpoint} needs a run", "omit checkpoint=")
    has_players = isinstance(cfg, MatchConfig | WatchConfig)
    if cfg.game is None or (has_players and cfg.player is None):
        latest = newest_run(Path("outputs"))
        example = "RUN" if latest is None else shlex.quote(str(latest))
        player = "player=random " if "player" in groups_of(schema) else ""
        raise ConfigError(
            f"{command} needs a run{', or a player and a game' if has_players else ' or a game'}",
            f"as in: rlgames {command} {example}, or with {player}game=tictactoe",
        )
    return cfg


def drop_training_words(schema: type, words: list[str], trained: TrainConfig) -> list[str]:
    """The words without those that repeat a training setting of the run.

    Raises ConfigError that names all that differ.
    """
    own = {name for name in names_of(schema) if name != "game"}
    remaining: list[str] = []
    wrong: list[str] = []
    grammar = Grammar(TrainConfig, OptionFiles())
    for word in words:
        name = key_of(word).removeprefix("game.")
        owner, key = _owner(trained, name)
        is_known, current = hasattr(owner, key), getattr(owner, key, None)
        top = name.partition(".")[0]
        if top in own or not (is_known or top in groups_of(TrainConfig)):
            remaining.append(word)
        elif not is_known or not _repeats(grammar, word, owner, key, current):
            current = [*current] if isinstance(current, dict) else getattr(current, "name", current)
            shown = sanitized(as_typed(current), 100)
            wrong.append(f"{word} differs from the trained {name}={shown}")
    if wrong:
        raise ConfigError(", ".join(wrong), "a run keeps its training settings; omit it")
    return remaining


def _owner(trained: TrainConfig, name: str) -> tuple[Any, str]:
    """The config that would hold a key or a group, as it is typed, and the key's name in it."""
    group, _, key = name.rpartition(".")
    if group:
        return getattr(trained, group, None), key
    return (trained if hasattr(trained, name) else trained.game), name


def _repeats(grammar: Grammar, word: str, owner: Any, key: str, current: Any) -> bool:
    """Whether a word has the trained value, however that is written."""
    value = parse(grammar.for_parser(word)).value()
    if isinstance(current, dict):
        return (value if isinstance(value, list) else [value] if value else []) == [*current]
    if key in groups_of(type(owner)):
        return str(value) == str(getattr(current, "name", current))
    return bool(checked_value(type(owner), key, value) == current)


def game_and_player(
    cfg: PlayerConfig, device: torch.device, run: Path | None
) -> tuple[Game[Any], Player | None]:
    """The game, and the run's agent or the named player, with a search around it if given.

    The player is None if none is named.
    """
    if run is not None:
        agent = load_agent(run, cfg.sampling, device, cfg.checkpoint)
        return agent.game, with_search(agent, agent.game, cfg.search, run)
    game = build_game(cfg.game).to(device)
    player = cfg.player
    return game, None if player is None else build_player(player, game, cfg.game, cfg.search)


def build_opponent(cfg: MatchConfig | WatchConfig, game: Game[Any]) -> Player | None:
    """The player in the other seat; None in a one-player game. Raises ConfigError for one there."""
    if game.spec.seats == 2:
        return build_player(cfg.opponent or RandomConfig(), game, cfg.game, cfg.opponent_search)
    check_no_opponent(game, cfg.opponent, cfg.opponent_search)
    return None


def check_no_opponent(game: Game[Any], *options: OptionConfig | None) -> None:
    """Raises ConfigError if one of these options is about an opponent in a one-player game."""
    if game.spec.seats == 1 and any(options):
        raise ConfigError(f"{game.spec.name} is a one-player game", "remove opponent=")


def player_name(
    player: OptionConfig | None, run: Path | None = None, search: OptionConfig | None = None
) -> str:
    """What a player is called on a screen: a run as it is typed, random if no option names anybody,
    and behind a plus how it looks ahead."""
    name = option_name(player) if run is None else run_name(run)
    return printable(name) + ("" if search is None else f"+{search.name}")


def option_name(player: OptionConfig | None) -> str:
    """The name of a player's option, or of its run; random without an option."""
    if player is None:
        return "random"
    if isinstance(player, RunPlayerConfig):
        return run_name(run_path(player.path))
    return player.name
