"""Makes the policy of a training, and what it is played and paid by, from its config."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from rlgames.config.commands import TrainConfig
from rlgames.config.options.rewards import RewardConfig
from rlgames.config.registry import REGISTRY, load_option, make
from rlgames.config.schema import arguments
from rlgames.core.devices import has_float64, no_float64
from rlgames.core.errors import ConfigError
from rlgames.core.memory import check_weight_memory, count_parameters
from rlgames.games.game import Game
from rlgames.policies.policy import AfterstateNetwork, Network, Policy, ValueFunction
from rlgames.rewards import Reward
from rlgames.sampling import Sampling


def new_policy(cfg: TrainConfig, game: Game[Any], generator: torch.Generator) -> Policy:
    """The policy of a training before its first update, on the game's device.

    generator: draws its weights.
    Raises ConfigError for a policy that the game, learner or memory does not allow.
    """
    check_policy_fits(cfg.policy.name, cfg.learner.name)
    policy_class = load_option("policy", cfg.policy.name)
    try:
        policy = _new_policy(policy_class, cfg, game, generator)
    except NotImplementedError as error:
        raise ConfigError(f"policy={cfg.policy.name} is not supported: {error}") from None
    except ValueError as error:
        hint = "use policy=mlp learner=ppo" if issubclass(policy_class, ValueFunction) else ""
        raise ConfigError(str(error), hint) from None
    return policy_to(policy, cfg.policy.name, game.device)


def _new_policy(
    policy_class: Any, cfg: TrainConfig, game: Game[Any], generator: torch.Generator
) -> Policy:
    """The same, on the CPU. Raises NotImplementedError, ValueError and ConfigError."""
    reward, learner = make_reward(cfg.reward, game), load_option("learner", cfg.learner.name)
    has_value, keys = learner.has_value_head(cfg.learner), arguments(cfg.policy)
    score_scale = reward.scale if reward.scored == "score_delta" else 0.0
    if issubclass(policy_class, ValueFunction):
        value_function: ValueFunction = policy_class(game, score_scale=score_scale, **keys)
        value_function.payoffs = reward.payoffs or value_function.payoffs
        return value_function
    if not issubclass(policy_class, Network):
        policy: Policy = policy_class(game, value=has_value, **keys)
        return policy
    is_canonical = keys.pop("canonical", False)
    new_network: Callable[..., Network] = functools.partial(
        policy_class, game, value=has_value, **keys
    )
    num_weights = count_parameters(lambda: new_network(generator=torch.Generator()))
    check_weight_memory(cfg.policy.name, num_weights)
    network = new_network(generator=generator)
    network.inputs(game, game.example_state())
    if is_canonical:
        from rlgames.policies.canonical import Canonical

        network = Canonical(game, network)
    network.scores_are_logits = learner.trains_logits
    return AfterstateNetwork(game, network, score_scale) if learner.trains_afterstates else network


def policy_to(policy: Policy, name: str, device: torch.device) -> Policy:
    """The policy of policy=name, moved to a device. Raises ConfigError where it has numbers that
    the device cannot hold."""
    tensors = [*policy.parameters(), *policy.buffers()]
    if not has_float64(device) and any(tensor.dtype == torch.float64 for tensor in tensors):
        raise no_float64(f"policy={name}", device)
    return policy.to(device)


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


def make_reward(config: RewardConfig, game: Game[Any]) -> Reward:
    """Raises ConfigError for a reward that the game does not know."""
    reward: Reward = make("reward", config, game, hint=f"use reward={game.spec.goal}")
    return reward


def greedy_rule(trained: TrainConfig) -> Sampling:
    """The greedy rule of a run, with ties as in its sampling rule during training."""
    rule: Sampling = make("sampling", trained.sampling)
    return rule.greedy_rule()
