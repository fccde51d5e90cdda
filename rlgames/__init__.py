"""rlgames: learn to play games from declarative configs.

In a notebook: `rlgames.train(overrides)`, `rlgames.load(run)`, `rlgames.evaluate(run, overrides)`,
`rlgames.report(directories)`.
`rlgames.export_onnx(run, path)` writes a network for other tools, `rlgames.envs` has the games for
other learners, and `rlgames.register(...)` adds your own games, policies, learners and players.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlgames.version import __version__ as __version__

if TYPE_CHECKING:
    from rlgames.players.player import Agent


def register(group: str, name: str, make: Callable[..., Any], schema: type) -> None:
    """Register your own part, which is then chosen by its name like those of rlgames.

    group: game, reward, policy, sampling, learner, player or search.
    make: called with the keys of the schema, without its name, after the arguments of the group:
        none for games and sampling rules; `game` for rewards and players; `game, player` for
        searches; `game, value=, rng=` for networks and `game, score_scale=` for value functions, by
        their classes; `context, lr=` for learners, by their classes.
        It raises ValueError for a combination that makes no sense.
    schema: a dataclass with a default for every key; the default of `name` is the part's name.
        --help shows the first line of its docstring, and its lines `key: text` with the keys.
    Raises ValueError for an unknown group, a part of another kind, and a name that is taken, unless
    by the same part from a reloaded module.
    """
    from rlgames.factory.components import register as add

    add(group, name, make, schema)


def train(overrides: list[str] | None = None) -> Path:
    """Train as `rlgames train` does with these overrides; returns the run's directory.

    With `exist_ok=true`, a number is added to its name if it already holds a run. A notebook shows
    the progress and the learning curve. Raises ConfigError for bad input.
    """
    from rlgames.cli.notebook import NotebookProgress, is_notebook
    from rlgames.commands.launch import load_training
    from rlgames.config.compose import split
    from rlgames.config.training import LaunchConfig
    from rlgames.core.devices import torch_settings_restored
    from rlgames.core.errors import ConfigError
    from rlgames.training.run import train as run

    words = _checked(overrides)
    launch, _ = split(LaunchConfig, words)
    if launch.dry_run:
        raise ConfigError("dry_run=true trains nothing", "it is a key of rlgames train in a shell")
    training = load_training(words)
    progress = NotebookProgress(training.config.games) if is_notebook() else None
    with torch_settings_restored():
        trained = run(training.config, progress, training.files, launch.exist_ok)
    assert trained is not None
    return trained.directory


def load(run: str | Path, checkpoint: str | None = None) -> Agent:
    """The trained agent of a run directory or a checkpoint file, which plays greedily.

    checkpoint: of the directory, "best", "final" or "latest"; None: the best, or the latest where
    none was selected.
    Its `choose(state)` returns an action for each row of a batch of positions.
    """
    from rlgames.factory.agents import load_agent

    return load_agent(Path(run), checkpoint=checkpoint)


def evaluate(run: str | Path | None = None, overrides: list[str] | None = None) -> dict[str, Any]:
    """Evaluate as `rlgames eval` does; returns the fields that it prints as JSON."""
    from rlgames.commands.evaluate import evaluate_command
    from rlgames.core.devices import torch_settings_restored

    with torch_settings_restored():
        return evaluate_command(None if run is None else Path(run), _checked(overrides))


def analyze(run: str | Path | None = None, overrides: list[str] | None = None) -> dict[str, Any]:
    """Find mistakes as `rlgames analyze` does; returns the fields that it prints as JSON."""
    from rlgames.commands.analyze import analyze_command
    from rlgames.core.devices import torch_settings_restored

    with torch_settings_restored():
        return analyze_command(None if run is None else Path(run), _checked(overrides))


def report(directories: str | Path | list[str | Path], overrides: list[str] | None = None) -> Any:
    """Compare runs as `rlgames report` does; a row for each config or, with by=run, for each run.

    Returns a pandas.DataFrame, or a list of dicts where pandas is not installed. With compare= it
    returns the fields that format=json prints.
    """
    from rlgames.commands.report import report_command

    if isinstance(directories, str | Path):
        directories = [directories]
    names = [str(each) for each in directories]
    result = report_command(names, _checked(overrides))
    if result.comparison is not None:
        return result.as_dict()
    records = result.report.records
    try:
        from pandas import DataFrame
    except ImportError:
        return records
    return DataFrame(records)


def _checked(overrides: list[str] | None) -> list[str]:
    """Overrides as a list, whose plugins are imported. Raises TypeError for anything but a list of
    texts."""
    from rlgames.config.plugins import import_plugins

    example = "as in ['game=salvo', 'games=1000']"
    if isinstance(overrides, str):
        raise TypeError(f"overrides is the text {overrides!r}; pass a list of texts, {example}")
    words = list(overrides or [])
    for word in words:
        if not isinstance(word, str):
            kind = type(word).__name__
            raise TypeError(f"overrides contains {word!r}, a {kind}; write texts, {example}")
    words = [word.removeprefix("++") for word in words]
    import_plugins(words)
    return words


def export_onnx(run: str | Path, path: str | Path | None = None) -> Path:
    """Write a run's network as `rlgames export` does; returns the file, by default policy.onnx in
    the run.

    Raises ConfigError for a policy that is not a network, and without the extra onnx.
    """
    from rlgames.commands.export import export_command
    from rlgames.core.devices import torch_settings_restored

    with torch_settings_restored():
        result = export_command(Path(run), [] if path is None else [f"out={path}"])
    return Path(result["file"])
