"""`rlgames serve`, and `play`, `watch` and `show` with interface=web: what their pages offer."""

from __future__ import annotations

import dataclasses
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
from rlgames.web.tables import YOU, Offer, Tables

PACKAGES = ("starlette", "uvicorn")


def serve_command(cfg: ServeConfig) -> int:
    """Serve the games of some runs, one game, or all games; the exit code."""
    check_installed("serve", "web", *PACKAGES)
    query = {} if cfg.search is None else {"search": cfg.search.name}
    return _serve(cfg, offered_tables(cfg), query, cfg.seed)


def offered_tables(cfg: ServeConfig) -> Tables:
    """The games of some runs and of game=, or all games. Raises ConfigError."""
    base = _base(cfg)
    offers: dict[str, Offer] = {}
    for name in cfg.runs:
        _add_run(offers, open_run(find_run(name, is_player=False), cfg.checkpoint), base)
    if cfg.game is not None:
        label = _free_label(offers, cfg.game)
        offers[label] = dataclasses.replace(base, rules=cfg.game, runs=_shipped(cfg.game))
    if not offers:
        if cfg.checkpoint is not None:
            raise ConfigError(f"checkpoint={cfg.checkpoint} needs a run", "omit checkpoint=")
        for name in Files().names("game"):
            if (path := shipped_agent(name)) is not None:
                _add_run(offers, open_run(path), base)
            else:
                offers[name] = dataclasses.replace(base, rules=make_option("game", name))
    return Tables(offers)


def play_page(config: PlayConfig) -> int:
    """Serve a game against a run or a player; the exit code."""
    check_installed("interface=web", "web", *PACKAGES)
    cfg, run = with_run(config)
    _check_fits_page(cfg, "record", "games")
    opponent = cfg.opponent or (make_option("player", "random") if run is None else None)
    offer, name = _offer(cfg, run, opponent)
    query = {"fleet": cfg.fleet} if cfg.fleet else {}
    seats = [YOU, name] if cfg.seat == 1 else [name, YOU]
    return _serve_game(cfg, offer, seats, query, bool(cfg.hints), cfg.seed)


def watch_page(config: WatchConfig) -> int:
    """Serve a game of a run against itself or another player; the exit code."""
    check_installed("interface=web", "web", *PACKAGES)
    cfg, run = with_run(config)
    _check_fits_page(cfg, "picture", "games", "delay", "opponent_search")
    offer, name = _offer(cfg, run, cfg.player)
    other = name
    if cfg.opponent is not None:
        offer, other = _with_player(offer, cfg.opponent)
    return _serve_game(cfg, offer, [name, other], {}, True, cfg.seed)


def show_page(config: ShowConfig) -> int:
    """Serve a position, to play on from it in every seat; the exit code."""
    check_installed("interface=web", "web", *PACKAGES)
    cfg, run = with_run(config)
    _check_fits_page(cfg, "picture", "format", "solve_seconds")
    offer, _ = _offer(cfg, run, cfg.player)
    query = {}
    if cfg.state is not None:
        query["position"] = " / ".join(read_position(cfg.state).splitlines())
    return _serve_game(cfg, offer, [YOU, YOU], query, True, None)


def _check_fits_page(cfg: Any, *names: str) -> None:
    """Raises ConfigError for keys of the terminal that were changed."""
    if unused := changed(cfg, *names):
        raise ConfigError(f"{unused[0]}= is not for a page", f"remove {unused[0]}=")


def _base(cfg: Any) -> Offer:
    """What the config of a command says about any game."""
    search = getattr(cfg, "search", None)
    return Offer(
        rules=cfg.game,
        searches={} if search is None else {search.name: search},
        sampling=cfg.sampling,
        device=build_device(cfg.device, cfg.threads),
    )


def _offer(cfg: Any, run: OpenRun | None, player: OptionConfig | None) -> tuple[Offer, str]:
    """The game of a run, or of game=, with a player; and the name of the player, or of the run's
    agent without one."""
    offer = dataclasses.replace(_base(cfg), runs=_shipped(cfg.game))
    name = ""
    if run is not None:
        name = run_label(run)
        offer = dataclasses.replace(offer, runs={name: run} | dict(offer.runs))
    return (offer, name) if player is None else _with_player(offer, player)


def _with_player(offer: Offer, player: OptionConfig) -> tuple[Offer, str]:
    name = option_name(player)
    return dataclasses.replace(offer, players=dict(offer.players) | {name: player}), name


def _add_run(offers: dict[str, Offer], run: OpenRun, base: Offer) -> None:
    """Add a run to the offer of its game."""
    rules, name = run.config.game, run_label(run)
    for label, offer in offers.items():
        if not differing_key(offer.rules, rules, PRESENTATION_KEYS):
            if name in offer.runs and offer.runs[name].path != run.path:
                name = run.name
            offers[label] = dataclasses.replace(offer, runs=dict(offer.runs) | {name: run})
            return
    runs = {name: run} | _shipped(rules)
    offers[_free_label(offers, rules)] = dataclasses.replace(base, rules=rules, runs=runs)


def _free_label(offers: Mapping[str, Offer], rules: OptionConfig) -> str:
    """The name of a game, with its keys if the name is taken."""
    keys = [f"{key}={value}" for key, value in arguments(rules).items()]
    return " ".join([rules.name, *keys]) if rules.name in offers else rules.name


def run_label(run: OpenRun) -> str:
    """What the page calls a run: the last part of its path."""
    path = Path(run.name)
    return path.resolve().name if path.exists() else run.name


def _shipped(rules: OptionConfig) -> dict[str, OpenRun]:
    """The agent that comes with rlgames for these rules, by its name."""
    run = open_shipped_agent(rules)
    return {} if run is None else {run_label(run): run}


def _serve_game(
    cfg: Any,
    offer: Offer,
    seats: Sequence[str],
    query: Mapping[str, str],
    has_hints: bool,
    seed: int | None,
) -> int:
    """Serve one game, opened with these players; of a one-player game with one of them."""
    tables = Tables({offer.rules.name: offer})
    table = tables[offer.rules.name]
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
    return _serve(cfg, tables, start | dict(query), seed)


def _serve(cfg: PageConfig, tables: Tables, query: Mapping[str, Any], seed: int | None) -> int:
    from rlgames.web.app import serve

    return serve(cfg, tables, query, seed)
