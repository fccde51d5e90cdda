"""Asks Hydra: its rules for words, the config of a command, and `rlgames train` as a Hydra app."""

from __future__ import annotations

import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import hydra
import yaml
from hydra import compose, initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from hydra.core.plugins import Plugins
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.version import VersionBase
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlgames.config.commands import COMMAND_SCHEMAS, TrainConfig
from rlgames.config.conf import command_file, conf_dir, not_yaml
from rlgames.config.hints import unknown_option
from rlgames.config.hydra_version import VERSION_BASE
from rlgames.config.overrides import (
    OF_SWEEPS,
    SWEEP,
    Flags,
    Word,
    parse_word,
    quoted,
    read_words,
    split_flags,
    typed_groups,
    unknown_word,
)
from rlgames.config.plugins import import_plugins
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import groups_of, key_fields, kind_of, members
from rlgames.config.typed import command_of, typed
from rlgames.core.errors import ConfigError
from rlgames.core.status import STATUS
from rlgames.core.untrusted import sanitized

C = TypeVar("C")

COMPOSE_ERRORS = (HydraException, OmegaConfBaseException, ValueError, AssertionError)
"""What Hydra raises for words and values that cannot be."""

NO_KEY = re.compile(r"Could not (?:override|delete from config\.) '([^']+)'")

_LOCK = threading.RLock()
"""Hydra composes with the state of the process, so one thread does so at a time."""


class _Folders(SearchPathPlugin):
    """Adds the folders of --config-dir to the places where Hydra looks for configs."""

    folders: tuple[Path, ...] = ()

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in _Folders.folders:
            search_path.append("command-line", f"file://{folder}")


def option_files(group: str) -> list[str]:
    """The options of a config group, including options in a user's folder."""
    return GlobalHydra.instance().config_loader().get_group_options(group, ObjectType.CONFIG)


def compose_node(command: str, words: Sequence[str]) -> Any:
    """What Hydra composes from the words of a command, with Hydra's config. Raises
    ConfigError."""
    with hydra_errors(command, words):
        return compose(command, [*words], return_hydra_config=True)


def _choices(node: Any) -> dict[str, str]:
    """The option of each group; of a group with a list none."""
    choices = node.hydra.runtime.choices.items()
    return {group: str(option) for group, option in choices if option is not None}


@contextmanager
def own_hydra(folders: Sequence[Path] = ()) -> Iterator[None]:
    """A block with a separate Hydra for conf/ and the folders of a user. The program's Hydra stays
    as it is.

    Raises ConfigError for a folder with a file that Hydra would not see.
    """
    for folder in folders:
        _check_folder(folder)
    with _LOCK:
        Plugins.instance().register(_Folders)
        outer, version = HydraConfig.instance().cfg, VersionBase.instance()
        base = version.version_base
        _Folders.folders = (*folders,)
        try:
            with initialize_config_dir(str(conf_dir()), **VERSION_BASE):
                _Folders.folders = ()
                yield
        finally:
            _Folders.folders, HydraConfig.instance().cfg = (), outer
            version.version_base = base


def _check_folder(folder: Path) -> None:
    """Raises ConfigError for a file that another one hides: of two with the same name Hydra takes
    the one in conf/ or, of an option, the plugin's."""
    if folder.samefile(conf_dir()):
        return
    bundled = {path.relative_to(conf_dir()) for path in conf_dir().rglob("*.yaml")}
    plugins = {
        Path(group, f"{name}.yaml")
        for group, options in REGISTRY.items()
        for name, option in options.items()
        if option.values is not None
    }
    for path in sorted(bundled | plugins):
        if (folder / path).is_file():
            kind = "a bundled file" if path in bundled else "a plugin's option"
            raise ConfigError(f"{folder / path} has the name of {kind}", "rename it")


def load_config(schema: type[C], words: Sequence[str]) -> C:
    """The typed config of a command, as its words describe it. Raises ConfigError."""
    command = command_of(schema)
    flags = split_flags(command, words)
    import_plugins(flags.words)
    own = ["--help"] * flags.is_help + flags.hydra
    own += [word for word in flags.words if word.lstrip("+~").startswith(("hydra.", "hydra/"))]
    if own:
        raise ConfigError(f"{own[0]} is for the command line", "use out= for a directory")
    return compose_config(command, read_words(command, flags.words), flags.folders)


def compose_config(command: str, read: Iterable[Word], folders: Sequence[Path]) -> Any:
    """The typed config of a command. Raises ConfigError."""
    with own_hydra(folders):
        return _composed(command, hydra_words(command, read))


def _composed(command: str, words: Sequence[str]) -> Any:
    node = compose_node(command, words)
    HydraConfig.instance().cfg = node
    return typed_node(COMMAND_SCHEMAS[command], node)


def compose_plain(
    command: str, words: Sequence[str], folders: Sequence[Path]
) -> tuple[dict[str, list[str]], dict[str, Any], dict[str, list[str]]]:
    """The options that words choose, by their keys; the values; and the options of each group."""
    groups = typed_groups(command)
    with own_hydra(folders):
        node = compose_node(command, hydra_words(command, read_words(command, words)))
        names = {group.folder: option_files(group.folder) for group in groups.values()}
    values: Any = OmegaConf.to_container(node)
    chosen = {name.rpartition("@")[2]: [option] for name, option in _choices(node).items()}
    lists = {name: [*values[name]] for name, group in groups.items() if group.is_list}
    return chosen | lists, values, names


def hydra_words(command: str, read: Iterable[Word], flags: Flags | None = None) -> list[str]:
    """The words as Hydra reads them.

    1. A word without `=`, or the path of something, is the run of a command that takes one.
    2. A key that the command lacks and a game has gets `game.`: `board=4` is `game.board=4`.
    3. A seat names its player: `opponent=random` is `player@opponent=random`, and `opponent=PATH`
       the run there.
    4. A training without `experiment=` has the preset of its game that chooses the typed policy and
       learner: GAME, GAME_POLICY, GAME_LEARNER or GAME_mlp.
    5. `GROUP=null` is `~GROUP`; digits name an option, as in `game=2048`.
    6. The value of a key that takes any text is text, whatever characters it has.

    read: by read_words. flags: of the command line; in a sweep, the directory of a job is named by
    what differs between jobs, and a primary config of one's own has no preset.
    """
    flags, groups, words = flags or Flags(), typed_groups(command), list[Word]()
    for word in read:
        is_player = word.name in groups and groups[word.name].folder == "player"
        if is_player and _is_run(word):
            words.append(Word("", f"{word.name}.path", word.value))
            word = replace(word, value="run")
        words.append(word)
    if "experiment" in groups and not flags.has_own_config:
        words = _with_preset(words)
    full = [_full_word(command, word, flags.is_sweep) for word in words]
    if flags.is_sweep:
        # Hydra knows the player of a seat by its group.
        varied = {word.name.partition("@")[0] for word in full if word.varies}
        alike = sorted({word.name.partition("@")[0] for word in full} - varied)
        key = "hydra.job.config.override_dirname.exclude_keys"
        full.append(Word("", key, f"[{','.join(alike)}]"))
    return [str(word) for word in full]


def _with_preset(words: list[Word]) -> list[Word]:
    """The words of a training with the preset of its game, or of each of its games, if there is
    one."""
    typed = {word.name: word.options for word in words}
    if "experiment" in typed:
        return [word for word in words if word.name != "experiment" or word.options != []]
    wanted = {name: typed[name] for name in ("policy", "learner") if typed.get(name) is not None}
    games = typed["game"] if "game" in typed else command_file("train")[0]["game"]
    presets = [_preset_of(game, wanted) for game in games or ()]
    if not presets or not all(presets):
        return words
    if len(presets) > 1:  # a sweep, in which each game has its own
        words = [word for word in words if word.name != "game"]
    return [*words, Word("", "experiment", ",".join(name for name in presets if name))]


def _preset_of(game: str, wanted: Mapping[str, list[str] | None]) -> str | None:
    """The first preset of a game that chooses what is wanted; None if there is none."""
    there = option_files("experiment")
    names = (game, *(f"{game}_{each}" for options in wanted.values() for each in options or ()))
    for name in (*names, f"{game}_mlp"):
        if name in there:
            if not wanted:
                return name
            chosen = _choices(compose_node("train", [f"experiment='{name}'"]))
            if all([chosen.get(group)] == options for group, options in wanted.items()):
                return name
    return None


def presets_of(game: str) -> dict[str, TrainConfig]:
    """The presets of a game by their names: GAME, and those that begin with GAME_."""
    with own_hydra():
        names = [n for n in option_files("experiment") if n == game or n.startswith(f"{game}_")]
        found = {name: _composed("train", [f"experiment='{name}'"]) for name in names}
    return {name: preset for name, preset in found.items() if preset.game.name == game}


def _is_run(word: Word) -> bool:
    """Whether the value of a player's seat is a run: none of the players."""
    value = (word.value or "").strip("'\"")
    if not value or value in ("null", "run", "???") or value in option_files("player"):
        return False
    return os.path.exists(os.path.expanduser(value)) or not SWEEP.search(value)


def _full_word(command: str, word: Word, is_sweep: bool) -> Word:
    """A word with the full name of its key."""
    name, groups, schema = word.name, typed_groups(command), COMMAND_SCHEMAS[command]
    if name.startswith(("hydra.", "hydra/")) or word.sign == "+":
        return word
    if is_sweep and name in OF_SWEEPS and not word.sign:
        text = word.value or ""
        return Word("", OF_SWEEPS[name], quoted(text) if name == "out" else text)
    if name in groups:
        folder = groups[name].folder
        full = name if name == folder else f"{folder}@{name}"
        if word.value == "null" or (word.sign == "~" and groups[name].is_list):
            # Hydra takes null in files only, and removes no list
            return Word("", full, "[]") if groups[name].is_list else Word("~", full, None)
        value = word.value and re.sub(r"(?<![\w'\"])(\d+)(?![\w'\"])", r"'\1'", word.value)
        return replace(word, name=full, value=value)
    if word.value and _is_text(schema, name, word.value, is_sweep):
        word = replace(word, value=quoted(word.value))
    is_of_game = "." not in name and name not in key_fields(schema)
    return replace(word, name=f"game.{name}" if is_of_game else name)


def _is_text(schema: type, name: str, value: str, is_sweep: bool) -> bool:
    """Whether the value of a key is any text, which Hydra gets in quotes."""
    if value[0] in "'\"" or value == "null" or "${" in value:
        return False
    if os.path.exists(os.path.expanduser(value)):
        return True
    field = key_fields(schema).get(name)
    if field is None:
        is_text = name.endswith((".path", ".command"))
    else:
        is_text = str in members(kind_of(schema, name)) and not field.metadata["of"]
    return is_text and not (is_sweep and SWEEP.search(value))


def typed_node(schema: type[C], node: Any) -> C:
    """What Hydra composed as the config of a command, its interpolations resolved.

    Raises ConfigError, also for keys that a preset sets and the chosen options do not have.
    """
    names = [str(name) for name in node if name != "hydra"]
    with hydra_errors(command_of(schema)):
        values: Any = OmegaConf.to_container(OmegaConf.masked_copy(node, names), resolve=True)
    if preset := HydraConfig.get().runtime.choices.get("experiment"):
        typed_words = map(parse_word, HydraConfig.get().overrides.task)
        _check_preset(schema, preset, values, {word.name for word in typed_words})
    return typed(schema, {str(name): value for name, value in values.items()})


def _check_preset(schema: type, preset: str, values: Mapping[str, Any], words: set[str]) -> None:
    """Raises ConfigError for keys that a preset sets and the chosen options do not have.

    words: the keys that were typed, which are other mistakes.
    """
    extra = list[str]()
    for name, group in groups_of(schema).items():
        node = values.get(name)
        if isinstance(node, Mapping) and not group.is_list:
            option = REGISTRY[group.folder].get(str(node.get("name")))
            known = node if option is None else key_fields(option.schema)
            extra += sorted({f"{name}.{key}" for key in node.keys() - known.keys()} - words)
    if extra:
        raise ConfigError(
            f"experiment={preset} sets {', '.join(extra)}, which the chosen options do not have",
            "to leave them out, add " + " ".join(f"~{key}" for key in extra),
        )


def run_app(
    command: str,
    flags: Flags,
    read: Iterable[Word],
    job: Callable[[Any], Any],
    check_sweep: Callable[[Iterable[tuple[list[str], TrainConfig]]], None],
) -> None:
    """Run a command as a Hydra app.

    Args:
        read: its words.
        job: called for each run with the composed config; launchers send it to other processes. It
            raises nothing in a single run.
        check_sweep: called with sweep_jobs before a sweep starts.

    Raises:
        ConfigError: for bad input, and for a sweep whose jobs are not all done.
    """
    with own_hydra(flags.folders):
        words = hydra_words(command, read, flags)
        if flags.is_sweep and not flags.has_own_config:
            check_sweep(sweep_jobs([word for word in words if not word.startswith("hydra")]))
    folders = [f"--config-dir={folder}" for folder in flags.folders]
    # Hydra has no function that takes the arguments of an app.
    sys.argv = ["rlgames", *folders, *flags.hydra, *words]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors are raised, not printed
    app = hydra.main(config_path=str(conf_dir()), config_name=command, **VERSION_BASE)
    if flags.is_sweep:
        STATUS.clear()
    with hydra_errors(command):
        app(job)()


def sweep_jobs(words: Sequence[str]) -> Iterator[tuple[list[str], TrainConfig]]:
    """Jobs of a sweep that show whether its values can be, each by the words that vary: every
    combination of its options, and every value of its other keys, or the ends of a range. Words
    that only a sweeper can list are left out; no jobs if there are no others. Raises ConfigError.
    """
    groups, listed = typed_groups("train"), dict[str, list[str]]()
    with hydra_errors("train"):
        for override in OverridesParser.create().parse_overrides([*words]):
            if override.is_sweep_override():
                listed[str(override.input_line)] = _values(override)
    varying = {word: values for word, values in listed.items() if values}
    options = [word for word in varying if parse_word(word).name in groups]
    first = {word: values[0] for word, values in varying.items()}
    combined = product(*(varying[word] for word in options))
    jobs = [first | dict(zip(options, chosen, strict=True)) for chosen in combined]
    for word in varying.keys() - {*options}:
        jobs += [first | {word: value} for value in varying[word][1:]]
    for job in jobs if varying else ():
        own = [job.get(word, word) for word in words if listed.get(word, word)]
        names = [word.removeprefix("game.") for word in job.values()]
        yield names, _composed("train", own)


def _values(override: Override) -> list[str]:
    """A word for each value of a sweep, of a range the first and the last; none for an interval and
    for a glob, which depends on the folders."""
    if not override.is_discrete_sweep() or isinstance(override.value(), Glob):
        return []
    key = override.get_key_element()
    values = [f"{key}={value}" for value in override.sweep_string_iterator()]
    if not values:
        raise ConfigError(f"{override.input_line}: there is no such value")
    return [*dict.fromkeys((values[0], values[-1]))] if override.is_range_sweep() else values


@contextmanager
def hydra_errors(command: str, words: Sequence[str] = ()) -> Iterator[None]:
    """A block whose errors of Hydra and OmegaConf become a ConfigError of one line. words: that
    Hydra was told."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "provider=hydra.searchpath")
            yield
    except UserWarning as warning:
        if "provider=hydra.searchpath" not in str(warning):
            raise
        place = str(warning).partition("path=")[2].removesuffix(" is not available.")
        hint = "use file:// and a folder, or name a package's folder in PYTHONPATH"
        raise ConfigError(f"hydra.searchpath: there is no {sanitized(place)}", hint) from None
    except OverrideParseException as error:
        raise ConfigError(
            f"cannot read {sanitized(error.override, 100)!r}",
            "write key=value, with quotes around odd characters",
        ) from None
    except MissingConfigException as error:
        raise _no_config(error) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise not_yaml(mark.name if mark else "a config", error) from None
    except COMPOSE_ERRORS as error:
        match = NO_KEY.match(str(error))
        if match and "@" not in match[1] and not match[1].startswith("hydra"):
            has_run = any(word.startswith("run=") for word in words)
            raise unknown_word(command, match[1].removeprefix("game."), has_run) from None
        raise ConfigError(*_in_one_line(error)) from None


def _no_config(error: MissingConfigException) -> ConfigError:
    """The error for an option that no file has."""
    first, _, _ = str(error).partition("\n")
    group, slash, name = (error.missing_cfg_file or "").rpartition("/")
    options = error.options or (slash and option_files(group))  # none of a list's
    if not options:
        return ConfigError(sanitized(first))
    return unknown_option(group, sanitized(name, 100), options)


def _in_one_line(error: Exception) -> tuple[str, str]:
    """What an error of Hydra says, and a hint."""
    cause = error.__cause__ if isinstance(error.__cause__, COMPOSE_ERRORS) else error
    first, second, *_ = [*str(cause).splitlines(), "", ""]
    if "requires --multirun" in first or first.startswith("Ambiguous value"):
        word = first.split("'")[1]
        return f"{word} is a list of values", "add -m to run a sweep, or write [a,b] for a list"
    if first.endswith(":"):  # the next line says why
        first = f"{first} {second.strip()}"
    reason = first.rpartition("raised while resolving interpolation: ")[2].strip('"')
    where = getattr(cause, "full_key", None)
    if where and where not in reason:
        reason = f"{where}: {reason}"
    hint = "use ${KEY}, or ${oc.env:NAME,DEFAULT}" if "nterpolation" in first else ""
    return sanitized(reason or type(cause).__name__), hint
