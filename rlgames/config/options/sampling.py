"""The sampling rules."""

from __future__ import annotations

from dataclasses import dataclass

from rlgames.config.schema import POSITIVE, Part, key

TIES = ("first", "random")
"""Which of several actions with the highest score is greedy: the first, or each alike."""


@dataclass
class StochasticConfig:
    name: str = "stochastic"
    temperature: float = key(1.0, POSITIVE, 1e6)


@dataclass
class EpsilonGreedyConfig:
    name: str = "epsilon_greedy"
    epsilon: float = key(0.1, 0, 1)
    epsilon_end: float | None = key(None, 0, 1)
    ties: str = key("first", of=TIES)


@dataclass
class ArgmaxConfig:
    name: str = "argmax"
    ties: str | None = key(None, of=TIES)


SAMPLING_RULES = {
    "stochastic": Part(StochasticConfig, "rlgames.sampling:Stochastic"),
    "epsilon_greedy": Part(EpsilonGreedyConfig, "rlgames.sampling:EpsilonGreedy"),
    "argmax": Part(ArgmaxConfig, "rlgames.sampling:Argmax"),
}
