"""Composes the config of a command with Hydra and has it checked.

Nothing heavy is imported, so that a typo is answered at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path

from hydra import compose, version
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, read_write
from omegaconf.errors import InterpolationResolutionError
from yaml import YAMLError

from rlgames.config import catalogue
from rlgames.config.catalogue import conf_dir, option_file, options
from rlgames.config.checks import check_config, wrong_interpolation
from rlgames.config.command import PrimaryConfig
from rlgames.config.command_schemas import CONFIGS, TRAIN
from rlgames.config.hydra_job import override_dirname
from rlgames.config.hydra_keys import check_files, check_typed, is_hydra_word
from rlgames.config.overrides import hydra_words, parse_overrides
from rlgames.config.plugins import load_plugins
from rlgames.config.primary import Primary, split_primary
from rlgames.config.registry import LIST_GROUPS, SHARED_GROUPS
from rlgames.config.schema import defaults
from rlgames.config.suggestions import unknown_key
from rlgames.core.errors import ConfigError

PRESET = "_config"
"""The option of `experiment` that a complete config becomes."""

COMPOSE_ERRORS = (HydraException, ValueError, YAMLError, AssertionError)
"""What composing raises for words, and for files of --config-dir, that cannot be."""


def _register(config: PrimaryConfig) -> None:
    """Let Hydra compose a config from its schema alone, without a YAML file."""
    listed = []
    for group in config.groups:
        folder = SHARED_GROUPS.get(group.name, group.name)
        package = "" if folder == group.name else f"@{group.name}"
        listed.append({folder + package: group.default})
    node = {"defaults": [*listed, "_self_"], **defaults(config.schema)}
    ConfigStore.instance().store(config.name, node)


for _config in CONFIGS.values():
    if _config is not TRAIN:  # which conf/train.yaml documents
        _register(_config)


def add_option(group: str, name: str, schema: type) -> None:
    """Add an option to a group; the defaults of its schema replace a YAML file.

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
            if any(key in (*config.key_names, "experiment") for config in CONFIGS.values()):
                raise ValueError(f"{group}={name} cannot have the key {key}: commands have it")
        inside = {"name": name} | {key: f"${{{key}}}" for key in own}
        node, package = own | {"game": inside}, "_global_"
    elif group in LIST_GROUPS:
        package = f"{group}.{name}"
    if option_file(group, name) is None:  # Hydra would match the two, and warn
        ConfigStore.instance().store(name, node, group, package)


@dataclass(frozen=True)
class Composition:
    """A config, and where it comes from.

    config: checked, without interpolations. composed: as Hydra composed it, with its node `hydra`.
    name, words: the primary config and the overrides that Hydra composed. typed: the overrides of
    the config as they were typed. folders: searched besides those of the catalogue. bases: what
    Hydra's own typed words alone make, see check_files; empty where no file of a user was read.
    """

    config: DictConfig
    composed: DictConfig
    name: str
    words: list[str]
    typed: list[str]
    folders: tuple[Path, ...] = ()
    bases: tuple[DictConfig, ...] = ()

    @property
    def is_multirun(self) -> bool:
        """Whether hydra.mode makes a sweep of it."""
        return bool(self.composed.hydra.mode == RunMode.MULTIRUN)


def load_config(command: str, overrides: list[str]) -> DictConfig:
    """Compose and check a command's config; raises ConfigError for bad input."""
    return load_composition(command, overrides).config


def load_composition(
    command: str, overrides: list[str], is_sweep: bool | None = False, check: bool = True
) -> Composition:
    """Compose a command's config as Hydra does, and check it.

    is_sweep: whether the words may set Hydra's keys of a sweep, or those of a single run; None:
    both. check: False for what several jobs share, whose own overrides are missing.
    Raises ConfigError for bad input.
    """
    primary, typed = split_primary(command, load_plugins(overrides))
    words = _with_experiment(command, hydra_words(typed, command), primary)
    hydra_typed = [word for word in words if is_hydra_word(word)]
    for override in parse_overrides(words):
        if is_hydra_word(str(override.input_line)):
            if command != TRAIN.name:
                raise ConfigError(f"{override.input_line} belongs to train", "omit it")
            check_typed(override, is_sweep)
        elif override.is_sweep_override():
            line = str(override.input_line)
            name, _, values = line.partition("=")
            as_list = "" if "(" in values else f", or write a list as {name}=[{values}]"
            raise ConfigError(f"{line} names several values", f"add -m to sweep{as_list}")
    typed = [word for word in typed if not is_hydra_word(word)]
    try:
        composed = _compose(command, words, primary)
        composed = _drop_settings_of_other_options(command, words, composed, primary)
        bases = _bases(command, hydra_typed, primary)
        if bases:
            check_files(composed, bases)
        _record(composed, typed)
        _check_names(command, composed)
        config = check_config(command, composed) if check else composed
    except InterpolationResolutionError as error:
        raise wrong_interpolation(error) from None
    plugins = config.get("plugins")
    if plugins and not any(word.startswith("plugins=") for word in words):
        what = "an experiment" if primary.is_default else "this config"
        raise ConfigError(f"{what} needs plugins={plugins}", "name them yourself if you trust them")
    all_words = _all_words(words, primary)
    return Composition(config, composed, primary.name, all_words, typed, primary.folders, bases)


def load_shared(overrides: list[str]) -> Composition:
    """What the jobs of a training or a sweep share: Hydra's own keys, as words and files set them.

    Only Hydra's own words and those that name a file are composed. Raises ConfigError.
    """
    names = ("config", "experiment", "game", "plugins")
    words = [
        word
        for word in load_plugins(overrides)
        if is_hydra_word(word) or word.partition("=")[0].lstrip("+") in names
    ]
    words = [word for word in words if is_hydra_word(word) or not is_sweep(word)]
    return load_composition(TRAIN.name, words, is_sweep=None, check=False)


def is_multirun(overrides: list[str]) -> bool:
    """Whether hydra.mode=MULTIRUN is typed, or set by a file that the words name."""
    typed = any("hydra.mode=" in word for word in overrides)
    load_plugins(overrides)
    has_files = any(word.startswith("config=") for word in overrides)
    if not typed and not has_files and [conf_dir()] == catalogue.FOLDERS:
        return False
    return load_shared(overrides).is_multirun


def is_sweep(word: str) -> bool:
    """Whether an override names several values."""
    return any(override.is_sweep_override() for override in parse_overrides([word]))


def _check_names(command: str, config: DictConfig) -> None:
    """Raises ConfigError for a key at the top of a config that the command does not have."""
    names = [*CONFIGS[command].key_names, *map(str, config.get("game") or ()), "experiment"]
    for name in map(str, config):
        if name not in (*names, "hydra"):
            raise unknown_key(name, names)


def _bases(command: str, hydra_typed: list[str], primary: Primary) -> tuple[DictConfig, ...]:
    """What Hydra's typed words make without the files of a user; empty without such files."""
    if command != TRAIN.name or (primary.is_default and [conf_dir()] == catalogue.FOLDERS):
        return ()
    own = _compose(None, hydra_typed, Primary(command))
    if not (catalogue.FOLDERS[0] / f"{command}.yaml").is_file():
        return (own,)
    return _compose(command, hydra_typed, Primary(command)), own


def _record(composed: DictConfig, typed: list[str]) -> None:
    """Let Hydra's node know the overrides as they were typed, and let ${hydra:…} refer to it."""
    settings = composed.hydra.job.config.override_dirname
    with read_write(composed.hydra):
        composed.hydra.overrides.task = typed
        composed.hydra.job.override_dirname = override_dirname(typed, settings)
    HydraConfig.instance().set_config(composed)


def _drop_settings_of_other_options(
    command: str, words: list[str], config: DictConfig, primary: Primary
) -> DictConfig:
    """Drop a preset's settings of an option that the words replace by another one.

    The other option then has the values of its own file.
    """
    experiment = [word for word in words if word.startswith("experiment=")]
    game = [word for word in words if word.startswith("game=")]
    has_preset = bool(experiment) or primary.preset is not None
    for group in CONFIGS[command].group_names:
        if any(re.fullmatch(rf"~(\w+@)?{group}", word) for word in words) and group in config:
            config[group] = None  # a preset may have set keys of it
        if group in LIST_GROUPS:
            if config.get(group) is not None:
                nodes = config[group].items()
                config[group] = {name: node for name, node in nodes if "name" in node}
            continue
        typed_in = [word for word in words if re.match(f"(player@)?{group}=", word)]
        if not has_preset or not typed_in or group == "game" or config.get(group) is None:
            continue
        selected = config[group].get("name")  # a file may lack it
        preset = _compose(command, [*experiment, *game], primary).get(group)
        if preset is None or preset.name != selected:
            group_words = [word for word in words if re.match(rf"(player@)?{group}[=.]", word)]
            replaced = _compose(
                command, [*group_words, f"game='{config.game.name}'"], Primary(command)
            )
            config[group] = replaced[group]
    return config


def _with_experiment(command: str, words: list[str], primary: Primary) -> list[str]:
    """Training takes the game's own experiment, if there is one, where none is named, and no
    config either; with a policy and no learner, that of the game and the policy, if there is one;
    with another policy or a learner, that of the game and policy=mlp, if there is one.
    """
    is_named = any(word.startswith("experiment=") for word in words) or not primary.is_default
    if CONFIGS[command].presets is None or is_named:
        return [word for word in words if word != "experiment=null"]  # as the file has it
    pairs = [word.partition("=") for word in reversed(words)]  # the first of equal keys counts
    typed = {key: value.strip("'") for key, _, value in pairs}
    names = [typed.get("game", "salvo")]
    if "policy" in typed or "learner" in typed:
        policy = "mlp" if "learner" in typed else typed["policy"]
        names = [f"{names[0]}_{policy}", f"{names[0]}_mlp", names[0]]
    name = next((name for name in names if name in options("experiment")), None)
    return words if name is None else [f"experiment='{name}'", *words]


def _compose(command: str | None, overrides: list[str], primary: Primary) -> DictConfig:
    """Hydra's composition, with its node `hydra`, of the primary config; with None of its own node
    alone. Raises ConfigError."""
    GlobalHydra.instance().clear()
    create_hydra(primary.folders)
    name, words = None if command is None else primary.name, _all_words(overrides, primary)
    try:
        return compose(name, words, return_hydra_config=True)
    except COMPOSE_ERRORS as error:
        if command is None:
            raise _first_line(error) from None
        raise _explained(command, overrides, primary, error) from None
    finally:
        GlobalHydra.instance().clear()


def _all_words(overrides: list[str], primary: Primary) -> list[str]:
    """The overrides, after the one for a complete config."""
    if primary.preset is None:
        return overrides
    ConfigStore.instance().store(PRESET, primary.preset, "experiment", "_global_")
    return [f"experiment={PRESET}", *overrides]


def create_hydra(more: Sequence[Path] = ()) -> Hydra:
    """Hydra with the folders of the catalogue, and more, which ${hydra.job.name} calls rlgames."""
    version.setbase("1.3")
    path = create_config_search_path(search_path_dir=str(catalogue.FOLDERS[0]))
    for folder in (*catalogue.FOLDERS[1:], *more):  # as Hydra does for --config-dir
        path.prepend("command-line", f"file://{folder}", SearchPathQuery(provider="schema"))
    return Hydra.create_main_hydra2(task_name="rlgames", config_search_path=path)


def _first_line(error: Exception) -> ConfigError:
    lines = str(error).strip().splitlines()
    if lines and lines[0].endswith(":"):  # what follows says why
        lines[0] = " ".join(lines[:2])
    return ConfigError(lines[0] if lines else f"Hydra cannot compose it: {type(error).__name__}")


def _explained(
    command: str, overrides: list[str], primary: Primary, error: Exception
) -> ConfigError:
    """The error for words that Hydra cannot compose: the first one that names no key."""
    groups = {path.name for path in conf_dir().iterdir() if path.is_dir()}
    choices = [text for text in overrides if re.split("[@=]", text)[0] in groups]
    wrong = [text for text in overrides if text not in choices and not is_hydra_word(text)]
    try:
        known = compose(primary.name, _all_words(choices, primary))
    except COMPOSE_ERRORS:
        try:
            known, wrong = compose(primary.name), overrides
        except COMPOSE_ERRORS:  # the file itself cannot be composed
            return _first_line(error)
    presets = CONFIGS[command].presets
    names = [str(key) for key in known if key != "experiment"]
    names += [*CONFIGS[command].group_names, *([presets.name] if presets else [])]
    for key, node in ((str(key), node) for key, node in known.items()):
        if isinstance(node, DictConfig):
            names += [key + "." + str(inner) for inner in node]
            if key in LIST_GROUPS:
                names += [f"{key}.{inner!s}.{leaf}" for inner in node for leaf in node[inner]]
    for text in wrong:
        typed = text.split("=")[0].split("@")[-1]
        if typed not in names and not is_hydra_word(text):
            game = known.get("game")
            own = [str(key) for key in game or () if key != "name"]
            has = f"{game.name} has {', '.join(own)}; " if game else ""
            return unknown_key(typed, names, f"{has}rlgames {command} --help lists the others")
    return _first_line(error)
