"""The keys of `rlgames train` that say how a run starts; the run does not store them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlgames.config.checks import typed_values
from rlgames.config.command_schemas import SWEEP, TRAIN
from rlgames.config.compose import load_composition
from rlgames.config.hydra_job import HydraJob
from rlgames.config.overrides import parse_overrides
from rlgames.config.schema import defaults
from rlgames.config.training_schemas import LaunchConfig
from rlgames.core.errors import ConfigError

LAUNCH_KEYS = tuple(item.name for item in fields(LaunchConfig))


def split_launch(words: list[str]) -> tuple[LaunchConfig, list[str]]:
    """The checked launch keys, and the other words. config= remains among these, because it is part
    of what the run is.

    Raises ConfigError for a value that a key does not take.
    """
    own = [word for word in words if word.partition("=")[0].lstrip("+") in LAUNCH_KEYS]
    values: dict[str, Any] = defaults(LaunchConfig)
    for override in parse_overrides([word.lstrip("+") for word in own]):
        if override.is_sweep_override():
            raise ConfigError(f"{override.input_line} names several values", "write one")
        try:
            node = OmegaConf.create({override.key_or_group: override.value()})
        except OmegaConfBaseException as error:
            raise ConfigError(f"cannot read {override.input_line}: {error}") from None
        values |= typed_values(LaunchConfig, node, "")
    rest = [word for word in words if word not in own or word.startswith("config=")]
    return LaunchConfig(**values), rest


def is_sweep_key(word: str) -> bool:
    """Whether an override has a key that only a sweep has."""
    return word.partition("=")[0].split(".")[0] in SWEEP.key_names - TRAIN.key_names


def check_single_run(words: list[str], hint: str) -> None:
    """Raises ConfigError for a key that only a sweep has."""
    for word in words:
        if is_sweep_key(word):
            raise ConfigError(f"{word} belongs to a sweep", hint)


@dataclass(frozen=True)
class Launch:
    """A training that is about to start: its checked config, and Hydra's side of it.

    exist_ok: whether the directory gets a number where it holds a run.
    """

    config: DictConfig
    hydra: HydraJob
    exist_ok: bool


def load_launch(overrides: list[str], exist_ok: bool) -> Launch:
    """The training that overrides describe, in the directory of out= or hydra.run.dir=.

    Raises ConfigError for bad input.
    """
    composition = load_composition("train", overrides)
    if composition.is_multirun:
        raise ConfigError("hydra.mode=MULTIRUN makes a sweep", "write rlgames train -m")
    hydra, cfg = HydraJob(composition.composed, composition.typed), composition.config
    cfg.out = chosen_directory(cfg.out, hydra.run_directory, "hydra.run.dir")
    return Launch(cfg, hydra, exist_ok)


def chosen_directory(out: str | None, directory: str | None, key: str) -> str | None:
    """The directory that out= or Hydra's key names, None if neither does. Raises ConfigError."""
    if out is not None and directory is not None:
        raise ConfigError(f"out= and {key}= both name the directory", "omit one of them")
    return directory if out is None else out
