"""Words of a command line into a checked config: with launchers.py the only file that knows Hydra.

Nothing heavy is imported, so that a mistyped word is answered at once.
"""

from __future__ import annotations

import difflib
import importlib
import json
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError, OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from rlgames.command_schemas import COMMANDS, GROUPS, known_keys
from rlgames.schemas import POSITIVE, SCHEMAS, SEATED, SHARED, defaults, schema_of
from rlgames.untrusted import shown

NEEDED = ("game", "reward", "policy", "sampling", "learner", "opponent", "eval_opponent")
"""Groups that every training has."""


class ConfigError(Exception):
    """Bad input: one line that says what was wrong, and a hint that mends it."""

    def __init__(self, error: str, hint: str = "") -> None:
        super().__init__(error)
        self.error, self.hint = error, hint


class UnknownPart(ConfigError):
    """A part by a name that no option has."""


def conf_dir() -> Path:
    """Where the YAML files lie: inside the installed package, or beside it in a checkout."""
    inside = Path(__file__).parent / "conf"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "conf"


FOLDERS = [conf_dir()]
"""Where the YAML files of options are looked for, the folder of --config-dir last."""

BAD_WORDS = (HydraException, ValueError, YAMLError)
"""What composing raises for words, and for files of --config-dir, that cannot be."""

MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
"""What plugins= may name."""


def options(group: str) -> list[str]:
    """The names of a config group's files, and of registered parts that have none."""
    files = [path.stem for folder in FOLDERS for path in (folder / group).glob("*.yaml")]
    return sorted({*files, *SCHEMAS.get(group, ())})


def option_file(group: str, name: str) -> Path | None:
    """The YAML file of an option, None where its schema's defaults stand for it."""
    paths = [folder / group / f"{name}.yaml" for folder in FOLDERS]
    return next((path for path in paths if path.is_file()), None)


def about(group: str, name: str) -> str:
    """What an option is: the first comment of its file, or the docstring of its schema."""
    path = option_file(group, name)
    if path is None:
        schema = SCHEMAS[group][name]
        told = (schema.__doc__ or "").strip()
        return "" if told.startswith(f"{schema.__name__}(") else told.partition("\n")[0]
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    comments = (line for line in lines if line.startswith("#") and "@package" not in line)
    return next(comments, "#")[1:].strip()


def add_option(group: str, name: str, schema: type) -> None:
    """Let a schema be an option of a group, its defaults standing for a YAML file.

    Raises ValueError for a schema whose keys a config cannot have.
    """
    if not re.fullmatch(r"\w+", name, re.ASCII):
        raise ValueError(f"{group}={name} cannot be typed: letters, digits and _ can")
    keys = defaults(schema) if is_dataclass(schema) else {}
    if keys.get("name") != name or len(keys) != len(fields(schema)):
        raise ValueError(
            f"{group}={name} needs a dataclass with name: str = {name!r} and defaults for all keys"
        )
    OmegaConf.structured(schema)
    node, package = keys, None
    if group == "game":
        own = {key: value for key, value in keys.items() if key != "name"}
        for key in own:
            if any(key in (*known_keys(command), "experiment") for command in COMMANDS):
                raise ValueError(f"{group}={name} cannot have the key {key}: commands have it")
        inside = {"name": name} | {key: f"${{{key}}}" for key in own}
        node, package = own | {"game": inside}, "_global_"
    SCHEMAS[group][name] = schema
    if option_file(group, name) is None:  # Hydra would match the two, and warn
        ConfigStore.instance().store(name, node, group, package)


def with_parts(words: list[str]) -> list[str]:
    """The words without --config-dir DIR, whose options take part from now on, as do those of the
    modules in plugins=.

    Only what the words themselves name is ever imported; names in files are text. Raises
    ConfigError for a folder or a module that is not there, and for a module that fails.
    """
    kept, coming = [], iter(words)
    for word in coming:
        flag, equals, folder = word.partition("=")
        if flag != "--config-dir":
            kept.append(word)
            continue
        folder = folder if equals else next(coming, "")
        if not os.path.isdir(folder):
            raise ConfigError(f"--config-dir {folder} is not a folder", "write --config-dir DIR")
        FOLDERS[1:] = [Path(folder).absolute()]
    for word in [word for word in kept if word.startswith("plugins=")][-1:]:
        for name in _modules(word):
            _import(name)
    return kept


def _modules(word: str) -> list[str]:
    """The names in plugins=[...]; raises ConfigError for anything that is not a module's name."""
    listed = re.fullmatch(r"plugins=\[(.*)\]", word)
    names = listed[1].split(",") if listed and listed[1].strip() else []
    names = [name.strip(" '\"") for name in names]
    if listed is None or not all(MODULE.fullmatch(name) for name in names):
        raise ConfigError(
            f"{word!r} does not list modules by name", "plugins=[mine] imports mine.py"
        )
    return names


def _import(name: str) -> None:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            found = nearest(name, [path.stem for path in Path().glob("*.py")])
            hint = found if found.startswith("did") else "it is looked for here and in PYTHONPATH"
            raise ConfigError(f"no module is called {name!r}", hint) from None
        lines = [
            f", line {frame.lineno} of {frame.filename}"
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).stem == name.rpartition(".")[2]
        ]
        told = " ".join(str(error).split())
        raise ConfigError(
            f"plugins=[{name}] fails: {type(error).__name__}: {told}" + "".join(lines[-1:])
        ) from None
    meant = Path(here, *name.split(".")).with_suffix(".py")
    if meant.exists() and not meant.samefile(module.__file__ or "."):
        raise ConfigError(
            f"plugins=[{name}] is {module.__file__ or 'a part of Python'}, not {meant}",
            "give the file another name",
        )


def nearest(word: str, names: list[str]) -> str:
    """A hint with the nearest of names, or with all of them where none is near."""
    near = difflib.get_close_matches(word, names, 1, 0.5)
    return f"did you mean {near[0]}?" if near else "there is: " + ", ".join(sorted(names))


def load(command: str, overrides: list[str]) -> DictConfig:
    """Compose and check a command's config; raises ConfigError for bad input."""
    words = _with_experiment(command, readable(with_parts(overrides)))
    for override in parse(words):
        if override.is_sweep_override() and not override.key_or_group.startswith("hydra"):
            raise ConfigError(f"{override.input_line} names several values", "add -m to sweep")
    try:
        config = _with_own_settings(command, words, _compose(command, words))
        names = [*known_keys(command), *map(str, config.get("game") or ()), "experiment"]
        for name in map(str, config):
            if name not in names:
                raise ConfigError(f"no key is called {name!r} here", nearest(name, names))
        config = check(command, config)
    except InterpolationResolutionError as error:
        raise ConfigError(str(error).splitlines()[0], "${…} refers to another key") from None
    if config.plugins and not any(word.startswith("plugins=") for word in words):
        raise ConfigError(
            f"an experiment needs plugins={config.plugins}", "name them yourself if you trust them"
        )
    return config


def _with_own_settings(command: str, words: list[str], config: DictConfig) -> DictConfig:
    """An experiment's settings of a group belong to the option that it chose itself.

    Where the words choose another one, that one's own file counts.
    """
    experiment = [word for word in words if word.startswith("experiment=")]
    game = [word for word in words if word.startswith("game=")]
    for group in GROUPS[command]:
        typed_in = [word for word in words if re.match(f"(player@)?{group}=", word)]
        if not experiment or not typed_in or group == "game":
            continue
        chosen, own = config[group].name, _compose(command, [*experiment, *game]).get(group)
        if own is None or own.name != chosen:
            about = [word for word in words if re.match(rf"(player@)?{group}[=.]", word)]
            found = _compose(command, [*about, f"game='{config.game.name}'"])
            config[group] = found[group]
    return config


def readable(overrides: list[str]) -> list[str]:
    """The words as Hydra reads them.

    Numbers that name an option are quoted (game=2048), and a player may be the path of a run.
    """
    words: list[str] = []
    for word in overrides:
        name, equals, value = word.partition("=")
        if name in SEATED and equals:
            words += _seated(name, value)
        elif name in SHARED and equals:
            words.append(f"{SHARED[name]}@{word}")
        elif name in SCHEMAS or name == "experiment":
            words.append(name + equals + re.sub(r"(?<![\w'\"])(\d+)(?![\w'\"])", r"'\1'", value))
        else:
            words.append(word)
    return words


def _with_experiment(command: str, words: list[str]) -> list[str]:
    """Training takes the game's own experiment, if there is one, where none is named."""
    if command != "train" or any(word.startswith("experiment=") for word in words):
        return [word for word in words if word != "experiment=null"]  # as the file has it
    game = next((w.partition("=")[2].strip("'") for w in words if w.startswith("game=")), "salvo")
    return [f"experiment='{game}'", *words] if game in options("experiment") else words


def _choices(value: str) -> list[str]:
    return [part.strip("'\" ") for part in value.split(",")]


def _seated(name: str, value: str) -> list[str]:
    """The words for player=, opponent= and the like: an option of the group, or a run's path."""
    group = name if name == "player" else f"player@{name}"
    if value in ("run", "null", ""):
        raise ConfigError(f"{name}={value} names nobody", f"write {name}=PATH, or a player's name")
    if all(choice in options("player") for choice in _choices(value)):
        return [f"{group}={value}"]
    path = value.strip("'\"")
    if not os.path.exists(path):  # Path.exists raises for names that are too long
        one = next((part for part in _choices(value) if os.path.exists(part)), None)
        if one is not None:
            raise ConfigError(
                f"{name}={value}: a sweep over players takes names, and {one} is a run",
                f"sweep once more with {name}={one}",
            )
        raise ConfigError(
            f"no player is called {value!r}, and there is no run there",
            nearest(value, options("player")),
        )
    return [f"{group}=run", f"{name}.path={quoted(path)}"]


def quoted(text: str) -> str:
    """Any text as one value for Hydra, whatever characters are in it."""
    # To Hydra a backslash means itself, but before a quote.
    return "'" + re.sub(r"(\\+)('|$)", r"\1\1\2", text).replace("'", "\\'") + "'"


def parse(words: list[str]) -> list[Override]:
    """The words taken apart; raises ConfigError for what is not key=value with a known option."""
    try:
        parsed = OverridesParser.create().parse_overrides(words)
    except OverrideParseException as error:
        raise ConfigError(
            f"cannot read {error.override!r}", "write key=value, with quotes around odd characters"
        ) from None
    groups = [path.name for path in conf_dir().iterdir() if path.is_dir()]
    for override in parsed:
        name, line = override.key_or_group, override.input_line
        if name.startswith("hydra"):
            continue
        if override.is_delete() or override.is_add() or override.is_force_add():
            raise ConfigError(
                f"{line}: keys cannot be added or removed", f"write {name}=value for a known key"
            )
        if name in groups and not override.is_sweep_override():
            value = str(override.value())
            if value not in options(name) and value != "None":
                raise ConfigError(f"no {name} is called {value!r}", nearest(value, options(name)))
    return parsed


def _compose(command: str, overrides: list[str]) -> DictConfig:
    groups = {path.name for path in conf_dir().iterdir() if path.is_dir()}
    more = ",".join(quoted(f"file://{folder}") for folder in FOLDERS[1:])
    search = [f"hydra.searchpath=[{more}]"] if more else []
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        try:
            return compose(command, [*overrides, *search])
        except BAD_WORDS as error:
            choices = [text for text in overrides if re.split("[@=]", text)[0] in groups]
            wrong = [text for text in overrides if text not in choices]
            try:
                known = compose(command, [*choices, *search])
            except BAD_WORDS:
                known = compose(command)
                wrong = overrides
            names = [str(name) for name in known if name != "experiment"] + [*GROUPS[command]]
            names += ["experiment"] * (command == "train")
            for name, node in ((str(name), node) for name, node in known.items()):
                if isinstance(node, DictConfig):
                    names += [name + "." + str(inner) for inner in node]
            for text in wrong:
                name = text.split("=")[0].split("@")[-1]
                if name not in names:
                    hint = nearest(name, names)
                    if hint.startswith("there is"):  # too many to read
                        game = known.get("game")
                        own = [str(key) for key in game or () if key != "name"]
                        has = f"{game.name} has " + ", ".join(own) + "; " if game else ""
                        hint = f"{has}rlgames {command} --help lists the others"
                    raise ConfigError(f"no key is called {name!r} here", hint) from None
            raise ConfigError(str(error).splitlines()[0]) from None


def check(command: str, config: DictConfig) -> DictConfig:
    """The same config with every value converted to its declared type and inside its range."""
    result: dict[str, Any] = {}
    for group in GROUPS[command]:
        node = config.get(group)
        if node is None:
            continue
        name = str(node.get("name") if isinstance(node, DictConfig) else node)
        try:
            schema = schema_of(group, name)
        except KeyError:
            known = list(SCHEMAS[SHARED.get(group, group)])
            raise UnknownPart(f"no {group} is called {name!r}", nearest(name, known)) from None
        if not isinstance(node, DictConfig):
            raise ConfigError(f"{group} has no keys, not even its name")
        result[group] = defaults(schema) | typed(schema, node, group)
    command_schema = COMMANDS[command]
    own = {
        item.name: config.get(item.name) for item in fields(command_schema) if item.name in config
    }
    result.update(typed(command_schema, OmegaConf.create(own), ""))
    return OmegaConf.create(result)


def typed(schema: type, node: DictConfig, prefix: str) -> dict[str, Any]:
    """A node's values as plain Python, converted and checked by a schema."""
    values: dict[str, Any] = {}
    merged = OmegaConf.structured(schema)
    for name in map(str, node):
        shown = name if prefix in ("", "game") else f"{prefix}.{name}"
        raw: Any = "${...}"  # for what names nothing
        try:
            raw = OmegaConf.to_container(OmegaConf.create({"v": node[name]}), resolve=True)
            raw = raw["v"] if isinstance(raw, dict) else raw
            if raw == "" or (isinstance(raw, str) and raw != raw.strip()):
                raise ConfigError(f"{shown}={raw!r} is empty or has blanks around it")
            kind = _type(schema, name)
            # OmegaConf would take 3 for true and "01" for 1.
            loose = isinstance(raw, str) and "number" in kind and "a word" not in kind
            odd = raw is not None and isinstance(raw, bool) != ("true or false" in kind)
            if kind and (loose or odd):
                raise ConfigError(f"{shown}={raw} is not of the right kind", f"it should be {kind}")
            merged[name] = raw
            values[name] = plain(merged)[name]
        except InterpolationResolutionError:
            raise
        except OmegaConfBaseException:
            names = [item.name for item in fields(schema)]
            if name not in names:
                raise ConfigError(f"no key is called {shown!r}", nearest(name, names)) from None
            raise ConfigError(
                f"{shown}={raw} is not of the right kind",
                f"it should be {_type(schema, name)}",
            ) from None
    for item in fields(schema):
        if item.name in values:
            shown = item.name if prefix in ("", "game") else f"{prefix}.{item.name}"
            _check_range(shown, values[item.name], item.metadata)
    return values


def _type(schema: type, name: str) -> str:
    kinds = {item.name: item.type for item in fields(schema)}
    own = kinds.get(name, "")  # text, where the module has `from __future__ import annotations`
    kind = own.__name__ if isinstance(own, type) else str(own)
    words = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a word"}
    words["list[int]"] = "a list of whole numbers, as in [4,2]"
    words["list[str]"] = "a list of words, as in [one,two]"
    return " or ".join(words.get(part.strip(), part.strip()) for part in kind.split("|")).replace(
        "None", "null"
    )


def _check_range(name: str, value: Any, metadata: Any) -> None:
    if value is None or "of" not in metadata:
        return
    if isinstance(value, list):
        for item in value:
            _check_range(name, item, metadata)
        return
    choices, low, high = metadata["of"], metadata["low"], metadata["high"]
    if choices and value not in choices:
        raise ConfigError(f"{name}={value} is not a choice", nearest(str(value), list(choices)))
    if isinstance(value, int | float) and not low <= value <= high:
        least = "more than 0" if low == POSITIVE else f"at least {low:g}"
        most = f"at most {high if isinstance(high, int) else format(high, 'g')}"
        raise ConfigError(f"{name}={value} is out of range", f"it should be {least} and {most}")


def plain(config: DictConfig) -> dict[str, Any]:
    """A config as plain dicts, lists and values."""
    values = OmegaConf.to_container(config)
    assert isinstance(values, dict)
    return {str(name): value for name, value in values.items()}


@contextmanager
def told_plainly() -> Iterator[None]:
    """What is wrong with a stranger's config is told in one printable line of bounded length."""
    try:
        yield
    except ConfigError as error:
        error.error, error.hint = shown(error.error), shown(error.hint)
        error.args = (error.error,)
        raise


@told_plainly()
def from_plain(values: dict[str, Any]) -> DictConfig:
    """The inverse of plain, checked again: a checkpoint's config is text from a stranger.

    Keys that an older version did not have get the defaults of their schemas, which are what was
    done before there was a choice.
    """
    raw = OmegaConf.create()
    for name, value in (defaults(COMMANDS["train"]) | values).items():
        if "${" in json_text(value):
            raise ConfigError(f"the checkpoint's {name} holds an interpolation; that is refused")
        raw[name] = value
    for group in NEEDED:
        if raw.get(group) is None:
            raise ConfigError(f"the checkpoint's config has no {group}")
    try:
        return check("train", raw)
    except (ArithmeticError, LookupError, OmegaConfBaseException, TypeError, ValueError) as error:
        raise ConfigError(f"the checkpoint's config cannot be read: {error}") from None
    except UnknownPart as error:
        needed = values.get("plugins")
        needed = [str(name) for name in needed] if isinstance(needed, list) else []
        known = all(name in sys.modules for name in needed)
        if known or not all(MODULE.fullmatch(name) for name in needed):
            raise
        listed = f"plugins=[{','.join(needed)}]"
        raise UnknownPart(
            f"{error.error} here",
            f"it was trained with {listed}, name them yourself if you trust them: "
            f"rlgames eval RUN {listed}",
        ) from None


def json_text(value: Any) -> str:
    return json.dumps(value)


def to_yaml(config: DictConfig) -> str:
    return OmegaConf.to_yaml(config)


def printable(text: str) -> str:
    """Text in one line, in which what controls a terminal is spelt out: names and paths may hold
    anything."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def stop(error: ConfigError, as_json: bool, code: int = 2) -> int:
    """Say what was wrong in one line; the exit code, by default that for bad input."""
    if as_json:
        print(json_text({"error": error.error, "hint": error.hint}))
    else:
        line = f"rlgames: {error.error}" + (f"; {error.hint}" if error.hint else "")
        print(printable(line), file=sys.stderr)
    return code


def silence() -> None:
    """Whoever read standard output has gone; leave nothing that Python would complain about."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
