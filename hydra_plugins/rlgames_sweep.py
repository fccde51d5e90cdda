"""The sweeper and the launcher that `rlgames train -m` uses unless it is told otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra import version
from hydra._internal.callbacks import Callbacks
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from hydra.core.utils import JobReturn, JobRuntime, JobStatus, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

if TYPE_CHECKING:
    from rlgames.commands.sweep import Sweep


DIRNAME = "${hydra.job.override_dirname}"
ONLY = "0"
"""The name of the job of a sweep that has no other."""


def parsed(words: Sequence[str], context: HydraContext) -> list[Override]:
    return OverridesParser.create(context.config_loader).parse_overrides([*words])


def begun(config: DictConfig, context: HydraContext) -> Sweep:
    """The sweep of a config, which then names its directory. Called before the launcher is made,
    which may read it. Raises ConfigError as commands.sweep.begin."""
    from rlgames.commands.sweep import begin
    from rlgames.config.commands import MAX_JOBS
    from rlgames.config.overrides import quoted
    from rlgames.core.errors import ConfigError

    jobs = OmegaConf.select(config, "hydra.launcher.jobs", default=1)
    if type(jobs) is not int or not 1 <= jobs <= MAX_JOBS:
        raise ConfigError(f"jobs={jobs} is not a whole number from 1 to {MAX_JOBS:,}")

    def listed(words: Sequence[str]) -> dict[str, set[str]]:
        return {word.get_key_element(): _values(word) for word in parsed(words, context)}

    raw: Any = OmegaConf.to_container(config.hydra.sweep, resolve=False)
    task: Any = OmegaConf.to_container(config.hydra.overrides.task, resolve=False)
    name, is_dated = str(config.hydra.sweep.dir), "${now:" in str(raw["dir"])
    sweep = begin(Path(name), is_dated, [*map(str, task)], listed)
    changed = {"dir": str(sweep.directory)} if str(sweep.directory) != name else {}
    varies = job_name(config, context, task) != ONLY or bool(config.hydra.sweeper.get("params"))
    if raw["subdir"] == DIRNAME and not varies:
        changed["subdir"] = ONLY
    with read_write(config.hydra), open_dict(config.hydra):
        for key, value in changed.items():
            config.hydra.sweep[key] = value
            config.hydra.overrides.hydra.append(f"hydra.sweep.{key}={quoted(value)}")
    sweep.write(OmegaConf.to_yaml(config))
    return sweep


def _values(word: Override) -> set[str]:
    """The values of a word; the word itself if only a sweeper can list them."""
    if not word.is_discrete_sweep() or isinstance(word.value(), Glob):
        return {str(word.input_line)}
    return {*word.sweep_string_iterator()}


def job_name(config: DictConfig, context: HydraContext, words: Sequence[str]) -> str:
    """What tells a job of a sweep from the others, like hydra.job.override_dirname; ONLY if nothing
    varies."""
    left_out = config.hydra.job.config.override_dirname.exclude_keys
    kept = [word for word in parsed(words, context) if word.key_or_group not in left_out]
    return ",".join(sorted(str(word.input_line) for word in kept)) or ONLY


def outcomes(names: Sequence[str], results: Sequence[JobReturn]) -> dict[str, Exception | None]:
    """Why each job is not done, by its name; None if it is."""
    return {
        name: None if result.status == JobStatus.COMPLETED else result._return_value
        for name, result in zip(names, results, strict=True)
    }


class GridSweeper(BasicSweeper):
    """Hydra's own sweeper, except that a job that fails ends no other and that a sweep has its
    directory to itself."""

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Called by Hydra before sweep."""
        self.begun = begun(config, hydra_context)
        super().setup(hydra_context=hydra_context, task_function=task_function, config=config)

    def sweep(self, arguments: list[str]) -> list[JobReturn]:
        """Run a job for each combination. Raises ConfigError if some are not done."""
        assert self.hydra_context is not None
        words = parsed([*self._parse_config(), *arguments], self.hydra_context)
        results: list[JobReturn] = []
        ended: dict[str, Exception | None] = {}
        with self.begun, opened(self.launcher) as launcher:
            for batch in self.split_arguments(words, self.max_batch_size):
                names = [job_name(self.config, self.hydra_context, job) for job in batch]
                new = launcher.launch(batch, initial_job_idx=len(results))
                ended |= outcomes(names, new)
                results += new
        self.begun.finish(ended)
        return results


def opened(launcher: Any) -> Any:
    """A block in which a launcher starts jobs."""
    return launcher if isinstance(launcher, ProcessesLauncher) else nullcontext(launcher)


class ProcessesLauncher(Launcher):
    """Runs jobs in processes of this machine.

    Args:
        jobs: how many at a time.
    """

    def __init__(self, jobs: Any) -> None:
        self.jobs, self._runner, self._stack = jobs, None, ExitStack()

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Called by Hydra before launch."""
        self.context, self.function, self.config = hydra_context, task_function, config

    def __enter__(self) -> ProcessesLauncher:
        """Processes are kept, and the view shows the jobs of all launches, until the end of the
        block."""
        from rlgames.core.jobs import Runner
        from rlgames.terminal.jobs import jobs_view

        view = self._stack.enter_context(jobs_view())
        self._runner = self._stack.enter_context(Runner(self.jobs, view))
        return self

    def __exit__(self, *error: Any) -> None:
        self._runner = None
        self._stack.__exit__(*error)

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Run jobs, and wait for them. Raises Interrupted."""
        from rlgames.core.jobs import Job

        with nullcontext() if self._runner else self:
            jobs = [
                Job(
                    job_name(self.config, self.context, words),
                    partial(self._task, words, initial_job_idx + place),
                )
                for place, words in enumerate(job_overrides)
            ]
            self._runner.run(jobs)
        return [_returned(job, words) for job, words in zip(jobs, job_overrides, strict=True)]

    def _task(self, words: Sequence[str], number: int) -> Any:
        """What a job does. Raises Hydra's errors."""
        from rlgames.config.compose import hydra_errors
        from rlgames.core.jobs import Task

        with hydra_errors("train"):
            config = self.context.config_loader.load_sweep_config(self.config, [*words])
            with open_dict(config):
                config.hydra.job.id, config.hydra.job.num = str(number), number
            outer = HydraConfig.instance().cfg
            HydraConfig.instance().set_config(config)
            directory = Path(config.hydra.sweep.dir) / str(config.hydra.sweep.subdir)
            HydraConfig.instance().cfg = outer
            games = OmegaConf.select(config, "games")
        return Task(_run, (self.function, config), directory.absolute(), games)


def _run(function: TaskFunction, config: DictConfig) -> Any:
    """Run a composed job, in its process. Returns what the function returns, and raises what it
    raises."""
    from rlgames.config.hydra_version import IS_1_3

    setup_globals()
    if IS_1_3:  # otherwise deprecated
        version.setbase(config.hydra.runtime.version_base)
    JobRuntime.instance().set("name", config.hydra.job.name)
    result = run_job(
        task_function=function,
        config=config,
        job_dir_key="hydra.sweep.dir",
        job_subdir_key="hydra.sweep.subdir",
        hydra_context=HydraContext(None, Callbacks(config)),
    )
    return result.return_value


def _returned(job: Any, words: Sequence[str]) -> JobReturn:
    """The outcome of a job as Hydra's sweepers expect it."""
    from rlgames.core.errors import ConfigError

    result, outcome = JobReturn(overrides=words), job.outcome
    result.status = JobStatus.COMPLETED if outcome.status == "done" else JobStatus.FAILED
    error = ConfigError(outcome.error or outcome.status, outcome.hint)
    result.return_value = outcome.value if outcome.status == "done" else error
    return result
