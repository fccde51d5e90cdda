"""Builds the policy that a learner trains, from its class and its keys."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from rlgames.core.devices import has_float64, no_float64
from rlgames.core.errors import ConfigError
from rlgames.core.memory import check_weight_memory, count_parameters
from rlgames.games.game import Game
from rlgames.policies.policy import AfterstateNetwork, Network, Policy, ValueFunction


def build_policy(
    name: str,
    make: Any,
    keys: dict[str, Any],
    game: Game[Any],
    rng: torch.Generator,
    *,
    trains_logits: bool,
    trains_afterstates: bool,
    has_value: bool,
    score_scale: float,
    payoffs: Any,
) -> Policy:
    """A policy with weights drawn with rng.

    Args:
        name: of policy=, for errors.
        make: its class, called with `keys`.
        trains_logits, trains_afterstates: see Learner.
        has_value: whether a network has a value head.
        score_scale: the reward of a point, 0 if points are not the reward.
        payoffs: of the reward, see Reward.payoffs.

    Raises:
        ConfigError: for a policy that does not support the game or needs too much memory.
    """
    try:
        if issubclass(make, ValueFunction):
            value_function: ValueFunction = make(game, score_scale=score_scale, **keys)
            value_function.payoffs = payoffs or value_function.payoffs
            return value_function
        if not issubclass(make, Network):
            policy: Policy = make(game, value=has_value, **keys)
            return policy
        network = _build_network(name, make, keys, game, rng, has_value)
        network.scores_are_logits = trains_logits
        if trains_afterstates:
            return AfterstateNetwork(game, network, score_scale)
        return network
    except NotImplementedError as error:
        raise ConfigError(f"policy={name} is not supported: {error}") from None
    except ValueError as error:
        hint = "use policy=mlp learner=ppo" if issubclass(make, ValueFunction) else ""
        raise ConfigError(str(error), hint) from None


def _build_network(
    name: str,
    make: Callable[..., Network],
    keys: dict[str, Any],
    game: Game[Any],
    rng: torch.Generator,
    has_value: bool,
) -> Network:
    canonical = keys.get("canonical", False)
    settings = {key: value for key, value in keys.items() if key != "canonical"}
    make = functools.partial(make, game, value=has_value, **settings)
    check_weight_memory(name, count_parameters(lambda: make(rng=torch.Generator())))
    network = make(rng=rng)
    network.inputs(game, game.example_state())
    if not canonical:
        return network
    from rlgames.policies.canonical import Canonical

    return Canonical(game, network)


def policy_to(policy: Policy, name: str, device: torch.device) -> Policy:
    """The policy of policy=name, moved to a device. Raises ConfigError where it has numbers that
    the device cannot hold."""
    tensors = [*policy.parameters(), *policy.buffers()]
    if not has_float64(device) and any(tensor.dtype == torch.float64 for tensor in tensors):
        raise no_float64(f"policy={name}", device)
    return policy.to(device)
