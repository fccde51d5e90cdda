"""Train agents to play board games, and measure how close they come to perfect play.

Each function does what the command of its name does: `train`, `evaluate`, `analyze`, `report`. They
take the words of the command line as a list, keys as in `train(game="tictactoe", games=500)`, or
both. `load` returns a trained agent, `game` a game, `register` adds your own games, policies,
learners and players, and `rlgames.envs` has the games as environments of Gymnasium.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlgames.core.version import __version__ as __version__

if TYPE_CHECKING:
    from rlgames.core.callbacks import Callback
    from rlgames.games.game import Game
    from rlgames.players.player import Agent


def register(group: str, name: str, make: Callable[..., Any], /, **keys: Any) -> None:
    """Register your own part, which you then choose by its name like a built-in one.

    Args:
        group: game, reward, policy, sampling, learner, player or search.
        name: the name of the part on the command line.
        make: called with the keys after the arguments of the group: none for games and sampling
            rules; `game` for rewards and players; `game, player` for searches; `game, value=,
            generator=` for networks and `game, score_scale=` for value functions, by their classes;
            `context, lr=` for learners, by their classes. It raises ValueError for a combination
            that makes no sense. --help shows the first line of its docstring.
        keys: by name, the value, which tells the type, or what rlgames.config.schema.key returns.

    Raises:
        ValueError: for an unknown group, a part of another kind, and a name that is taken, unless
            by the same part from a reloaded module.
    """
    from rlgames.config.plugins import add_option

    add_option(group, name, make, keys)


def add_callback(callback: Callback, /) -> None:
    """Have your own callback take part in every training of this process.

    Args:
        callback: its hooks are called while a run trains; what its `on_update` returns is logged.
            It replaces an earlier one of the same class.

    Raises:
        TypeError: for anything but a rlgames.core.callbacks.Callback.
    """
    from rlgames.core.callbacks import add_callback as add

    add(callback)


def game(name: str, **keys: Any) -> Game[Any]:
    """A game with its rules, as in `game("connect4", rows=5)`. Raises ConfigError."""
    from rlgames.config.registry import make

    made: Game[Any] = make("game", _config("solve", None, keys | {"game": name}).game)
    return made


def train(overrides: list[str] | None = None, **keys: Any) -> Path:
    """Train as `rlgames train` does.

    Args:
        overrides: words of the command line, such as `["game=salvo", "games=1000"]`.
        keys: the same by their names, as in `game="salvo", games=1000`.

    Returns:
        The run's directory.

    Raises:
        ConfigError: for bad input.
    """
    from rlgames.core.devices import torch_settings_restored
    from rlgames.runs.find import located

    config = located(_config("train", overrides, keys))
    from rlgames.training.train import train as run

    with torch_settings_restored():
        return run(config).directory


def load(run: str | Path, checkpoint: str | None = None) -> Agent:
    """The trained agent of a run directory or a checkpoint file, which plays greedily.

    Args:
        run: a run directory, a checkpoint file, or what else names a run on the command line, such
            as `"latest"` or `"connect4"`.
        checkpoint: of the directory: "best", "final" or "latest". None: the best, or the latest if
            none was selected.

    Returns:
        An agent; its `choose(state)` returns an action for each row of a batch of positions.
    """
    from rlgames.build.agents import open_run
    from rlgames.core.devices import torch_settings_restored
    from rlgames.runs.find import find_run

    with torch_settings_restored():
        return open_run(find_run(str(run), is_player=False), checkpoint).agent()


def evaluate(
    run: str | Path | None = None, overrides: list[str] | None = None, **keys: Any
) -> dict[str, Any]:
    """Evaluate as `rlgames eval` does.

    Args:
        run: as for load; None for a player that the overrides name, as in `["player=density"]`.
        overrides: words of the command line, such as `["opponent=exact", "games=1000"]`.
        keys: the same by their names.

    Returns:
        The fields of `rlgames eval format=json`.
    """
    from rlgames.commands.evaluate import run as evaluate_run
    from rlgames.core.devices import torch_settings_restored

    with torch_settings_restored():
        return evaluate_run(_config("eval", overrides, keys, run)).as_dict()


def analyze(
    run: str | Path | None = None, overrides: list[str] | None = None, **keys: Any
) -> dict[str, Any]:
    """Find mistakes as `rlgames analyze` does.

    Args:
        run: as for load; None for a player that the overrides name.
        overrides, keys: as for evaluate.

    Returns:
        The fields of `rlgames analyze format=json`.
    """
    from rlgames.commands.analyze import run as analyze_run
    from rlgames.core.devices import torch_settings_restored

    with torch_settings_restored():
        return analyze_run(_config("analyze", overrides, keys, run)).as_dict()


def report(
    directories: str | Path | list[str | Path], overrides: list[str] | None = None, **keys: Any
) -> Any:
    """Compare runs as `rlgames report` does.

    Args:
        directories: runs, sweeps, or directories of them.
        overrides: words of the command line, such as `["by=run"]`.
        keys: the same by their names.

    Returns:
        A pandas.DataFrame with a row for each config or, with by=run, for each run. With compare=,
        the fields of `rlgames report format=json`.

    Raises:
        ConfigError: for bad input, and without the extra pandas.
    """
    from rlgames.commands.report import run
    from rlgames.core.errors import check_installed

    every = [directories] if isinstance(directories, str | Path) else directories
    result = run(_config("report", overrides, {"runs": [*map(str, every)]} | keys))
    if result.comparison is not None:
        return result.as_dict()
    check_installed("rlgames.report", "pandas", "pandas")
    from pandas import DataFrame

    return DataFrame(result.records)


def _config(
    command: str, overrides: list[str] | None, keys: dict[str, Any], run: str | Path | None = None
) -> Any:
    """The config of a command. Raises TypeError for overrides that are not a list of texts."""
    from rlgames.config.commands import COMMAND_SCHEMAS
    from rlgames.config.compose import load_config
    from rlgames.config.overrides import words_of

    example = "as in ['game=salvo', 'games=1000'], or keys, as in game='salvo', games=1000"
    if isinstance(overrides, str):
        raise TypeError(f"overrides is the text {overrides!r}; pass a list of texts, {example}")
    for word in overrides or ():
        if not isinstance(word, str):
            kind = type(word).__name__
            raise TypeError(f"overrides contains {word!r}, a {kind}; write texts, {example}")
    named = {} if run is None else {"run": Path(run)}
    return load_config(COMMAND_SCHEMAS[command], [*words_of(named | keys), *(overrides or ())])
