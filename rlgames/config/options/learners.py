"""The learners and their hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass

from rlgames.config.schema import MAX_BATCH, POSITIVE, Part, key

OPTIMIZERS = ("sgd", "adam", "fused_adam", "rmsprop", "rmsprop_per_matrix")


@dataclass
class GradientConfig:
    """Keys shared by gradient-based learners."""

    name: str = key()
    optimizer: str = key("adam", of=OPTIMIZERS)
    rho: float = key(0.99, 0, 1)
    lr_end: float | None = key(None, 0, 100)
    max_grad_norm: float | None = key(1.0, POSITIVE, 1e6)


@dataclass
class ReinforceConfig(GradientConfig):
    name: str = "reinforce"
    baseline: str = key("value", of=("none", "mean", "standardized", "value"))
    masked: bool = True
    entropy_coef: float = key(0.1, 0, 100)
    entropy_coef_end: float | None = key(0.0, 0, 100)
    value_coef: float = key(0.5, 0, 1000)
    step_per: str = key("batch", of=("batch", "move"))


@dataclass
class PpoConfig(GradientConfig):
    name: str = "ppo"
    gae_lambda: float = key(1.0, 0, 1)
    symmetries: bool = False
    entropy_coef: float = key(0.1, 0, 100)
    entropy_coef_end: float | None = key(0.0, 0, 100)
    value_coef: float = key(0.5, 0, 1000)
    epochs: int = key(4, 1, 1000)
    minibatches: int = key(1, 1, 100_000)
    clip_range: float = key(0.2, POSITIVE, 1e6)


@dataclass
class TdConfig:
    name: str = "td"
    lr_end: float | None = key(None, 0, 100)
    step_size: str = key("constant", of=("constant", "temporal_coherence", "counts"))
    backup: str | None = key(None, of=("sampled", "expected", "every", "minimax"))
    td_lambda: float = key(0.0, 0, 1)
    frozen_tuples: list[int] = key([], 0, 10_000)
    backend: str = key("auto", of=("auto", "torch", "numba"))
    threads: int = key(1, 1, 256)


@dataclass
class TdLambdaConfig(GradientConfig):
    name: str = "td_lambda"
    max_grad_norm: float | None = key(None, POSITIVE, 1e6)
    td_lambda: float = key(0.5, 0, 1)
    epochs: int = key(1, 1, 1000)
    minibatches: int = key(4, 1, 100_000)


@dataclass
class AdpConfig:
    name: str = "adp"
    lr_end: float | None = key(None, 0, 100)
    fit: str = key("least_squares", of=("gradient", "least_squares"))
    standardize: bool = False


@dataclass
class DqnConfig(GradientConfig):
    name: str = "dqn"
    max_grad_norm: float | None = key(10.0, POSITIVE, 1e6)
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
    opening_epsilon: float = key(0.0, 0, 1)
    opening_turns: int = key(10, 1, 10_000)


@dataclass
class BehaviorCloningConfig(GradientConfig):
    name: str = "behavior_cloning"
    epochs: int = key(1, 1, 1000)
    minibatch: int = key(256, 1, MAX_BATCH)
    patience: int | None = key(None, 1, 10**9)


@dataclass
class A2cConfig:
    name: str = "a2c"
    lr_end: float | None = key(None, 0, 100)
    value_lr: float = key(1.0, 0, 100)
    gae_lambda: float = key(0.5, 0, 1)
    entropy_coef: float = key(0.01, 0, 100)
    entropy_coef_end: float | None = key(0.0, 0, 100)
    threads: int = key(1, 1, 256)


@dataclass
class DaggerConfig:
    name: str = "dagger"
    lr_end: float | None = key(None, 0, 100)
    temperature: float = key(0.0, 0, 1e9)
    threads: int = key(1, 1, 256)


@dataclass
class OccupancyConfig(GradientConfig):
    name: str = "occupancy"
    posterior_steps: int = key(0, 0, 10**12)
    sample_fraction: float = key(1.0, 0.001, 1)
    epochs: int = key(1, 1, 1000)
    minibatch: int = key(2048, 1, MAX_BATCH)


LEARNERS = {
    "reinforce": Part(ReinforceConfig, "rlgames.learners.reinforce:Reinforce"),
    "ppo": Part(PpoConfig, "rlgames.learners.ppo:Ppo"),
    "a2c": Part(A2cConfig, "rlgames.learners.a2c:A2c"),
    "td": Part(TdConfig, "rlgames.learners.td:Td"),
    "td_lambda": Part(TdLambdaConfig, "rlgames.learners.td_lambda:TdLambda"),
    "adp": Part(AdpConfig, "rlgames.learners.adp:Adp"),
    "dqn": Part(DqnConfig, "rlgames.learners.dqn:Dqn"),
    "behavior_cloning": Part(
        BehaviorCloningConfig, "rlgames.learners.behavior_cloning:BehaviorCloning"
    ),
    "dagger": Part(DaggerConfig, "rlgames.learners.dagger:Dagger"),
    "occupancy": Part(OccupancyConfig, "rlgames.learners.occupancy:Occupancy"),
    "alphazero": Part(AlphaZeroConfig, "rlgames.learners.alphazero:AlphaZero"),
}
