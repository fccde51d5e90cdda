"""Checked configs into objects, by the name that each part has in its config group."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from rlgames.config.compose import add_option
from rlgames.config.registry import REGISTRY, load_part
from rlgames.config.schema import Part
from rlgames.core.devices import choose_device, find_device, has_float64
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.tensor_checks import AllocationLimit, TooLarge
from rlgames.factory.memory import (
    check_fits_in_memory,
    check_number_of_weights,
    check_replay_memory,
    check_weight_memory,
    count_parameters,
)
from rlgames.games.game import Game
from rlgames.learners.learner import Learner, LearnerContext
from rlgames.players.player import Agent, Player
from rlgames.policies.afterstate_network import AfterstateNetwork
from rlgames.policies.canonical import Canonical
from rlgames.policies.policy import Network, Policy, ValueFunction
from rlgames.rewards import Reward
from rlgames.runs.loggers.logger import Logger
from rlgames.sampling import Argmax, Sampling
from rlgames.search.mcts import Mcts
from rlgames.search.search import Search
from rlgames.search.self_play import SearchSelfPlay

KINDS: dict[str, type] = {
    "game": Game,
    "reward": Reward,
    "policy": Policy,
    "sampling": Sampling,
    "learner": Learner,
    "player": Player,
    "search": Player,
    "logger": Logger,
}
"""The base class of the parts of each group that takes parts of one's own."""


def register(group: str, name: str, make: Callable[..., Any], schema: type) -> None:
    """Register a part of one's own; see rlgames.register."""
    if group not in KINDS:
        raise ValueError(f"no group is called {group!r}; {nearest(group, list(KINDS))}")
    kind, registered = KINDS[group], REGISTRY[group].get(name)
    # The capabilities of policies and learners are read from their classes, before one is made.
    is_kind = issubclass(make, kind) if isinstance(make, type) else kind not in (Policy, Learner)
    if not is_kind:
        raise ValueError(f"{group}={name} is not made by a class derived from {kind.__name__}")
    if registered is not None and _origin(registered.load()) != _origin(make):
        raise ValueError(f"{group}={name} is taken")
    add_option(group, name, schema)
    REGISTRY[group][name] = Part(schema, make)


def _origin(make: Any) -> tuple[str, str]:
    """Where a class or function is defined: the same after its module is reloaded."""
    return getattr(make, "__module__", ""), getattr(make, "__qualname__", "")


def build_game(config: DictConfig) -> Game[Any]:
    """Raises ConfigError where the rules cannot be."""
    try:
        game: Game[Any] = load_part("game", config.game.name)(**arguments(config.game))
        return game
    except ValueError as error:
        raise ConfigError(str(error)) from None


def build_sampling(config: DictConfig) -> Sampling:
    rule: Sampling = load_part("sampling", config.sampling.name)(**arguments(config.sampling))
    return rule


def build_greedy(trained: DictConfig) -> Sampling:
    """The greedy rule of a run, with ties as in its training."""
    return Argmax(trained.sampling.get("ties"))


def build_reward(config: DictConfig, game: Game[Any]) -> Reward:
    """Raises ConfigError for a reward that the game does not know."""
    try:
        reward: Reward = load_part("reward", config.reward.name)(game, **arguments(config.reward))
        return reward
    except ValueError as error:
        fitting = {"turns": "turns", "score": "score", "outcome": "outcome"}[game.spec.goal]
        raise ConfigError(str(error), f"reward={fitting} fits") from None


def build_policy(
    config: DictConfig, game: Game[Any], rng: torch.Generator, numbers: int | None = None
) -> Policy:
    """The policy, its weights drawn with rng.

    numbers: how many values the checkpoint holds that will replace the weights, None for none.
    Raises ConfigError for a policy that does not fit the game or the learner, and, before memory
    is allocated, for one that needs far more values than the checkpoint holds.
    """
    check_learner_trains(config)
    learner = load_part("learner", config.learner.name)
    make = load_part("policy", config.policy.name)
    reward = build_reward(config, game)
    score_scale = reward.scale if reward.scored == "score_delta" else 0.0
    limit = nullcontext() if numbers is None else AllocationLimit(numbers)
    try:
        if issubclass(make, ValueFunction):
            with limit:
                value_function: ValueFunction = make(
                    game, score_scale=score_scale, **arguments(config.policy)
                )
            value_function.payoffs = reward.payoffs or value_function.payoffs
            return value_function
        with_value = learner.trains_value_head or config.learner.get("baseline") == "value"
        if not issubclass(make, Network):
            with limit:
                policy: Policy = make(game, value=with_value, **arguments(config.policy))
            return policy
        network = _build_network(config, game, make, rng, limit, with_value)
        if learner.trains_afterstates:
            return AfterstateNetwork(game, network, score_scale)
        return network
    except TooLarge as error:
        raise ConfigError(f"policy={config.policy.name}: {error}") from None
    except NotImplementedError as error:
        raise ConfigError(f"policy={config.policy.name} does not fit: {error}") from None
    except ValueError as error:
        hint = "policy=mlp learner=ppo fits" if issubclass(make, ValueFunction) else ""
        raise ConfigError(str(error), hint) from None


def check_learner_trains(config: DictConfig) -> None:
    """Raises ConfigError for a policy that the learner does not train, naming those it does."""
    learner = load_part("learner", config.learner.name)
    if issubclass(load_part("policy", config.policy.name), learner.policy_class):
        return
    options = REGISTRY["policy"].items()
    trained = [name for name, part in options if issubclass(part.load(), learner.policy_class)]
    raise ConfigError(
        f"learner={config.learner.name} does not train policy={config.policy.name}",
        "it trains " + ", ".join(f"policy={name}" for name in trained),
    )


def _build_network(
    config: DictConfig,
    game: Game[Any],
    make: Callable[..., Network],
    rng: torch.Generator,
    limit: AbstractContextManager[Any],
    with_value: bool,
) -> Network:
    settings = arguments(config.policy)
    canonical = settings.pop("canonical", False)
    make = functools.partial(make, game, value=with_value, **settings)
    num_weights = count_parameters(lambda: make(rng=torch.Generator()))
    check_weight_memory(config.policy.name, num_weights)
    check_number_of_weights(config.policy.name, num_weights)
    with limit:
        network = make(rng=rng)
    network.inputs(game, game.example_state())
    return Canonical(game, network) if canonical else network


def build_learner(
    config: DictConfig, game: Game[Any], policy: Policy, sampling: Sampling, rng: torch.Generator
) -> Learner:
    """Raises ConfigError for a learner that does not fit the search, the sampling rule, the reward
    or the game."""
    name, reward = config.learner.name, build_reward(config, game)
    make = load_part("learner", name)
    check_learner_fits(config, game, rng.device)
    num_buffers = sum(buffer.numel() for buffer in policy.buffers())
    check_weight_memory(config.policy.name, num_buffers)
    settings = arguments(config.learner)
    try:
        context = LearnerContext(game, policy, sampling, reward, rng)
        learner: Learner = make(context, lr=config.lr, **settings)
    except NotImplementedError as error:
        raise ConfigError(f"learner={name} does not fit: {error}", "learner=ppo fits") from None
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return learner


def check_learner_fits(config: DictConfig, game: Game[Any], device: torch.device) -> None:
    """Raises ConfigError for a learner that does not fit the search, the sampling rule, the reward,
    the game or the device, and for a replay buffer that does not fit in memory."""
    name, has_search = config.learner.name, config.get("search") is not None
    learner, reward = load_part("learner", name), build_reward(config, game)
    if learner.learns_from_search and not has_search:
        raise ConfigError(
            f"learner={name} learns from a search, and none is named",
            "add search=mcts search.leaf=value",
        )
    if has_search and not learner.learns_from_search:
        raise ConfigError(
            f"learner={name} does not learn from a search",
            "use learner=alphazero, or leave search= out",
        )
    if learner.needs_float64 and not has_float64(device):
        raise _no_float64(f"learner={name}", device)
    if learner.needs_scaled_temperature and config.sampling.get("temperature") == 1:
        raise ConfigError(
            f"learner={name} learns values, and sampling=stochastic takes scores for logits",
            "sampling=epsilon_greedy fits, or a sampling.temperature of the values' size",
        )
    only_turns = reward.scored == "turns" and game.spec.goal == "outcome"
    if learner.learns_from_rewards and only_turns:
        raise ConfigError(
            f"{game.spec.name} is won or lost, and reward={config.reward.name} counts turns only",
            "reward=outcome fits",
        )
    if learner.compares_score_deltas and not reward.is_final:
        _check_rewards_compared(config, game, reward)
    if config.learner.get("buffer_size"):
        check_replay_memory(config, game)


def _check_rewards_compared(config: DictConfig, game: Game[Any], reward: Reward) -> None:
    """Raises ConfigError for rewards per move that a comparison by changes in score misses."""
    name = config.learner.name
    if game.spec.seats == 2:
        raise ConfigError(
            f"learner={name} values positions after a move, and reward.scored={reward.scored} also "
            "pays for the other seat's reply",
            "reward=outcome fits",
        )
    if reward.scored != "score_delta" and reward.constant is None:
        raise ConfigError(
            f"learner={name} compares moves by the change in score and the value that follows; "
            f"reward.scored={reward.scored} pays something else for a move",
            "reward.scored=score_delta fits, learner=ppo takes any",
        )


def build_search(
    node: DictConfig, game: Game[Any], player: Player, reward: DictConfig | None
) -> Player:
    """The player with a search around it; reward: the config that a trained player learned from.

    Raises ConfigError where search, player and game do not fit together.
    """
    settings = arguments(node)
    if node.get("leaf") == "value" and reward is not None:
        settings |= _value_head_units(node, game, reward)
    if node.name == "expectimax" and reward is not None:
        settings["discount"] = reward.get("discount", 1.0)
    try:
        search: Player = load_part("search", node.name)(game, player, **settings)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if isinstance(search, Mcts):
        what, size = f"search.simulations={node.simulations}", search.bytes_per_simulation
        hint = "search.simulations={} fits"
        check_fits_in_memory(what, "for a tree", node.simulations, size, hint)
    return search


def build_self_play_search(config: DictConfig, game: Game[Any], agent: Agent) -> Player:
    """The search that plays the games of a training, around the agent that learns from it.

    Raises ConfigError for a search that names no policy to learn from.
    """
    search = build_search(config.search, game, agent, config.reward)
    if not isinstance(search, Search):
        raise ConfigError(
            f"learner={config.learner.name} learns a policy from the search, and "
            f"search={config.search.name} gives none",
            "use search=mcts or search=rollout",
        )
    epsilon, turns = (config.learner.get(f"opening_{name}", 0) for name in ("epsilon", "turns"))
    return SearchSelfPlay(agent, search, epsilon, turns)


def _value_head_units(node: DictConfig, game: Game[Any], reward: DictConfig) -> dict[str, Any]:
    """What a value head predicts, how much of it one unit is, and its discount, as arguments of a
    search."""
    has_two_seats = game.spec.seats == 2
    unclear = ConfigError(
        f"search.leaf=value cannot tell what the value head learned from reward={reward.name}",
        "search.leaf=rollout fits",
    )
    if load_part("reward", reward.name) is not Reward:
        raise unclear
    value = reward.scored
    if value == "score_delta":
        value = "outcome" if has_two_seats else "score"
    is_symmetric = reward.win == -reward.loss > 0 and not any(reward.draws)
    start = game.example_state()
    if value not in ("outcome", "turns", "score", *game.measures(start)):
        raise unclear
    if reward.minus != "nothing" or reward.scored == "score":
        raise unclear
    if has_two_seats and not is_symmetric:
        raise unclear
    if node.value not in (None, value):
        raise ConfigError(f"search.value={node.value} is not what the run learned: {value}")
    return {
        "value": value,
        "value_scale": 1 / (reward.scale * (reward.win if has_two_seats else 1)),
        "discount": reward.discount,
    }


def build_device(config: DictConfig) -> torch.device:
    """Set the number of threads too, and in place of device=auto the device that it stands for.

    Raises ConfigError for a device that is not there.
    """
    torch.set_num_threads(config.threads)
    config.device = choose_device(config.device)
    return find_device(config.device)


def policy_to(policy: Policy, name: str, device: torch.device) -> Policy:
    """The policy of policy=name, moved to a device. Raises ConfigError where it has numbers that
    the device cannot hold."""
    tensors = [*policy.parameters(), *policy.buffers()]
    if not has_float64(device) and any(tensor.dtype == torch.float64 for tensor in tensors):
        raise _no_float64(f"policy={name}", device)
    return policy.to(device)


def _no_float64(setting: str, device: torch.device) -> ConfigError:
    return ConfigError(
        f"{setting} computes with float64, which device={device} does not have", "use device=cpu"
    )


def arguments(node: DictConfig) -> dict[str, Any]:
    """A group's keys without its name: what the part itself is made with."""
    values = OmegaConf.to_container(node)
    assert isinstance(values, dict)
    return {str(name): value for name, value in values.items() if name != "name"}
