"""What a training is made of, put together from a checked config."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig

from rlgames.core import distributed
from rlgames.core.errors import ConfigError
from rlgames.core.rng import make_generator
from rlgames.factory.agents import build_player, init_policy_from
from rlgames.factory.components import (
    build_device,
    build_game,
    build_learner,
    build_policy,
    build_sampling,
    build_self_play_search,
)
from rlgames.factory.memory import check_batch_memory
from rlgames.games.game import Game
from rlgames.learners.learner import Learner
from rlgames.players.past_selves import PastSelves
from rlgames.players.player import Agent, Player
from rlgames.rollouts.holdout import split_layouts
from rlgames.runs.checkpoint import Checkpoint
from rlgames.training.collector import Collector
from rlgames.training.evaluator import Evaluator


@dataclass(frozen=True)
class Components:
    """What a run is made of. players: the agent, and its opponent if it has one."""

    device: torch.device
    game: Game[Any]
    agent: Agent
    learner: Learner
    players: list[Player]
    lessons: Collector
    examiner: Evaluator


def training_players(cfg: DictConfig, game: Game[Any], agent: Agent) -> list[Player]:
    """Who plays in training: the agent alone, against itself too, or the agent and its opponent."""
    name = cfg.opponent.name
    if game.spec.seats == 1:
        if name != "self":
            raise ConfigError(f"{game.spec.name} is played alone", "leave opponent= out")
        if cfg.eval_opponent.name != "random":
            raise ConfigError(f"{game.spec.name} is played alone", "leave eval_opponent= out")
        return [agent]
    if name == "self":
        return [agent]
    if name == "past":
        return [agent, PastSelves(agent, cfg.opponent.every, cfg.opponent.keep)]
    return [agent, build_player(cfg.opponent, cfg, game)]


def check_components(cfg: DictConfig) -> None:
    """Build everything once; raises ConfigError where the parts do not fit together."""
    build_components(cfg)


def build_components(cfg: DictConfig, found: Checkpoint | None = None) -> Components:
    """found: what will be loaded, instead of the weights that a run begins with.

    Raises ConfigError where the parts do not fit together.
    """
    device = build_device(cfg)
    game = build_game(cfg).to(device)
    init, numbers = make_generator(cfg.seed, "init"), None if found is None else found.numbers
    policy = build_policy(cfg, game, init, numbers).to(device)
    if cfg.init_from and found is None:
        init_policy_from(Path(cfg.init_from), cfg, policy)
    sampling, rng = (
        build_sampling(cfg),
        make_generator(cfg.seed, distributed.rank_stream_name("learn"), device),
    )
    learner = build_learner(cfg, game, policy, sampling, rng)
    if distributed.world_size() > 1:
        _check_together(cfg, learner)
    agent = Agent(game, policy, sampling)
    players = training_players(cfg, game, agent)
    if cfg.get("search"):
        players[0] = build_self_play_search(cfg, game, agent)
    held = split_layouts(game, cfg.holdout, cfg.seed)
    lessons = Collector(cfg, game, agent, players, learner, held, rng)
    examiner = Evaluator(cfg, game, agent, held)
    if device.type == "cpu":
        batch = min(cfg.batch, cfg.games)
        check_batch_memory(batch, cfg.window, game, cfg.eval_games, "eval_games")
    return Components(device, game, agent, learner, players, lessons, examiner)


def _check_together(cfg: DictConfig, learner: Learner) -> None:
    """Raises ConfigError for what several processes cannot do together."""
    if not learner.supports_distributed or cfg.clone_epochs:
        what = "clone_epochs=" if cfg.clone_epochs else f"learner={cfg.learner.name}"
        raise ConfigError(
            f"{what} is learnt by one process, and there are {distributed.world_size()}",
            "learner=ppo is learnt by several",
        )
    if cfg.batch < distributed.world_size():
        raise ConfigError(
            f"batch={cfg.batch} is too small for {distributed.world_size()} processes",
            f"batch={distributed.world_size()} gives each a game",
        )
