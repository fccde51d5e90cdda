"""The table of commands: the config of each, what it calls, and what prints the result.

Help, completion and dispatch are derived from it; nothing heavy is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import Any

from rlgames.config.commands import PageConfig
from rlgames.config.help import width
from rlgames.config.schema import names_of
from rlgames.config.typed import changed
from rlgames.core.errors import ConfigError
from rlgames.core.text import columns


@dataclass(frozen=True)
class Command:
    """A command.

    Args:
        help: a line of at most ten words.
        function: "module:function", by default NAME_command in commands/NAME.py, called with the
            config.
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
    function: str = ""
    printer: str | None = None
    page: str | None = None
    shows_progress: bool = False

    def load_function(self) -> Callable[..., Any]:
        """The function itself."""
        return resolve_name(self.function or f"rlgames.commands.{self.name}:{self.name}_command")

    def for_config(self, config: Any) -> Command:
        """The command itself, or what serves its page if the config asks for one.

        Raises ConfigError for keys of a page without interface=web.
        """
        if self.page is None:
            return self
        if config.interface == "web":
            return replace(self, function=self.page, printer=None)
        if unused := changed(config, *names_of(PageConfig)):
            raise ConfigError(f"{unused[0]}= is for a page", "add interface=web")
        return self


_COMMANDS = (
    Command(
        "train",
        "train a policy",
        "rlgames train game=salvo board=4 shots=2",
        function="rlgames.cli.training:train_command",
        printer=None,
    ),
    Command(
        "resume",
        "resume a run or a sweep",
        "rlgames resume RUN games=500000",
        function="rlgames.cli.training:resume_command",
        printer=None,
    ),
    Command(
        "eval",
        "evaluate a run or a player",
        "rlgames eval RUN opponent=exact",
        function="rlgames.commands.evaluate:run",
        printer="rlgames.commands.evaluate:show",
        shows_progress=True,
    ),
    Command(
        "analyze",
        "mistakes against perfect play",
        "rlgames analyze RUN opponent=win_or_block",
        function="rlgames.commands.analyze:run",
        printer="rlgames.commands.analyze:show",
        shows_progress=True,
    ),
    Command(
        "play",
        "play against a run or a player",
        "rlgames play connect4 seat=2",
        function="rlgames.cli.play:play_command",
        printer=None,
        page="rlgames.web.pages:play_page",
    ),
    Command(
        "watch",
        "watch a run play, move by move",
        "rlgames watch RUN delay=1",
        printer="rlgames.commands.watch:show",
        page="rlgames.web.pages:watch_page",
    ),
    Command(
        "show",
        "evaluate a single position",
        "rlgames show RUN state='. X . / . O . / . . .'",
        function="rlgames.commands.show:run",
        printer="rlgames.commands.show:show",
        page="rlgames.web.pages:show_page",
    ),
    Command(
        "serve",
        "games on a page in the browser",
        "rlgames serve connect4 hex",
        function="rlgames.web.pages:serve_command",
        printer=None,
    ),
    Command(
        "arena",
        "tournament with Elo ratings",
        "rlgames arena RUN random win_or_block",
        function="rlgames.commands.arena:run",
        printer="rlgames.commands.arena:show",
        shows_progress=True,
    ),
    Command(
        "solve",
        "exact optimum of a game",
        "rlgames solve game=2048 board=2 columns=3",
        printer="rlgames.cli.listing:print_solution",
    ),
    Command(
        "report",
        "comparison of runs and sweeps",
        "rlgames report outputs curves=curves.png",
        printer="rlgames.cli.report:print_report",
    ),
    Command(
        "study",
        "runs and tables from one file",
        "rlgames study mine.yaml seeds=5",
        function="rlgames.cli.study:study_command",
        printer=None,
    ),
    Command(
        "games",
        "games with their presets and agents",
        "rlgames games hex",
        function="rlgames.commands.listing:games_command",
        printer="rlgames.cli.listing:print_games",
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
