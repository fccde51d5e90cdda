"""Searches: over moves, and over hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass

from rlgames.config.schema import POSITIVE, Part, key

SEARCH_RULES = ("dedieu_amar", "puct", "gumbel")
SEARCH_VALUES = ("outcome", "turns", "score", "grid_sum", "max_tile", "win")


@dataclass
class MctsConfig:
    name: str = "mcts"
    simulations: int = key(100, 1, 10**6)
    num_parallel: int = key(4, 1, 10**4)
    threads: int = key(1, 1, 256)
    depth: int | None = key(None, 1, 10**9)
    rule: str = key("puct", of=SEARCH_RULES)
    c_puct: float = key(2.0, POSITIVE, 1e6)
    leaf: str = key("rollout", of=("rollout", "value"))
    rollout: int | None = key(None, 0, 10**9)
    rollout_policy: str = key("policy", of=("policy", "uniform"))
    temperature: float = key(1.0, POSITIVE, 1e6)
    fixed_depth: bool = False
    q_scale: float | None = key(None, POSITIVE, 1e9)
    value: str | None = key(None, of=SEARCH_VALUES)
    dirichlet_fraction: float = key(0.0, 0, 1)
    dirichlet_total: float = key(10.0, POSITIVE, 1e6)
    max_num_considered_actions: int = key(16, 1, 10**6)
    gumbel_scale: float = key(1.0, 0, 1e6)
    c_visit: float = key(50.0, 0, 1e6)
    c_scale: float = key(0.1, POSITIVE, 1e6)


@dataclass
class DedieuAmarConfig(MctsConfig):
    name: str = "dedieu_amar"
    depth: int | None = key(4, 1, 10**9)
    rule: str = key("dedieu_amar", of=SEARCH_RULES)
    c_puct: float = key(1.0, POSITIVE, 1e6)
    fixed_depth: bool = True
    q_scale: float | None = key(2048.0, POSITIVE, 1e9)
    value: str | None = key("max_tile", of=SEARCH_VALUES)


@dataclass
class ExpectimaxConfig:
    name: str = "expectimax"
    plies: int = key(2, 1, 10)
    min_probability: float = key(0.0, 0, 1)


@dataclass
class AlphaBetaConfig:
    name: str = "alphabeta"
    plies: int = key(5, 1, 20)


@dataclass
class RolloutConfig:
    name: str = "rollout"
    max_num_considered_actions: int = key(16, 1, 10**6)
    simulations: int = key(100, 1, 10**6)
    gumbel_scale: float = key(0.0, 0, 1e6)
    temperature: float = key(0.0, 0, 1e6)
    value: str | None = key(None, of=SEARCH_VALUES)


@dataclass
class HparamsConfig:
    """space: words that name several values each, as in a sweep."""

    name: str = "tpe"
    trials: int = key(20, 1, 10**6)
    parallel: int = key(1, 1, 10**4)
    seed: int = key(0, 0, 2**32 - 1)
    space: list[str] = key(
        ["lr=tag(log,interval(0.0003,0.03))", "learner.entropy_coef=interval(0.0,0.05)"]
    )


@dataclass
class RandomHparamsConfig(HparamsConfig):
    name: str = "random"


SEARCHES = {
    "mcts": Part(MctsConfig, "rlgames.search.mcts:make_mcts"),
    "dedieu_amar": Part(DedieuAmarConfig, "rlgames.search.mcts:make_mcts"),
    "expectimax": Part(ExpectimaxConfig, "rlgames.search.expectimax:make_expectimax"),
    "alphabeta": Part(AlphaBetaConfig, "rlgames.search.alphabeta:AlphaBetaSearch"),
    "rollout": Part(RolloutConfig, "rlgames.search.rollout:make_rollouts"),
}
HPARAMS_SEARCHES = {"tpe": Part(HparamsConfig), "random": Part(RandomHparamsConfig)}
