"""Write docs/configs.md: every key that can be typed, from the schemas and the YAML files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rlgames.config.catalogue import (
    Key,
    chosen_options,
    description,
    group_keys,
    keys_of,
    keys_of_command,
    options,
)
from rlgames.config.command_schemas import COMMANDS, GROUPS
from rlgames.config.option_schemas import SCHEMAS, SHARED_GROUPS

PAGE = Path(__file__).parent.parent / "docs" / "configs.md"

BEGINNING = """\
# Every key

Made by `python scripts/configs.py` from the schemas and from the comments of the files in `conf/`.
`rlgames COMMAND --help` tells the same, `rlgames COMMAND --help GROUP=OPTION KEY` that of an option
and of a key. An option is chosen by `GROUP=OPTION`; its keys are typed `GROUP.KEY=VALUE`, those of
a game by their own names.
"""


def page() -> str:
    """The page as it should be now."""
    parts = [BEGINNING, "## Commands\n"]
    for command in COMMANDS:
        rows = [_row(key) for key in [*_groups(command), *keys_of_command(command)]]
        title = "train -m" if command == "sweep" else command
        parts += [f"### {title}\n", _table(["key", "default", "takes", "what it is"], rows)]
    parts.append("## Options\n")
    for group in SCHEMAS:
        typed = [name for name, folder in SHARED_GROUPS.items() if folder == group]
        also = f", as well as of {', '.join(f'`{name}=`' for name in typed if name != group)}"
        parts.append(f"### {group}\n")
        parts += [f"The options of `{group}=`{also}.\n"] if typed else []
        rows = [[f"`{name}`", description(group, name)] for name in options(group)]
        parts.append(_table(["option", "what it is"], rows))
        parts.append(_table(["key", "of", "default", "takes", "what it is"], _keys(group)))
    parts += ["## Experiments\n", "Presets, `experiment=`.\n"]
    parts.append(_table(["experiment", "game", "learner", "policy", "what it is"], _experiments()))
    return "\n".join(parts).rstrip() + "\n"


def _groups(command: str) -> Iterable[Key]:
    if command == "sweep":
        return [key for key in group_keys("train") if key.name in GROUPS["sweep"]]
    return [key for key in group_keys(command) if key.name not in GROUPS["sweep"]]


def _row(key: Key) -> list[str]:
    takes = f"an option of {SHARED_GROUPS.get(key.name, key.name)}" if not key.kind else key.kind
    return [f"`{key.name}`", f"`{key.default}`", takes, key.description]


def _keys(group: str) -> list[list[str]]:
    """The keys of a group's options, those that agree in all but their options in one row."""
    rows: dict[Key, list[str]] = {}
    for option in options(group):
        for key in keys_of(group, option):
            rows.setdefault(key, []).append(option)
    every = len(options(group))
    return [
        [
            f"`{key.name}`",
            "all" if len(names) == every > 1 else ", ".join(names),
            f"`{key.default}`",
            key.kind,
            key.description,
        ]
        for key, names in sorted(rows.items(), key=lambda row: row[0].name)
    ]


def _experiments() -> Iterable[list[str]]:
    for name in options("experiment"):
        now = chosen_options("train", [f"experiment={name}"])
        yield [
            f"`{name}`",
            now["game"],
            now["learner"],
            now["policy"],
            description("experiment", name),
        ]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
