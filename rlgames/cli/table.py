"""The table of commands: the config of each, what it calls, and what prints the result.

Help and dispatch are derived from it; nothing heavy is imported.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pkgutil import resolve_name
from typing import Any, Literal

from rlgames.commands import configs
from rlgames.config.training import (
    LaunchConfig,
    ResumeConfig,
    SweepConfig,
    TrainConfig,
)
from rlgames.core.errors import ConfigError
from rlgames.core.text import columns

Runs = Literal["none", "optional", "required", "many", "names"]
"""The runs that a command takes before its overrides: none, at most one, one, or many; or names of
other things."""

SWEEP_FLAGS = ("-m", "--multirun")


@dataclass(frozen=True)
class Command:
    """A command.

    Args:
        help: a line of at most ten words.
        config: the schema of its config.
        launch: the schema of further keys that say how it starts.
        sweep: the schema of the keys that -m adds; None for a command that cannot sweep.
        function: "module:function", by default NAME_command in commands/NAME.py, called with the
            words; before them with the run (None without one) if runs is "optional" or "required",
            and with the list of names if it is "many" or "names".
        takes_players: names of players may stand among the runs.
        printer: "module:function", called with the result of the function. With format=json the
            result, or its as_dict(), is printed as JSON. None: the function prints and returns the
            exit code.
        shows_progress: whether it may compute for long without a line of its own.
        page: "module:function", called instead of the function if interface=web; it returns the
            exit code.
    """

    name: str
    help: str
    example: str
    config: type
    printer: str | None
    function: str = ""
    runs: Runs = "none"
    takes_players: bool = False
    launch: type | None = None
    sweep: type | None = None
    page: str | None = None
    shows_progress: bool = False

    def load_function(self) -> Callable[..., Any]:
        """The function itself."""
        return resolve_name(self.function or f"rlgames.commands.{self.name}:{self.name}_command")

    def for_words(self, words: list[str]) -> Command:
        """The command itself, or what serves its page if the words ask for one.

        Raises ConfigError for keys of a page without interface=web.
        """
        if self.page is None:
            return self
        if last_value("interface", words) == "web":
            return replace(self, function=self.page, printer=None)
        names = {item.name for item in fields(configs.PageConfig)}
        for word in words:
            if word.partition("=")[0] in names:
                raise ConfigError(f"{word} is for a page", "add interface=web")
        return self


def last_value(name: str, words: list[str]) -> str:
    """The value of a key among the words of a command line; empty if it is not there."""
    values = [word.partition("=")[2].strip("'\"") for word in words if word.startswith(f"{name}=")]
    return values[-1] if values else ""


_COMMANDS = (
    Command(
        "train",
        "train a policy",
        "rlgames train game=salvo board=4 shots=2",
        function="rlgames.cli.training:train_command",
        printer=None,
        config=TrainConfig,
        launch=LaunchConfig,
        sweep=SweepConfig,
    ),
    Command(
        "resume",
        "resume a run or a sweep",
        "rlgames resume RUN games=500000",
        function="rlgames.cli.training:resume_command",
        printer=None,
        runs="required",
        config=ResumeConfig,
    ),
    Command(
        "eval",
        "evaluate a run or a player",
        "rlgames eval RUN opponent=exact",
        function="rlgames.commands.evaluate:evaluate_command",
        printer="rlgames.cli.display:print_evaluation",
        runs="optional",
        config=configs.EvalConfig,
        shows_progress=True,
    ),
    Command(
        "analyze",
        "mistakes against perfect play",
        "rlgames analyze RUN opponent=win_or_block",
        printer="rlgames.cli.analysis:print_analysis",
        runs="optional",
        config=configs.AnalyzeConfig,
        shows_progress=True,
    ),
    Command(
        "play",
        "play against a run or a player",
        "rlgames play connect4 seat=2",
        function="rlgames.cli.play:play_command",
        printer=None,
        runs="optional",
        config=configs.PlayConfig,
        page="rlgames.web.pages:play_page",
    ),
    Command(
        "watch",
        "watch a run play, move by move",
        "rlgames watch RUN delay=1",
        printer="rlgames.cli.positions:print_games",
        runs="optional",
        config=configs.WatchConfig,
        page="rlgames.web.pages:watch_page",
    ),
    Command(
        "show",
        "evaluate a single position",
        "rlgames show RUN state='. X . / . O . / . . .'",
        printer="rlgames.cli.positions:print_position",
        runs="optional",
        config=configs.ShowConfig,
        page="rlgames.web.pages:show_page",
    ),
    Command(
        "serve",
        "games on a page in the browser",
        "rlgames serve connect4 hex",
        function="rlgames.web.pages:serve_command",
        printer=None,
        runs="many",
        config=configs.ServeConfig,
    ),
    Command(
        "arena",
        "tournament with Elo ratings",
        "rlgames arena RUN random win_or_block",
        printer="rlgames.cli.display:print_arena",
        runs="many",
        takes_players=True,
        config=configs.ArenaConfig,
        shows_progress=True,
    ),
    Command(
        "solve",
        "exact optimum of a game",
        "rlgames solve game=2048 board=2 columns=3",
        printer="rlgames.cli.listing:print_solution",
        config=configs.SolveConfig,
    ),
    Command(
        "report",
        "comparison of runs and sweeps",
        "rlgames report outputs curves=curves.png",
        printer="rlgames.cli.report:print_report",
        runs="many",
        config=configs.ReportConfig,
    ),
    Command(
        "study",
        "runs and tables from one file",
        "rlgames study mine.yaml seeds=5",
        function="rlgames.cli.study:study_command",
        printer=None,
        runs="names",
        config=configs.StudyConfig,
    ),
    Command(
        "games",
        "games with their presets and agents",
        "rlgames games hex",
        function="rlgames.commands.listing:games_command",
        printer="rlgames.cli.listing:print_games",
        runs="names",
        config=configs.GamesConfig,
    ),
)

COMMANDS: dict[str, Command] = {command.name: command for command in _COMMANDS}
"""Every command, in the order of the help."""


def overview() -> str:
    """Every command with its help and an example."""
    records = list(COMMANDS.values())
    lines = columns([(f"  {record.name}", record.help, record.example) for record in records])
    if max(map(len, lines)) > width():  # examples on separate lines
        lines = []
        for record in records:
            lines += [f"  {record.name:12}{record.help}", " " * 14 + record.example]
    title = "rlgames COMMAND [RUN] [key=value ...]: train, evaluate and play agents for board games"
    closing = "rlgames COMMAND --help: its groups and keys; rlgames --version: the version"
    return "\n".join([title, "", *lines, "", closing])


def width() -> int:
    """The width of help, in characters."""
    return min(120, shutil.get_terminal_size((100, 24)).columns)
