"""The engines: where the games of a training are played."""

from __future__ import annotations

from rlgames.config.schema import Option, OptionConfig, key


class RayConfig(OptionConfig):
    actors: int = key(1, 100_000, help="processes that play, each with as many CPUs as threads=")
    address: str | None = key(help="cluster to join, HOST:PORT or auto; null: start Ray here")


ENGINES = {
    "local": Option(OptionConfig, "rlgames.training.sources:GameSource"),
    "ray": Option(RayConfig, "rlgames.training.ray_source:RaySource", extra="ray"),
}
