"""Composes the config of a command with Hydra and has it checked.

Nothing heavy is imported, so that a typo is answered at once.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError
from yaml import YAMLError

from rlgames.config import catalogue
from rlgames.config.catalogue import conf_dir, option_file, options
from rlgames.config.checks import check_config, wrong_interpolation
from rlgames.config.command import PrimaryConfig
from rlgames.config.command_schemas import CONFIGS, TRAIN
from rlgames.config.overrides import hydra_words, parse_overrides, quoted
from rlgames.config.plugins import load_plugins
from rlgames.config.registry import SHARED_GROUPS
from rlgames.config.schema import defaults
from rlgames.config.suggestions import unknown_key
from rlgames.core.errors import ConfigError

COMPOSE_ERRORS = (HydraException, ValueError, YAMLError)
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
    if option_file(group, name) is None:  # Hydra would match the two, and warn
        ConfigStore.instance().store(name, node, group, package)


def load_config(command: str, overrides: list[str]) -> DictConfig:
    """Compose and check a command's config; raises ConfigError for bad input."""
    words = _with_experiment(command, hydra_words(load_plugins(overrides), command))
    for override in parse_overrides(words):
        if override.is_sweep_override() and not override.key_or_group.startswith("hydra"):
            line = str(override.input_line)
            name, _, values = line.partition("=")
            as_list = "" if "(" in values else f", or write a list as {name}=[{values}]"
            raise ConfigError(f"{line} names several values", f"add -m to sweep{as_list}")
    try:
        config = _drop_settings_of_other_options(command, words, _compose(command, words))
        names = [*CONFIGS[command].key_names, *map(str, config.get("game") or ()), "experiment"]
        for name in map(str, config):
            if name not in names:
                raise unknown_key(name, names)
        config = check_config(command, config)
    except InterpolationResolutionError as error:
        raise wrong_interpolation(error) from None
    if config.plugins and not any(word.startswith("plugins=") for word in words):
        raise ConfigError(
            f"an experiment needs plugins={config.plugins}", "name them yourself if you trust them"
        )
    return config


def _drop_settings_of_other_options(
    command: str, words: list[str], config: DictConfig
) -> DictConfig:
    """Drop an experiment's settings of an option that the words replace by another one.

    The other option then has the values of its own file.
    """
    experiment = [word for word in words if word.startswith("experiment=")]
    game = [word for word in words if word.startswith("game=")]
    for group in CONFIGS[command].group_names:
        typed_in = [word for word in words if re.match(f"(player@)?{group}=", word)]
        if not experiment or not typed_in or group == "game":
            continue
        selected, preset = config[group].name, _compose(command, [*experiment, *game]).get(group)
        if preset is None or preset.name != selected:
            group_words = [word for word in words if re.match(rf"(player@)?{group}[=.]", word)]
            replaced = _compose(command, [*group_words, f"game='{config.game.name}'"])
            config[group] = replaced[group]
    return config


def _with_experiment(command: str, words: list[str]) -> list[str]:
    """Training takes the game's own experiment, if there is one, where none is named."""
    if CONFIGS[command].presets is None or any(word.startswith("experiment=") for word in words):
        return [word for word in words if word != "experiment=null"]  # as the file has it
    game = next((w.partition("=")[2].strip("'") for w in words if w.startswith("game=")), "salvo")
    return [f"experiment='{game}'", *words] if game in options("experiment") else words


def _compose(command: str, overrides: list[str]) -> DictConfig:
    groups = {path.name for path in conf_dir().iterdir() if path.is_dir()}
    more = ",".join(quoted(f"file://{folder}") for folder in catalogue.FOLDERS[1:])
    search = [f"hydra.searchpath=[{more}]"] if more else []
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        try:
            return compose(command, [*overrides, *search])
        except COMPOSE_ERRORS as error:
            choices = [text for text in overrides if re.split("[@=]", text)[0] in groups]
            wrong = [text for text in overrides if text not in choices]
            try:
                known = compose(command, [*choices, *search])
            except COMPOSE_ERRORS:
                known = compose(command)
                wrong = overrides
            presets = CONFIGS[command].presets
            names = [str(name) for name in known if name != "experiment"]
            names += [*CONFIGS[command].group_names, *([presets.name] if presets else [])]
            for name, node in ((str(name), node) for name, node in known.items()):
                if isinstance(node, DictConfig):
                    names += [name + "." + str(inner) for inner in node]
            for text in wrong:
                name = text.split("=")[0].split("@")[-1]
                if name not in names:
                    game = known.get("game")
                    own = [str(key) for key in game or () if key != "name"]
                    has = f"{game.name} has {', '.join(own)}; " if game else ""
                    hint = f"{has}rlgames {command} --help lists the others"
                    raise unknown_key(name, names, hint) from None
            raise ConfigError(str(error).splitlines()[0]) from None
