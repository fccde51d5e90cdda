"""Composes the config of a command with Hydra: words become one typed config, once.

Nothing heavy is imported, so that a typo is answered at once.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from hydra import compose, initialize_config_module
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.version import VersionBase
from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from rlgames.config.files import OptionFiles, Preset, merge, read_config
from rlgames.config.folders import split_folders
from rlgames.config.keys import typed_values, used_preset, without_replaced
from rlgames.config.plugins import import_plugins
from rlgames.config.schema import (
    Group,
    as_typed,
    groups_of,
    initial_values,
    key_fields,
    listed_options,
)
from rlgames.config.training import LaunchConfig, TrainConfig
from rlgames.config.typed import checked_value, to_yaml, typed
from rlgames.config.words import Grammar, check_hydra_word, is_hydra_word, key_of, parse
from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import sanitized

C = TypeVar("C")

COMPOSE_ERRORS = (HydraException, OmegaConfBaseException, ValueError, AssertionError)
"""What composing raises for words and values that cannot be."""

RUN_DIR = "outputs/${game.name}/${now:%Y-%m-%d_%H%M%S}_0"
SWEEP_DIR = "outputs/sweeps/${now:%Y-%m-%d_%H%M%S}_0"
SWEEP_SUBDIR = "${hydra.job.num}_${hydra.job.override_dirname}"
DIRECTORIES = {"run": {"dir": RUN_DIR}, "sweep": {"dir": SWEEP_DIR, "subdir": SWEEP_SUBDIR}}
"""The values in conf/train.yaml; for each of them, rlgames chooses the name itself."""

UNUSED = ("help", "hydra_help", "output", "env", "job_logging", "hydra_logging")
"""Groups of Hydra that only its own apps read; composing takes less time without them."""

PRIMARY = "rlgames"
"""The name of the primary config."""

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
        with hydra_state(), interpolation_errors(key):
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
    if launch.config is None:
        preset = used_preset(schema, typed_words, files)
    else:
        preset = read_config(Path(launch.config), typed_values(typed_words))
    plugins = preset.values.get("plugins")
    if plugins and not any(word.startswith("plugins=") for word in words):
        text = f"this config needs plugins={sanitized(as_typed(plugins))}"
        raise ConfigError(text, "name them yourself if you trust them")
    chosen = grammar.check(typed_words, preset)
    for name, option in chosen.items():
        files.check(grammar.groups[name].folder, option)
    primary = _primary(grammar, preset, chosen)
    composed = _compose(primary, [*grammar.for_hydra(typed_words), *own])
    return _composition(schema, composed, typed_words, job, chosen)


def _composition(
    schema: type[C],
    composed: DictConfig,
    words: list[str],
    job: int | None,
    chosen: Mapping[str, str],
) -> Composition[C]:
    """The config that Hydra composed, typed and checked, with Hydra's record of the job."""
    own_job = {"override_dirname": ",".join(sorted(words))}
    numbered = {} if job is None else {"num": job, "id": str(job)}
    with read_write(composed.hydra), open_dict(composed.hydra):
        composed.hydra.merge_with({"job": own_job | numbered, "runtime": {"choices": chosen}})
        composed.hydra.overrides.task = words
    return Composition(typed(schema, _plain(composed, schema)), words, composed)


class JobComposer:
    """Composes the jobs of a sweep of trainings, one after the other.

    Most jobs name the same keys, and the same options, as the job before. Hydra then composes
    nothing anew: the config of the job before gets the other values, as Hydra would set them.

    Args:
        fixed: words that all jobs have besides their own.
    """

    def __init__(self, fixed: Sequence[str]) -> None:
        self._fixed = list(fixed)
        self._grammar = Grammar(TrainConfig, OptionFiles(split_folders(fixed)[0]))
        self._last: Composition[TrainConfig] | None = None
        self._words: list[str] = []

    def load(self, words: Sequence[str], job: int) -> Composition[TrainConfig]:
        """The config of the next job, valid until the one after it. Raises as load."""
        changed = [word for word, last in zip(words, self._words, strict=False) if word != last]
        is_alike = [*map(key_of, words)] == [*map(key_of, self._words)]
        if self._last is None or not is_alike or not all(map(self._is_value, changed)):
            self._last = load(TrainConfig, [*self._fixed, *words], job=job)
        else:
            composed, every = self._last.composed, {**typed_values(self._last.words)}
            for word in self._grammar.for_hydra(changed):
                override = parse(word)
                OmegaConf.update(composed, override.key_or_group, override.value(), merge=True)
            every |= typed_values(words)
            typed_words = [f"{name}={value}" for name, value in every.items()]
            self._last = _composition(TrainConfig, composed, typed_words, job, {})
        self._words = list(words)
        return self._last

    def _is_value(self, word: str) -> bool:
        """Whether a word only sets the value of a key, which nothing else follows."""
        name, _, value = word.partition("=")
        if name in self._grammar.groups or name == "plugins" or "${" in value:
            return False
        override = parse(self._grammar.for_parser(word))
        return not override.is_sweep_override() and not isinstance(override.value(), dict)


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
        version, store = VersionBase.instance().version_base, ConfigStore.instance()
        stored = store.repo
        store.repo = dict(stored)
        GlobalHydra.instance().clear()
        try:
            yield
        finally:
            GlobalHydra.instance().clear()
            GlobalHydra.instance().hydra = hydra
            HydraConfig.instance().cfg = config
            VersionBase.instance().version_base, store.repo = version, stored


def _primary(grammar: Grammar, preset: Preset, chosen: dict[str, str]) -> dict[str, Any]:
    """The primary config: the chosen options and the other keys, with the preset's settings."""
    config: dict[str, Any] = {}
    for name, group in groups_of(grammar.schema).items():
        option = chosen.get(name)
        if option is not None and group.is_list:
            options = listed_options(option)
            config[name] = {each: _option(grammar.files, group, each) for each in options}
        elif option is not None:
            config[name] = _option(grammar.files, group, option)
    config |= initial_values(grammar.schema)
    return merge(config, without_replaced(preset, grammar.schema, chosen).values)


def _option(files: OptionFiles, group: Group, name: str) -> dict[str, Any]:
    """The values of an option before any word changes them; a run is named by its path."""
    option, values = files.option(group.folder, name), files.values(group.folder, name)
    if option is None and group.folder == "player":
        option, values = files.option("player", "run"), {"name": "run", "path": name}
    return merge({} if option is None else initial_values(option.schema), values)


def _compose(primary: dict[str, Any], words: list[str]) -> DictConfig:
    """What Hydra composes of a primary config and overrides. Raises ConfigError."""
    unused: list[Any] = [{f"override hydra/{group}": None} for group in UNUSED]
    node = {"defaults": ["_self_", *unused], **merge({"hydra": DIRECTORIES}, primary)}
    # hydra.initialize would read the source of every caller.
    with hydra_state(), initialize_config_module(__package__, "rlgames", "1.3"):
        try:
            ConfigStore.instance().store(PRIMARY, node)
            return compose(PRIMARY, words, return_hydra_config=True)
        except COMPOSE_ERRORS as error:
            lines = str(error).strip().splitlines()
            if lines and lines[0].endswith(":"):  # the next line says why
                lines[0] = " ".join(lines[:2])
            name = type(error).__name__
            raise ConfigError(lines[0] if lines else f"Hydra cannot compose it: {name}") from None


def _plain(composed: DictConfig, schema: type) -> dict[str, Any]:
    """A composed config as plain values, its interpolations resolved. Raises ConfigError."""
    values = OmegaConf.to_container(composed, resolve=False)
    assert isinstance(values, dict)
    with hydra_state():
        HydraConfig.instance().cfg = composed  # type: ignore[assignment]
        return {
            str(name): _resolved(composed, schema, str(name), value)
            for name, value in values.items()
            if name != "hydra"
        }


def _resolved(composed: DictConfig, schema: type, key: str, value: Any) -> Any:
    """A value whose interpolations are replaced by what they refer to, read as on a command line:
    an environment variable is text, whatever it says."""
    if isinstance(value, dict):
        return {
            name: _resolved(composed, schema, f"{key}.{name}", each) for name, each in value.items()
        }
    if isinstance(value, list):
        return [
            _resolved(composed, schema, f"{key}[{number}]", each)
            for number, each in enumerate(value)
        ]
    if not isinstance(value, str) or "${" not in value:
        return value
    with interpolation_errors(f"{key}={value}"):
        result = OmegaConf.select(composed, key)
        if OmegaConf.is_config(result):
            return OmegaConf.to_container(result, resolve=True)
    field = key_fields(schema).get(key)
    if isinstance(result, str) and not (field and field.metadata["is_text"]):
        with contextlib.suppress(ConfigError):
            override = parse(f"value={result}")
            return result if override.is_sweep_override() else override.value()
    return result


@contextmanager
def interpolation_errors(key: str) -> Iterator[None]:
    """A block that resolves the value of a key, whose errors about ${…} become a ConfigError."""
    try:
        yield
    except OmegaConfBaseException as error:
        reason = sanitized(str(error).partition("\n")[0])
        reason = reason.rpartition("raised while resolving interpolation: ")[2].strip('"')
        hint = "use ${KEY}, or ${oc.env:NAME,DEFAULT} for a variable of the environment"
        raise ConfigError(f"{key} cannot be resolved: {reason}", hint) from None
