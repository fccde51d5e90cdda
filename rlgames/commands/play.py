"""`rlgames play`: a person against a trained agent or any other player, or alone with its hints."""

from __future__ import annotations

import secrets
from pathlib import Path

import torch
from omegaconf import OmegaConf

from rlgames import build, chance, config, errors
from rlgames.agents import build_player, load_agent, searching, weighed
from rlgames.commands.beside import config_beside
from rlgames.drawing.terminal import Diagram, printed
from rlgames.errors import ConfigError
from rlgames.play import play
from rlgames.players.human import Announced, Human, Left
from rlgames.players.player import Agent, Player
from rlgames.records import check, write
from rlgames.search.mcts import Mcts
from rlgames.steps import ending


def play_command(run: Path | None, overrides: list[str]) -> int:
    """Play; the exit code: 0, or 2 where the input ended before the game did."""
    cfg = config_beside("play", run, overrides)
    device = build.build_device(cfg)
    agent: Agent | None = None
    if run is not None:
        agent = load_agent(run, cfg)
        game = agent.game
    else:
        game = build.build_game(cfg).to(device)
    search = cfg.get("search")
    opponent = None if agent is None else searching(agent, game, search, run)
    two = game.spec.seats == 2
    if cfg.seat > game.spec.seats:
        raise ConfigError(f"{game.spec.name} is played alone", "leave seat= out")
    if cfg.get("opponent") is not None or (opponent is None and (two or search is not None)):
        node = cfg.get("opponent") or OmegaConf.create({"name": "random"})
        opponent = build_player(node, cfg, game, search)
    asked = opponent if agent is None or isinstance(opponent, Mcts) else agent
    human = Human(game, None if asked is None else weighed(asked))
    players: list[Player] = [human]
    seating = None
    if two:
        assert opponent is not None
        players.append(Announced(game, opponent, print))
        order = [0, 1] if cfg.seat == 1 else [1, 0]
        seating = torch.tensor([order], device=device)
    if cfg.record:
        check(Path(cfg.record), game, config.plain(cfg)["game"])
    seed = secrets.randbits(63) if cfg.seed is None else cfg.seed
    rng = chance.stream(seed, "play", device)
    for _ in range(cfg.games):
        try:
            moves, results = play(game, players, 1, rng, seating=seating)
        except Left as left:
            print(left if left.asked else f"\n{left}; nothing of it is recorded")
            return 0 if left.asked else 2
        assert moves is not None
        seat = cfg.seat - 1 if two else 0
        last = Diagram(game, game.from_seat(results.state, seat), reveal=True)
        print("\n" + printed(last, ending(game, results.state, seat)))
        if cfg.record:
            names = ["human", "opponent"] if two else ["human"]
            write(Path(cfg.record), game, config.plain(cfg)["game"], names, moves, results)
            print(errors.printable(f"recorded in {cfg.record}"))
    return 0
