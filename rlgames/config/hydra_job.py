"""Hydra's side of a run: its directory, the files in .hydra/, and the settings of its process."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hydra
from hydra.core.utils import configure_log, env_override
from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from rlgames.config.checks import wrong_interpolation
from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import sanitized

RUN_DIR = "outputs/${game.name}/${now:%Y-%m-%d_%H%M%S}_0"
SWEEP_DIR = "outputs/sweeps/${now:%Y-%m-%d_%H%M%S}_0"
SWEEP_SUBDIR = "${hydra.job.num}_${hydra.job.override_dirname}"
"""The values in conf/train.yaml, which stand for the names that rlgames chooses itself."""

RESERVED = ("checkpoints", "pictures", ".", "..")
LOG_FILES = ("train.log", "output.log")


class HydraJob:
    """What Hydra's node in a composed config says about a run.

    composed: with its node `hydra`, whose interpolations may refer to the config. overrides: of the
    run, as typed.
    Raises ConfigError for a value that a run cannot have.
    """

    def __init__(self, composed: DictConfig, overrides: list[str]) -> None:
        self.composed, self.overrides = composed, overrides
        subdir = self._select("hydra.output_subdir")
        self.folder = None if subdir is None else str(subdir)
        if self.folder is not None and (self.folder in RESERVED or "/" in self.folder):
            raise ConfigError(
                f"hydra.output_subdir={sanitized(self.folder)} cannot be the name of a folder",
                "write another name, or null for none",
            )

    @classmethod
    def of_sweep(
        cls,
        composed: DictConfig,
        cfg: DictConfig,
        overrides: list[str],
        number: int,
        directory: Path,
    ) -> HydraJob:
        """Hydra's side of one job of a sweep.

        composed: of the default config and the settings of all jobs. cfg: the job's checked config.
        """
        merged = OmegaConf.merge(cfg, OmegaConf.masked_copy(composed, "hydra"))
        assert isinstance(merged, DictConfig)
        job = cls(merged, overrides)
        dirname = override_dirname(overrides, composed.hydra.job.config.override_dirname)
        job._set(
            {
                "mode": "MULTIRUN",
                "sweep": {"dir": str(directory.parent), "subdir": directory.name},
                "overrides": {"task": overrides},
                "job": {"num": number, "id": str(number), "override_dirname": dirname},
            }
        )
        return job

    @property
    def run_directory(self) -> str | None:
        """hydra.run.dir where it was set; None: outputs/<game>/<date>_<time>_<counter>."""
        return self._path("hydra.run.dir", RUN_DIR)

    @property
    def sweep_directory(self) -> str | None:
        """hydra.sweep.dir where it was set; None: outputs/sweeps/<date>_<time>_<counter>."""
        return self._path("hydra.sweep.dir", SWEEP_DIR)

    def job_directory(self, number: int) -> str | None:
        """hydra.sweep.subdir of a job where it was set; None: its number and what differs."""
        self._set({"job": {"num": number, "id": str(number)}})
        name = self._path("hydra.sweep.subdir", SWEEP_SUBDIR)
        if name is not None and (Path(name).is_absolute() or {*Path(name).parts} & {".", ".."}):
            raise ConfigError(
                f"hydra.sweep.subdir={sanitized(name)} lies outside the sweep", "use a plain name"
            )
        return name

    @property
    def changes_directory(self) -> bool:
        """Whether the run's process works in the directory of the run (hydra.job.chdir)."""
        return bool(self._select("hydra.job.chdir"))

    @property
    def is_logged(self) -> bool:
        """Whether Hydra configures logging: where a key of it is set."""
        node = self.composed.hydra
        has_handlers = node.job_logging.root is not None or node.hydra_logging.root is not None
        return has_handlers or self._select("hydra.verbose") not in (False, None)

    def files(self, directory: Path) -> dict[str, str]:
        """The files of .hydra/, by their names in the run's directory."""
        if self.folder is None:
            return {}
        self._set({"runtime": {"output_dir": str(directory.absolute())}})
        if self._select("hydra.mode") is None:  # which Hydra adds, too
            self._set({"mode": "RUN"})
            with read_write(self.composed.hydra):
                self.composed.hydra.overrides.hydra.append("hydra.mode=RUN")
        job = OmegaConf.masked_copy(
            self.composed, [str(key) for key in self.composed if key != "hydra"]
        )
        texts = {
            "config.yaml": OmegaConf.to_yaml(job),
            "hydra.yaml": OmegaConf.to_yaml(OmegaConf.masked_copy(self.composed, "hydra")),
            "overrides.yaml": OmegaConf.to_yaml(OmegaConf.create(self.overrides)),
        }
        return {f"{self.folder}/{name}": text for name, text in texts.items()}

    def environment(self) -> Any:
        """A block with the environment variables of hydra.job.env_set."""
        values = OmegaConf.to_container(self.composed.hydra.job.env_set, resolve=True)
        assert isinstance(values, dict)
        return env_override({str(name): str(value) for name, value in values.items()})

    @contextmanager
    def applied(self, directory: Path) -> Iterator[None]:
        """A block in which the working directory and the logging are as Hydra's keys say."""
        with logging_restored(), contextlib.ExitStack() as stack:
            if self.is_logged:
                self._configure_logging(directory)
            if self.changes_directory:
                stack.enter_context(contextlib.chdir(directory))
            yield

    def _configure_logging(self, directory: Path) -> None:
        self._set({"runtime": {"output_dir": str(directory.absolute())}})
        node = self.composed.hydra
        settings = [
            each for each in (node.hydra_logging, node.job_logging) if each.root is not None
        ]
        if not settings:  # of an app that configures none, a console is enough to be verbose
            conf = Path(hydra.__file__).parent / "conf" / "hydra" / "job_logging"
            settings = [OmegaConf.load(conf / "stdout.yaml")]
        for handlers in (each.get("handlers") or {} for each in settings):
            names = [Path(str(handler.get("filename", ""))).name for handler in handlers.values()]
            if {*names} & {*LOG_FILES}:
                raise ConfigError(
                    f"hydra.job.name={self._select('hydra.job.name')} names a file of the run",
                    "choose another hydra.job.name=",
                )
        try:
            for each in settings:
                configure_log(each, node.verbose)
        except (ValueError, OSError, TypeError, AttributeError, KeyError) as error:
            line = sanitized(str(error.__cause__ or error))
            raise ConfigError(f"hydra/job_logging cannot be configured: {line}") from None

    def _path(self, key: str, default: str) -> str | None:
        node = OmegaConf.to_container(self.composed.hydra, resolve=False)
        assert isinstance(node, dict)
        _, *names = key.split(".")
        for name in names:
            node = node[name]
        return None if node == default else str(self._select(key))

    def _select(self, key: str) -> Any:
        """A value of Hydra's node, resolved. Raises ConfigError for one that refers to nothing."""
        try:
            value = OmegaConf.select(self.composed, key, throw_on_missing=True)
            return (
                OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
            )
        except OmegaConfBaseException as error:
            wrong = wrong_interpolation(error)
            raise ConfigError(f"{key}: {wrong.error}", wrong.hint) from None

    def _set(self, values: dict[str, Any]) -> None:
        """Set what Hydra's runtime knows."""
        with read_write(self.composed.hydra), open_dict(self.composed.hydra):
            self.composed.hydra.merge_with(values)


@contextmanager
def logging_restored() -> Iterator[None]:
    """A block after which all loggers are as they were, and the handlers that it added closed."""
    root = logging.getLogger()
    handlers, disabled = root.handlers[:], root.manager.disable
    known = [each for each in root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    states = [(each, each.level, each.disabled) for each in (root, *known)]
    try:
        yield
    finally:
        for handler in [each for each in root.handlers if each not in handlers]:
            handler.close()
        root.handlers[:] = handlers
        for logger, level, is_disabled in states:
            logger.setLevel(level)
            logger.disabled = is_disabled
        logging.disable(disabled)


def override_dirname(overrides: list[str], settings: DictConfig) -> str:
    """${hydra.job.override_dirname}: the sorted overrides in one line, as Hydra joins them."""
    excluded = settings.exclude_keys
    words = [word for word in overrides if word.lstrip("+").partition("=")[0] not in excluded]
    return str(settings.item_sep.join(sorted(words))).replace("=", settings.kv_sep)
