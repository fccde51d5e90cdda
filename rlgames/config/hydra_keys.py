"""Which of Hydra's own keys do what Hydra documents, and why the others are refused.

No key is ignored: a key that is typed or that a file sets is in these tables, or the training is
refused. Keys that can run code are read only from typed words, never from files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from rlgames.config.catalogue import as_typed, quoted
from rlgames.core.errors import ConfigError, nearest

RUN_KEYS = ("hydra.run.dir",)
SWEEP_KEYS = (
    *("hydra.sweep.dir", "hydra.sweep.subdir", "hydra.sweeper.params"),
    *("hydra.sweeper.max_batch_size", "hydra/launcher", "hydra.launcher", "hydra/sweeper"),
)
JOB_KEYS = (
    *("hydra.job.name", "hydra.job.chdir", "hydra.job.config.override_dirname", "hydra.verbose"),
    *("hydra.output_subdir", "hydra.job.env_set", "hydra.job.env_copy"),
    *("hydra/job_logging", "hydra.job_logging"),
)
"""Keys of a single run, of a sweep, and of both, where they are settings of each job."""

OTHER_KEYS = ("hydra.mode", "hydra/hydra_logging", "hydra.hydra_logging", "hydra.searchpath")
SUPPORTED_KEYS = (*RUN_KEYS, *SWEEP_KEYS, *JOB_KEYS, *OTHER_KEYS)

TYPED_KEYS = (
    *("hydra/job_logging", "hydra.job_logging", "hydra/hydra_logging", "hydra.hydra_logging"),
    *("hydra.launcher", "hydra.job.env_set", "hydra.job.env_copy", "hydra.searchpath"),
)
"""Keys that only a command line sets: they run code, or change where it comes from."""

REFUSED_KEYS = {
    "hydra/callbacks": "only plugins= imports modules",
    "hydra.callbacks": "only plugins= imports modules",
    "hydra.sweeper": "only params and max_batch_size of Hydra's basic sweeper are keys here",
    "hydra/help": "help comes from the schemas: rlgames train --help",
    "hydra.help": "help comes from the schemas: rlgames train --help",
    "hydra/hydra_help": "--hydra-help shows Hydra's own text",
    "hydra.hydra_help": "--hydra-help shows Hydra's own text",
    "hydra/env": "Hydra has no option of it but the default",
    "hydra.env": "Hydra has no option of it but the default",
    "hydra/output": "hydra.run.dir= and hydra.sweep.dir= name directories",
    "hydra.job": "Hydra sets it",
    "hydra.runtime": "Hydra sets it",
    "hydra.overrides": "Hydra sets it",
}
"""Keys that are refused, with the reason; a longer key in SUPPORTED_KEYS is supported."""

COMPUTED = ("overrides", "runtime", "job.override_dirname", "job.config_name")
"""Keys below `hydra` that Hydra computes."""


def is_hydra_word(word: str) -> bool:
    """Whether an override is one of Hydra's own keys."""
    return word.lstrip("+~").startswith(("hydra.", "hydra/", "hydra="))


def check_typed(override: Override, is_sweep: bool | None) -> None:
    """Raises ConfigError for a typed key of Hydra that is refused here.

    is_sweep: whether a sweep is typed; None: either.
    """
    key, line = override.key_or_group, str(override.input_line)
    if override.is_delete():
        raise ConfigError(f"{line}: Hydra's keys cannot be removed", f"omit it or set {key}=")
    if override.is_sweep_override():
        raise ConfigError(f"{line} names several values", "Hydra does not sweep over its own keys")
    if key == "hydra/sweeper" and str(override.value()) != "basic":
        raise ConfigError(
            f"{line} is not supported here", "hparams_search=tpe searches with Optuna"
        )
    _check_key(key, line)
    if is_sweep is False and _matches(key, SWEEP_KEYS):
        raise ConfigError(f"{line} belongs to a sweep", "add -m")
    if is_sweep and _matches(key, RUN_KEYS):
        raise ConfigError(f"{line} belongs to a single run", "write hydra.sweep.dir=")


def check_files(composed: DictConfig, bases: Sequence[DictConfig]) -> None:
    """Raises ConfigError for a key that a file sets, and that files may not set.

    composed: the config with its node `hydra`. bases: those that typed words make without the
    files.
    """
    choices = [dict(node.hydra.runtime.choices) for node in (composed, *bases)]
    for group, choice in choices[0].items():
        if not str(group).startswith("hydra/") or group == "hydra/launcher":
            continue
        if all(choice != each.get(group) for each in choices[1:]):
            raise _refused_in_file(str(group), f"{group}={as_typed(choice)}")
    for key, value in file_settings(composed, bases):
        line = f"{key}={as_typed(value)}"
        _check_key(key, line)
        if _matches(key, TYPED_KEYS):
            raise _refused_in_file(key, line)


def file_settings(composed: DictConfig, bases: Sequence[DictConfig]) -> Iterator[tuple[str, Any]]:
    """Hydra's keys that a config sets and none of the bases, with their values."""
    before = [dict(_leaves(_plain_node(base))) for base in bases]
    launcher, *others = (
        node.hydra.runtime.choices.get("hydra/launcher") for node in (composed, *bases)
    )
    for key, value in _leaves(_plain_node(composed)):
        if key.startswith("hydra.launcher.") and launcher not in others:
            continue  # these settings come with the launcher, which the file chooses
        if all(base.get(key, base) != value for base in before):
            yield key, value


def job_words(words: list[str], settings: Iterable[tuple[str, Any]]) -> list[str]:
    """The overrides that each job of a sweep has: those of the typed words, and what files set."""
    typed = [word for word in words if _matches(_key_of(word), JOB_KEYS)]
    return typed + [
        f"++{key}={quoted(value) if isinstance(value, str) else as_typed(value)}"
        for key, value in settings
        if _matches(key, JOB_KEYS)
    ]


def _key_of(word: str) -> str:
    return word.lstrip("+~").partition("=")[0]


def _check_key(key: str, line: str) -> None:
    """Raises ConfigError unless a key is supported, with the reason or the nearest key."""
    if "_target_" in key:
        raise ConfigError(f"{line} is not supported here", "only plugins= imports modules")
    if _matches(key, SUPPORTED_KEYS):
        return
    for name, reason in REFUSED_KEYS.items():
        if _matches(key, (name,)):
            raise ConfigError(f"{line} is not supported here", reason)
    raise ConfigError(f"no key is called {key!r} here", nearest(key, [*SUPPORTED_KEYS]))


def _matches(key: str, names: tuple[str, ...]) -> bool:
    """Whether a key is one of the names or lies below one of them."""
    return any(key == name or key.startswith(f"{name}.") for name in names)


def _refused_in_file(key: str, line: str) -> ConfigError:
    return ConfigError(f"a file sets {line}", "only a command line may; type it")


def _plain_node(composed: DictConfig) -> dict[str, Any]:
    node = OmegaConf.to_container(composed.hydra, resolve=False)
    assert isinstance(node, dict)
    for name in COMPUTED:
        parent, _, last = name.rpartition(".")
        (node[parent] if parent else node).pop(last, None)
    return {str(name): value for name, value in node.items()}


def _leaves(node: dict[Any, Any], prefix: str = "hydra.") -> Iterator[tuple[str, Any]]:
    """The values of a node by their keys; lists and empty nodes count as values."""
    for name, value in node.items():
        if isinstance(value, dict) and value and f"{prefix}{name}" != "hydra.sweeper.params":
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
