"""`hydra/sweeper=optuna`: proposes the values of interval(), range() and choice() words.

It has the words of hydra-optuna-sweeper, which does not install next to a current Optuna.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import (
    ChoiceSweep,
    IntervalSweep,
    Override,
    RangeSweep,
    Transformer,
)
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf


class OptunaSweeper(Sweeper):
    """One batch of n_jobs trials after another; with storage= a study goes on when typed again.

    Args:
        n_trials: the trials of the whole study.
        n_jobs: trials of a batch, which the launcher gets at once.
        direction: minimize or maximize the value that a job returns.
        seed: of the proposals; each trial has its own sampler.
    """

    def __init__(
        self,
        n_trials: int,
        n_jobs: int,
        direction: str,
        seed: int,
        storage: str | None,
        study_name: str | None,
    ) -> None:
        self.n_trials, self.n_jobs, self.seed = n_trials, n_jobs, seed
        self.study = {"direction": direction, "storage": storage, "study_name": study_name}

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Called by Hydra before sweep."""
        self.config, self.hydra_context = config, hydra_context
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """Run the trials that the study does not have yet."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        words = OverridesParser.create().parse_overrides(arguments)
        ranges = [word for word in words if word.is_sweep_override()]
        space = {word.get_key_element(): distribution(word) for word in ranges}
        fixed = [str(word.input_line) for word in words if word not in ranges]
        study = optuna.create_study(load_if_exists=True, **self.study)
        directory = Path(self.config.hydra.sweep.dir)
        directory.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self.config, directory / "multirun.yaml")
        while (done := len(study.trials)) < self.n_trials:
            trials = []
            for number in range(done, min(done + self.n_jobs, self.n_trials)):
                study.sampler = optuna.samplers.TPESampler(seed=self.seed + number)
                trials.append(study.ask(space))
            jobs = [(*fixed, *(f"{k}={v}" for k, v in each.params.items())) for each in trials]
            results = self.launcher.launch(jobs, initial_job_idx=done)
            for trial, result in zip(trials, results, strict=True):
                study.tell(trial, result.return_value)
        print(f"best: {study.best_value:.6g} with {study.best_params}")


def distribution(word: Override) -> Any:
    """What Optuna draws the values of a word from."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    value, is_log = word.value(), "log" in getattr(word.value(), "tags", ())
    if isinstance(value, ChoiceSweep):
        return CategoricalDistribution([*word.sweep_iterator(Transformer.encode)])
    if isinstance(value, IntervalSweep):
        return FloatDistribution(value.start, value.end, log=is_log)
    assert isinstance(value, RangeSweep)
    start, stop, step = (int(each or 0) for each in (value.start, value.stop, value.step))
    return IntDistribution(start, stop - 1, step=step or 1)
