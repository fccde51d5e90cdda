"""The sampling rules."""

from __future__ import annotations

from dataclasses import dataclass

from rlgames.config.schema import POSITIVE, Part, key


@dataclass
class StochasticConfig:
    name: str = "stochastic"
    temperature: float = key(1.0, POSITIVE, 1e6)


@dataclass
class EpsilonGreedyConfig:
    name: str = "epsilon_greedy"
    epsilon: float = key(0.1, 0, 1)
    epsilon_end: float | None = key(None, 0, 1)


@dataclass
class ArgmaxConfig:
    name: str = "argmax"


SAMPLING_RULES = {
    "stochastic": Part(StochasticConfig, "rlgames.sampling:Stochastic"),
    "epsilon_greedy": Part(EpsilonGreedyConfig, "rlgames.sampling:EpsilonGreedy"),
    "argmax": Part(ArgmaxConfig, "rlgames.sampling:Argmax"),
}
