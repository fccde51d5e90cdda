"""Builds a training from a checked config."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlgames.build.agents import init_policy_from
from rlgames.build.players import build_player, with_search
from rlgames.build.policies import greedy_rule, make_reward, new_policy
from rlgames.config.commands import TrainConfig
from rlgames.config.options.players import PastConfig
from rlgames.config.options.search import MctsConfig
from rlgames.config.registry import check_installed, load_option, make
from rlgames.config.schema import OptionConfig
from rlgames.config.typed import to_plain
from rlgames.core.devices import build_device
from rlgames.core.errors import ConfigError
from rlgames.core.memory import check_memory, check_weight_memory
from rlgames.evaluation.references import References
from rlgames.games.game import Game
from rlgames.learners.learner import Learner, LearnerContext, Plan
from rlgames.players.player import Agent, Player
from rlgames.rng import Rng
from rlgames.rollouts.trajectories import (
    FinalStates,
    Trajectories,
    bytes_per_game,
    bytes_per_result,
)
from rlgames.runs.checkpoint import Checkpoint, restore_weights
from rlgames.sampling import EpsilonGreedy
from rlgames.training.checks import check_fits
from rlgames.training.evaluator import FINAL_EVAL_FACTOR, Evaluator
from rlgames.training.sources import Demonstrations, GameSource, NextGames, WholeGames

if TYPE_CHECKING:
    from rlgames.rollouts.holdout import Split


@dataclass(frozen=True)
class Training:
    """What a training is made of, built once from a checked config.

    agent: plays and learns. greedy: the policy that is evaluated and saved, played greedily.
    """

    cfg: TrainConfig
    game: Game[Any]
    agent: Agent
    learner: Learner
    source: GameSource
    greedy: Agent
    evaluator: Evaluator
    references: References

    def learn(self, games: NextGames, progress: float) -> tuple[FinalStates, dict[str, float]]:
        """Learn from the next games: how they ended, and metrics. Raises NonFiniteError."""
        final_states, metrics = self.learner.learn(games, progress)
        if isinstance(self.agent.sampling, EpsilonGreedy):
            metrics["exploration_rate"] = self.agent.sampling.epsilon.at(progress)
        if games.moves is not None and len(self.source.games.players) == 2:
            metrics |= agent_points(games.moves.by_player(0), final_states)
        return final_states, metrics | self.source.metrics()

    def weights(self) -> dict[str, Tensor]:
        """Those that are evaluated and saved, by name."""
        return self.greedy.policy.state_dict()


def agent_points(trajectories: Trajectories, final_states: FinalStates) -> dict[str, float]:
    """The agent's fraction of the points in the games that are over; trajectories: its moves."""
    seat = torch.full_like(final_states.state.done, -1, dtype=torch.int64)
    seat[trajectories.game] = trajectories.seat
    rows = ((seat >= 0) & final_states.state.done).nonzero()[:, 0]
    own = final_states.score[rows].gather(1, seat[rows, None])[:, 0]
    lead = 2 * own - final_states.score[rows].sum(1)
    return {"points": float((1 + lead.sign()).mean() / 2)} if len(rows) else {}


def build_training(cfg: TrainConfig, checkpoint: Checkpoint | None = None) -> Training:
    """Build a training.

    checkpoint: the one whose weights are loaded, instead of new ones.
    Raises ConfigError if the parts cannot be combined, also as BadCheckpoint.
    """
    for name in cfg.logger:
        check_installed("logger", name)
    device = build_device(cfg.device, cfg.threads)
    game = make("game", cfg.game).to(device)
    reward = make_reward(cfg.reward, game)
    split = build_split(cfg, game)
    check_fits(Plan(cfg, game, reward, split is not None))  # before a large network is made
    check_installed("engine", cfg.engine.name)
    evaluator = build_evaluator(cfg, game, split)
    policy = new_policy(cfg, game, Rng(cfg.seed, "init").generator()).eval()
    if checkpoint is not None:
        restore_weights(policy, checkpoint.policy)
    elif cfg.init_from:
        init_policy_from(Path(cfg.init_from), cfg, policy)
    sampling = make("sampling", cfg.sampling)
    _check_table_memory(cfg, list(policy.buffers()))
    generator = Rng(cfg.seed, "learn", device).generator()
    context = LearnerContext(game, policy, sampling, reward, generator)
    learner = build_learner(cfg.learner, context, cfg.lr)
    greedy = Agent(game, learner.evaluated_policy, evaluator.greedy_rule)
    agent = Agent(game, policy, sampling, records_log_prob=learner.needs_log_prob)
    games = WholeGames(game, playing(cfg, game, agent), split)
    source = build_source(cfg, learner, agent, games)
    if device.type == "cpu":
        batch, size = min(cfg.batch, cfg.games), bytes_per_game(game, cfg.window)
        check_memory("batch", batch, size, "for its moves")
    layouts = () if split is None else (split.trained_on, split.held_out)
    references = References(game, *layouts)
    return Training(cfg, game, agent, learner, source, greedy, evaluator, references)


def check_parts(cfg: TrainConfig) -> None:
    """Raises ConfigError if the parts of a training cannot be combined."""
    game = make("game", cfg.game)
    split = build_split(cfg, game)
    check_fits(Plan(cfg, game, make_reward(cfg.reward, game), split is not None))


def build_source(cfg: TrainConfig, learner: Learner, agent: Agent, games: WholeGames) -> GameSource:
    """Where a training's games come from. Raises ConfigError for a record of another game."""
    recorded = None
    if cfg.demonstrations:
        path, rules = Path(cfg.demonstrations), to_plain(cfg)["game"]
        recorded = Demonstrations.read(path, games.game, rules, cfg.demonstrator, learner.generator)
    source: GameSource = make("engine", cfg.engine, cfg, learner, agent, games, recorded)
    return source


def build_actor(cfg: TrainConfig) -> tuple[Agent, WholeGames]:
    """Who plays the games of a training in another process than the learner's, with weights that
    are still to be loaded."""
    game = make("game", cfg.game).to(build_device(cfg.device, cfg.threads))
    policy = new_policy(cfg, game, Rng(cfg.seed, "init").generator()).eval()
    agent = Agent(game, policy, make("sampling", cfg.sampling))
    split = build_split(cfg, game)
    return agent, WholeGames(game, playing(cfg, game, agent), split)


def build_split(cfg: TrainConfig, game: Game[Any]) -> Split | None:
    """The layouts to train on and those held out, if any are. Raises ConfigError."""
    if not cfg.holdout:
        return None
    from rlgames.rollouts.holdout import split_layouts

    return split_layouts(game, cfg.holdout, cfg.seed)


def build_evaluator(cfg: TrainConfig, game: Game[Any], split: Split | None) -> Evaluator:
    """What evaluates the policies of a training. Raises ConfigError."""
    if game.device.type == "cpu":
        size = FINAL_EVAL_FACTOR * bytes_per_result(game)
        check_memory("eval_games", cfg.eval_games, size, "for final states")
    opponent = None
    if game.spec.seats == 2:
        opponent = build_player(cfg.eval_opponent, game, cfg.game)
    rule = greedy_rule(cfg)
    return Evaluator(game, opponent, split, rule, cfg.best_by, cfg.seed, cfg.analyze_every)


def _check_table_memory(cfg: TrainConfig, buffers: list[Tensor]) -> None:
    """Raises ConfigError unless a learner's statistics of these tables fit in memory."""
    copies = load_option("learner", cfg.learner.name).floats_per_weight(cfg.learner)
    check_weight_memory(cfg.policy.name, sum(buffer.numel() for buffer in buffers), copies)


def playing(cfg: TrainConfig, game: Game[Any], agent: Agent) -> list[Player]:
    """The players of the games to learn from: only the agent, which also plays itself, or the
    agent and its opponent. A teacher or, if the learner learns from one, a search around the agent
    replaces it."""
    players: list[Player] = [agent]
    if cfg.teacher is not None:
        players = [build_player(cfg.teacher, game, cfg.game)]
    if cfg.search is not None:
        players = [build_self_play_search(cfg, game, agent)]
    if isinstance(cfg.opponent, PastConfig):
        from rlgames.players.past_selves import PastSelves

        players.append(PastSelves(agent, cfg.opponent.every, cfg.opponent.keep))
    elif cfg.opponent.name != "self":
        players.append(build_player(cfg.opponent, game, cfg.game))
    return players


def build_learner(config: OptionConfig, context: LearnerContext, lr: float) -> Learner:
    """Raises ConfigError if the learner does not support the game, policy, reward or sampling."""
    try:
        learner: Learner = make("learner", config, context, lr=lr)
        return learner
    except NotImplementedError as error:
        hint = "use learner=ppo"
        raise ConfigError(f"learner={config.name} is not supported: {error}", hint) from None


def build_self_play_search(cfg: TrainConfig, game: Game[Any], agent: Agent) -> Player:
    """The search that plays the games of a training, around the agent that learns from it.

    Raises ConfigError for a search that names no policy to learn from.
    """
    config = cfg.search
    if isinstance(config, MctsConfig) and config.leaf is None:
        config = dataclasses.replace(config, leaf="value")
    from rlgames.search.search import Search

    search = with_search(agent, game, config, cfg.reward)
    if not isinstance(search, Search):
        name = None if cfg.search is None else cfg.search.name
        raise ConfigError(
            f"learner={cfg.learner.name} learns a policy from the search, and search={name} "
            "gives none",
            "use search=mcts or search=rollout",
        )
    learner: type[Learner] = load_option("learner", cfg.learner.name)
    return learner.self_play(cfg.learner, agent, search)
