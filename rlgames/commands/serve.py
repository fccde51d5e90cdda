"""`rlgames serve`: what its page offers."""

from __future__ import annotations

from pathlib import Path

from rlgames.build.agents import OpenRun, differing_key, open_run, open_shipped_agent
from rlgames.config.commands import ServeConfig
from rlgames.config.conf import option_names
from rlgames.config.schema import OptionConfig, arguments
from rlgames.config.typed import make_option
from rlgames.core.devices import build_device
from rlgames.core.errors import ConfigError, check_installed
from rlgames.games.game import PRESENTATION_KEYS
from rlgames.runs.find import find_run, shipped_agent
from rlgames.web.table import Table

PACKAGES = ("starlette", "uvicorn")


def run(cfg: ServeConfig) -> None:
    """Serve the games of some runs, one game, or all games."""
    check_installed("serve", "web", *PACKAGES)
    from rlgames.web.app import serve

    query = {} if cfg.search is None else {"search": cfg.search.name}
    serve(cfg, offered_tables(cfg), query)


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


def _table(cfg: ServeConfig, rules: OptionConfig, run: OpenRun | None) -> Table:
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
