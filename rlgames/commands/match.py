"""The run of a command, with its game; the players of a command."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from rlgames.build.agents import OpenRun, checkpoint_digest, open_run
from rlgames.build.players import build_player, with_search
from rlgames.config.commands import MatchConfig, PlayerConfig, ReportedConfig, WatchConfig
from rlgames.config.options.players import ProgramConfig, RunPlayerConfig
from rlgames.config.registry import make
from rlgames.config.schema import OptionConfig, groups_of
from rlgames.config.typed import command_of, make_option, to_plain
from rlgames.core.devices import build_device
from rlgames.core.errors import ConfigError
from rlgames.core.text import printable
from rlgames.games.game import Game
from rlgames.players.player import Player
from rlgames.runs.find import LATEST_RUN, find_run, newest_run, run_name, run_path
from rlgames.runs.reports import check_report
from rlgames.runs.table import read_runs
from rlgames.runs.where import matching

C = TypeVar("C")


@dataclass(frozen=True)
class Match:
    """A run or another player with its game and, in a game with two seats, its opponent.

    cfg: of the command, with the game of the run. run: None for another player.
    """

    cfg: Any
    run: OpenRun | None
    game: Game[Any]
    player: Player
    opponent: Player | None

    @property
    def goal(self) -> str:
        return self.game.spec.goal

    @property
    def names(self) -> list[str]:
        """The players as reports and records name them."""
        names = [option_name(self.cfg.player) if self.run is None else self.run.name]
        return names if self.opponent is None else [*names, option_name(self.cfg.opponent)]

    @property
    def seats(self) -> list[str]:
        """The opponent with its search, as the names of reports have them."""
        search = self.cfg.opponent_search
        added = "" if search is None else f"+{search.name}"
        return [f"{name}{added}" for name in self.names[1:]]

    @property
    def directory(self) -> Path | None:
        """Where the report is kept; None for a player without a directory."""
        return report_directory(self.cfg, None if self.run is None else self.run.path)

    @property
    def digests(self) -> dict[str, str | None]:
        """The checksums of all checkpoints that play, by the keys that name them."""
        found = {} if self.run is None else {"run": self.run.digest}
        for seat in ("player", "opponent"):
            option = getattr(self.cfg, seat)
            if isinstance(option, RunPlayerConfig):
                found[seat] = checkpoint_digest(run_path(option.path))
        return found

    def as_dict(self) -> dict[str, Any]:
        """What reports say of the game and the players, and of the checkpoint of a run."""
        plain, names = to_plain(self.cfg), [*self.names, None]
        return {
            "game": plain["game"],
            "player": names[0],
            **({} if self.run is None else self.run.fields()),
            "opponent": names[1],
            "sampling": self.cfg.sampling.name if self.run else None,
            "search": plain["search"],
            "opponent_search": plain["opponent_search"],
        }


def open_match(config: MatchConfig | WatchConfig) -> Match:
    """The players of a command and their game. Raises ConfigError, also for an opponent in a
    one-player game."""
    cfg, run = with_run(config)
    game, player = game_and_player(cfg, build_device(cfg.device, cfg.threads), run)
    assert cfg.game is not None
    assert player is not None
    opponent = None
    if game.spec.seats == 2:
        option = cfg.opponent or make_option("player", "random")
        opponent = build_player(option, game, cfg.game, cfg.opponent_search)
    check_no_opponent(game, cfg.opponent, cfg.opponent_search)
    match = Match(cfg, run, game, player, opponent)
    if isinstance(cfg, ReportedConfig):
        check_report(cfg, match.directory)
    return match


def with_run(cfg: C) -> tuple[C, OpenRun | None]:
    """A command's config with the game of its run, and the run; None without one.

    Raises ConfigError for a run that does not exist, and for a config without run and game.
    """
    config: Any = cfg
    if config.run is None:
        _check_without_run(config)
        return cfg, None
    where = getattr(config, "where", None)
    name = config.run if where is None else matching_runs([config.run], where)[0]
    path = find_run(name, is_player=False)
    for name in ("player", "game"):
        if getattr(config, name, None) is not None:
            raise ConfigError(f"{name}= cannot be combined with a run", "omit one of the two")
    run = open_run(path, getattr(config, "checkpoint", None))
    return dataclasses.replace(config, game=run.config.game), run


def matching_runs(names: Sequence[str], where: str) -> list[str]:
    """The names, where a folder, or `latest` for outputs/, becomes the runs in it that meet the
    conditions, newest first. Raises ConfigError if no name is a folder, and if no run
    matches."""
    found: list[str] = []
    has_folder = False
    for name in names:
        top = Path("outputs" if name == LATEST_RUN and not os.path.exists(name) else name)
        if not top.is_dir() or (top / "run.json").exists():
            found.append(name)
            continue
        has_folder, runs = True, matching(read_runs([str(top)]), where)
        oldest_first = sorted(runs, key=lambda run: run.start_time)
        found += [str(run.path) for run in oldest_first[::-1]]
    if not has_folder:
        text = f"where={where} chooses among runs, and none of these words names several"
        raise ConfigError(text, f"use {LATEST_RUN} or a folder")
    return found


def report_directory(cfg: Any, run: Path | None) -> Path | None:
    """The directory that keeps the report of a command: out=, or the run's."""
    if cfg.out is not None:
        return Path(cfg.out)
    return run if run is not None and run.is_dir() else None


def _check_without_run(cfg: Any) -> None:
    command = command_of(type(cfg))
    if getattr(cfg, "checkpoint", None) is not None:
        raise ConfigError(f"checkpoint={cfg.checkpoint} needs a run", "omit checkpoint=")
    if getattr(cfg, "where", None) is not None:
        matching_runs([], cfg.where)
    has_players = isinstance(cfg, MatchConfig | WatchConfig)
    if cfg.game is None or (has_players and cfg.player is None):
        latest = newest_run(Path("outputs"))
        example = "RUN" if latest is None else shlex.quote(str(latest))
        player = "player=random " if "player" in groups_of(type(cfg)) else ""
        raise ConfigError(
            f"{command} needs a run{', or a player and a game' if has_players else ' or a game'}",
            f"as in: rlgames {command} {example}, or with {player}game=tictactoe",
        )


def game_and_player(
    cfg: PlayerConfig, device: torch.device, run: OpenRun | None
) -> tuple[Game[Any], Player | None]:
    """The game, and the run's agent or the named player, with a search around it if given.

    The player is None if none is named.
    """
    if run is not None:
        agent = run.agent(cfg.sampling, device)
        return agent.game, with_search(agent, agent.game, cfg.search, run.config.reward)
    assert cfg.game is not None
    game = make("game", cfg.game).to(device)
    player = cfg.player
    return game, None if player is None else build_player(player, game, cfg.game, cfg.search)


def check_no_opponent(game: Game[Any], *options: OptionConfig | None) -> None:
    """Raises ConfigError if one of these options is about an opponent in a one-player game."""
    if game.spec.seats == 1 and any(options):
        raise ConfigError(f"{game.spec.name} is a one-player game", "remove opponent=")


def player_name(
    player: OptionConfig | None, run: OpenRun | None = None, search: OptionConfig | None = None
) -> str:
    """What a player is called on a screen: a run as it is typed, random if no option names anybody,
    and behind a plus how it looks ahead."""
    name = option_name(player) if run is None else run.name
    return printable(name) + ("" if search is None else f"+{search.name}")


def option_name(player: OptionConfig | None) -> str:
    """The name of a player's option, of its run or of its program; random without an option."""
    if player is None:
        return "random"
    if isinstance(player, ProgramConfig):
        return player.command
    if isinstance(player, RunPlayerConfig):
        return run_name(run_path(player.path))
    return player.name
