"""Builds what a run is made of from a checked config."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlgames.config.commands import TrainConfig
from rlgames.config.options.learners import TdNtupleConfig
from rlgames.config.options.players import PastConfig
from rlgames.config.options.rewards import RewardConfig
from rlgames.config.registry import check_installed, load_option, make
from rlgames.config.schema import OptionConfig, arguments
from rlgames.config.typed import to_plain
from rlgames.core.devices import build_device, compute_dtype
from rlgames.core.errors import ConfigError
from rlgames.core.memory import check_memory, check_weight_memory
from rlgames.core.rng import make_generator
from rlgames.games.game import Game
from rlgames.learners.learner import Learner, LearnerContext
from rlgames.learners.td_ntuple import TdNtuple
from rlgames.players.past_selves import PastSelves
from rlgames.players.player import Agent, Player
from rlgames.policies.build import policy_to
from rlgames.policies.policy import Policy
from rlgames.rollouts.holdout import Split, split_layouts
from rlgames.rollouts.trajectories import bytes_per_game, bytes_per_result
from rlgames.runs.agents import (
    build_player,
    greedy_rule,
    init_policy_from,
    make_reward,
    new_policy,
    with_search,
)
from rlgames.runs.checkpoint import Checkpoint
from rlgames.search.search import Search
from rlgames.search.self_play import SearchSelfPlay
from rlgames.training.collector import Collector
from rlgames.training.compatibility import Training, check_fits
from rlgames.training.demonstrations import Demonstrations
from rlgames.training.engine import Engine, EngineContext, LocalEngine
from rlgames.training.evaluator import FINAL_EVAL_FACTOR, Evaluator
from rlgames.training.measurements import Regret

FLOATS_PER_TABLE_VALUE = 2
"""Of policy=table: a value, and a number for its update."""


@dataclass(frozen=True)
class Components:
    """What a run is made of. players: the agent, and its opponent if it has one. regret: None
    without analyze_every=. compute_dtype: of the policy while it plays and learns."""

    device: torch.device
    compute_dtype: torch.dtype
    game: Game[Any]
    agent: Agent
    learner: Learner
    players: list[Player]
    collector: Collector
    evaluator: Evaluator
    regret: Regret | None


def build_components(cfg: TrainConfig, checkpoint: Checkpoint | None = None) -> Components:
    """What a training is made of.

    checkpoint: the one whose weights will be loaded, instead of new ones.
    Raises ConfigError if the components do not fit together.
    """
    for name in cfg.logger:
        check_installed("logger", name)
    device = build_device(cfg.device, cfg.threads)
    game = make("game", cfg.game).to(device)
    reward = make_reward(cfg.reward, game)
    split = split_layouts(game, cfg.holdout, cfg.seed)
    check_fits(Training(cfg, game, reward, split is not None))  # before a large network is made
    check_installed("engine", cfg.engine.name)
    evaluator = build_evaluator(cfg, game, split)
    regret = None if cfg.analyze_every is None else Regret(evaluator, cfg.analyze_every)
    policy = _initial_policy(cfg, game, checkpoint)
    sampling = make("sampling", cfg.sampling)
    rng = make_generator(cfg.seed, "learn", device)
    _check_table_memory(cfg, list(policy.buffers()))
    context = LearnerContext(game, policy, sampling, reward, rng)
    learner = build_learner(cfg.learner, context, cfg.lr)
    evaluator.set_policy(learner.evaluated_policy)
    agent = Agent(game, policy, sampling, records_log_prob="log_prob" in learner.needs)
    players = training_players(cfg, game, agent)
    taught = _taught(cfg, game, players)
    plays = EngineContext(
        game, agent, taught, split, cfg.batch, cfg.threads, cfg.join_seconds, to_plain(cfg)
    )
    engine: Engine = load_option("engine", cfg.engine.name)(plays, **arguments(cfg.engine))
    recorded = None
    if cfg.demonstrations is not None:
        path, rules = Path(cfg.demonstrations), to_plain(cfg)["game"]
        recorded = Demonstrations.read(path, game, rules, cfg.demonstrator, rng)
    collector = Collector(cfg, context, learner, engine, recorded)
    if device.type == "cpu":
        batch, size = min(cfg.batch, cfg.games), bytes_per_game(game, cfg.window)
        check_memory("batch", batch, size, "for its moves")
    dtype = compute_dtype(cfg.precision, device)
    return Components(device, dtype, game, agent, learner, players, collector, evaluator, regret)


def build_actor(cfg: TrainConfig) -> LocalEngine:
    """What plays the games of a training in another process than the learner's, with weights that
    are still to be loaded."""
    device = build_device(cfg.device, cfg.threads)
    game = make("game", cfg.game).to(device)
    policy = new_policy(cfg, game, make_generator(cfg.seed, "init"))
    policy = policy_to(policy, cfg.policy.name, device)
    agent = Agent(game, policy, make("sampling", cfg.sampling))
    split = split_layouts(game, cfg.holdout, cfg.seed)
    players = training_players(cfg, game, agent)
    return LocalEngine(EngineContext(game, agent, players, split, cfg.batch))


def build_evaluator(cfg: TrainConfig, game: Game[Any], split: Split | None) -> Evaluator:
    """What evaluates the policies of a training. Raises ConfigError."""
    if game.device.type == "cpu":
        size = FINAL_EVAL_FACTOR * bytes_per_result(game)
        check_memory("eval_games", cfg.eval_games, size, "for final states")
    opponent = None
    if game.spec.seats == 2:
        opponent = build_player(cfg.eval_opponent, game, cfg.game, in_training=True)
    return Evaluator(game, opponent, split, greedy_rule(cfg), cfg.best_by, cfg.seed)


def _check_table_memory(cfg: TrainConfig, buffers: list[Tensor]) -> None:
    """Raises ConfigError unless a learner's statistics of these tables fit in memory."""
    copies = FLOATS_PER_TABLE_VALUE
    if isinstance(cfg.learner, TdNtupleConfig):
        copies = TdNtuple.floats_per_value(cfg.learner.step_size, cfg.learner.average_start)
    check_weight_memory(cfg.policy.name, sum(buffer.numel() for buffer in buffers), copies)


def training_players(cfg: TrainConfig, game: Game[Any], agent: Agent) -> list[Player]:
    """The agent alone, which also plays itself, or the agent and its opponent; with a search
    around the agent if the learner learns from one."""
    players: list[Player] = [agent]
    if cfg.search is not None:
        players = [build_self_play_search(cfg.search, cfg.learner, cfg.reward, game, agent)]
    if isinstance(cfg.opponent, PastConfig):
        players.append(PastSelves(agent, cfg.opponent.every, cfg.opponent.keep))
    elif cfg.opponent.name != "self":
        players.append(build_player(cfg.opponent, game, cfg.game, in_training=True))
    return players


def _taught(cfg: TrainConfig, game: Game[Any], players: list[Player]) -> list[Player]:
    """The players of the games to learn from: a teacher replaces the agent."""
    if cfg.teacher is None:
        return players
    teacher = build_player(cfg.teacher, game, cfg.game, in_training=True)
    return [teacher, *players[1:]]


def _initial_policy(cfg: TrainConfig, game: Game[Any], checkpoint: Checkpoint | None) -> Policy:
    policy = new_policy(cfg, game, make_generator(cfg.seed, "init"))
    if cfg.init_from and checkpoint is None:
        init_policy_from(Path(cfg.init_from), cfg, policy)
    return policy_to(policy, cfg.policy.name, game.device)


def build_learner(config: OptionConfig, context: LearnerContext, lr: float) -> Learner:
    """Raises ConfigError for a learner that does not fit the policy, the sampling rule, the reward
    or the game."""
    try:
        learner: Learner = make("learner", config, context, lr=lr)
        return learner
    except NotImplementedError as error:
        hint = "learner=ppo fits"
        raise ConfigError(f"learner={config.name} does not fit: {error}", hint) from None


def build_self_play_search(
    config: OptionConfig,
    learner: OptionConfig,
    reward: RewardConfig,
    game: Game[Any],
    agent: Agent,
) -> Player:
    """The search that plays the games of a training, around the agent that learns from it.

    Raises ConfigError for a search that names no policy to learn from.
    """
    search = with_search(agent, game, config, reward)
    if not isinstance(search, Search):
        raise ConfigError(
            f"learner={learner.name} learns a policy from the search, and search={config.name} "
            "gives none",
            "use search=mcts or search=rollout",
        )
    epsilon, turns = (getattr(learner, f"opening_{name}", 0) for name in ("epsilon", "turns"))
    return SearchSelfPlay(agent, search, epsilon, turns)
