"""The players: scripted, exact, human, and trained ones."""

from __future__ import annotations

from dataclasses import dataclass

from rlgames.config.schema import POSITIVE, Part, key


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
    steps: int = key(5_000_000, 0, 10**12)
    miss_weight: float = key(0.0, 0, 1)


@dataclass
class DensityRolloutConfig:
    name: str = "density_rollout"
    samples: int = key(60, 1, 1_000_000)
    steps: int = key(5_000_000, 0, 10**12)
    miss_weight: float | None = key(None, 0, 1)
    layouts: int = key(10_000, 1, 1_000_000)
    next_cells: int = key(3, 1, 100)


@dataclass
class ExactConfig:
    name: str = "exact"
    seconds: float = key(60.0, POSITIVE, 1e6)
    memory_gb: float = key(4.0, POSITIVE, 1e4)
    move_positions: int | None = key(200_000, 1, 10**12)
    move_seconds: float | None = key(None, POSITIVE, 1e6)


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


PLAYERS = {
    "random": Part(RandomConfig, "rlgames.players.player:Random", is_quick=True),
    "win_or_block": Part(WinOrBlockConfig, "rlgames.players.scripted:WinOrBlock", is_quick=True),
    "corner": Part(CornerConfig, "rlgames.players.scripted:Corner"),
    "hunt_target": Part(HuntTargetConfig, "rlgames.players.battleship_bots:HuntTarget"),
    "density": Part(DensityConfig, "rlgames.players.battleship_bots:Density"),
    "density_rollout": Part(DensityRolloutConfig, "rlgames.players.density_rollout:DensityRollout"),
    "exact": Part(ExactConfig, "rlgames.players.exact:exact_player"),
    "human": Part(HumanConfig, "rlgames.players.human:Human"),
    "run": Part(RunPlayerConfig),
    "self": Part(SelfConfig, training_only=True),
    "past": Part(PastConfig, training_only=True),
}
