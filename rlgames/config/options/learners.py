"""The learners and their hyperparameters."""

from __future__ import annotations

from rlgames.config.schema import MAX_BATCH, POSITIVE, Option, OptionConfig, key, schema

OPTIMIZERS = ("sgd", "adam", "fused_adam", "rmsprop", "rmsprop_per_matrix")


@schema
class LearnerConfig(OptionConfig):
    """Keys of every learner."""

    lr_end: float | None = key(
        None, 0, 100, help="learning rate at the end of the run; null: constant"
    )


@schema
class EntropyConfig(LearnerConfig):
    """Keys of policy gradients."""

    entropy_coef: float = key(0.1, 0, 100, help="weight of the entropy bonus")
    entropy_coef_end: float | None = key(
        0.0, 0, 100, help="entropy_coef at the end of the run; null: constant"
    )


@schema
class GradientConfig(LearnerConfig):
    """Keys of gradient-based learners."""

    optimizer: str = key(
        "adam",
        of=OPTIMIZERS,
        help="fused_adam: Adam(fused=True); rmsprop_per_matrix: one scale per matrix",
    )
    rho: float = key(0.99, 0, 1, help="decay of rmsprop's running means")
    max_grad_norm: float | None = key(
        1.0, POSITIVE, 1e6, help="gradients are clipped to this norm; null: no limit"
    )


@schema
class ReinforceConfig(EntropyConfig, GradientConfig):
    """REINFORCE: policy gradient on whole games"""

    name: str = "reinforce"
    baseline: str = key(
        "value",
        of=("none", "mean", "standardized", "value"),
        help="none, mean, standardized, or value from a value head",
    )
    masked: bool = key(True, help="exclude illegal actions from the gradient's softmax")
    value_coef: float = key(0.5, 0, 1000, help="weight of the value loss")
    step_per: str = key(
        "batch",
        of=("batch", "move"),
        help="gradient steps: one per batch, or one per move of its games",
    )


@schema
class PpoConfig(EntropyConfig, GradientConfig):
    """PPO: clipped policy gradient with a value head and GAE"""

    name: str = "ppo"
    gae_lambda: float = key(1.0, 0, 1, help="GAE λ; 1: the full return")
    value_coef: float = key(0.5, 0, 1000, help="weight of the value loss")
    epochs: int = key(4, 1, 1000, help="passes over each batch")
    num_minibatches: int = key(1, 1, 100_000, help="parts of a batch, one gradient step each")
    clip_range: float = key(0.2, POSITIVE, 1e6, help="ε: probability ratios are clipped to 1 ± ε")


@schema
class TdConfig(LearnerConfig):
    """temporal differences, backward through games; for policy=table"""

    name: str = "td"
    td_lambda: float = key(0.0, 0, 1, help="weight of longer returns; 0: one step")


@schema
class TdNtupleConfig(LearnerConfig):
    """temporal differences of policy=ntuple, in a compiled kernel that also plays"""

    name: str = "td_ntuple"
    step_size: str = key(
        "constant",
        of=("constant", "temporal_coherence"),
        help="temporal_coherence: less where errors alternate",
    )
    backup: str = key(
        "sampled",
        of=("sampled", "expected"),
        help="target of an update; expected: mean over chance, for one seat",
    )
    td_lambda: float = key(0.0, 0, 1, help="weight of longer returns; 0: one step")
    threads: int = key(1, 1, 256, help="threads that learn; more than 1: not repeatable")
    average_start: float | None = key(
        None, 0, 0.99, help="average values from this fraction of training on; null: the latest"
    )


@schema
class TdLambdaConfig(GradientConfig):
    """TD(λ) on afterstates by gradient, for networks"""

    name: str = "td_lambda"
    max_grad_norm: float | None = None
    td_lambda: float = key(0.5, 0, 1, help="λ of the return; 1: the full return")
    epochs: int = key(1, 1, 1000, help="passes over each batch")
    num_minibatches: int = key(4, 1, 100_000, help="parts of a batch, one gradient step each")


@schema
class AdpConfig(LearnerConfig):
    """approximate dynamic programming: fits policy=linear to returns"""

    name: str = "adp"
    fit: str = key(
        "least_squares",
        of=("gradient", "least_squares"),
        help="gradient: one step; least_squares: toward the solution",
    )


@schema
class DqnConfig(GradientConfig):
    """double Q-learning from a replay buffer; use sampling=epsilon_greedy"""

    name: str = "dqn"
    max_grad_norm: float | None = 10.0
    buffer_size: int = key(200_000, 1, 10**8, help="replay buffer capacity in moves")
    updates_per_batch: int = key(32, 1, 100_000, help="gradient steps per batch of games")
    minibatch_size: int = key(256, 1, 10**7, help="moves per gradient step")
    n_step: int = key(1, 1, 10_000, help="own moves before bootstrapping from the target network")
    target_every: int = key(1, 1, 10**9, help="gradient steps between target network updates")
    polyak_tau: float = key(0.01, POSITIVE, 1, help="target network update rate; 1: copy")


@schema
class AlphaZeroConfig(GradientConfig):
    """policy from search=mcts or rollout, value from returns"""

    name: str = "alphazero"
    buffer_size: int = key(500_000, 1, 10**8, help="replay buffer capacity in moves")
    updates_per_batch: int = key(32, 1, 100_000, help="gradient steps per batch of games")
    minibatch_size: int = key(512, 1, 10**7, help="moves per gradient step")
    value_coef: float = key(1.0, 0, 1000, help="weight of the value loss")
    symmetries: bool = key(True, help="train on a random symmetry of each position")
    opening_epsilon: float = key(
        0.0, 0, 1, help="probability of a random move in the opening of a game"
    )
    opening_turns: int = key(10, 1, 10_000, help="turns of the opening")


@schema
class BehaviorCloningConfig(GradientConfig):
    """imitates the moves of teacher= or demonstrations="""

    name: str = "behavior_cloning"
    epochs: int = key(1, 1, 1000, help="passes over each batch")
    minibatch_size: int = key(256, 1, MAX_BATCH, help="moves per gradient step")
    patience: int | None = key(
        None,
        1,
        10**9,
        help="evaluations without a lower held-out loss before stopping; null: never",
    )


@schema
class OccupancyConfig(GradientConfig):
    """predicts hidden cells; finished games reveal them"""

    name: str = "occupancy"
    posterior_steps: int = key(
        0, 0, 10**12, help="use exact posteriors if counted in this many steps; 0: never"
    )
    epochs: int = key(1, 1, 1000, help="passes over each batch")
    minibatch_size: int = key(2048, 1, MAX_BATCH, help="moves per gradient step")


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
