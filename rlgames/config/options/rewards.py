"""The rewards: one composition with several presets."""

from __future__ import annotations

from typing import Any

from rlgames.config.schema import POSITIVE, Option, OptionConfig, key, schema, variant
from rlgames.reward_terms import SCORED, SUBTRACTED


@schema
class RewardConfig(OptionConfig):
    """Keys of every reward."""

    scored: str = key(
        "score_delta", of=tuple(SCORED), help="what earns reward, per move or at the end"
    )
    minus: str = key(
        "nothing", of=tuple(SUBTRACTED), help="expected score of random play to subtract"
    )
    discount: float = key(1.0, 0, 1, help="discount factor per own turn")
    scale: float = key(
        1.0, POSITIVE, 1e6, help="factor applied to all rewards; returns near 1 train best"
    )
    win: float = key(1.0, -1e6, 1e6, help="value of a win, where outcomes are scored")
    loss: float = key(-1.0, -1e6, 1e6, help="value of a loss")
    draws: list[float] = key(
        [0.0, 0.0], -1e6, 1e6, help="value of a draw for the first and the second seat"
    )


def _reward(name: str, help: str, **defaults: Any) -> Option:
    return Option(variant(RewardConfig, name, help, **defaults), "rlgames.rewards:Reward")


REWARDS = {
    "hits": _reward(
        "hits",
        "hits minus a random shot's expected hits, discount 0.5",
        minus="random_shot",
        discount=0.5,
    ),
    "turns": _reward("turns", "-1 per turn, undiscounted", scored="turns"),
    "outcome": _reward(
        "outcome", "1 for a win, -1 for a loss, discounted", scored="outcome", discount=0.97
    ),
    "hickman": _reward(
        "hickman",
        "Hickman's outcomes: a draw favors the second seat",
        scored="outcome",
        discount=0.9,
        loss=0.0,
        draws=[0.1, 0.5],
    ),
    "score": _reward("score", "change in score, discounted", discount=0.99),
    "grid_sum": _reward(
        "grid_sum", "2048: sum of the tiles at the end of the game", scored="grid_sum"
    ),
    "win": _reward("win", "2048: 1 if the game reaches the target, else 0", scored="win"),
}
