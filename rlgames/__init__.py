"""rlgames: learn to play games from declarative configs.

From a notebook: `rlgames.train(overrides)`, `rlgames.load(run)` and
`rlgames.evaluate(run, overrides)`; `rlgames.export_onnx(run, path)` writes its network for other
tools, and `rlgames.envs` has the games for other learners; `rlgames.register(...)` adds a part of
your own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlgames.players.player import Agent

__version__ = "0.1.0"


def register(group: str, name: str, make: Callable[..., Any], schema: type) -> None:
    """Let a part of your own be chosen by its name, like those of rlgames.

    group: game, reward, policy, sampling, learner, player or search.
    make: called with the keys of schema, its name left out, after what the group's parts are made
        with: nothing for games and samplings; `game` for rewards and players; `game, player` for
        searches; `game, value=, rng=` for networks and `game, gains=` for value functions, by
        their classes; `context, lr=` for learners, by their classes.
        It raises ValueError for what does not fit together.
    schema: a dataclass as those of schemas.py, every key with a default, that of `name` the name.
        --help shows the first line of its docstring, and its lines `key: what it is` with the keys.
    Raises ValueError for a group that there is not, a part that is none of the group's, and a name
    that is taken, unless by the same part from a module that is imported anew.
    """
    from rlgames.factory.components import register as add

    add(group, name, make, schema)


def train(overrides: list[str] | None = None) -> Path:
    """Train as `rlgames train` does with these overrides; the run's directory."""
    from rlgames.config.compose import load_config
    from rlgames.training.run import train as run

    trained = run(load_config("train", overrides or []))
    assert trained is not None
    return trained.directory


def load(run: str | Path) -> Agent:
    """The trained agent of a run directory or a checkpoint file, playing greedily.

    Its `choose(state)` gives an action for each row of a batch of positions.
    """
    from rlgames.factory.agents import load_agent

    return load_agent(Path(run))


def evaluate(run: str | Path | None = None, overrides: list[str] | None = None) -> dict[str, Any]:
    """Evaluate as `rlgames eval` does; the same numbers that it prints as JSON."""
    from rlgames.commands.evaluate import evaluate_command

    return evaluate_command(None if run is None else Path(run), overrides or [])


def export_onnx(run: str | Path, path: str | Path | None = None) -> Path:
    """Write a run's network as `rlgames export` does; the file, policy.onnx in the run by default.

    Raises ConfigError for a policy that is no network, and without the extra onnx.
    """
    from rlgames.commands.export import export_command
    from rlgames.config.overrides import quoted

    overrides = [] if path is None else [f"out={quoted(str(path))}"]
    return export_command(Path(run), overrides).path
