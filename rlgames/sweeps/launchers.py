"""Hydra's part of a sweep: overrides with several values, and the launchers that run jobs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from hydra import compose, initialize_config_dir, main
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep
from hydra.errors import HydraException
from omegaconf import DictConfig

from rlgames.config.compose import COMPOSE_ERRORS, hydra_state
from rlgames.config.files import conf_dir
from rlgames.config.registry import LAUNCHERS
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.untrusted import sanitized
from rlgames.sweeps.jobs import exit_with, this_process


def parse_range(word: str) -> tuple[str, dict[str, Any]]:
    """The key of an override with several values, and its choices, or low, high and log.

    Raises ConfigError for any other override.
    """
    parser = OverridesParser.create()
    try:
        override = parser.parse_override(word)
        name, value = override.key_or_group, override.value()
        if isinstance(value, IntervalSweep):
            low, high = value.start, value.end
            if low is None or high is None or not low < high or ("log" in value.tags and low <= 0):
                raise ValueError
            return name, {"low": low, "high": high, "log": "log" in value.tags}
        texts = list(override.sweep_string_iterator())
    except (HydraException, ValueError):
        text = f"{sanitized(word)} is not a range"
        raise ConfigError(text, "as in lr=interval(0.001,0.01)") from None
    return name, {"choices": [parser.parse_override(f"{name}={text}").value() for text in texts]}


def check_launcher(words: list[str]) -> None:
    """Raises ConfigError for a launcher that is not installed, and for settings that it lacks."""
    for word in words:
        group, _, name = word.partition("=")
        if group == "hydra/launcher" and name not in LAUNCHERS:
            raise ConfigError(f"no launcher is called {name!r}", nearest(name, list(LAUNCHERS)))
    with hydra_state(), initialize_config_dir(str(conf_dir()), version_base="1.3"):
        try:
            compose("job", words, return_hydra_config=True)
        except COMPOSE_ERRORS as error:
            message = str(error).splitlines()[0]
            for name, extra in LAUNCHERS.items():
                if f"hydra/launcher/{name}'" in message:
                    raise ConfigError(
                        f"hydra/launcher={name} is not installed", f"pip install 'rlgames[{extra}]'"
                    ) from None
            raise ConfigError(message) from None


def launch(task: Callable[[DictConfig], None], words: list[str]) -> None:
    """Let Hydra's launcher call a task, which its workers must be able to import, for each job.

    words: overrides of conf/job.yaml. Raises what the launcher raises.
    """
    if "hydra/launcher=joblib" in words:
        end_joblib_workers_too()
    environment, arguments = dict(os.environ), sys.argv
    sys.argv = [arguments[0], "-m", *words]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # otherwise Hydra exits
    # Workers import from the same places as this process.
    os.environ["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    try:
        with hydra_state():
            main(config_path=str(conf_dir()), config_name="job", version_base="1.3")(task)()
    finally:
        sys.argv = arguments
        os.environ.clear()
        os.environ.update(environment)


def end_joblib_workers_too() -> None:
    """Have joblib's workers exit with this process, even those that never got a job."""
    from joblib.parallel import LokyBackend, register_parallel_backend

    class Backend(LokyBackend):  # type: ignore[misc]
        def configure(self, *args: Any, **kwargs: Any) -> int:
            each = {"initializer": exit_with, "initargs": (this_process(),)}
            return int(super().configure(*args, **kwargs, **each))

    register_parallel_backend("loky", Backend)
