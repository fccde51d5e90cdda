"""The keys of every option, with their types, ranges and choices; the defaults stand in conf/.

Every option of a config group has a schema here under the same name.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

POSITIVE = 1e-300
"""As the low end of a range: more than 0."""

MAX_BATCH = 1 << 24


def key(
    default: Any = MISSING, low: float = -math.inf, high: float = math.inf, of: Any = ()
) -> Any:
    """A field with its range or its choices."""
    metadata = {"low": low, "high": high, "of": tuple(of)}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass
class BattleshipConfig:
    name: str = "battleship"
    board: int = key(10, 1, 1000)
    ships: list[int] = key([3], 1, 1000)
    shots: int = key(1, 1, 1000)
    aim: str = key("auto", of=("auto", "joint", "sequential"))
    encoding: str = key("planes", of=("signed", "planes", "posterior"))
    show: list[str] = key([], of=("sizes", "sunk", "first_hit"))


@dataclass
class SalvoConfig(BattleshipConfig):
    name: str = "salvo"
    board: int = key(4, 1, 32)
    ships: list[int] = key([4, 2], 1, 32)
    shots: int = key(2, 1, 1024)


@dataclass
class DuelConfig:
    name: str = "salvo_duel"
    board: int = key(5, 1, 32)
    ships: list[int] = key([3, 2, 2], 1, 32)


@dataclass
class TictactoeConfig:
    name: str = "tictactoe"
    board: int = key(3, 1, 7)
    line: int = key(3, 1, 7)


@dataclass
class Connect4Config:
    name: str = "connect4"
    rows: int = key(6, 1, 61)
    columns: int = key(7, 1, 31)
    line: int = key(4, 1, 61)


@dataclass
class SlideConfig:
    name: str = "2048"
    board: int = key(4, 1, 8)
    columns: int = key(4, 1, 8)
    fours: float = key(0.1, 0, 1)
    target: int = key(2048, 4, 2**62)
    encoding: str = key("onehot", of=("onehot", "exponents"))


@dataclass
class RewardConfig:
    name: str = key()
    scored: str = key(
        of=(
            "score_delta",
            "log_score_delta",
            "outcome",
            "turns",
            "score",
            "grid_sum",
            "max_tile",
            "win",
        )
    )
    minus: str = key(of=("nothing", "random_shot", "random_turn"))
    discount: float = key(1.0, 0, 1)
    scale: float = key(1.0, POSITIVE, 1e6)
    win: float = key(1.0, -1e6, 1e6)
    loss: float = key(-1.0, -1e6, 1e6)
    draws: list[float] = key([0.0, 0.0], -1e6, 1e6)


@dataclass
class NetworkConfig:
    name: str = key()
    canonical: bool = False


@dataclass
class MlpConfig(NetworkConfig):
    name: str = "mlp"
    layers: list[int] = key([256, 256], 0, 65536)
    activation: str = key("relu", of=("tanh", "relu", "gelu", "silu"))
    init: str = key("orthogonal", of=("orthogonal", "truncated_normal"))
    bias: bool = True


@dataclass
class StagedConfig(MlpConfig):
    name: str = "staged"
    by: str = "max_tile"
    at: list[float] = key([512.0], -1e18, 1e18)


@dataclass
class ConvConfig(NetworkConfig):
    name: str = "conv"
    channels: list[int] = key([32, 32, 32], 1, 4096)
    activation: str = key("relu", of=("tanh", "relu", "gelu", "silu"))
    init: str = key("orthogonal", of=("orthogonal", "truncated_normal"))
    skip: bool = True


@dataclass
class AxialConfig(NetworkConfig):
    name: str = "axial"
    channels: list[int] = key([12, 12, 12], 1, 4096)
    activation: str = key("relu", of=("tanh", "relu", "gelu", "silu"))
    init: str = key("orthogonal", of=("orthogonal", "truncated_normal"))


@dataclass
class EmbeddingConfig(NetworkConfig):
    name: str = "embedding"
    units: int = key(32, 1, 4096)
    num_cell_values: int = key(12, 2, 64)
    layers: list[int] = key([256], 1, 65536)
    activation: str = key("relu", of=("tanh", "relu", "gelu", "silu"))
    init: str = key("orthogonal", of=("orthogonal", "truncated_normal"))


@dataclass
class TableConfig:
    name: str = "table"
    init_value: float = key(0.0, -1e6, 1e6)


@dataclass
class NtupleConfig:
    name: str = "ntuple"
    tuples: list[list[int]] | None = key(None, 0, 63)
    num_cell_values: int = key(16, 2, 66)
    table_size: int | None = key(None, 1, 10**9)
    init_value: float = key(0.0, -1e9, 1e9)


@dataclass
class LinearConfig:
    name: str = "linear"
    features: list[str] = key(
        ["corner", "vertical", "horizontal", "diagonal"],
        of=(
            *("corner", "vertical", "horizontal", "diagonal"),
            *("one", "empty", "pairs", "ordered", "rough"),
        ),
    )
    init_value: float = key(1.0, -1e6, 1e6)


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


@dataclass
class GradientConfig:
    """What every learner has that descends a loss."""

    name: str = key()
    optimizer: str = key("adam", of=("sgd", "adam", "rmsprop", "rmsprop_per_matrix"))
    rho: float = key(0.99, 0, 1)
    lr_end: float | None = key(None, 0, 100)
    max_grad_norm: float | None = key(1.0, POSITIVE, 1e6)


@dataclass
class ReinforceConfig(GradientConfig):
    name: str = "reinforce"
    baseline: str = key("value", of=("none", "mean", "standardized", "value"))
    masked: bool = True
    entropy_coef: float = key(0.0, 0, 100)
    entropy_coef_end: float | None = key(None, 0, 100)
    value_coef: float = key(0.5, 0, 1000)


@dataclass
class PpoConfig(GradientConfig):
    name: str = "ppo"
    gae_lambda: float = key(1.0, 0, 1)
    symmetries: bool = False
    entropy_coef: float = key(0.0, 0, 100)
    entropy_coef_end: float | None = key(None, 0, 100)
    value_coef: float = key(0.5, 0, 1000)
    epochs: int = key(1, 1, 1000)
    minibatches: int = key(1, 1, 100_000)
    clip_range: float = key(0.2, POSITIVE, 1e6)


@dataclass
class TdConfig:
    name: str = "td"
    lr_end: float | None = key(None, 0, 100)
    step_size: str = key("constant", of=("constant", "temporal_coherence", "counts"))
    backup: str = key("sampled", of=("sampled", "expected", "every"))
    frozen_tuples: list[int] = key([], 0, 10_000)


@dataclass
class TdLambdaConfig(GradientConfig):
    name: str = "td_lambda"
    td_lambda: float = key(0.5, 0, 1)
    epochs: int = key(1, 1, 1000)
    minibatches: int = key(1, 1, 100_000)


@dataclass
class AdpConfig:
    name: str = "adp"
    lr_end: float | None = key(None, 0, 100)
    fit: str = key("least_squares", of=("gradient", "least_squares"))
    standardize: bool = False


@dataclass
class DqnConfig(GradientConfig):
    name: str = "dqn"
    buffer_size: int = key(200_000, 1, 10**8)
    updates_per_batch: int = key(32, 1, 100_000)
    minibatch: int = key(256, 1, 10**7)
    n_step: int = key(1, 1, 10_000)
    target_every: int = key(1, 1, 10**9)
    polyak_tau: float = key(0.01, POSITIVE, 1)


@dataclass
class AlphaZeroConfig(GradientConfig):
    name: str = "alphazero"
    buffer_size: int = key(500_000, 1, 10**8)
    updates_per_batch: int = key(32, 1, 100_000)
    minibatch: int = key(512, 1, 10**7)
    value_coef: float = key(1.0, 0, 1000)
    symmetries: bool = True


@dataclass
class BehaviorCloningConfig(GradientConfig):
    name: str = "behavior_cloning"
    epochs: int = key(1, 1, 1000)
    minibatch: int = key(256, 1, MAX_BATCH)
    patience: int | None = key(None, 1, 10**9)


@dataclass
class OccupancyConfig(GradientConfig):
    name: str = "occupancy"
    sample_fraction: float = key(1.0, 0.001, 1)
    epochs: int = key(1, 1, 1000)
    minibatch: int = key(2048, 1, MAX_BATCH)


@dataclass
class RandomConfig:
    name: str = "random"
    observe: bool = False


@dataclass
class WinOrBlockConfig:
    name: str = "win_or_block"


@dataclass
class CornerConfig:
    name: str = "corner"


@dataclass
class HuntTargetConfig:
    name: str = "hunt_target"


@dataclass
class DensityConfig:
    name: str = "density"
    samples: int = key(60, 1, 1_000_000)


@dataclass
class ExactConfig:
    name: str = "exact"
    seconds: float = key(60.0, POSITIVE, 1e6)
    memory_gb: float = key(4.0, POSITIVE, 1e4)
    move_seconds: float = key(0.1, POSITIVE, 1e6)


@dataclass
class HumanConfig:
    name: str = "human"


@dataclass
class RunPlayerConfig:
    name: str = "run"
    path: str = "???"


@dataclass
class SelfConfig:
    name: str = "self"


@dataclass
class PastConfig:
    name: str = "past"
    every: int = key(5000, 1, 10**12)
    keep: int = key(10, 1, 1000)


@dataclass
class MctsConfig:
    name: str = "mcts"
    simulations: int = key(100, 1, 10**6)
    num_parallel: int = key(4, 1, 10**4)
    depth: int | None = key(None, 1, 10**9)
    rule: str = key("puct", of=("dedieu_amar", "puct"))
    c_puct: float = key(2.0, POSITIVE, 1e6)
    leaf: str = key("rollout", of=("rollout", "value"))
    rollout: int | None = key(None, 0, 10**9)
    rollout_policy: str = key("policy", of=("policy", "uniform"))
    temperature: float = key(1.0, POSITIVE, 1e6)
    value: str | None = key(None, of=("outcome", "turns", "score", "grid_sum", "max_tile", "win"))
    dirichlet_fraction: float = key(0.0, 0, 1)
    dirichlet_total: float = key(10.0, POSITIVE, 1e6)


@dataclass
class ExpectimaxConfig:
    name: str = "expectimax"
    plies: int = key(2, 1, 10)
    min_probability: float = key(0.0, 0, 1)


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


SCHEMAS: dict[str, dict[str, type]] = {
    "game": {
        "battleship": BattleshipConfig,
        "salvo": SalvoConfig,
        "salvo_duel": DuelConfig,
        "tictactoe": TictactoeConfig,
        "connect4": Connect4Config,
        "2048": SlideConfig,
    },
    "reward": {
        "hits": RewardConfig,
        "turns": RewardConfig,
        "outcome": RewardConfig,
        "hickman": RewardConfig,
        "score": RewardConfig,
        "grid_sum": RewardConfig,
        "win": RewardConfig,
    },
    "policy": {
        "mlp": MlpConfig,
        "staged": StagedConfig,
        "conv": ConvConfig,
        "embedding": EmbeddingConfig,
        "axial": AxialConfig,
        "table": TableConfig,
        "ntuple": NtupleConfig,
        "linear": LinearConfig,
    },
    "sampling": {
        "stochastic": StochasticConfig,
        "epsilon_greedy": EpsilonGreedyConfig,
        "argmax": ArgmaxConfig,
    },
    "learner": {
        "reinforce": ReinforceConfig,
        "ppo": PpoConfig,
        "td": TdConfig,
        "td_lambda": TdLambdaConfig,
        "adp": AdpConfig,
        "dqn": DqnConfig,
        "behavior_cloning": BehaviorCloningConfig,
        "occupancy": OccupancyConfig,
        "alphazero": AlphaZeroConfig,
    },
    "player": {
        "random": RandomConfig,
        "win_or_block": WinOrBlockConfig,
        "corner": CornerConfig,
        "hunt_target": HuntTargetConfig,
        "density": DensityConfig,
        "exact": ExactConfig,
        "human": HumanConfig,
        "run": RunPlayerConfig,
        "self": SelfConfig,
        "past": PastConfig,
    },
    "search": {"mcts": MctsConfig, "expectimax": ExpectimaxConfig},
    "hparams_search": {"tpe": HparamsConfig, "random": RandomHparamsConfig},
}
PLAYER_KEYS = ("player", "opponent", "eval_opponent", "teacher")
"""Keys that hold a player, each with the options of the group `player`."""

TRAINING_ONLY_PLAYERS = ("self", "past")
"""Players that only training knows."""

SHARED_GROUPS = {**dict.fromkeys(PLAYER_KEYS, "player"), "opponent_search": "search"}
"""The group whose options a key has, where that is not the group of its own name."""


def schema_of(group: str, name: str) -> type:
    """The schema of an option; KeyError where there is none."""
    return SCHEMAS[SHARED_GROUPS.get(group, group)][name]


def defaults(schema: type) -> dict[str, Any]:
    """The keys of a schema that have a default, with it."""
    found = {}
    for item in fields(schema):
        if item.default_factory is not MISSING:
            found[item.name] = item.default_factory()
        elif item.default is not MISSING:
            found[item.name] = item.default
    return found
