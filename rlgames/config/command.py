"""The records that describe commands; see command_schemas.py for the commands themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pkgutil import resolve_name
from typing import Any, Literal

Runs = Literal["none", "optional", "required", "many"]
"""The runs that a command takes before its overrides: none, at most one, one, or many."""

SWEEP_FLAGS = ("-m", "--multirun")


def plain_word(word: str) -> str:
    """++key=value as key=value, which it means here. Hydra's own keys are left alone, and so is
    plugins=, which is refused in this form."""
    is_plain = not word.startswith(("++hydra", "++plugins"))
    return word.removeprefix("++") if is_plain and "=" in word else word


@dataclass(frozen=True)
class Group:
    """A config group of a command, with its default option.

    is_training: the group also offers the players that exist only in training.
    """

    name: str
    default: str | None = None
    help: str = ""
    is_training: bool = False


@dataclass(frozen=True)
class PrimaryConfig:
    """What Hydra composes: groups of options, and the keys of a schema.

    presets: the group whose options set keys and groups alike, None without presets.
    """

    name: str
    schema: type
    groups: tuple[Group, ...] = ()
    presets: Group | None = None

    @property
    def group_names(self) -> tuple[str, ...]:
        return tuple(group.name for group in self.groups)

    @property
    def key_names(self) -> set[str]:
        """The groups and the keys at the top of the config."""
        return {*self.group_names, *(item.name for item in fields(self.schema))}


@dataclass(frozen=True)
class Command:
    """A command: its help, its config, what it calls and what prints the result.

    help: a line of at most ten words. config: None for a command that reads its words itself.
    launch: the config of further keys that say how it starts, None without any.
    sweep: the config whose keys -m adds, None for a command that cannot sweep.
    function: "module:function", called with the words; before them with the run (None without one)
        where runs is "optional" or "required", and with the list of names where it is "many".
    takes_players: names of players may stand among the runs.
    printer: "module:function", called with the result of the function. With format=json the result,
        or its as_dict(), is printed as JSON. None: the function prints and returns the exit code.
    """

    name: str
    help: str
    example: str
    function: str
    printer: str | None = "rlgames.cli.display:print_fields"
    runs: Runs = "none"
    takes_players: bool = False
    config: PrimaryConfig | None = None
    launch: PrimaryConfig | None = None
    sweep: PrimaryConfig | None = None

    def load_function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = resolve_name(self.function)
        return function

    def load_printer(self) -> Callable[[Any], None] | None:
        return None if self.printer is None else resolve_name(self.printer)
