"""The rewards: one composition with several presets."""

from __future__ import annotations

from dataclasses import dataclass

from rlgames.config.schema import POSITIVE, Part, key
from rlgames.reward_terms import SCORED, SUBTRACTED


@dataclass
class RewardConfig:
    name: str = key()
    scored: str = key("score_delta", of=tuple(SCORED))
    minus: str = key("nothing", of=tuple(SUBTRACTED))
    discount: float = key(1.0, 0, 1)
    scale: float = key(1.0, POSITIVE, 1e6)
    win: float = key(1.0, -1e6, 1e6)
    loss: float = key(-1.0, -1e6, 1e6)
    draws: list[float] = key([0.0, 0.0], -1e6, 1e6)


REWARDS = {
    "hits": Part(RewardConfig, "rlgames.rewards:Reward"),
    "turns": Part(RewardConfig, "rlgames.rewards:Reward"),
    "outcome": Part(RewardConfig, "rlgames.rewards:Reward"),
    "hickman": Part(RewardConfig, "rlgames.rewards:Reward"),
    "score": Part(RewardConfig, "rlgames.rewards:Reward"),
    "grid_sum": Part(RewardConfig, "rlgames.rewards:Reward"),
    "win": Part(RewardConfig, "rlgames.rewards:Reward"),
}
