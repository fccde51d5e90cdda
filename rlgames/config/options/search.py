"""Searches: over moves, and over hyperparameters."""

from __future__ import annotations

from rlgames.config.schema import POSITIVE, Option, OptionConfig, key, schema, variant

SEARCH_RULES = ("dedieu_amar", "puct", "gumbel")
SEARCH_VALUES = ("outcome", "turns", "score", "grid_sum", "max_tile", "win")


@schema
class EndgameConfig(OptionConfig):
    """Keys of searches that can play the end of a game exactly."""

    solve_positions: int = key(
        0, 0, 10**12, help="positions to solve each move exactly, if they suffice; 0: none"
    )


@schema
class MctsConfig(EndgameConfig):
    """Monte Carlo tree search guided by the policy"""

    name: str = "mcts"
    simulations: int = key(100, 1, 10**6, help="simulations per move")
    num_parallel: int = key(
        4, 1, 10**4, help="simulations evaluated together; more: faster, but weaker"
    )
    threads: int = key(1, 1, 256, help="threads; more than 1 needs compiled rules")
    depth: int | None = key(None, 1, 10**9, help="maximum plies of a simulation; null: no limit")
    rule: str = key(
        "puct",
        of=SEARCH_RULES,
        help="puct; gumbel: sequential halving; dedieu_amar: bonus P/(1+N)",
    )
    c_puct: float = key(
        2.0, POSITIVE, 1e6, help="weight of the exploration bonus; values are 0 to 1"
    )
    leaf: str = key(
        "rollout", of=("rollout", "value"), help="value of a new node: rollout, or the value head"
    )
    rollout: int | None = key(None, 0, 10**9, help="maximum plies of a rollout; null: to the end")
    rollout_policy: str = key(
        "policy", of=("policy", "uniform"), help="policy, or uniform, which is faster"
    )
    temperature: float = key(
        1.0,
        POSITIVE,
        1e6,
        help="softmax temperature of priors and rollouts; below 1 if scores are values",
    )
    fixed_depth: bool = key(False, help="simulations go on past new nodes, down to search.depth")
    q_scale: float | None = key(
        None, POSITIVE, 1e9, help="Q is the value divided by this; null: 0 to 1 over each tree"
    )
    value: str | None = key(
        None, of=SEARCH_VALUES, help="outcome or a score; null: the game's own goal"
    )
    dirichlet_fraction: float = key(0.0, 0, 1, help="weight of Dirichlet noise at the root")
    dirichlet_total: float = key(
        10.0, POSITIVE, 1e6, help="sum of the Dirichlet parameters; more: flatter noise"
    )
    max_num_considered_actions: int = key(
        16, 1, 10**6, help="rule=gumbel: maximum actions tried at the root"
    )
    gumbel_scale: float = key(
        1.0, 0, 1e6, help="rule=gumbel: scale of the root's noise; 0: deterministic"
    )
    c_visit: float = key(
        50.0, 0, 1e6, help="rule=gumbel: values weigh (c_visit + most visits) * c_scale"
    )
    c_scale: float = key(
        0.1, POSITIVE, 1e6, help="rule=gumbel: weight of values against the policy's logits"
    )


DedieuAmarConfig = variant(
    MctsConfig,
    "dedieu_amar",
    "Dedieu and Amar's 2048 search: rollouts from a fixed depth",
    depth=4,
    rule="dedieu_amar",
    c_puct=1.0,
    fixed_depth=True,
    q_scale=2048.0,
    value="max_tile",
)


@schema
class ExpectimaxConfig(OptionConfig):
    """expectimax over the game's chance, on a run's values"""

    name: str = "expectimax"
    plies: int = key(2, 1, 10, help="own moves to search; 1: as the run plays")
    min_probability: float = key(0.0, 0, 1, help="skip chance outcomes less likely than this")
    tile_downgrading: int | None = key(
        16384, 4, 2**17, help="2048: from this tile on, search a board of halved tiles; null: off"
    )


@schema
class AlphaBetaConfig(EndgameConfig):
    """alpha-beta over both seats' moves, on the values of n-tuples"""

    name: str = "alphabeta"
    plies: int = key(5, 1, 20, help="moves of both seats to search; 1: as the run plays")


@schema
class RolloutConfig(OptionConfig):
    """tries actions and plays on with the policy"""

    name: str = "rollout"
    max_num_considered_actions: int = key(
        16, 1, 10**6, help="actions tried, the likeliest of the policy"
    )
    simulations: int = key(
        100,
        1,
        10**6,
        help="games per action; a greedy player plays all layouts where they can be listed",
    )
    gumbel_scale: float = key(
        0.0, 0, 1e6, help="noise in the choice of actions to try, for training; 0: none"
    )
    temperature: float = key(
        0.0, 0, 1e6, help="of the policy to learn: softmax(values / temperature); 0: the best"
    )
    value: str | None = key(
        None, of=SEARCH_VALUES, help="outcome or a score; null: the game's own goal"
    )


@schema
class HparamsConfig(OptionConfig):
    """tree-structured Parzen estimator (TPE) search"""

    name: str = "tpe"
    trials: int = key(20, 1, 10**6, help="number of jobs to run")
    parallel: int = key(1, 1, 10**4, help="jobs to run at the same time")
    seed: int = key(0, 0, 2**32 - 1, help="seed for the proposed jobs")
    space: list[str] = key(
        ["lr=tag(log,interval(0.0003,0.03))", "learner.entropy_coef=interval(0.0,0.05)"],
        help="search space in sweep syntax, besides the swept keys",
    )


SEARCHES = {
    "mcts": Option(MctsConfig, "rlgames.search.mcts:make_mcts"),
    "dedieu_amar": Option(DedieuAmarConfig, "rlgames.search.mcts:make_mcts"),
    "expectimax": Option(ExpectimaxConfig, "rlgames.search.expectimax:Expectimax"),
    "alphabeta": Option(AlphaBetaConfig, "rlgames.search.alphabeta:AlphaBetaSearch"),
    "rollout": Option(RolloutConfig, "rlgames.search.rollout:Rollouts"),
}
HPARAMS_SEARCHES = {
    "tpe": Option(HparamsConfig),
    "random": Option(variant(HparamsConfig, "random", "random search")),
}
