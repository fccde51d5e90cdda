"""The engines: where the games of a training are played."""

from __future__ import annotations

from dataclasses import dataclass

from rlgames.config.schema import MAX_BATCH, Part, key


@dataclass
class LocalConfig:
    name: str = "local"


@dataclass
class RayConfig:
    name: str = "ray"
    actors: int = key(2, 1, 100_000)
    address: str | None = key(None)
    games_per_task: int | None = key(None, 1, MAX_BATCH)


ENGINES = {
    "local": Part(LocalConfig, "rlgames.training.engine:LocalEngine"),
    "ray": Part(RayConfig, "rlgames.training.ray_engine:RayEngine", extra="ray"),
}
