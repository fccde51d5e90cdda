"""The sampling rules."""

from __future__ import annotations

from rlgames.config.schema import POSITIVE, Option, OptionConfig, key

TIES = ("first", "random")
"""Which of several actions with the highest score is greedy: the first, or each alike."""


class StochasticConfig(OptionConfig):
    temperature: float = key(POSITIVE, 1e6, help="below 1 sharpens, above 1 flattens")


class EpsilonGreedyConfig(OptionConfig):
    epsilon: float = key(0, 1, help="probability of a random action")
    epsilon_end: float | None = key(0, 1, help="epsilon at the end of the run; null: constant")
    ties: str = key(of=TIES, help="of equally good actions: first, random")


class ArgmaxConfig(OptionConfig):
    ties: str | None = key(of=TIES, help="of equal actions; null: as in training, else first")


SAMPLING_RULES = {
    "stochastic": Option(StochasticConfig, "rlgames.sampling:Stochastic"),
    "epsilon_greedy": Option(EpsilonGreedyConfig, "rlgames.sampling:EpsilonGreedy"),
    "argmax": Option(ArgmaxConfig, "rlgames.sampling:Argmax"),
}
