"""Composes the config of a command with Hydra: words become one typed config, once.

Nothing heavy is imported, so that a typo is answered at once.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.version import VersionBase
from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from rlgames.config.files import OptionFiles, Preset, conf_dir
from rlgames.config.folders import split_folders
from rlgames.config.keys import preset_name, typed_values
from rlgames.config.plugins import import_plugins
from rlgames.config.preset_file import preset_words
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import defaults, groups_of, key_fields
from rlgames.config.training import LaunchConfig, TrainConfig
from rlgames.config.typed import checked_value, to_yaml, typed
from rlgames.config.words import Grammar, check_hydra_word, is_hydra_word, key_of, parse, quoted
from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import sanitized

C = TypeVar("C")

COMPOSE_ERRORS = (HydraException, OmegaConfBaseException, ValueError, YAMLError, AssertionError)
"""What composing raises for files of --config-dir that cannot be."""

RUN_DIR = "outputs/${game.name}/${now:%Y-%m-%d_%H%M%S}_0"
SWEEP_DIR = "outputs/sweeps/${now:%Y-%m-%d_%H%M%S}_0"
SWEEP_SUBDIR = "${hydra.job.num}_${hydra.job.override_dirname}"
"""The values in conf/train.yaml; for each of them, rlgames chooses the name itself."""

UNUSED = ("help", "hydra_help", "output", "env", "job_logging", "hydra_logging")
"""Groups of Hydra that only its own apps read; composing takes a third less time without them."""

_LOCK = threading.RLock()
"""Hydra composes with the state of the process, so one thread does so at a time."""


@dataclass(frozen=True)
class Composition(Generic[C]):
    """A config, and where it comes from.

    Args:
        config: typed and checked.
        words: the overrides of the config, as typed.
        composed: the same config as Hydra composed it, with its node `hydra`.
    """

    config: C
    words: list[str]
    composed: DictConfig

    def hydra_value(self, key: str) -> Any:
        """The value of one of Hydra's own keys, resolved; None for the default.

        Raises ConfigError for an interpolation that refers to nothing.
        """
        node = OmegaConf.to_container(self.composed.hydra, resolve=False)
        for name in key.split(".")[1:]:
            assert isinstance(node, dict)
            node = node[name]
        if node in (None, RUN_DIR, SWEEP_DIR, SWEEP_SUBDIR):
            return None
        with hydra_state(), interpolation_errors(f"{key}: "):
            HydraConfig.instance().cfg = self.composed  # type: ignore[assignment]
            value = OmegaConf.select(self.composed, key, throw_on_missing=True)
            is_node = OmegaConf.is_config(value)
            return OmegaConf.to_container(value, resolve=True) if is_node else value


def hydra_files(config: Any, words: Sequence[str]) -> dict[str, str]:
    """The files of .hydra/ in a run's directory, by their names: its config and its overrides."""
    overrides = OmegaConf.to_yaml(OmegaConf.create(list(words)))
    return {".hydra/config.yaml": to_yaml(config), ".hydra/overrides.yaml": overrides}


def load_config(schema: type[C], words: Sequence[str]) -> C:
    """The typed config of a command. Raises ConfigError for bad input."""
    return load(schema, words).config


def load(
    schema: type[C], words: Sequence[str], job: int | None = None, is_sweep: bool = False
) -> Composition[C]:
    """Compose, type and check the config that words describe.

    Args:
        job: its number in a sweep, None for a single run.
        is_sweep: Hydra's own keys belong to a sweep.

    Raises:
        ConfigError: for bad input.
    """
    folders, words = split_folders(words)
    import_plugins(words)
    files = OptionFiles(folders)
    own = [word for word in words if is_hydra_word(word)]
    for word in own:
        if schema is not TrainConfig:
            raise ConfigError(f"{word} belongs to train", "omit it")
        check_hydra_word(word, is_sweep or job is not None)
    launch, words = split(LaunchConfig, words) if schema is TrainConfig else (LaunchConfig(), words)
    grammar = Grammar(schema, files)
    typed_words = [grammar.plain(word) for word in words if not is_hydra_word(word)]
    every = typed_words
    if launch.config is not None:
        every = [*preset_words(Path(launch.config), typed_words), *typed_words]
    preset = None if launch.config is not None else preset_name(schema, typed_words, files)
    chosen = grammar.check(every, preset)
    for name, option in chosen.items():
        files.check(grammar.groups[name].folder, option)
    composed = _composed(grammar, every, own, preset)
    own_job = {"override_dirname": ",".join(sorted(typed_words))}
    numbered = {} if job is None else {"num": job, "id": str(job)}
    with read_write(composed.hydra), open_dict(composed.hydra):
        composed.hydra.merge_with({"job": own_job | numbered})
    values = _plain(composed, schema)
    config = typed(schema, values)
    plugins = getattr(config, "plugins", None)
    if plugins and not any(word.startswith("plugins=") for word in words):
        listed = f"plugins=[{','.join(plugins)}]"
        raise ConfigError(f"this config needs {listed}", "name them yourself if you trust them")
    with read_write(composed.hydra):
        composed.hydra.overrides.task = typed_words
    return Composition(config, typed_words, composed)


def split(schema: type[C], words: Sequence[str]) -> tuple[C, list[str]]:
    """The config of the words that name keys of a schema, and the other words. ConfigError."""
    grammar, values, rest = Grammar(schema, OptionFiles()), {}, []
    for word in words:
        name = key_of(word)
        if name not in key_fields(schema) or is_hydra_word(word):
            rest.append(word)
            continue
        override = parse(grammar.for_parser(grammar.plain(word)))
        if override.is_sweep_override():
            raise ConfigError(f"{word} is a list of values", "write one")
        values[name] = checked_value(schema, name, override.value())
    return schema(**values), rest


@contextmanager
def hydra_state() -> Iterator[None]:
    """A block that may use Hydra and leaves its state as the program around it had it."""
    with _LOCK:
        hydra, config = GlobalHydra.instance().hydra, HydraConfig.instance().cfg
        version = VersionBase.instance().version_base
        GlobalHydra.instance().clear()
        try:
            yield
        finally:
            GlobalHydra.instance().clear()
            GlobalHydra.instance().hydra = hydra
            HydraConfig.instance().cfg = config
            VersionBase.instance().version_base = version


def _composed(
    grammar: Grammar, typed_words: list[str], own: list[str], preset: str | None
) -> DictConfig:
    """What Hydra composes of the words.

    An option that replaces a preset's option has the values in its file.
    """
    schema, files = grammar.schema, grammar.files
    usual = Preset() if preset is None else files.preset(preset)
    values = typed_values(typed_words)
    replaced = {
        group
        for group in {*values} & {*groups_of(schema)} - {"game"}
        if any(key.startswith(f"{group}.") for key in usual.settings)
        and values[group] != usual.options.get(group, grammar.groups[group].default)
    }
    words = [each for word in typed_words for each in grammar.for_hydra(word)]
    words = [word for word in words if not word.startswith("experiment=")]
    start = [] if preset is None else [f"experiment={quoted(preset)}"]
    with hydra_state(), _errors_of_hydra():
        composed = _compose(schema, [*start, *words, *own], files)
        if replaced:
            own_words = [word for word in typed_words if re.split("[.=]", word)[0] in replaced]
            game = f"game={quoted(str(composed.game.name))}"
            words = [each for word in [game, *own_words] for each in grammar.for_hydra(word)]
            plain = _compose(schema, words, files)
            with open_dict(composed):
                for group in replaced:
                    composed[group] = plain.get(group)
    with open_dict(composed):
        left = composed.pop("experiment", None)
    if OmegaConf.is_config(left):
        raise ConfigError(
            f"experiment={preset} sets {', '.join(map(str, left))} for itself alone",
            "make `# @package _global_` its first line",
        )
    return composed


def _compose(schema: type, words: list[str], files: OptionFiles) -> DictConfig:
    if schema is TrainConfig:
        name = "train"
    else:
        name = schema.__name__
        listed: list[Any] = [
            {group.folder + ("" if group.folder == key else f"@{key}"): group.default}
            for key, group in groups_of(schema).items()
        ]
        node = {"defaults": [*listed, "_self_"], **defaults(schema)}
        ConfigStore.instance().store(name, node)
    for folder, options in REGISTRY.items():
        for option, record in options.items():
            if files.path(folder, option) is None:  # of a plugin
                package = f"{folder}.{option}" if folder == "logger" else None
                ConfigStore.instance().store(option, defaults(record.schema), folder, package)
    paths = [quoted(f"file://{folder}") for folder in files.folders]
    search = [f"hydra.searchpath=[{','.join(paths)}]"] if paths else []
    with initialize_config_dir(str(conf_dir()), job_name="rlgames", version_base="1.3"):
        unused = [f"~hydra/{group}" for group in UNUSED]
        return compose(name, [*search, *unused, *words], return_hydra_config=True)


def _plain(composed: DictConfig, schema: type) -> dict[str, Any]:
    """A composed config as plain values, its interpolations resolved. Raises ConfigError."""
    with hydra_state(), interpolation_errors():
        HydraConfig.instance().cfg = composed  # type: ignore[assignment]
        config = composed.copy()
        with open_dict(config):
            del config["hydra"]
        _decode_interpolations(config, schema)
        values = OmegaConf.to_container(config, resolve=True)
    assert isinstance(values, dict)
    return {str(name): value for name, value in values.items()}


def _decode_interpolations(node: Any, schema: type, prefix: str = "") -> None:
    """Replace interpolations by what they refer to, read as a value on a command line would be: an
    environment variable is text, whatever it says."""
    for key in [*node] if isinstance(node, DictConfig) else range(len(node)):
        if OmegaConf.is_missing(node, key):
            continue
        if OmegaConf.is_interpolation(node, key):
            value, name = node[key], prefix + str(key)
            field = key_fields(schema).get(name)
            if isinstance(value, str) and not (field and field.metadata.get("is_text")):
                decoded = OmegaConf.create({"text": value, "value": "${oc.decode:${text}}"})
                with contextlib.suppress(OmegaConfBaseException):
                    value = decoded.value
            node[key] = value
        elif OmegaConf.is_config(node[key]):
            _decode_interpolations(node[key], schema, f"{prefix}{key!s}.")


@contextmanager
def interpolation_errors(prefix: str = "") -> Iterator[None]:
    """A block whose errors about ${…} become a ConfigError, with a prefix before its line."""
    try:
        yield
    except OmegaConfBaseException as error:
        line = sanitized(str(error).partition("\n")[0])
        raise ConfigError(prefix + line, "${…} refers to another key") from None


@contextmanager
def _errors_of_hydra() -> Iterator[None]:
    try:
        yield
    except COMPOSE_ERRORS as error:
        lines = str(error).strip().splitlines()
        if lines and lines[0].endswith(":"):  # what follows says why
            lines[0] = " ".join(lines[:2])
        name = type(error).__name__
        raise ConfigError(lines[0] if lines else f"Hydra cannot compose it: {name}") from None
