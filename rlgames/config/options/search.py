"""The searches before a move."""

from __future__ import annotations

from rlgames.config.schema import POSITIVE, Option, OptionConfig, key

SEARCH_RULES = ("dedieu_amar", "puct", "gumbel")
SEARCH_VALUES = ("outcome", "turns", "score", "grid_sum", "max_tile", "win")


class EndgameConfig(OptionConfig):
    """Keys of searches that can play the end of a game exactly."""

    solve_positions: int = key(0, 10**12, help="solver budget per move, in positions; 0: off")


class MctsConfig(EndgameConfig):
    simulations: int = key(1, 10**6, help="simulations per move")
    num_parallel: int = key(1, 10**4, help="simulations evaluated together; more: faster, weaker")
    depth: int | None = key(1, 10**9, help="maximum plies of a simulation; null: no limit")
    rule: str = key(of=SEARCH_RULES, help="gumbel: sequential halving; dedieu_amar: bonus P/(1+N)")
    c_puct: float = key(POSITIVE, 1e6, help="weight of the exploration bonus; values are 0 to 1")
    leaf: str | None = key(
        of=("rollout", "value"),
        help="value of a new node: of a rollout, or the value head; null: value in training",
    )
    rollout: int | None = key(0, 10**9, help="maximum plies of a rollout; null: to the end")
    rollout_policy: str = key(of=("policy", "uniform"), help="policy, or uniform, which is faster")
    temperature: float = key(
        POSITIVE,
        1e6,
        help="softmax temperature of priors and rollouts; below 1 if scores are values",
    )
    fixed_depth: bool = key(help="simulations go on past new nodes, down to search.depth")
    q_scale: float | None = key(
        POSITIVE, 1e9, help="Q is the value divided by this; null: 0 to 1 over each tree"
    )
    value: str | None = key(of=SEARCH_VALUES, help="outcome or a score; null: the game's own goal")
    dirichlet_fraction: float = key(0, 1, help="weight of Dirichlet noise at the root")
    dirichlet_total: float = key(POSITIVE, 1e6, help="sum of Dirichlet parameters; more: flatter")
    max_num_considered_actions: int = key(1, 10**6, help="rule=gumbel: actions tried at the root")
    gumbel_scale: float = key(0, 1e6, help="rule=gumbel: scale of root noise; 0: deterministic")
    c_visit: float = key(0, 1e6, help="rule=gumbel: values weigh (c_visit + most visits) * c_scale")
    c_scale: float = key(POSITIVE, 1e6, help="rule=gumbel: weight of values against logits")


class ExpectimaxConfig(OptionConfig):
    plies: int = key(1, 10, help="own moves to search; 1: as the run plays")
    tile_downgrading: int | None = key(
        4, 2**17, help="2048: from this tile on, search a board of halved tiles; null: off"
    )


class AlphaBetaConfig(EndgameConfig):
    plies: int = key(1, 20, help="moves of both seats to search; 1: as the run plays")


class RolloutConfig(OptionConfig):
    max_num_considered_actions: int = key(1, 10**6, help="actions tried: the policy's likeliest")
    simulations: int = key(1, 10**6, help="games per action; greedy player: all layouts if listed")
    gumbel_scale: float = key(0, 1e6, help="noise in the actions to try, for training; 0: none")
    temperature: float = key(0, 1e6, help="policy to learn: softmax(values / temperature); 0: best")
    value: str | None = key(of=SEARCH_VALUES, help="outcome or a score; null: the game's own goal")


SEARCHES = {
    "mcts": Option(MctsConfig, "rlgames.search.mcts:make_mcts"),
    "dedieu_amar": Option(MctsConfig, "rlgames.search.mcts:make_mcts"),
    "expectimax": Option(ExpectimaxConfig, "rlgames.search.expectimax:Expectimax"),
    "alphabeta": Option(AlphaBetaConfig, "rlgames.search.alphabeta:AlphaBetaSearch"),
    "rollout": Option(RolloutConfig, "rlgames.search.rollout:Rollouts"),
}
