"""Typed configs into objects, by the name that each option has in its config group."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from rlgames.config.options.rewards import RewardConfig
from rlgames.config.plugins import add_option
from rlgames.config.registry import REGISTRY, load_option
from rlgames.config.schema import OptionConfig, arguments
from rlgames.core.devices import choose_device, find_device, has_float64
from rlgames.core.errors import ConfigError, nearest, value_errors
from rlgames.factory.memory import (
    check_fits_in_memory,
    check_weight_memory,
    count_parameters,
)
from rlgames.games.capabilities import check_declared, measures
from rlgames.games.game import Game
from rlgames.learners.learner import Learner, LearnerContext
from rlgames.players.player import Agent, Player
from rlgames.policies.afterstate_network import AfterstateNetwork
from rlgames.policies.canonical import Canonical
from rlgames.policies.policy import Network, Policy, ValueFunction
from rlgames.rewards import Reward, scored_term
from rlgames.runs.loggers import Logger
from rlgames.sampling import Argmax, Sampling
from rlgames.search.endgame import with_exact_endgame
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


MAX_WEIGHTS = 100_000_000
"""Of a network. To initialize more takes minutes, before a game is played; AlphaGo Zero had 23
million."""


def register(
    group: str, name: str, make: Callable[..., Any], schema: type | None = None, **keys: Any
) -> None:
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
    add_option(group, name, make, schema, keys)


def _origin(make: Any) -> tuple[str, str]:
    """Where a class or function is defined: the same after its module is reloaded."""
    return getattr(make, "__module__", ""), getattr(make, "__qualname__", "")


def build_game(rules: OptionConfig) -> Game[Any]:
    """Raises ConfigError for rules that cannot be played."""
    with value_errors():
        game: Game[Any] = load_option("game", rules.name)(**arguments(rules))
        check_declared(game)
        return game


def build_sampling(config: OptionConfig) -> Sampling:
    """The sampling rule of a config."""
    return load_option("sampling", config.name)(**arguments(config))


def build_greedy(trained: OptionConfig) -> Sampling:
    """The greedy rule of a run, with ties as in its sampling rule during training."""
    return Argmax(getattr(trained, "ties", None))


def build_reward(config: RewardConfig, game: Game[Any]) -> Reward:
    """Raises ConfigError for a reward that the game does not know."""
    with value_errors(hint=f"reward={game.spec.goal} fits"):
        return load_option("reward", config.name)(game, **arguments(config))


def build_policy(
    config: OptionConfig,
    learner: OptionConfig,
    reward: Reward,
    game: Game[Any],
    rng: torch.Generator,
) -> Policy:
    """The policy that a learner trains, its weights drawn with rng.

    Raises ConfigError for a policy that does not fit the game, the learner or memory.
    """
    make, trainer = load_option("policy", config.name), load_option("learner", learner.name)
    check_policy_fits(config.name, learner.name)
    score_scale = reward.scale if reward.scored == "score_delta" else 0.0
    try:
        if issubclass(make, ValueFunction):
            value_function: ValueFunction = make(game, score_scale=score_scale, **arguments(config))
            value_function.payoffs = reward.payoffs or value_function.payoffs
            return value_function
        with_value = "value_head" in trainer.trains or getattr(learner, "baseline", None) == "value"
        if not issubclass(make, Network):
            policy: Policy = make(game, value=with_value, **arguments(config))
            return policy
        network = _build_network(config, game, make, rng, with_value)
        network.scores_are_logits = "logits" in trainer.trains
        if "afterstates" in trainer.trains:
            return AfterstateNetwork(game, network, score_scale)
        return network
    except NotImplementedError as error:
        raise ConfigError(f"policy={config.name} does not fit: {error}") from None
    except ValueError as error:
        hint = "policy=mlp learner=ppo fits" if issubclass(make, ValueFunction) else ""
        raise ConfigError(str(error), hint) from None


def check_policy_fits(policy: str, learner: str) -> None:
    """Raises ConfigError for a policy that the learner does not train, naming those it does."""
    trained_class = load_option("learner", learner).policy_class
    if issubclass(load_option("policy", policy), trained_class):
        return
    options = REGISTRY["policy"].items()
    trained = [name for name, option in options if issubclass(option.load(), trained_class)]
    raise ConfigError(
        f"learner={learner} does not train policy={policy}",
        "it trains " + ", ".join(f"policy={name}" for name in trained),
    )


def _build_network(
    config: OptionConfig,
    game: Game[Any],
    make: Callable[..., Network],
    rng: torch.Generator,
    with_value: bool,
) -> Network:
    settings = arguments(config)
    canonical = settings.pop("canonical", False)
    make = functools.partial(make, game, value=with_value, **settings)
    num_weights = count_parameters(lambda: make(rng=torch.Generator()))
    check_weight_memory(config.name, num_weights)
    if num_weights > MAX_WEIGHTS:
        raise ConfigError(
            f"policy={config.name} would have {num_weights:,} weights",
            f"a network can have up to {MAX_WEIGHTS:,}; use fewer or narrower layers",
        )
    network = make(rng=rng)
    network.inputs(game, game.example_state())
    return Canonical(game, network) if canonical else network


def build_learner(config: OptionConfig, context: LearnerContext, lr: float) -> Learner:
    """Raises ConfigError for a learner that does not fit the policy, the sampling rule, the reward
    or the game."""
    try:
        return load_option("learner", config.name)(context, lr=lr, **arguments(config))
    except NotImplementedError as error:
        hint = "learner=ppo fits"
        raise ConfigError(f"learner={config.name} does not fit: {error}", hint) from None
    except ValueError as error:
        raise ConfigError(str(error)) from None


def build_search(
    config: OptionConfig, game: Game[Any], player: Player, reward: RewardConfig | None
) -> Player:
    """The player with a search around it; reward: what a trained player learned from.

    Raises ConfigError if search, player and game do not fit together.
    """
    settings = arguments(config)
    solve_positions = settings.pop("solve_positions", 0)
    if settings.get("leaf") == "value" and reward is not None:
        settings |= _value_head_units(settings["value"], game, reward)
    if config.name == "expectimax" and reward is not None:
        settings["discount"] = reward.discount
    with value_errors():
        search: Player = load_option("search", config.name)(game, player, **settings)
    if isinstance(search, Mcts):
        count, size = settings["simulations"], search.bytes_per_simulation
        hint = "search.simulations={} fits"
        check_fits_in_memory(f"search.simulations={count}", "for a tree", count, size, hint)
    if not solve_positions:
        return search
    key = "search.solve_positions"
    with value_errors(f"{key}={solve_positions}: ", f"use {key}=0"):
        value, goal = settings.get("value"), game.spec.goal
        if value not in (None, goal):
            raise ValueError(f"exact moves are best for {goal}, and search.value={value} is not")
        return with_exact_endgame(search, game, solve_positions)


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
    search = build_search(config, game, agent, reward)
    if not isinstance(search, Search):
        raise ConfigError(
            f"learner={learner.name} learns a policy from the search, and search={config.name} "
            "gives none",
            "use search=mcts or search=rollout",
        )
    epsilon, turns = (getattr(learner, f"opening_{name}", 0) for name in ("epsilon", "turns"))
    return SearchSelfPlay(agent, search, epsilon, turns)


def _value_head_units(
    searched: str | None, game: Game[Any], reward: RewardConfig
) -> dict[str, Any]:
    """What a value head predicts, how much of it one unit is, and its discount, as arguments of a
    search; searched: search.value."""
    has_two_seats = game.spec.seats == 2
    unclear = ConfigError(
        f"search.leaf=value cannot tell what the value head learned from reward={reward.name}",
        "search.leaf=rollout fits",
    )
    if load_option("reward", reward.name) is not Reward:
        raise unclear
    value = scored_term(reward.scored, game)
    if value == "score_delta":
        value = "outcome" if has_two_seats else "score"
    is_symmetric = reward.win == -reward.loss > 0 and not any(reward.draws)
    start = game.example_state()
    if value not in ("outcome", "turns", "score", *measures(game, start)):
        raise unclear
    if reward.minus != "nothing" or reward.scored == "score":
        raise unclear
    if has_two_seats and not is_symmetric:
        raise unclear
    if searched not in (None, value):
        raise ConfigError(f"search.value={searched} is not what the run learned: {value}")
    return {
        "value": value,
        "value_scale": 1 / (reward.scale * (reward.win if has_two_seats else 1)),
        "discount": reward.discount,
    }


def build_device(name: str, threads: int) -> torch.device:
    """The device of that name, on which torch then computes with this many threads.

    Raises ConfigError for a device that is not there.
    """
    torch.set_num_threads(threads)
    return find_device(choose_device(name))


def policy_to(policy: Policy, name: str, device: torch.device) -> Policy:
    """The policy of policy=name, moved to a device. Raises ConfigError where it has numbers that
    the device cannot hold."""
    tensors = [*policy.parameters(), *policy.buffers()]
    if not has_float64(device) and any(tensor.dtype == torch.float64 for tensor in tensors):
        raise no_float64(f"policy={name}", device)
    return policy.to(device)


def no_float64(setting: str, device: torch.device) -> ConfigError:
    return ConfigError(
        f"{setting} computes with float64, which device={device} does not have", "use device=cpu"
    )
