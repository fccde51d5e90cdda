"""A hyper-parameter search: a sweep whose jobs Optuna proposes, a batch at a time.

Optuna's study is a file in the sweep's directory; trial n is job n. The value of a trial is read
from the files of its job, so a resumed search proposes the same trials.
"""

from __future__ import annotations

import json
import math
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlgames.config.checks import check_config, from_plain, to_plain
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.signals import Interrupts
from rlgames.runs.files import read_run
from rlgames.sweeps import launchers
from rlgames.sweeps.sweep import Job, Sweep
from rlgames.training.components import build_components

STORAGE = "optuna.db"


def import_optuna() -> Any:
    """Optuna; raises ConfigError where it is not installed."""
    try:
        import optuna  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ConfigError("hparams_search= needs Optuna", "pip install 'rlgames[optuna]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def plan_search(settings: DictConfig, objective: str | None, base: DictConfig) -> dict[str, Any]:
    """The settings of a search, as the manifest stores them.

    settings: of hparams_search. objective: a final metric, None for the one that selects the best
    checkpoint. base: the config of all jobs.
    Raises ConfigError for a space or an objective that does not fit the base.
    """
    for word in settings.space:
        name, kind = launchers.parse_range(word)
        parent, _, last = name.rpartition(".")
        node = OmegaConf.select(base, parent) if parent else base
        known = isinstance(node, DictConfig) and last in node and parent != "game"
        if not known or isinstance(node[last], DictConfig):
            hint = "hparams_search.space=[] omits the keys of the preset"
            raise ConfigError(f"{name}= cannot be searched over", hint)
        for value in kind.get("choices") or (kind["low"], kind["high"]):
            _with(base, {name: value})
    evaluator = build_components(base).evaluator
    name = (objective or evaluator.best_by).removeprefix("final/")
    if name not in evaluator.metric_names:
        hint = nearest(name, list(evaluator.metric_names))
        raise ConfigError(f"objective={objective} is not a final metric of {base.game.name}", hint)
    target = {"objective": f"final/{name}", "minimize": evaluator.lower_is_better(name)}
    return to_plain(settings) | target | {"base": to_plain(base)}


def _with(base: DictConfig, values: dict[str, Any]) -> DictConfig:
    """The checked base with other values."""
    cfg = OmegaConf.create(to_plain(base))
    for name, value in values.items():
        OmegaConf.update(cfg, name, value)
    return check_config("train", cfg)


class Search:
    """The search of a sweep. Raises ConfigError for a manifest without a valid search."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep, self.optuna = sweep, import_optuna()
        try:
            settings = dict(sweep.search or {})
            self.objective = str(settings["objective"])
            self.trials, self.parallel = int(settings["trials"]), int(settings["parallel"])
            self.sampler, self.seed = str(settings["name"]), int(settings["seed"])
            self.space = dict(map(launchers.parse_range, settings["space"]))
            self.base = from_plain(settings["base"])
            direction = "minimize" if settings["minimize"] else "maximize"
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"{sweep.directory} has no valid search ({error})") from None
        path = sweep.directory.absolute() / STORAGE
        try:
            self.study = self.optuna.create_study(
                storage=f"sqlite:///{path}",
                study_name="sweep",
                direction=direction,
                load_if_exists=True,
            )
        except Exception as error:  # SQLAlchemy's, SQLite's or Optuna's
            raise ConfigError(f"{path} cannot be read ({type(error).__name__})") from None

    def run(self, options: list[str], interrupts: Interrupts) -> None:
        """Run trials until there are enough, and each unfinished one once more.

        options: as for Sweep.launch.
        """
        tried: set[int] = set()
        while True:
            running = self._report_results()
            batch = [number for number in running if number not in tried][: self.parallel]
            while len(batch) < self.parallel and self._num_trials() < self.trials:
                batch.append(self._num_trials())
                self._suggest(self.study.ask())
            if not batch:
                return
            self.sweep.write()
            tried.update(batch)
            self.sweep.launch(batch, options, interrupts)

    def print_best(self) -> None:
        """Print the best trial."""
        states = (self.optuna.trial.TrialState.COMPLETE,)
        if self.study.get_trials(deepcopy=False, states=states):
            best = self.study.best_trial
            words = " ".join(self.sweep.jobs[best.number].overrides)
            print(f"best: job {best.number}, {self.objective} {best.value:.4f}: {words}")

    def _num_trials(self) -> int:
        return len(self.study.get_trials(deepcopy=False))

    def _report_results(self) -> list[int]:
        """Report the results of the running trials to Optuna; the numbers of those not done."""
        state = self.optuna.trial.TrialState
        unfinished = []
        for trial in self.study.get_trials(deepcopy=False, states=(state.RUNNING,)):
            # The process may have been killed between the proposal and the manifest.
            if trial.number >= len(self.sweep.jobs):
                self._suggest(self.optuna.trial.Trial(self.study, trial._trial_id))
            if self.sweep.status(trial.number) != "done":
                unfinished.append(trial.number)
                continue
            results = read_run(self.sweep.path(trial.number)).get("results") or {}
            value = results.get(self.objective.removeprefix("final/"))
            if isinstance(value, int | float) and math.isfinite(value):
                self.study.tell(trial.number, value)
            else:
                self.study.tell(trial.number, state=state.FAIL)
        return unfinished

    def _suggest(self, trial: Any) -> None:
        """Propose the values of a trial, and add its job to the sweep.

        The sampler is seeded by the seed and the number of the trial alone, so that an interruption
        does not change later trials.
        """
        seed = (self.seed * 1_000_003 + trial.number) % 2**32
        samplers = self.optuna.samplers
        kinds = {"tpe": samplers.TPESampler, "random": samplers.RandomSampler}
        self.study.sampler = kinds[self.sampler](seed=seed)
        values = {name: self._value(trial, name, kind) for name, kind in self.space.items()}
        words = [f"{name}={value}" for name, value in values.items()]
        self.sweep.jobs.append(Job(words, to_plain(_with(self.base, values))))

    @staticmethod
    def _value(trial: Any, name: str, kind: dict[str, Any]) -> Any:
        if "choices" in kind:  # as text, because Optuna stores no lists
            choices = [json.dumps(choice) for choice in kind["choices"]]
            return json.loads(trial.suggest_categorical(name, choices))
        suggest = trial.suggest_int if isinstance(kind["low"], int) else trial.suggest_float
        return suggest(name, kind["low"], kind["high"], log=kind["log"])
