"""The learners and their hyperparameters."""

from __future__ import annotations

from rlgames.config.schema import MAX_BATCH, POSITIVE, Option, OptionConfig, key

OPTIMIZERS = ("sgd", "adam", "fused_adam", "rmsprop", "rmsprop_per_matrix")


class LearnerConfig(OptionConfig):
    """Keys of every learner."""

    lr_end: float | None = key(0, 100, help="learning rate at the end of the run; null: constant")


class EntropyConfig(LearnerConfig):
    """Keys of policy gradients."""

    entropy_coef: float = key(0, 100, help="weight of the entropy bonus")
    entropy_coef_end: float | None = key(0, 100, help="entropy_coef at the end; null: constant")


class GradientConfig(LearnerConfig):
    """Keys of gradient-based learners."""

    optimizer: str = key(of=OPTIMIZERS, help="rmsprop_per_matrix: one scale per matrix")
    rho: float = key(0, 1, help="decay of rmsprop's running means")
    max_grad_norm: float | None = key(POSITIVE, 1e6, help="maximum norm of gradients; null: none")


class ReinforceConfig(EntropyConfig, GradientConfig):
    baseline: str = key(
        of=("none", "mean", "standardized", "value"),
        help="none, mean, standardized, or value from a value head",
    )
    masked: bool = key(help="exclude illegal actions from the gradient's softmax")
    value_coef: float = key(0, 1000, help="weight of the value loss")
    step_per: str = key(of=("batch", "move"), help="one gradient step per batch, or per move")


class PpoConfig(EntropyConfig, GradientConfig):
    gae_lambda: float = key(0, 1, help="GAE λ; 1: the full return")
    value_coef: float = key(0, 1000, help="weight of the value loss")
    epochs: int = key(1, 1000, help="passes over each batch")
    num_minibatches: int = key(1, 100_000, help="parts of a batch, one gradient step each")
    clip_range: float = key(POSITIVE, 1e6, help="ε: probability ratios are clipped to 1 ± ε")


class TdConfig(LearnerConfig):
    td_lambda: float = key(0, 1, help="weight of longer returns; 0: one step")


class TdNtupleConfig(LearnerConfig):
    step_size: str = key(
        of=("constant", "temporal_coherence"),
        help="temporal_coherence: less where errors alternate",
    )
    td_lambda: float = key(0, 1, help="weight of longer returns; 0: one step")
    threads: int = key(1, 256, help="threads that learn; more than 1: not repeatable")
    average_start: float | None = key(
        0, 0.99, help="average values from this fraction of training on; null: never"
    )


class TdLambdaConfig(GradientConfig):
    td_lambda: float = key(0, 1, help="λ of the return; 1: the full return")
    epochs: int = key(1, 1000, help="passes over each batch")
    num_minibatches: int = key(1, 100_000, help="parts of a batch, one gradient step each")


class AdpConfig(LearnerConfig):
    fit: str = key(of=("gradient", "least_squares"), help="least_squares: toward the solution")


class DqnConfig(GradientConfig):
    buffer_size: int = key(1, 10**8, help="replay buffer capacity in moves")
    updates_per_batch: int = key(1, 100_000, help="gradient steps per batch of games")
    minibatch_size: int = key(1, 10**7, help="moves per gradient step")
    n_step: int = key(1, 10_000, help="own moves before bootstrapping from the target network")
    target_every: int = key(1, 10**9, help="gradient steps between target network updates")
    polyak_tau: float = key(POSITIVE, 1, help="target network update rate; 1: copy")


class AlphaZeroConfig(GradientConfig):
    buffer_size: int = key(1, 10**8, help="replay buffer capacity in moves")
    updates_per_batch: int = key(1, 100_000, help="gradient steps per batch of games")
    minibatch_size: int = key(1, 10**7, help="moves per gradient step")
    value_coef: float = key(0, 1000, help="weight of the value loss")
    symmetries: bool = key(help="train on a random symmetry of each position")
    opening_epsilon: float = key(0, 1, help="probability of a random move in the opening of a game")
    opening_turns: int = key(1, 10_000, help="turns of the opening")


class BehaviorCloningConfig(GradientConfig):
    epochs: int = key(1, 1000, help="passes over each batch")
    minibatch_size: int = key(1, MAX_BATCH, help="moves per gradient step")
    patience: int | None = key(1, 10**9, help="evaluations to wait for a lower loss; null: forever")


class OccupancyConfig(GradientConfig):
    posterior_steps: int = key(0, 10**12, help="exact posteriors up to this many steps; 0: never")
    epochs: int = key(1, 1000, help="passes over each batch")
    minibatch_size: int = key(1, MAX_BATCH, help="moves per gradient step")


LEARNERS = {
    "reinforce": Option(ReinforceConfig, "rlgames.learners.reinforce:Reinforce"),
    "ppo": Option(PpoConfig, "rlgames.learners.ppo:Ppo"),
    "td": Option(TdConfig, "rlgames.learners.td:Td"),
    "td_ntuple": Option(TdNtupleConfig, "rlgames.learners.td_ntuple:TdNtuple"),
    "td_lambda": Option(TdLambdaConfig, "rlgames.learners.td_lambda:TdLambda"),
    "adp": Option(AdpConfig, "rlgames.learners.adp:Adp"),
    "dqn": Option(DqnConfig, "rlgames.learners.dqn:Dqn"),
    "behavior_cloning": Option(
        BehaviorCloningConfig, "rlgames.learners.behavior_cloning:BehaviorCloning"
    ),
    "occupancy": Option(OccupancyConfig, "rlgames.learners.occupancy:Occupancy"),
    "alphazero": Option(AlphaZeroConfig, "rlgames.learners.alphazero:AlphaZero"),
}
