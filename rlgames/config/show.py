"""Hydra's flags that show something: --cfg, --info and --hydra-help, by Hydra's own code."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hydra._internal.hydra import Hydra
from hydra._internal.utils import get_args_parser
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlgames.config.checks import wrong_interpolation
from rlgames.config.compose import Composition, create_hydra
from rlgames.config.hydra_job import logging_restored
from rlgames.core.errors import ConfigError


class _Composed(Hydra):
    """Hydra with a config that is composed already."""

    def __init__(self, composition: Composition, resolve: bool = False) -> None:
        super().__init__(
            task_name="rlgames", config_loader=create_hydra(composition.folders).config_loader
        )
        self.composed = composition.composed.copy()
        if resolve:  # while the keys of the job are there, which Hydra's own refer to
            OmegaConf.set_readonly(self.composed.hydra, None)
            OmegaConf.resolve(self.composed)

    def compose_config(self, *_: Any, **__: Any) -> DictConfig:
        """The composed config, whatever is asked for."""
        return self.composed.copy()


def show_config(
    composition: Composition, kind: str, package: str | None = None, resolve: bool = False
) -> None:
    """Print a config as Hydra's --cfg does. kind: job, hydra or all.

    Raises ConfigError for a package that the config does not have.
    """
    composed = composition.composed
    HydraConfig.instance().set_config(composed)
    if package not in (None, "_global_"):
        try:
            node = OmegaConf.select(composed, str(package))
        except OmegaConfBaseException as error:
            raise wrong_interpolation(error) from None
        is_hydra = str(package).split(".")[0] == "hydra"
        if node is None or (kind == "job" and is_hydra) or (kind == "hydra" and not is_hydra):
            raise ConfigError(f"no package is called {package!r} in --cfg {kind}")
    with _printing():
        try:
            _Composed(composition, resolve).show_cfg(
                composition.name, composition.words, kind, package, resolve
            )
        except OmegaConfBaseException as error:
            raise wrong_interpolation(error) from None


def show_info(composition: Composition, info: str) -> None:
    """Print what Hydra's --info does. info: all, config, defaults, defaults-tree, plugins or
    searchpath."""
    with _printing():
        _Composed(composition).show_info(info, composition.name, composition.words)


def show_hydra_help() -> None:
    """Print what Hydra's --hydra-help does."""
    with _printing():
        create_hydra().hydra_help(None, get_args_parser(), Namespace(overrides=[]))


@contextmanager
def _printing() -> Iterator[None]:
    """A block in which Hydra prints, some of it by logging; afterwards nothing of it is left."""
    GlobalHydra.instance().clear()
    try:
        with logging_restored():
            yield
    finally:
        GlobalHydra.instance().clear()
