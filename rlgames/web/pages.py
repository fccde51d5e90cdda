"""`rlgames serve`, and `play`, `watch` and `show` with interface=web: what their pages offer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlgames.commands.match import option_name, with_run
from rlgames.config.commands import (
    PageConfig,
    PlayConfig,
    ServeConfig,
    ShowConfig,
    WatchConfig,
)
from rlgames.config.files import Files
from rlgames.config.schema import OptionConfig, arguments
from rlgames.config.typed import changed, make_option
from rlgames.core.devices import build_device
from rlgames.core.errors import ConfigError, check_installed
from rlgames.evaluation.positions import read_position
from rlgames.rollouts.records import PRESENTATION_KEYS
from rlgames.runs.agents import OpenRun, differing_key, open_run, open_shipped_agent
from rlgames.runs.find import find_run, shipped_agent
from rlgames.web.tables import YOU, Table

PACKAGES = ("starlette", "uvicorn")

Tables = dict[str, Table]
"""The games of a page by name."""


def serve_command(cfg: ServeConfig) -> int:
    """Serve the games of some runs, one game, or all games; the exit code."""
    check_installed("serve", "web", *PACKAGES)
    query = {} if cfg.search is None else {"search": cfg.search.name}
    return _serve(cfg, offered_tables(cfg), query, cfg.seed)


def offered_tables(cfg: ServeConfig) -> Tables:
    """The games of some runs and of game=, or all games. Raises ConfigError."""
    tables: Tables = {}
    for name in cfg.runs:
        _add_run(tables, open_run(find_run(name, is_player=False), cfg.checkpoint), cfg)
    if cfg.game is not None:
        _add_table(tables, cfg.game, cfg)
    if not tables:
        if cfg.checkpoint is not None:
            raise ConfigError(f"checkpoint={cfg.checkpoint} needs a run", "omit checkpoint=")
        for name in Files().names("game"):
            if (path := shipped_agent(name)) is not None:
                _add_run(tables, open_run(path), cfg)
            else:
                _add_table(tables, make_option("game", name), cfg)
    return tables


def play_page(config: PlayConfig) -> int:
    """Serve a game against a run or a player; the exit code."""
    check_installed("interface=web", "web", *PACKAGES)
    cfg, run = with_run(config)
    _check_fits_page(cfg, "record", "games")
    opponent = cfg.opponent or (make_option("player", "random") if run is None else None)
    table, name = _table(cfg, run, opponent)
    query = {"fleet": cfg.fleet} if cfg.fleet else {}
    seats = [YOU, name] if cfg.seat == 1 else [name, YOU]
    return _serve_game(cfg, table, seats, query, bool(cfg.hints), cfg.seed)


def watch_page(config: WatchConfig) -> int:
    """Serve a game of a run against itself or another player; the exit code."""
    check_installed("interface=web", "web", *PACKAGES)
    cfg, run = with_run(config)
    _check_fits_page(cfg, "picture", "games", "delay", "opponent_search")
    table, name = _table(cfg, run, cfg.player)
    other = name if cfg.opponent is None else _add_player(table, cfg.opponent)
    return _serve_game(cfg, table, [name, other], {}, True, cfg.seed)


def show_page(config: ShowConfig) -> int:
    """Serve a position, to play on from it in every seat; the exit code."""
    check_installed("interface=web", "web", *PACKAGES)
    cfg, run = with_run(config)
    _check_fits_page(cfg, "picture", "format", "solve_seconds")
    table, _ = _table(cfg, run, cfg.player)
    query = {}
    if cfg.state is not None:
        query["position"] = " / ".join(read_position(cfg.state).splitlines())
    return _serve_game(cfg, table, [YOU, YOU], query, True, None)


def _check_fits_page(cfg: Any, *names: str) -> None:
    """Raises ConfigError for keys of the terminal that were changed."""
    if unused := changed(cfg, *names):
        raise ConfigError(f"{unused[0]}= is not for a page", f"remove {unused[0]}=")


def _add_table(tables: Tables, rules: OptionConfig, cfg: Any) -> Table:
    """Add a game with the agent that is bundled for its rules, and with search= of the command;
    its name has the keys of the rules if another one has the name already."""
    keys = [f"{key}={value}" for key, value in arguments(rules).items()]
    name = " ".join([rules.name, *keys]) if rules.name in tables else rules.name
    table = Table(name, rules, cfg.sampling, build_device(cfg.device, cfg.threads))
    if (search := getattr(cfg, "search", None)) is not None:
        table.given_searches[search.name] = search
    if (agent := open_shipped_agent(rules)) is not None:
        table.runs[run_label(agent)] = agent
    tables[name] = table
    return table


def _add_run(tables: Tables, run: OpenRun, cfg: Any) -> None:
    """Add a run to its game."""
    rules, name = run.config.game, run_label(run)
    same = [
        table
        for table in tables.values()
        if not differing_key(table.rules, rules, PRESENTATION_KEYS)
    ]
    if not same:
        table = _add_table(tables, rules, cfg)
        table.runs = {name: run} | table.runs
        return
    if name in same[0].runs and same[0].runs[name].path != run.path:
        name = run.name
    same[0].runs[name] = run


def _add_player(table: Table, player: OptionConfig) -> str:
    """Offer a player with its settings; its name."""
    name = option_name(player)
    table.given_players[name] = player
    return name


def _table(cfg: Any, run: OpenRun | None, player: OptionConfig | None) -> tuple[Table, str]:
    """The game of a run, or of game=, with a player; and the name of the player, or of the run's
    agent without one."""
    table, name = _add_table({}, cfg.game, cfg), ""
    if run is not None:
        name = run_label(run)
        table.runs = {name: run} | table.runs
    return table, name if player is None else _add_player(table, player)


def run_label(run: OpenRun) -> str:
    """What the page calls a run: the last part of its path."""
    path = Path(run.name)
    return path.resolve().name if path.exists() else run.name


def _serve_game(
    cfg: Any,
    table: Table,
    seats: Sequence[str],
    query: Mapping[str, str],
    has_hints: bool,
    seed: int | None,
) -> int:
    """Serve one game, opened with these players; of a one-player game with one of them."""
    count, search = table.game.spec.seats, None if cfg.search is None else cfg.search.name
    if getattr(cfg, "seat", 1) > count:
        raise ConfigError(f"{table.name} is a one-player game", "remove seat=")
    seats = seats[:count]
    for name in seats:
        if name != YOU:
            table.player(name, search)  # what does not fit is reported here, not on the page
    start: dict[str, Any] = {"game": table.name, "seat": list(seats)}
    if search is not None:
        start["search"] = search
    if has_hints:
        start["hints"] = "policy" if search is None else "search"
    return _serve(cfg, {table.name: table}, start | dict(query), seed)


def _serve(cfg: PageConfig, tables: Tables, query: Mapping[str, Any], seed: int | None) -> int:
    from rlgames.web.app import serve

    return serve(cfg, tables, query, seed)
