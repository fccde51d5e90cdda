"""Composes the config of a command with Hydra, for Python; `rlgames` itself is a Hydra app."""

from __future__ import annotations

import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import hydra
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from hydra.core.plugins import Plugins
from hydra.core.singleton import Singleton
from hydra.errors import HydraException, OverrideParseException
from hydra.version import VersionBase
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlgames.config.commands import TrainConfig
from rlgames.config.files import Files, conf_dir
from rlgames.config.hydra_version import VERSION_BASE
from rlgames.config.plugins import import_plugins
from rlgames.config.typed import command_of, typed
from rlgames.config.words import Flags, hydra_words, parse_word, quoted, split_flags, typed_groups
from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import sanitized

C = TypeVar("C")

COMPOSE_ERRORS = (HydraException, OmegaConfBaseException, ValueError, AssertionError)
"""What Hydra raises for words and values that cannot be."""

_LOCK = threading.RLock()
"""Hydra composes with the state of the process, so one thread does so at a time."""


def load_config(schema: type[C], words: Sequence[str]) -> C:
    """The typed config of a command, as its words describe it. Raises ConfigError."""
    command = command_of(schema)
    flags = split_flags(command, words)
    import_plugins(flags.words)
    own = ["--help"] * flags.is_help + flags.hydra
    own += [word for word in flags.words if word.lstrip("+~").startswith(("hydra.", "hydra/"))]
    if own:
        raise ConfigError(f"{own[0]} is for the command line", "use out= for a directory")
    overrides = hydra_words(command, flags.words, Files(flags.folders))
    return typed(schema, composed(command, overrides, flags.folders))


def composed(command: str, overrides: Sequence[str], folders: Sequence[Path]) -> dict[str, Any]:
    """What Hydra composes for a command of its own words, as plain values. Raises ConfigError."""
    path = ",".join(quoted(str(folder)) for folder in folders)
    own = [f"hydra.searchpath=[{path}]"] if folders else []
    with hydra_state(), initialize_config_dir(str(conf_dir()), **VERSION_BASE), hydra_errors():
        node = compose(command, [*overrides, *own], return_hydra_config=True)
        HydraConfig.instance().cfg = node  # type: ignore[assignment]
        return plain_values(node)


def plain_values(node: Any) -> dict[str, Any]:
    """A composed config as plain values, its interpolations resolved, without Hydra's own."""
    names = [str(name) for name in node if name != "hydra"]
    values = OmegaConf.to_container(OmegaConf.masked_copy(node, names), resolve=True)
    assert isinstance(values, dict)
    return {str(name): value for name, value in values.items()}


class JobFailed(Exception):
    """A job of a sweep failed, and has said why: its name, and the directory of the sweep."""


def run_app(command: str, flags: Flags, words: Sequence[str], job: Callable[[Any], Any]) -> None:
    """Run a command as a Hydra app.

    Args:
        job: called for each run with the composed config; a function that launchers can import. It
            raises nothing in a single run, and JobFailed in a sweep.

    Raises:
        ConfigError: for bad input, and for a sweep whose jobs are not all done.
    """
    folders = [f"--config-dir={folder}" for folder in flags.folders]
    sys.argv = ["rlgames", *folders, *flags.hydra, *words]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors are raised, not printed
    app = hydra.main(config_path=str(conf_dir()), config_name=command, **VERSION_BASE)(job)
    try:
        with hydra_errors():
            app()
    except JobFailed as error:
        name, directory = error.args
        hint = f"rlgames resume {shlex.quote(directory)} runs what is not done"
        raise ConfigError(f"{name} failed", hint) from None


def sweep_jobs(
    words: Sequence[str], folders: Sequence[Path]
) -> Iterator[tuple[list[str], TrainConfig]]:
    """Jobs of a sweep that show whether its values can be, each by the words that vary: every
    combination of its options, and every value of its other keys, or the ends of a range. Words
    that only a sweeper can list are left out; no jobs if there are no others. Raises ConfigError.
    """
    groups, listed = typed_groups("train"), dict[str, list[str]]()
    with hydra_errors():
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
        yield names, typed(TrainConfig, composed("train", own, folders))


def _values(override: Override) -> list[str]:
    """A word for each value of a sweep, of a range the first and the last; none for an interval and
    for a glob, which depends on the folders."""
    if not override.is_discrete_sweep() or isinstance(override.value(), Glob):
        return []
    key = override.get_key_element()
    values = [f"{key}={value}" for value in override.sweep_string_iterator()]
    return [*dict.fromkeys((values[0], values[-1]))] if override.is_range_sweep() else values


@contextmanager
def hydra_errors() -> Iterator[None]:
    """A block whose errors of Hydra and OmegaConf become a ConfigError of one line."""
    try:
        yield
    except OverrideParseException as error:
        raise ConfigError(
            f"cannot read {sanitized(error.override, 100)!r}",
            "write key=value, with quotes around odd characters",
        ) from None
    except COMPOSE_ERRORS as error:
        raise ConfigError(*_in_one_line(error)) from None


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


@contextmanager
def hydra_state() -> Iterator[None]:
    """A block with a Hydra of its own: that of the program around it stays as it is."""
    with _LOCK:
        Plugins.instance()  # which fills what all share
        outer, own = Singleton._instances, (GlobalHydra, HydraConfig, VersionBase)
        Singleton._instances = {each: outer[each] for each in outer.keys() - own}
        try:
            yield
        finally:
            Singleton._instances = outer
