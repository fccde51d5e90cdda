"""Words of `rlgames train` as a training that is about to start."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rlgames.config.compose import hydra_files, load
from rlgames.config.schema import names_of
from rlgames.config.training import SweepConfig, TrainConfig
from rlgames.config.words import key_of
from rlgames.core.errors import ConfigError
from rlgames.runs.names import located

SWEEP_NAMES = tuple({*names_of(SweepConfig)} - {*names_of(TrainConfig)})


def load_training(words: Sequence[str]) -> tuple[TrainConfig, dict[str, str]]:
    """The training that words describe, with the directory of out= or hydra.run.dir=, and the
    files of .hydra/, by their names in that directory. Raises ConfigError.
    """
    for word in words:
        if is_sweep_word(word):
            raise ConfigError(f"{word} belongs to a sweep", "add -m")
    composition = load(TrainConfig, words)
    out = chosen_directory(
        composition.config.out, composition.hydra_value("hydra.run.dir"), "hydra.run.dir"
    )
    config = located(dataclasses.replace(composition.config, out=out))
    return config, hydra_files(config, composition.words)


def is_sweep_word(word: str) -> bool:
    """Whether an override has a key that only a sweep has."""
    return key_of(word).partition(".")[0] in SWEEP_NAMES


def chosen_directory(out: str | None, directory: str | None, key: str) -> str | None:
    """The directory that out= or Hydra's key names, None if neither does. Raises ConfigError."""
    if out is not None and directory is not None:
        raise ConfigError(f"out= and {key}= both name the directory", "omit one of them")
    return directory if out is None else out
