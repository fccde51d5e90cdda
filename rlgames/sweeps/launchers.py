"""Hydra's part of a sweep: overrides with several values, and the launchers that run jobs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from hydra import compose, initialize_config_dir, main
from hydra.core.override_parser.types import IntervalSweep
from hydra.plugins.sweeper import Sweeper
from omegaconf import DictConfig

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import COMPOSE_ERRORS, hydra_state
from rlgames.config.files import Files, conf_dir
from rlgames.config.hints import unknown_key
from rlgames.config.registry import LAUNCHERS
from rlgames.config.words import Grammar, key_of, parse
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.untrusted import sanitized
from rlgames.sweeps.jobs import exit_with, this_process


def parse_range(word: str) -> tuple[str, dict[str, Any]]:
    """The key of an override with several values, and its choices, or low, high and log.

    Raises ConfigError for any other override.
    """
    grammar = Grammar(TrainConfig, Files(), is_sweep=True)
    override = parse(grammar.for_parser(word))
    name, value = key_of(word), override.value()
    if isinstance(value, IntervalSweep):
        if unknown := value.tags - {"log"}:
            raise ConfigError(f"{word} has the tag {min(unknown)}", "the only tag is log")
        low, high, is_log = value.start, value.end, "log" in value.tags
        if low is not None and high is not None and low < high and (low > 0 or not is_log):
            return name, {"low": low, "high": high, "log": is_log}
    elif override.is_sweep_override():
        choices = map(grammar.for_parser, grammar.choices(word))
        return name, {"choices": [parse(choice).value() for choice in choices]}
    raise ConfigError(f"{sanitized(word)} is not a range", "as in lr=interval(0.001,0.01)")


def check_launcher(words: list[str]) -> None:
    """Raises ConfigError for a launcher that is not installed, and for settings that it lacks."""
    for word in words:
        group, _, name = word.partition("=")
        if group == "hydra/launcher" and name not in LAUNCHERS:
            raise ConfigError(f"no launcher is called {name!r}", nearest(name, list(LAUNCHERS)))
    with hydra_state(), initialize_config_dir(str(conf_dir()), version_base="1.3"):
        try:
            chosen = [word for word in words if word.startswith("hydra/launcher=")]
            launcher = compose("job", chosen, return_hydra_config=True).hydra.launcher
            known = [f"hydra.launcher.{key}" for key in launcher if str(key)[0] != "_"]
            for key in map(key_of, words):
                if key.startswith("hydra.launcher.") and not key.startswith((*known,)):
                    hint = "" if known else "choose a launcher, as in hydra/launcher=joblib"
                    raise unknown_key(key, known, hint)
            compose("job", words, return_hydra_config=True)
        except COMPOSE_ERRORS as error:
            message = f"{' '.join(words)}: {str(error).splitlines()[0]}"
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
    validate = Sweeper.validate_batch_is_legal
    # It composes all jobs before the first one starts. Launchers compose each job when they start
    # it, and a job's own config is checked already.
    Sweeper.validate_batch_is_legal = lambda *_: None  # type: ignore[method-assign]
    sys.argv = [arguments[0], "-m", *words]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # otherwise Hydra exits
    # Workers import from the same places as this process.
    os.environ["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    try:
        with hydra_state():
            main(config_path=str(conf_dir()), config_name="job", version_base="1.3")(task)()
    finally:
        Sweeper.validate_batch_is_legal = validate  # type: ignore[method-assign]
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
