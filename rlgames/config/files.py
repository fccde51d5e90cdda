"""conf/ and the folders of a user, read without Hydra: for presets, mistyped words and --help."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rlgames.config.commands import COMMAND_SCHEMAS
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import groups_of
from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import YAML_LOADER

Choices = dict[str, list[str]]
"""The options of groups, by the keys that hold them: none for null, several for a list or a
sweep."""


class Loader(YAML_LOADER):  # type: ignore[misc]
    """Reads 1e-3 as a number and a date as text, as Hydra does."""


Loader.yaml_implicit_resolvers = {
    first: [each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in YAML_LOADER.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def conf_dir() -> Path:
    """The folder of the YAML files: in the installed package, or next to it in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


@dataclass(frozen=True)
class Content:
    """What a file sets: the options in its defaults list, and values by their keys."""

    choices: Choices = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Files:
    """The YAML files in conf/ and in the folders of a user, and the options of plugins."""

    folders: tuple[Path, ...] = ()

    def names(self, group: str) -> list[str]:
        """The options of a config group."""
        paths = [path for each in self._all for path in (each / group).glob("[!_]*.yaml")]
        plugins = [name for name, option in REGISTRY.get(group, {}).items() if option.values]
        return sorted({*plugins, *(path.stem for path in paths if path.is_file())})

    def about(self, group: str, name: str) -> str:
        """One line about an option: the first comment of its file, or the first line of a plugin's
        docstring."""
        path = self.path(f"{group}/{name}")
        if path is None:
            option = REGISTRY.get(group, {}).get(name)
            return "" if option is None else (option.schema.__doc__ or "").partition("\n")[0]
        comment = re.search(r"^#(?! *@package)(.*)", _text(path), re.MULTILINE)
        return comment[1].strip() if comment else ""

    def read(self, name: str) -> Content:
        """What a file sets, with the files of its folder that it extends; nothing without a file.

        Raises ConfigError for a file that is not YAML.
        """
        path = self.path(name)
        values = {} if path is None else mapping(path)
        content, own = Content(), Content(values=values)
        for item in [*values.pop("defaults", ()), "_self_"]:
            if isinstance(item, dict):
                added = Content(_choices(item))
            elif item == "_self_":
                added, own = own, Content()
            else:
                added = self.read(f"{name.rpartition('/')[0]}/{item}".lstrip("/"))
            choices = content.choices | added.choices
            content = Content(choices, merged(content.values, added.values))
        return content

    def option(self, group: str, name: str) -> dict[str, Any]:
        """The values of an option, as its file has them."""
        option = REGISTRY[group].get(name)
        if option is not None and option.values is not None:
            return dict(option.values)
        return self.read(f"{group}/{name}").values

    def option_values(self, group: str, name: str) -> dict[str, Any]:
        """The values of an option, without interpolations between its keys."""
        values = self.option(group, name)
        return {
            key: values[value[3:-1]] if re.fullmatch(r"\$\{\.\w+\}", str(value)) else value
            for key, value in values.items()
        }

    def presets(self, typed: Choices) -> list[str]:
        """The presets of a training, one for each of its games; none if a game has none."""
        games = typed.get("game", self.read("train").choices["game"])
        found = [self._preset(game, typed) for game in games]
        return [name for name in found if name] if all(found) else []

    def _preset(self, game: str, typed: Choices) -> str | None:
        """The first of GAME, GAME_POLICY, GAME_LEARNER and GAME_mlp that chooses what is typed."""
        wanted = {name: typed[name] for name in ("policy", "learner") if name in typed}
        names = (game, *(f"{game}_{each}" for options in wanted.values() for each in options))
        for name in (*names, f"{game}_mlp"):
            chosen = self.read("train").choices | self.read(f"experiment/{name}").choices
            fits = chosen.items() >= (wanted | {"game": [game]}).items()
            if fits and self.path(f"experiment/{name}"):
                return name
        return None

    def composed(self, command: str, typed: Choices, removed: Collection[str] = ()) -> Content:
        """The options and the values of a command with the typed options and presets, as Hydra
        composes them; of several options, the keys of all.

        Args:
            removed: the keys that words remove.

        Raises:
            ConfigError: if a preset sets keys that a typed option does not have.
        """
        primary = self.read(command)
        chosen, values = Choices(), primary.values
        presets = {name: self.read(f"experiment/{name}") for name in typed.get("experiment", ())}
        for preset in presets.values():
            chosen = chosen | preset.choices
        chosen = self._with_brought(primary.choices, chosen | typed)
        values.pop("hydra", None)
        for key, group in groups_of(COMMAND_SCHEMAS[command]).items():
            for name in chosen.get(key, ()):
                node = self.option(group.folder, name)
                values = merged(values, {key: {name: node} if group.is_list else node})
        known = {*key_paths(values), *removed}
        for name, preset in presets.items():
            preset.values.pop("hydra", None)
            _check_known(name, sorted({*key_paths(preset.values)} - known), chosen)
            values = merged(values, preset.values)
        return Content(chosen, values)

    def _with_brought(self, usual: Choices, chosen: Choices) -> Choices:
        """The chosen options, and of the other groups those that the learners bring."""
        learners = (usual | chosen).get("learner", ())
        brought = Choices()
        for each in [usual | self.read(f"learner/{name}").choices for name in learners] or [usual]:
            brought |= {key: [*dict.fromkeys([*brought.get(key, ()), *each[key]])] for key in each}
        return brought | chosen

    @property
    def _all(self) -> tuple[Path, ...]:
        return (conf_dir(), *self.folders)

    def path(self, name: str) -> Path | None:
        """The file of a name, which is its path in conf/ without the suffix; None without one."""
        paths = (folder / f"{name}.yaml" for folder in self._all)
        return next((path for path in paths if path.is_file()), None)


def _check_known(preset: str, extra: Sequence[str], chosen: Choices) -> None:
    """Raises ConfigError for keys that a preset sets and the chosen options do not have."""
    keys = [key for key in extra if "." in key] or extra
    if keys:
        group = keys[0].partition(".")[0]
        option = f"{group}={','.join(chosen.get(group, ())) or 'null'}"
        text = f"experiment={preset} sets {', '.join(keys)}, and {option} has no such key"
        raise ConfigError(text, "to leave them out, add " + " ".join(f"~{key}" for key in keys))


def _choices(item: Mapping[Any, Any]) -> Choices:
    """The option or options that an entry of a defaults list chooses."""
    ((key, option),) = item.items()
    options = option if isinstance(option, list) else [option]
    seat = str(key).rpartition(" ")[2].lstrip("/").rpartition("@")[2]
    return {seat.removeprefix("_global_."): [str(each) for each in options if each is not None]}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None


def mapping(path: Path, loader: type = Loader) -> dict[str, Any]:
    """The content of a file. Raises ConfigError if it is not YAML with keys."""
    try:
        values = yaml.load(_text(path), loader) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or " ".join(str(error).split())
        raise ConfigError(f"{path}{line} is not YAML: {reason}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path} holds no keys", "it should hold key: value lines")
    if not isinstance(values.get("defaults", []), list):
        raise ConfigError(f"{path}: defaults: is not a list", "as in defaults: [tictactoe]")
    return values


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Nested values, each from the second mapping if that has it."""
    both = {
        key: merged(base[key], over[key])
        for key in base.keys() & over.keys()
        if isinstance(base[key], dict) and isinstance(over[key], dict)
    }
    return {**base, **over, **both}


def key_paths(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The keys of nested values, as they are typed."""
    for key, value in values.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from key_paths(value, f"{prefix}{key}.")


def flat(node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a mapping by their keys with dots."""
    for name, value in node.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
