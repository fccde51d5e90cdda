"""`rlgames play`: a person against a trained agent or any other player, or alone with its hints."""

from __future__ import annotations

import secrets
from pathlib import Path

import torch
from omegaconf import OmegaConf

from rlgames.commands.run_config import config_for_run
from rlgames.config.checks import to_plain
from rlgames.core.errors import ConfigError
from rlgames.core.rng import make_generator
from rlgames.core.text import printable
from rlgames.drawing.terminal import BoardView, format_parts
from rlgames.factory.agents import build_player, load_agent, make_advisor, with_search
from rlgames.factory.components import build_device, build_game
from rlgames.players.human import AnnouncingPlayer, Human, PlayerQuit
from rlgames.players.player import Agent, Player
from rlgames.rollouts.play import collect_games
from rlgames.rollouts.records import append, check_writable
from rlgames.rollouts.trace import describe_ending
from rlgames.search.mcts import Mcts


def play_command(run: Path | None, overrides: list[str]) -> int:
    """Play; the exit code: 0, or 2 where the input ended before the game did."""
    cfg = config_for_run("play", run, overrides)
    device = build_device(cfg)
    agent: Agent | None = None
    if run is not None:
        agent = load_agent(run, cfg, cfg.checkpoint)
        game = agent.game
    else:
        game = build_game(cfg).to(device)
    search = cfg.get("search")
    opponent = None if agent is None else with_search(agent, game, search, run)
    two = game.spec.seats == 2
    if cfg.seat > game.spec.seats:
        raise ConfigError(f"{game.spec.name} is played alone", "leave seat= out")
    if cfg.get("opponent") is not None or (opponent is None and (two or search is not None)):
        node = cfg.get("opponent") or OmegaConf.create({"name": "random"})
        opponent = build_player(node, cfg, game, search)
    asked = opponent if agent is None or isinstance(opponent, Mcts) else agent
    human = Human(game, None if asked is None else make_advisor(asked))
    players: list[Player] = [human]
    seating = None
    if two:
        assert opponent is not None
        players.append(AnnouncingPlayer(game, opponent, print))
        order = [0, 1] if cfg.seat == 1 else [1, 0]
        seating = torch.tensor([order], device=device)
    if cfg.record:
        check_writable(Path(cfg.record), game, to_plain(cfg)["game"])
    seed = secrets.randbits(63) if cfg.seed is None else cfg.seed
    rng = make_generator(seed, "play", device)
    for _ in range(cfg.games):
        try:
            moves, results = collect_games(game, players, 1, rng, seating=seating)
        except PlayerQuit as left:
            print(left if left.by_command else f"\n{left}; the game is not recorded")
            return 0 if left.by_command else 2
        seat = cfg.seat - 1 if two else 0
        last = BoardView(game, game.view_from_seat(results.state, seat), reveal=True)
        print("\n" + format_parts(last, describe_ending(game, results.state, seat)))
        if cfg.record:
            names = ["human", "opponent"] if two else ["human"]
            append(Path(cfg.record), game, to_plain(cfg)["game"], names, moves, results)
            print(printable(f"recorded in {cfg.record}"))
    return 0
