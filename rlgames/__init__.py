"""rlgames: learn to play games from declarative configs.

From a notebook: `rlgames.train(overrides)`, `rlgames.load(run)` and
`rlgames.evaluate(run, overrides)`; `rlgames.register(...)` adds a part of your own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlgames.players.player import Agent

__version__ = "0.1.0"


def register(group: str, name: str, make: Callable[..., Any], schema: type) -> None:
    """Add a part of your own, as build.register says; README.md has an example."""
    from rlgames.build import register as add

    add(group, name, make, schema)


def train(overrides: list[str] | None = None) -> Path:
    """Train as `rlgames train` does with these overrides; the run's directory."""
    from rlgames import config
    from rlgames.training import train as run

    return run(config.load("train", overrides or [])).directory


def load(run: str | Path) -> Agent:
    """The trained agent of a run directory or a checkpoint file, playing greedily.

    Its `choose(state)` gives an action for each row of a batch of positions.
    """
    from rlgames.agents import load_agent

    return load_agent(Path(run))


def evaluate(run: str | Path | None = None, overrides: list[str] | None = None) -> dict[str, Any]:
    """Evaluate as `rlgames eval` does; the same numbers that it prints as JSON."""
    from rlgames.commands.evaluate import evaluate_command

    return evaluate_command(None if run is None else Path(run), overrides or [])
