"""`hydra/sweeper=optuna`: proposes the values of interval(), range() and choice() words.

It has the words of hydra-optuna-sweeper, which does not install next to a current Optuna.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep
from hydra.core.plugins import Plugins
from hydra.core.utils import JobStatus
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from hydra_plugins.rlgames_sweep import begun, job_name, opened, outcomes, parsed

DIGITS = 12
"""Significant digits of a proposed value: 0.1 + 0.2 is 0.3."""

SWEEP = "sweep"
"""The attribute of a trial that names the directory of its sweep."""


class OptunaSweeper(Sweeper):
    """One batch of trials after another; with storage= a study goes on when typed again.

    Args:
        n_trials: the results of the whole study. Trials that fail are not among them; the search
            ends when as many have failed.
        n_jobs: trials of a batch, which the launcher gets at once; None: as many as it runs at a
            time.
        direction: minimize or maximize the value that a job returns.
        seed: of the proposals; each trial has its own sampler.
        params: more words, as of hydra-optuna-sweeper.
    """

    def __init__(
        self,
        n_trials: int,
        n_jobs: int | None,
        direction: str,
        seed: int,
        storage: str | None,
        study_name: str | None,
        params: dict[str, Any] | None,
        sampler: Any,
    ) -> None:
        self.n_trials, self.n_jobs, self.seed = n_trials, n_jobs, seed
        self.study = {"direction": direction, "storage": storage, "study_name": study_name}
        self.params, self.sampler = dict(params or {}), sampler

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Called by Hydra before sweep. Raises ConfigError for what cannot be searched."""
        from rlgames.core.errors import ConfigError, check_installed

        check_installed("hydra/sweeper=optuna", "optuna", "optuna")
        if type(self.n_trials) is not int or self.n_trials < 1:
            raise ConfigError(f"hydra.sweeper.n_trials={self.n_trials} is not a positive number")
        if self.sampler is not None:
            raise ConfigError("hydra.sweeper.sampler= cannot be set", "the sampler is Optuna's TPE")
        words = [f"{key}={value}" for key, value in self.params.items()]
        words = parsed([*words, *config.hydra.overrides.task], hydra_context)
        ranges = [word for word in words if word.is_sweep_override()]
        self.space = {word.get_key_element(): distribution(word) for word in ranges}
        self.fixed = [str(word.input_line) for word in words if word not in ranges]
        if not self.space:
            hint = "give a key a range: lr=interval(1e-4,1e-2)"
            raise ConfigError("hydra/sweeper=optuna has nothing to search", hint)
        self.config, self.context = config, hydra_context
        self.begun = begun(config, hydra_context)
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """Run trials until the study has its results. Raises ConfigError if it has not."""
        import optuna
        from optuna.trial import TrialState

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(load_if_exists=True, **self.study)
        ended: dict[str, Exception | None] = {}
        num_failed = missing = 0
        with self.begun as sweep, opened(self.launcher) as launcher:
            directory = str(sweep.directory.absolute())
            for trial in study.get_trials(False, states=[TrialState.RUNNING]):
                if trial.user_attrs.get(SWEEP) == directory:  # its process was killed
                    study.tell(trial.number, state=TrialState.FAIL)
                    study.enqueue_trial(trial.params)
            while num_failed < self.n_trials:
                done = study.get_trials(False, states=[TrialState.COMPLETE])
                missing = self.n_trials - len(done)
                if missing <= 0:
                    break
                trials = self._proposed(study, missing, directory)
                jobs = [[*self.fixed, *words_of(trial.params)] for trial in trials]
                results = launcher.launch(jobs, initial_job_idx=trials[0].number)
                names = [job_name(self.config, self.context, job) for job in jobs]
                ended |= outcomes(names, results)
                for trial, result in zip(trials, results, strict=True):
                    is_done = result.status == JobStatus.COMPLETED
                    value = result.return_value if is_done else None
                    if value is not None and math.isfinite(value):
                        study.tell(trial, value)
                    else:
                        study.tell(trial, state=TrialState.FAIL)
                        num_failed += 1
        sweep.finish(ended, is_complete=missing <= 0)

    def _proposed(self, study: Any, missing: int, directory: str) -> list[Any]:
        """The trials of the next batch."""
        from optuna.samplers import TPESampler

        trials, first = [], len(study.trials)
        size = self.n_jobs or getattr(self.launcher, "jobs", 1)
        for number in range(first, first + min(size, missing)):
            study.sampler = TPESampler(seed=self.seed + number)
            trials.append(study.ask(self.space))
            trials[-1].set_user_attr(SWEEP, directory)
        return trials


def words_of(params: dict[str, Any]) -> list[str]:
    """The words that set what a trial proposes."""
    rounded = {
        key: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
        for key, value in params.items()
    }
    return [f"{key}={value}" for key, value in rounded.items()]


def distribution(word: Override) -> Any:
    """What Optuna draws the values of a word from: whole numbers where all that the word has are.
    Raises ConfigError for a word without values."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    from rlgames.core.errors import value_errors

    value = word.value()
    with value_errors(f"{word.input_line}: "):
        if isinstance(value, RangeSweep):
            start, stop, step = (Decimal(str(end)) for end in (value.start, value.stop, value.step))
            count = math.ceil((stop - start) / step) if step else 0
            if count < 1:
                raise ValueError("there is no such value")
            low, high = sorted((start, start + (count - 1) * step))
            numbers, options = (value.start, value.stop, value.step), {"step": abs(step)}
        elif isinstance(value, IntervalSweep):
            (low, high), options = (value.start, value.end), {}
            numbers = (low, high)
        else:
            return CategoricalDistribution([*word.sweep_string_iterator()])
        are_whole = all(isinstance(number, int) for number in numbers)
        number, make = (int, IntDistribution) if are_whole else (float, FloatDistribution)
        step = {name: number(each) for name, each in options.items()}
        return make(number(low), number(high), log="log" in value.tags, **step)
