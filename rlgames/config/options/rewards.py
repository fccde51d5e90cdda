"""The rewards."""

from __future__ import annotations

from rlgames.config.schema import POSITIVE, Option, OptionConfig, key

SCORED = ("goal", "score_delta", "turns", "outcome", "score", "grid_sum", "max_tile", "win")
SUBTRACTED = ("nothing", "random_shot", "random_turn")


class RewardConfig(OptionConfig):
    """Keys of every reward."""

    scored: str = key(of=SCORED, help="what earns reward; goal: the game's own")
    minus: str = key(of=SUBTRACTED, help="expected score of random play to subtract")
    discount: float = key(0, 1, help="discount factor per own turn")
    scale: float = key(POSITIVE, 1e6, help="factor of all rewards; returns near 1 train best")
    win: float = key(-1e6, 1e6, help="value of a win, where outcomes are scored")
    loss: float = key(-1e6, 1e6, help="value of a loss")
    draws: list[float] = key(-1e6, 1e6, help="value of a draw for the first and the second seat")


NAMES = ("goal", "hits", "turns", "outcome", "hickman", "score", "grid_sum", "win")

REWARDS = {name: Option(RewardConfig, "rlgames.rewards:Reward") for name in NAMES}
"""One class, with other values in each file."""
