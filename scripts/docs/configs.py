"""Write what is generated from the schemas: conf/, docs/configs.md, and the tables of the pages in
docs/games/ and docs/learners/.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import conf_files

from rlgames.cli.table import COMMANDS
from rlgames.commands.listing import list_presets
from rlgames.config.files import Files
from rlgames.config.keys import Key, group_keys, option_keys, schema_keys
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import Group, groups_of
from rlgames.config.hints import key_synonyms, option_synonyms
from rlgames.config.commands import EnvConfig
from rlgames.core.text import markdown_table

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "configs.md"
FILES = Files()

INTRODUCTION = """\
# Configuration: every key

This page lists every key. It is generated from the schemas by `make conf`. `rlgames COMMAND --help`
shows the same, and `rlgames COMMAND --help GROUP=OPTION KEY` one option or key. Choose an option
with `GROUP=OPTION` and set its keys with `GROUP.KEY=VALUE`; on the command line, the keys of a game
need no prefix.
"""

FOLDERS = {"game": DOCS / "games", "learner": DOCS / "learners"}
"""Groups whose options have a page each, with the folder of the pages."""


def files() -> Iterator[tuple[Path, str]]:
    """Each generated file with its current text."""
    yield from conf_files.files()
    yield PAGE, page()
    yield from option_pages()
    path = DOCS / "coming-from.md"
    text = _fill(path.read_text(encoding="utf-8"), "keys", key_translations())
    yield path, _fill(text, "options", option_translations())


def page() -> str:
    """The current text of docs/configs.md."""
    parts = [INTRODUCTION, "## Commands\n"]
    for title, schema in _schemas().items():
        rows = [_row(key) for key in [*group_keys(schema, FILES), *schema_keys(schema)]]
        parts += [f"### {title}\n", _table(["key", "default", "values", "description"], rows)]
    parts.append("## Options\n")
    for folder in REGISTRY:
        shared = sorted(name for name, each in _folders().items() if each == folder != name)
        also = ", ".join(f"`{name}=`" for name in shared)
        parts.append(f"### {folder}\n")
        parts += [f"Options of `{folder}=`, also of {also}.\n"] if also else []
        rows = [[f"`{name}`", FILES.help(folder, name)] for name in FILES.names(folder)]
        parts.append(_table(["option", "description"], rows))
        parts.append(_table(["key", "of", "default", "values", "description"], _keys(folder)))
    parts += ["## Presets\n", "Presets, chosen with `experiment=`.\n"]
    head = ["experiment", "game", "learner", "policy", "description"]
    parts.append(_table(head, ([*each.values()] for each in _presets())))
    return "\n".join(parts).rstrip() + "\n"


def _schemas() -> dict[str, type]:
    """The configs of the page, by their titles."""
    titles = {name: each.config for name, each in COMMANDS.items() if each.config is not None}
    train = COMMANDS["train"]
    assert train.launch is not None
    assert train.sweep is not None
    more = {
        "train: keys that config.yaml does not store": train.launch,
        "train -m": train.sweep,
        "Gymnasium and PettingZoo environments": EnvConfig,
    }
    return {**titles, **more}


def _folders() -> dict[str, str]:
    """The config group of each key that holds an option."""
    groups = [group for schema in _schemas().values() for group in groups_of(schema).items()]
    return {name: group.folder for name, group in groups}


def keys_of(folder: str, option: str) -> list[Key]:
    """The keys of an option, with the prefix that they are typed with."""
    group = Group(folder, None, "", is_list=folder == "logger")
    return option_keys(folder, group, option, FILES)


def option_pages() -> Iterator[tuple[Path, str]]:
    """Each page of an option with its text, the generated tables up to date.

    A table lies between `<!-- NAME -->` and `<!-- end of NAME -->`, NAME being keys or presets.
    """
    for folder, pages in FOLDERS.items():
        for option in FILES.names(folder):
            path = pages / f"{option}.md"
            text = _fill(path.read_text(encoding="utf-8"), "keys", option_table(folder, option))
            yield path, _fill(text, "presets", option_presets(folder, option))


def key_translations() -> str:
    """What other libraries call each key, as a table."""
    rows = [[_code(names), f"`{key}`", note] for key, note, names in key_synonyms()]
    return _table(["elsewhere", "here", "difference"], rows)


def option_translations() -> str:
    """What other libraries call each option, as a table."""
    rows = [[_code(names), f"`{option}`"] for option, names in option_synonyms()]
    return _table(["elsewhere", "here"], rows)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def option_table(folder: str, option: str) -> str:
    """The keys of one option as a table."""
    rows = [
        [f"`{key.name}`", f"`{key.default}`", key.kind, key.help] for key in keys_of(folder, option)
    ]
    return _table(["key", "default", "values", "description"], rows)


def option_presets(group: str, option: str) -> str:
    """The experiments that use one option, as a table."""
    head = ["preset", *("learner" if group == "game" else "game", "policy"), "description"]
    rows = [
        [each["name"], *(each[key] for key in head[1:3]), each["about"]]
        for each in _presets()
        if each[group] == option
    ]
    return _table(head, rows)


def _fill(text: str, name: str, table: str) -> str:
    """The text with the table of this name replaced."""
    block = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)", re.DOTALL)
    return block.sub(lambda _: table, text)


def _row(key: Key) -> list[str]:
    values = key.kind or f"an option of {_folders().get(key.name, key.name)}"
    return [f"`{key.name}`", f"`{key.default}`", values, key.help]


def _keys(folder: str) -> list[list[str]]:
    """The keys of a group's options; keys that are alike share a row."""
    rows: dict[Key, list[str]] = {}
    for option in FILES.names(folder):
        for key in keys_of(folder, option):
            rows.setdefault(key, []).append(option)
    count = len(FILES.names(folder))
    return [
        [
            f"`{key.name}`",
            "all" if len(names) == count > 1 else ", ".join(names),
            f"`{key.default}`",
            key.kind,
            key.help,
        ]
        for key, names in sorted(rows.items(), key=lambda row: row[0].name)
    ]


def _presets() -> list[dict[str, str]]:
    """The presets with their names as code."""
    return [each | {"name": f"`{each['name']}`"} for each in list_presets(FILES)]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return markdown_table(head, ([cell.replace("|", "\\|") for cell in row] for row in rows))


if __name__ == "__main__":
    for path, text in files():
        path.write_text(text, encoding="utf-8")
