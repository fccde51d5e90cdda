"""`rlgames serve`, and `play`, `watch` and `show` with interface=web: what their pages offer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlgames.build.agents import OpenRun, differing_key, open_run, open_shipped_agent
from rlgames.commands.match import option_name, with_run
from rlgames.config.commands import PlayConfig, ServeConfig, ShowConfig, WatchConfig
from rlgames.config.conf import option_names
from rlgames.config.schema import OptionConfig, arguments
from rlgames.config.typed import changed, make_option
from rlgames.core.devices import build_device
from rlgames.core.errors import ConfigError, check_installed
from rlgames.evaluation.positions import read_position
from rlgames.games.game import PRESENTATION_KEYS
from rlgames.runs.find import find_run, shipped_agent
from rlgames.web.table import YOU, Table

PACKAGES = ("starlette", "uvicorn")

TERMINAL_KEYS: dict[type, tuple[str, ...]] = {
    PlayConfig: ("record", "games"),
    WatchConfig: ("picture", "games", "delay", "opponent_search"),
    ShowConfig: ("picture", "format", "solve_seconds"),
}
"""The keys of a command that mean nothing on a page."""


def serve_games(cfg: ServeConfig) -> int:
    """Serve the games of some runs, one game, or all games; the exit code."""
    check_installed("serve", "web", *PACKAGES)
    from rlgames.web.app import serve

    query = {} if cfg.search is None else {"search": cfg.search.name}
    return serve(cfg, offered_tables(cfg), query, cfg.seed)


def offered_tables(cfg: ServeConfig) -> dict[str, Table]:
    """The games of some runs and of game=, or all games. Raises ConfigError."""
    tables: dict[str, Table] = {}
    for name in cfg.runs:
        run = open_run(find_run(name, is_player=False), cfg.checkpoint)
        _add(tables, cfg, run.config.game, run)
    if cfg.game is not None:
        _add(tables, cfg, cfg.game)
    if not tables:
        if cfg.checkpoint is not None:
            raise ConfigError(f"checkpoint={cfg.checkpoint} needs a run", "omit checkpoint=")
        for name in option_names("game"):
            path = shipped_agent(name)
            _add(tables, cfg, open_run(path).config.game if path else make_option("game", name))
    return tables


def _add(
    tables: dict[str, Table], cfg: ServeConfig, rules: OptionConfig, run: OpenRun | None = None
) -> None:
    """Add a game, by its name, with its keys if the name is taken, or a run to its game."""
    for table in tables.values():
        if run is not None and not differing_key(table.rules, rules, PRESENTATION_KEYS):
            name = label_of(run)
            is_taken = name in table.runs and table.runs[name].path != run.path
            table.runs[run.name if is_taken else name] = run
            return
    keys = [f"{key}={value}" for key, value in arguments(rules).items()]
    name = " ".join([rules.name, *keys]) if rules.name in tables else rules.name
    tables[name] = _table(cfg, rules, run)


def _table(cfg: Any, rules: OptionConfig, run: OpenRun | None) -> Table:
    """The table of a game with a run and the bundled agent for its rules."""
    runs = [each for each in (run, open_shipped_agent(rules)) if each is not None]
    table = Table(rules, build_device(cfg.device, cfg.threads), cfg.sampling)
    for each in runs:
        table.runs.setdefault(label_of(each), each)
    if cfg.search is not None:
        table.extra_searches[cfg.search.name] = cfg.search
    return table


def label_of(run: OpenRun) -> str:
    """What the page calls a run: the last part of its path."""
    path = Path(run.name)
    return path.resolve().name if path.exists() else run.name


def serve_game(config: PlayConfig | WatchConfig | ShowConfig) -> int:
    """Serve the game of play, watch or show with interface=web; the exit code."""
    check_installed("interface=web", "web", *PACKAGES)
    from rlgames.web.app import serve

    table, query = game_page(config)
    seed = None if isinstance(config, ShowConfig) else config.seed
    return serve(config, {table.rules.name: table}, query, seed)


def game_page(config: PlayConfig | WatchConfig | ShowConfig) -> tuple[Table, dict[str, Any]]:
    """The table of a command's game, and the query that opens it. Raises ConfigError."""
    cfg, run = with_run(config)
    if unused := changed(cfg, *TERMINAL_KEYS[type(cfg)]):
        raise ConfigError(f"{unused[0]}= is not for a page", f"remove {unused[0]}=")
    assert cfg.game is not None
    table = _table(cfg, cfg.game, run)

    def seated(option: OptionConfig | None) -> str:
        """The name of a player, or of the run's agent."""
        if option is not None:
            table.extra_players[option_name(option)] = option
            return option_name(option)
        return "" if run is None else label_of(run)

    count = table.game.spec.seats
    query: dict[str, Any] = {"game": table.rules.name}
    if isinstance(cfg, PlayConfig):
        if cfg.seat > count:
            raise ConfigError(f"{table.rules.name} is a one-player game", "remove seat=")
        random = make_option("player", "random") if run is None else None
        seats = [YOU, seated(cfg.opponent or random)][:: 1 if cfg.seat == 1 else -1]
        query |= {"fleet": cfg.fleet} if cfg.fleet else {}
    elif isinstance(cfg, WatchConfig):
        seats = [seated(cfg.player), seated(cfg.opponent or cfg.player)]
    else:
        seated(cfg.player)
        seats = [YOU, YOU]
        if cfg.state is not None:
            query["position"] = " / ".join(read_position(cfg.state).splitlines())
    query["seat"] = seats[:count]
    search = None if cfg.search is None else cfg.search.name
    for name in query["seat"]:
        if name != YOU:
            table.check(name, search)  # what is not supported is reported here, not on the page
    if search is not None:
        query["search"] = search
    if not isinstance(cfg, PlayConfig) or cfg.hints:
        query["hints"] = "policy" if search is None else "search"
    return table, query
