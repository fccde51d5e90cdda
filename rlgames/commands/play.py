"""`rlgames play`: a person against any player, or playing with an agent's hints."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlgames.build.agents import OpenRun, load_shipped_agent
from rlgames.build.players import build_player, make_advisor, with_search
from rlgames.commands.match import option_name, with_run
from rlgames.config.commands import PlayConfig
from rlgames.config.registry import make
from rlgames.config.typed import make_option, to_plain
from rlgames.core.devices import build_device
from rlgames.core.errors import ConfigError
from rlgames.core.text import printable
from rlgames.games.fleets.placement import Placement
from rlgames.games.game import Game
from rlgames.games.salvo_duel import SalvoDuel
from rlgames.players.player import Player
from rlgames.rng import Rng
from rlgames.rollouts.interactive import InteractiveGame, describe_ending
from rlgames.rollouts.play import START
from rlgames.rollouts.records import append, check_players, check_writable
from rlgames.search.search import Search
from rlgames.terminal.boards import BoardView, format_parts
from rlgames.terminal.human import AnnouncingPlayer, Human, PlayerQuit, place_fleet


def run(config: PlayConfig) -> None:
    """Play games at the terminal. Raises EOFError if the input ends before a game does."""
    cfg, run = with_run(config)
    device = build_device(cfg.device, cfg.threads)
    game, opponent, advisor = _opponent_and_advisor(cfg, run, device)
    layout = _fixed_layout(cfg.fleet, game)
    human = Human(game, advisor, hints=bool(cfg.hints), can_undo=not game.spec.hidden)
    players: list[Player] = [human]
    order = [0]
    if opponent is not None:
        players.append(AnnouncingPlayer(game, opponent))
        order = [0, 1] if cfg.seat == 1 else [1, 0]
    if cfg.record:
        check_players(opponent)
        check_writable(Path(cfg.record), game, to_plain(cfg)["game"])
    seed = secrets.randbits(63) if cfg.seed is None else cfg.seed
    games = Rng(seed, "play", device)
    if opponent is not None:
        name = run.name if run is not None and cfg.opponent is None else option_name(cfg.opponent)
        searched = "" if cfg.search is None else f" with search={cfg.search.name}"
        print(f"you play against {name}{searched}")
    for number in range(cfg.games):
        rng = games[number : number + 1]
        if opponent is not None:
            opponent.reset_statistics()
        try:
            state = game.initial(1, rng.fold_in(START))
            if isinstance(game, SalvoDuel):
                own = place_fleet(Placement(game.fleet)) if cfg.fleet == "hand" else layout
                state = state if own is None else game.with_layout(state, cfg.seat - 1, own)
            moves, results = InteractiveGame(game, players, order, state, rng).collect()
        except PlayerQuit as left:
            if not left.by_command:
                print()
                raise EOFError(f"{left}; the game is not recorded") from None
            print(left)
            return
        seat = cfg.seat - 1 if opponent is not None else 0
        last = BoardView(game, game.view_from_seat(results.state, seat), reveal=True)
        ending = describe_ending(game, results.state, seat)
        if opponent is not None and "proven_moves" in (shares := opponent.statistics()):
            ending += f"; {shares['proven_moves']:.0%} of the opponent's moves were proven optimal"
        print("\n" + format_parts(last, ending))
        if cfg.record:
            names = ["human", "opponent"] if opponent is not None else ["human"]
            append(Path(cfg.record), game, to_plain(cfg)["game"], names, moves, results)
            print(printable(f"recorded in {cfg.record}"))


def _opponent_and_advisor(
    cfg: PlayConfig, run: OpenRun | None, device: torch.device
) -> tuple[Game[Any], Player | None, Player | None]:
    """The game, the player in the other seat, if there is one, and the player that is asked for
    hints: the run's agent, the search, the bundled agent, or the opponent."""
    search = cfg.search
    assert cfg.game is not None
    agent = None if run is None else run.agent(cfg.sampling, device)
    game = make("game", cfg.game).to(device) if agent is None else agent.game
    reward = None if run is None else run.config.reward
    opponent = None if agent is None else with_search(agent, game, search, reward)
    two = game.spec.seats == 2
    for key, is_typed in (("seat", cfg.seat > 1), ("opponent", cfg.opponent is not None)):
        if is_typed and not two:
            raise ConfigError(f"{game.spec.name} is a one-player game", f"remove {key}=")
    if cfg.opponent is not None or (opponent is None and (two or search is not None)):
        opponent = build_player(
            cfg.opponent or make_option("player", "random"), game, cfg.game, search
        )
    asked: Player | None = agent
    if asked is None or isinstance(opponent, Search):
        asked = opponent if search is not None else load_shipped_agent(cfg.game, device) or opponent
    advisor = None if asked is None else make_advisor(asked)
    return game, opponent if two else None, advisor


def _fixed_layout(fleet: str | None, game: Game[Any]) -> Tensor | None:
    """Uint8 [N]: the fleet that fleet= lists, None if it lists none. Raises ConfigError."""
    if fleet is None:
        return None
    if not isinstance(game, SalvoDuel):
        raise ConfigError(f"{game.spec.name} has no fleet of yours to place", "remove fleet=")
    if fleet in ("random", "hand"):
        return None
    placement = Placement(game.fleet)
    try:
        for ship in fleet.split():
            placement.place_text(ship)
    except ValueError as error:
        raise ConfigError(
            f"fleet={fleet}: {error}", "write random, hand, or ships as in 'A1-A3 C2-C3'"
        ) from None
    if placement.next_length is not None:
        raise ConfigError(
            f"fleet={fleet} lacks a ship of {placement.next_length}",
            f"list all ships: {', '.join(map(str, game.fleet.ships))}",
        )
    return placement.layout()
