"""A command as the Hydra app that it is: Hydra's flags, directories, sweeps and launchers."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import OmegaConf

from rlgames.config.commands import COMMAND_SCHEMAS
from rlgames.config.compose import hydra_errors, plain_values
from rlgames.config.files import conf_dir
from rlgames.config.plugins import import_plugins
from rlgames.config.typed import typed
from rlgames.core.errors import ConfigError


class JobFailed(Exception):
    """A job of a sweep failed, and has said why: its name, and the directory of the sweep."""


_ended: list[int | Exception] = []
"""The exit code of a command that ran once, or its error."""


def run_app(command: str, flags: Sequence[str], words: Sequence[str]) -> int:
    """Run a command by Hydra's flags and words; the exit code. Raises what the command raises, and
    ConfigError."""
    sys.argv = ["rlgames", *flags, *words]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors are raised, not printed
    _ended.clear()
    app = hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=command)(run_job)
    try:
        with hydra_errors():
            app()
    except JobFailed as error:
        name, directory = error.args
        hint = f"rlgames resume {shlex.quote(directory)} runs what is not done"
        raise ConfigError(f"{name} failed", hint) from None
    end = _ended[0] if _ended else 0
    if isinstance(end, Exception):
        raise end
    return end


def run_job(node: Any) -> float | None:
    """What Hydra calls for each run of a command; the value of best_by in a sweep."""
    from rlgames.app import report_exception, run_config

    settings = HydraConfig.get()
    is_sweep = settings.mode == RunMode.MULTIRUN
    name = settings.job.config_name
    command = name if name in COMMAND_SCHEMAS else "train"
    try:
        task: Any = OmegaConf.to_container(settings.overrides.task, resolve=False)
        import_plugins([*map(str, task)])  # in the process of a launcher
        with hydra_errors():
            values = plain_values(node)
        config: Any = typed(COMMAND_SCHEMAS[command], values)
        if command == "train":
            config = _with_directory(config, is_sweep)
        if is_sweep:
            from rlgames.cli.training import train_job

            return train_job(config, settings.job.override_dirname)
        _ended.append(run_config(command, config))
    except Exception as error:
        _remove_empty(Path(settings.runtime.output_dir))
        if is_sweep:
            report_exception(error, False)
            raise JobFailed(settings.job.override_dirname, settings.sweep.dir) from None
        _ended.append(error)
    return None


def _remove_empty(directory: Path) -> None:
    """Remove a directory that Hydra made, and those above it here, unless something is in them."""
    with contextlib.suppress(OSError):
        while Path.cwd() in directory.parents:
            directory.rmdir()
            directory = directory.parent


def _with_directory(config: Any, is_sweep: bool) -> Any:
    """The config of a training with the directory that Hydra made, if it was asked to."""
    directory = Path(HydraConfig.get().runtime.output_dir)
    if not is_sweep and directory == Path.cwd():  # hydra.run.dir in conf/train.yaml
        return config
    if config.out is not None:
        raise ConfigError("out= and hydra.run.dir= both name the directory", "omit one of them")
    return dataclasses.replace(config, out=str(directory))
