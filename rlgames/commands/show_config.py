"""--cfg job: the config that a command would use."""

from __future__ import annotations

from pathlib import Path

from omegaconf import OmegaConf

from rlgames.config.compose import interpolation_errors, load
from rlgames.config.typed import to_plain
from rlgames.core.errors import ConfigError


def config_text(
    schema: type, run: Path | None, words: list[str], package: str | None, resolve: bool
) -> str:
    """The composed config as YAML, as Hydra prints it for --cfg job.

    Args:
        package: the part of it to show, None for all of it.
        resolve: interpolations are replaced by what they refer to.

    Raises:
        ConfigError: for bad input, and for a package that the config does not have.
    """
    if run is not None:
        from rlgames.commands.run_config import config_for_run  # which imports torch

        node = OmegaConf.create(to_plain(config_for_run(schema, run, words)))
    else:
        composed = load(schema, words).composed
        node = OmegaConf.masked_copy(composed, [str(key) for key in composed if key != "hydra"])
    with interpolation_errors("the config"):
        part = node if package in (None, "_global_") else OmegaConf.select(node, str(package))
        if part is None:
            raise ConfigError(f"no package is called {package!r} in the config")
        if not OmegaConf.is_config(part):
            return f"{part}\n"
        head = "" if package in (None, "_global_") else f"# @package {package}\n"
        return head + OmegaConf.to_yaml(part, resolve=resolve)
