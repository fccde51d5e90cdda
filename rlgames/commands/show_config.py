"""Hydra's flags that show a config in place of running a command: --cfg, --info, --hydra-help."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from rlgames.config.command import Command
from rlgames.config.compose import load_composition
from rlgames.config.launch import check_single_run, split_launch
from rlgames.config.show import show_config, show_hydra_help, show_info


class ShowFlags(Protocol):
    """The flags that say what is shown; None or False for those that were not typed."""

    cfg: str | None
    info: str | None
    package: str | None
    resolve: bool
    hydra_help: bool


def show(command: Command, *arguments: Any, flags: ShowFlags) -> None:
    """Print what the flags ask for about the config that a command would use.

    arguments: of the command's function. Raises ConfigError for bad input.
    """
    if flags.hydra_help:
        show_hydra_help()
        return
    *runs, overrides = arguments
    assert command.config is not None
    if command.launch is not None:
        _, overrides = split_launch(overrides)
        check_single_run(overrides, "omit it")
    if runs and isinstance(runs[0], Path) and command.runs == "optional":
        from rlgames.commands.run_config import overrides_for_run

        overrides = overrides_for_run(command.name, runs[0], overrides)
    composition = load_composition(command.config.name, overrides)
    if flags.cfg is not None:
        show_config(composition, flags.cfg, flags.package, flags.resolve)
    elif flags.info is not None:
        show_info(composition, flags.info)
