"""Checked configs into objects, by the name that each part has in its config group."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from rlgames.config.compose import add_option
from rlgames.config.option_schemas import SCHEMAS
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.tensor_checks import AllocationLimit, TooLarge
from rlgames.factory.memory import check_replay_memory, check_weight_memory, count_parameters
from rlgames.games.battleship import Battleship
from rlgames.games.game import Game
from rlgames.games.game_2048 import Game2048
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.salvo_duel import SalvoDuel
from rlgames.learners.adp import Adp
from rlgames.learners.alphazero import AlphaZero
from rlgames.learners.behavior_cloning import BehaviorCloning
from rlgames.learners.dqn import Dqn
from rlgames.learners.learner import Learner, LearnerContext
from rlgames.learners.occupancy import Occupancy
from rlgames.learners.ppo import Ppo
from rlgames.learners.reinforce import Reinforce
from rlgames.learners.td import Td
from rlgames.learners.td_lambda import TdLambda
from rlgames.players.battleship_bots import Density, HuntTarget
from rlgames.players.exact import exact_player
from rlgames.players.human import Human
from rlgames.players.player import Agent, Player, Random
from rlgames.players.scripted import Corner, WinOrBlock
from rlgames.policies.afterstate_network import AfterstateNetwork
from rlgames.policies.axial import Axial
from rlgames.policies.canonical import Canonical
from rlgames.policies.conv import Conv
from rlgames.policies.embedding import Embedding
from rlgames.policies.linear import LinearValue
from rlgames.policies.mlp import Mlp
from rlgames.policies.ntuple import Ntuple
from rlgames.policies.policy import Network, Policy, ValueFunction
from rlgames.policies.staged import Staged
from rlgames.policies.table import Table
from rlgames.rewards import Reward
from rlgames.sampling import Argmax, EpsilonGreedy, Sampling, Stochastic
from rlgames.search.expectimax import Expectimax
from rlgames.search.mcts import Mcts
from rlgames.search.self_play import SearchSelfPlay

GAMES: dict[str, Callable[..., Game[Any]]] = {
    "battleship": lambda board, **rules: Battleship(1, board, name="battleship", **rules),
    "salvo": lambda board, **rules: Battleship(board, board, name="salvo", **rules),
    "salvo_duel": lambda board, ships: SalvoDuel(board, board, ships),
    "tictactoe": lambda board, line: KInARow(board, board, line, False, "tictactoe"),
    "connect4": lambda rows, columns, line: KInARow(rows, columns, line, True, "connect4"),
    "2048": lambda board, columns, **rules: Game2048(board, columns, name="2048", **rules),
}


REWARDS: dict[str, Callable[..., Reward]] = dict.fromkeys(SCHEMAS["reward"], Reward)


POLICIES: dict[str, type[Any]] = {
    "mlp": Mlp,
    "conv": Conv,
    "axial": Axial,
    "embedding": Embedding,
    "staged": Staged,
    "table": Table,
    "ntuple": Ntuple,
    "linear": LinearValue,
}


SAMPLINGS: dict[str, Callable[..., Sampling]] = {
    "stochastic": Stochastic,
    "epsilon_greedy": EpsilonGreedy,
    "argmax": Argmax,
}


PLAYERS: dict[str, Callable[..., Player]] = {
    "random": Random,
    "win_or_block": WinOrBlock,
    "corner": Corner,
    "hunt_target": HuntTarget,
    "density": Density,
    "exact": exact_player,
    "human": Human,
}


SEARCHES: dict[str, Callable[..., Player]] = {"mcts": Mcts, "expectimax": Expectimax}


LEARNERS: dict[str, type[Any]] = {
    "reinforce": Reinforce,
    "ppo": Ppo,
    "td": Td,
    "td_lambda": TdLambda,
    "adp": Adp,
    "dqn": Dqn,
    "behavior_cloning": BehaviorCloning,
    "occupancy": Occupancy,
    "alphazero": AlphaZero,
}


PARTS: dict[str, tuple[dict[str, Any], type]] = {
    "game": (GAMES, Game),
    "reward": (REWARDS, Reward),
    "policy": (POLICIES, Policy),
    "sampling": (SAMPLINGS, Sampling),
    "learner": (LEARNERS, Learner),
    "player": (PLAYERS, Player),
    "search": (SEARCHES, Player),
}
"""What makes the parts of each group, by name, and what all of them are."""


def register(group: str, name: str, make: Callable[..., Any], schema: type) -> None:
    """As rlgames.register says."""
    if group not in PARTS:
        raise ValueError(f"no group is called {group!r}; {nearest(group, list(PARTS))}")
    parts, kind = PARTS[group]
    # What policies and learners are for is asked of their classes, before one is made.
    of_kind = issubclass(make, kind) if isinstance(make, type) else kind not in (Policy, Learner)
    if not of_kind:
        raise ValueError(f"{group}={name} is not made by a class derived from {kind.__name__}")
    if name in SCHEMAS[group] and _origin(parts.get(name)) != _origin(make):
        raise ValueError(f"{group}={name} is taken")
    add_option(group, name, schema)
    parts[name] = make


def _origin(make: Any) -> tuple[str, str]:
    return getattr(make, "__module__", ""), getattr(make, "__qualname__", "")


def build_game(config: DictConfig) -> Game[Any]:
    """Raises ConfigError where the rules cannot be."""
    try:
        return GAMES[config.game.name](**arguments(config.game))
    except ValueError as error:
        raise ConfigError(str(error)) from None


def build_sampling(config: DictConfig) -> Sampling:
    return SAMPLINGS[config.sampling.name](**arguments(config.sampling))


def build_reward(config: DictConfig, game: Game[Any]) -> Reward:
    """Raises ConfigError for a reward that the game does not know."""
    try:
        return REWARDS[config.reward.name](game, **arguments(config.reward))
    except ValueError as error:
        fitting = {"turns": "turns", "score": "score", "outcome": "outcome"}[game.spec.goal]
        raise ConfigError(str(error), f"reward={fitting} fits") from None


def build_policy(
    config: DictConfig, game: Game[Any], rng: torch.Generator, numbers: int | None = None
) -> Policy:
    """numbers: how many a file has to fill it with, if it will be.

    Raises ConfigError for a policy that does not fit the game or the learner, and for one that
    would need far more numbers than there are, before they take up memory.
    """
    name, learner = config.policy.name, LEARNERS[config.learner.name]
    make: Any = POLICIES[name]
    made_with = arguments(config.policy)
    if not issubclass(make, learner.policy_class):
        fitting = [
            other for other, kind in POLICIES.items() if issubclass(kind, learner.policy_class)
        ]
        raise ConfigError(
            f"learner={config.learner.name} does not teach policy={name}",
            "it teaches " + ", ".join(f"policy={other}" for other in fitting),
        )
    reward = build_reward(config, game)
    score_scale = reward.scale if reward.scored == "score_delta" else 0.0
    limit = nullcontext() if numbers is None else AllocationLimit(numbers)
    if issubclass(make, ValueFunction):
        try:
            with limit:
                valued: Policy = make(game, score_scale=score_scale, **made_with)
            return valued
        except TooLarge as error:
            raise ConfigError(f"policy={name}: {error}") from None
        except ValueError as error:
            raise ConfigError(str(error), "policy=mlp learner=ppo fits") from None
    value = learner.trains_value_head or config.learner.get("baseline") == "value"
    try:
        canonical = made_with.pop("canonical", False)
        make = functools.partial(make, game, value=value, **made_with)
        check_weight_memory(name, count_parameters(lambda: make(rng=torch.Generator())))
        with limit:
            network: Network = make(rng=rng)
        network.inputs(game, game.initial(1, torch.Generator()))
        network = Canonical(game, network) if canonical else network
        if learner.trains_afterstates:
            return AfterstateNetwork(game, network, score_scale)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return network


def build_learner(
    config: DictConfig, game: Game[Any], policy: Policy, sampling: Sampling, rng: torch.Generator
) -> Learner:
    """Raises ConfigError for moves that would be drawn from values as if these were logits, for a
    reward that does not tell who wins, and for a game that does not tell what is learnt."""
    name = config.learner.name
    from_search = issubclass(LEARNERS[name], AlphaZero)
    if from_search and config.get("search") is None:
        raise ConfigError(
            f"learner={name} learns from a search, and none is named",
            "add search=mcts search.leaf=value",
        )
    if not from_search and config.get("search") is not None:
        raise ConfigError(
            f"learner={name} does not learn from a search",
            "learner=alphazero does; or leave it out",
        )
    if name in ("adp", "dqn", "td_lambda") and config.sampling.get("temperature") == 1:
        raise ConfigError(
            f"learner={name} learns values, and sampling=stochastic takes scores for logits",
            "sampling=epsilon_greedy fits, or a sampling.temperature of the values' size",
        )
    reward = build_reward(config, game)
    counted = LEARNERS[name].learns_from_rewards
    if counted and reward.scored == "turns" and game.spec.goal == "outcome":
        raise ConfigError(
            f"{game.spec.name} is won or lost, and reward={config.reward.name} counts turns only",
            "reward=outcome fits",
        )
    check_weight_memory(config.policy.name, sum(weights.numel() for weights in policy.buffers()))
    if config.learner.get("buffer_size"):
        check_replay_memory(config, game, rng.device)
    try:
        learner: Learner = LEARNERS[name](
            LearnerContext(game, policy, sampling, reward, rng),
            lr=config.lr,
            **arguments(config.learner),
        )
    except NotImplementedError as error:
        raise ConfigError(f"learner={name} does not fit: {error}", "learner=ppo fits") from None
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return learner


def build_search(
    node: DictConfig, game: Game[Any], player: Player, reward: DictConfig | None
) -> Player:
    """The player, looking ahead; reward: what a trained one learnt from.

    Raises ConfigError where search, player and game do not fit together.
    """
    settings = arguments(node)
    if node.get("leaf") == "value" and reward is not None:
        settings |= _learnt_value(node, game, reward)
    if node.name == "expectimax" and reward is not None:
        settings["discount"] = reward.get("discount", 1.0)
    try:
        return SEARCHES[node.name](game, player, **settings)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def build_self_play_search(config: DictConfig, game: Game[Any], agent: Agent) -> Player:
    """The search that plays a training's games around the agent that learns from it.

    Raises ConfigError for a search that counts no visits, from which it would learn.
    """
    search = build_search(config.search, game, agent, config.reward)
    if not isinstance(search, Mcts):
        raise ConfigError(
            f"learner=alphazero learns from visits, and search={config.search.name} counts none",
            "search=mcts does",
        )
    return SearchSelfPlay(agent, search)


def _learnt_value(node: DictConfig, game: Game[Any], reward: DictConfig) -> dict[str, Any]:
    """What a value head counts, and how much of it one unit is."""
    two = game.spec.seats == 2
    unclear = ConfigError(
        f"search.leaf=value cannot tell what reward={reward.name} has taught the value head",
        "search.leaf=rollout fits",
    )
    if REWARDS[reward.name] is not Reward:
        raise unclear
    value = ("outcome" if two else "score") if reward.scored == "score_delta" else reward.scored
    even = reward.win == -reward.loss and not any(reward.draws)
    if reward.minus != "nothing" or reward.scored == "score" or (two and not even):
        raise unclear
    if node.value not in (None, value):
        raise ConfigError(f"search.value={node.value} is not what the run has learnt: {value}")
    return {"value": value, "unit": 1 / (reward.scale * (reward.win if two else 1))}


def build_device(config: DictConfig) -> torch.device:
    """Set the number of threads too. Raises ConfigError for a device that is not there."""
    torch.set_num_threads(config.threads)
    try:
        device = torch.device(config.device)
        if device.type not in ("cpu", "cuda"):
            raise RuntimeError
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        have = "cuda" if torch.cuda.is_available() else "cpu"
        raise ConfigError(f"device={config.device} is not here", f"use device={have}") from None
    return device


def arguments(node: DictConfig) -> dict[str, Any]:
    """A group's keys without its name: what the part itself is made with."""
    values = OmegaConf.to_container(node)
    assert isinstance(values, dict)
    return {str(name): value for name, value in values.items() if name != "name"}
