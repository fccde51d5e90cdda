"""Write docs/configs/, the tables of keys and presets in the pages of docs/games/ and
docs/learners/, and the facts that `rlgames games` prints, from the schemas, conf/ and the
games; and the figures of all pages, from docs/records/.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rlgames.commands.games import FACTS, facts_text, list_presets
from rlgames.commands.study import cells_of, read_record
from rlgames.config.commands import COMMAND_SCHEMAS, COMMANDS
from rlgames.config.conf import about, command_file, option_names, option_values
from rlgames.config.overrides import typed_groups
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import as_typed, key_fields, kind_in_words, kind_of, range_in_words
from rlgames.core.text import markdown_table, with_section
from rlgames.runs.find import agent_strengths

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {"game": DOCS / "games", "learner": DOCS / "learners"}
"""Groups whose options have a page each, with the folder of the pages."""

FIGURE = re.compile(r"-?\d[\d,.]*(?: ± [\d,.]+)?%?(<!--(\w+)/([\w.]+)/([\w.]+)/(±?)([^/]+?)-->)")
"""A figure and where it comes from: `47.41 ± 0.11<!--strength/fleet/played.moves.mean/±.2f-->` is a
value in docs/records/strength.json with its interval and its format."""

CONFIGS = DOCS / "configs"
"""The pages that list every key: one for the commands, and one for each config group."""


def config_pages() -> Iterator[tuple[Path, str]]:
    """The pages of keys, and the page that links them."""
    parts = ["# Commands\n", "The keys of each command, with their values."]
    for command, schema in COMMAND_SCHEMAS.items():
        choices, values = command_file(command)
        groups = [
            [f"`{name}`", f"`{','.join(choices[name]) or 'null'}`", "an option", group.help]
            for name, group in typed_groups(command).items()
        ]
        title = command if command in COMMANDS else "Gymnasium and PettingZoo environments"
        parts += [f"\n## {title}\n", keys_table(schema, values, groups=groups)]
    yield CONFIGS / "commands.md", "\n".join(parts)
    for group in REGISTRY:
        yield CONFIGS / f"{group}.md", _group_page(group)
    head = ["experiment", "game", "learner", "policy", "description"]
    presets = _table(head, ([*each.values()] for each in _presets()))
    text = f"# Presets: `experiment=`\n\nA preset sets options and keys of a training.\n\n{presets}"
    yield CONFIGS / "experiment.md", text
    rows = [["[Commands](commands.md)", "the keys of each command"]]
    rows += [[f"[`{group}=`]({group}.md)", _listed(group)] for group in REGISTRY]
    rows.append(["[`experiment=`](experiment.md)", f"{len(option_names('experiment'))} presets"])
    path = CONFIGS / "README.md"
    table = _table(["page", "options"], rows)
    yield path, with_section(path.read_text(encoding="utf-8"), "pages", table)


def _listed(group: str) -> str:
    return ", ".join(f"`{name}`" for name in option_names(group))


def _group_page(group: str) -> str:
    """The options of a group and their keys."""
    rows = [[f"`{name}`", about(group, name)] for name in option_names(group)]
    parts = [f"# `{group}=`\n", _table(["option", "description"], rows)]
    for name in option_names(group):
        if len(key_fields(REGISTRY[group][name].schema)) > 1:
            parts += [f"\n## `{group}={name}`\n", option_table(group, name)]
    return "\n".join(parts)


def option_table(group: str, name: str) -> str:
    """The keys of an option."""
    prefix = {"game": "", "logger": f"logger.{name}."}.get(group, f"{group}.")
    return keys_table(REGISTRY[group][name].schema, option_values(group, name), prefix)


def keys_table(
    schema: type, values: dict[str, object], prefix: str = "", groups: Sequence[list[str]] = ()
) -> str:
    """The keys of a schema outside groups, with their values, and the rows of groups before."""
    fields = key_fields(schema)
    rows = [
        [
            f"`{prefix}{name}`",
            f"`{as_typed(value)}`",
            _allowed(schema, name),
            fields[name].metadata["help"],
        ]
        for name, value in values.items()
        if name in fields and name != "name"
    ]
    return _table(["key", "value", "allowed", "description"], [*groups, *rows])


def _allowed(schema: type, name: str) -> str:
    """The type of a key with its range or its choices."""
    text, limits = kind_in_words(kind_of(schema, name)), key_fields(schema)[name].metadata
    text = text.removeprefix("a ").replace("whole number", "integer")
    if limits["of"]:
        return ", ".join(map(str, limits["of"])) + (" or null" if "null" in text else "")
    return text if limits["high"] == float("inf") else f"{text}, {range_in_words(limits)}"


def filled_pages() -> Iterator[tuple[Path, str]]:
    """Each page with a table between `<!-- NAME -->` and `<!-- end of NAME -->`, and its text."""
    path = DOCS / "agents.md"
    agents = ([f"`{name}`", text] for name, text in agent_strengths().items())
    table = _table(["agent", "strength"], agents)
    yield path, with_section(path.read_text(encoding="utf-8"), "agents", table)
    for group, folder in PAGES.items():
        for name in option_names(group):
            path = folder / f"{name}.md"
            if not path.exists():
                raise SystemExit(f"write {path} first, with the sections of the pages next to it")
            text = path.read_text(encoding="utf-8")
            text = with_section(text, "keys", option_table(group, name))
            yield path, with_section(text, "presets", _presets_of(group, name))


def with_figures(text: str) -> str:
    """A page with its figures as they are in the records."""

    def value(match: re.Match[str]) -> str:
        marker, record, run, metric, interval, form = match.groups()
        runs = read_record(DOCS / "records" / f"{record}.json")["runs"]
        cell = cells_of(runs[run])[metric]
        mean = f"{cell['mean']:{form}}"
        return (f"{mean.rstrip('%')} ± {cell['half']:{form}}" if interval else mean) + marker

    return FIGURE.sub(value, text)


def _presets_of(group: str, name: str) -> str:
    """The presets that use an option: of a game one by one, of a learner by game."""
    chosen = [each for each in _presets() if each[group] == name]
    if group == "game":
        head, keys = ["preset", "learner", "description"], ("name", "learner", "about")
        return _table(head, ([each[key] for key in keys] for each in chosen))
    names: dict[str, list[str]] = {}
    for each in chosen:
        names.setdefault(each["game"], []).append(each["name"])
    return _table(["game", "presets"], ([game, ", ".join(own)] for game, own in names.items()))


def _presets() -> list[dict[str, str]]:
    """The presets with their names as code."""
    return [each | {"name": f"`{each['name']}`"} for each in list_presets()]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return markdown_table(head, ([cell.replace("|", "\\|") for cell in row] for row in rows))


def write(path: Path, text: str) -> None:
    """Write a file and print its path, unless it has this text already."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    for path, text in [*config_pages(), (FACTS, facts_text()), *filled_pages()]:
        write(path, text)
    for path in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        write(path, with_figures(path.read_text(encoding="utf-8")))
