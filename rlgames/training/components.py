"""Builds what a run is made of from a checked config."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig

from rlgames.config.checks import to_plain
from rlgames.core import distributed
from rlgames.core.errors import ConfigError
from rlgames.core.rng import make_generator
from rlgames.core.text import printable
from rlgames.factory.agents import build_player, init_policy_from
from rlgames.factory.components import (
    build_device,
    build_game,
    build_learner,
    build_policy,
    build_sampling,
    build_self_play_search,
    check_learner_fits,
    check_learner_trains,
    policy_to,
)
from rlgames.factory.memory import check_batch_memory, check_evaluation_memory
from rlgames.games.game import Game
from rlgames.learners.learner import Learner
from rlgames.players.past_selves import PastSelves
from rlgames.players.player import Agent, Player
from rlgames.policies.packed_ntuple import ON_CPU
from rlgames.policies.policy import Policy
from rlgames.rollouts.holdout import split_layouts
from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.loggers.logger import check_loggers
from rlgames.training.collector import Collector
from rlgames.training.engine import LocalEngine
from rlgames.training.evaluator import FINAL_EVAL_FACTOR, Evaluator


@dataclass(frozen=True)
class Components:
    """What a run is made of. players: the agent, and its opponent if it has one."""

    device: torch.device
    game: Game[Any]
    agent: Agent
    learner: Learner
    players: list[Player]
    collector: Collector
    evaluator: Evaluator


def check_components(cfg: DictConfig) -> None:
    """Build everything once; raises ConfigError where the components do not fit together."""
    build_components(cfg)


def build_components(cfg: DictConfig, checkpoint: Checkpoint | None = None) -> Components:
    """checkpoint: the one whose weights will be loaded, instead of new ones.

    Raises ConfigError where the components do not fit together.
    """
    check_loggers(to_plain(cfg))
    device = build_device(cfg)
    game = build_game(cfg).to(device)
    # Whatever can be refused is refused before a large network is made, which takes long.
    check_learner_trains(cfg)
    check_learner_fits(cfg, game, device)
    if device.type == "cpu":
        check_evaluation_memory("eval_games", cfg.eval_games, game, FINAL_EVAL_FACTOR)
    split = split_layouts(game, cfg.holdout, cfg.seed)
    evaluator = Evaluator(cfg, game, split)
    policy = policy_to(_initial_policy(cfg, game, checkpoint), cfg.policy.name, device)
    evaluator.set_policy(policy)
    sampling = build_sampling(cfg)
    learn_stream = distributed.rank_stream_name("learn")
    rng = make_generator(cfg.seed, learn_stream, device)
    learner = build_learner(cfg, game, policy, sampling, rng)
    if distributed.world_size() > 1:
        _check_distributed(cfg, learner)
    announce_backend(cfg, device)
    records_log_prob = learner.needs_behavior_log_prob and not sampling.is_softmax
    agent = Agent(game, policy, sampling, records_log_prob=records_log_prob)
    players = training_players(cfg, game, agent)
    collector = Collector(cfg, game, agent, players, learner, split, rng)
    if device.type == "cpu":
        check_batch_memory(min(cfg.batch, cfg.games), cfg.window, game)
    return Components(device, game, agent, learner, players, collector, evaluator)


def build_actor(cfg: DictConfig) -> LocalEngine:
    """What plays the games of a training in another process than the learner's, with weights that
    are still to be loaded."""
    device = build_device(cfg)
    game = build_game(cfg).to(device)
    policy = build_policy(cfg, game, make_generator(cfg.seed, "init"))
    policy = policy_to(policy, cfg.policy.name, device)
    agent = Agent(game, policy, build_sampling(cfg))
    split = split_layouts(game, cfg.holdout, cfg.seed)
    return LocalEngine(cfg, game, agent, training_players(cfg, game, agent), split)


def announce_backend(cfg: DictConfig, device: torch.device) -> None:
    """Say on standard error that learner.backend=auto does not choose a kernel on this device."""
    if cfg.learner.get("backend") == "auto" and device.type != "cpu":
        text = f"rlgames: learner.backend=auto is torch with device={device}; {ON_CPU}"
        print(printable(text), file=sys.stderr, flush=True)


def training_players(cfg: DictConfig, game: Game[Any], agent: Agent) -> list[Player]:
    """The agent alone, which also plays itself, or the agent and its opponent; with a search
    around the agent if the learner learns from one."""
    players = _players_without_search(cfg, game, agent)
    if cfg.get("search"):
        players[0] = build_self_play_search(cfg, game, agent)
    return players


def _players_without_search(cfg: DictConfig, game: Game[Any], agent: Agent) -> list[Player]:
    name = cfg.opponent.name
    if game.spec.seats == 1:
        for key in ("opponent", "eval_opponent"):
            if cfg[key].name != {"opponent": "self", "eval_opponent": "random"}[key]:
                raise ConfigError(f"{game.spec.name} is played alone", f"leave {key}= out")
        return [agent]
    if name == "self":
        return [agent]
    if name == "past":
        return [agent, PastSelves(agent, cfg.opponent.every, cfg.opponent.keep)]
    return [agent, build_player(cfg.opponent, cfg, game)]


def _initial_policy(cfg: DictConfig, game: Game[Any], checkpoint: Checkpoint | None) -> Policy:
    rng = make_generator(cfg.seed, "init")
    num_parameters = None if checkpoint is None else checkpoint.num_parameters
    policy = build_policy(cfg, game, rng, num_parameters)
    if cfg.init_from and checkpoint is None:
        init_policy_from(Path(cfg.init_from), cfg, policy)
    return policy


def _check_distributed(cfg: DictConfig, learner: Learner) -> None:
    """Raises ConfigError for what several processes cannot do together."""
    world_size = distributed.world_size()
    if not learner.supports_distributed or cfg.clone_epochs:
        setting = "clone_epochs=" if cfg.clone_epochs else f"learner={cfg.learner.name}"
        raise ConfigError(
            f"{setting} works in one process only, and there are {world_size}",
            "learner=ppo works in several",
        )
    if cfg.batch < world_size:
        raise ConfigError(
            f"batch={cfg.batch} is too small for {world_size} processes",
            f"batch={world_size} gives each a game",
        )
