"""What a training is made of, put together from a checked config."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig

from rlgames import build, chance, errors, ranks
from rlgames.agents import build_player, start_from
from rlgames.checkpoint import Checkpoint
from rlgames.examiner import Examiner
from rlgames.games.game import Game
from rlgames.holdout import split
from rlgames.learners.learner import Learner
from rlgames.lessons import Lessons
from rlgames.players.past import Past
from rlgames.players.player import Agent, Player


@dataclass(frozen=True)
class Parts:
    """What a run is made of. players: the agent, and its opponent if it has one."""

    device: torch.device
    game: Game[Any]
    agent: Agent
    learner: Learner
    players: list[Player]
    lessons: Lessons
    examiner: Examiner


def opponents(cfg: DictConfig, game: Game[Any], agent: Agent) -> list[Player]:
    """Who plays in training: the agent alone, against itself too, or the agent and its opponent."""
    name = cfg.opponent.name
    if game.spec.seats == 1:
        if name != "self":
            raise errors.ConfigError(f"{game.spec.name} is played alone", "leave opponent= out")
        if cfg.eval_opponent.name != "random":
            raise errors.ConfigError(
                f"{game.spec.name} is played alone", "leave eval_opponent= out"
            )
        return [agent]
    if name == "self":
        return [agent]
    if name == "past":
        return [agent, Past(agent, cfg.opponent.every, cfg.opponent.keep)]
    return [agent, build_player(cfg.opponent, cfg, game)]


def check_parts(cfg: DictConfig) -> None:
    """Build everything once; raises ConfigError where the parts do not fit together."""
    assemble(cfg)


def assemble(cfg: DictConfig, found: Checkpoint | None = None) -> Parts:
    """found: what will be loaded, instead of the weights that a run begins with.

    Raises ConfigError where the parts do not fit together.
    """
    device = build.build_device(cfg)
    game = build.build_game(cfg).to(device)
    init, numbers = chance.stream(cfg.seed, "init"), None if found is None else found.numbers
    policy = build.build_policy(cfg, game, init, numbers).to(device)
    if cfg.start and found is None:
        start_from(Path(cfg.start), cfg, policy)
    sampling, rng = build.build_sampling(cfg), chance.stream(cfg.seed, ranks.own("learn"), device)
    learner = build.build_learner(cfg, game, policy, sampling, rng)
    if ranks.size() > 1:
        _check_together(cfg, learner)
    agent = Agent(game, policy, sampling)
    players = opponents(cfg, game, agent)
    if cfg.get("search"):
        players[0] = build.build_explorer(cfg, game, agent)
    held = split(game, cfg.holdout, cfg.seed)
    lessons = Lessons(cfg, game, agent, players, learner, held, rng)
    examiner = Examiner(cfg, game, agent, held)
    if device.type == "cpu":
        batch = min(cfg.batch, cfg.games)
        build.check_memory(batch, cfg.window, game, cfg.eval_games, "eval_games")
    return Parts(device, game, agent, learner, players, lessons, examiner)


def _check_together(cfg: DictConfig, learner: Learner) -> None:
    """Raises ConfigError for what several processes cannot do together."""
    if not learner.together or cfg.clone_epochs:
        what = "clone_epochs=" if cfg.clone_epochs else f"learner={cfg.learner.name}"
        raise errors.ConfigError(
            f"{what} is learnt by one process, and there are {ranks.size()}",
            "learner=actor_critic is learnt by several",
        )
    if cfg.batch < ranks.size():
        raise errors.ConfigError(
            f"batch={cfg.batch} is too small for {ranks.size()} processes",
            f"batch={ranks.size()} gives each a game",
        )
