"""A search for hyper-parameters: a sweep whose jobs Optuna proposes, some at a time.

What Optuna knows lies in a file of the sweep's directory, trial n being job n. A trial's figure is
read from its job's files, so that a search which was killed goes on as if it had not been.
"""

from __future__ import annotations

import json
import math
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlgames.config.compose import check_config, from_plain, to_plain
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.signals import Interrupts
from rlgames.runs.files import read_run
from rlgames.sweeps import launchers
from rlgames.sweeps.sweep import Job, Sweep
from rlgames.training.components import build_components

STORAGE = "optuna.db"


def import_optuna() -> Any:
    """The module; raises ConfigError where it is not installed."""
    try:
        import optuna  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ConfigError("hparams_search= needs Optuna", "pip install 'rlgames[optuna]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def plan_search(settings: DictConfig, objective: str | None, base: DictConfig) -> dict[str, Any]:
    """What a manifest keeps of a search.

    settings: of hparams_search. objective: a final figure, None for what the best checkpoint of a
    run is chosen by. base: the config of all jobs.
    Raises ConfigError for a space or an objective that does not fit the base.
    """
    for word in settings.space:
        name, kind = launchers.parse_range(word)
        parent, _, last = name.rpartition(".")
        node = OmegaConf.select(base, parent) if parent else base
        known = isinstance(node, DictConfig) and last in node and parent != "game"
        if not known or isinstance(node[last], DictConfig):
            hint = "hparams_search.space=[] leaves the preset's keys out"
            raise ConfigError(f"{name}= cannot be searched over", hint)
        for value in kind.get("choices") or (kind["low"], kind["high"]):
            _with(base, {name: value})
    evaluator = build_components(base).evaluator
    name = (objective or evaluator.best_by).removeprefix("final/")
    if name not in evaluator.metric_names:
        hint = nearest(name, list(evaluator.metric_names))
        raise ConfigError(f"objective={objective} is no final figure of {base.game.name}", hint)
    told = {"objective": f"final/{name}", "minimize": evaluator.lower_is_better(name)}
    return to_plain(settings) | told | {"base": to_plain(base)}


def _with(base: DictConfig, values: dict[str, Any]) -> DictConfig:
    """The base with other values, checked."""
    cfg = OmegaConf.create(to_plain(base))
    for name, value in values.items():
        OmegaConf.update(cfg, name, value)
    return check_config("train", cfg)


class Search:
    """Goes on with the search of a sweep. Raises ConfigError for a manifest that makes no sense."""

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
            raise ConfigError(f"{sweep.directory} has no search to go on with ({error})") from None
        path = sweep.directory.absolute() / STORAGE
        try:
            self.study = self.optuna.create_study(
                storage=f"sqlite:///{path}",
                study_name="sweep",
                direction=direction,
                load_if_exists=True,
            )
        except Exception as error:  # of whichever library
            raise ConfigError(f"{path} cannot be read ({type(error).__name__})") from None

    def run(self, options: list[str], interrupts: Interrupts) -> None:
        """Run trials until there are enough, each one that is left over once. options: as for
        Sweep.launch."""
        tried: set[int] = set()
        while True:
            running = self._settle()
            batch = [number for number in running if number not in tried][: self.parallel]
            while len(batch) < self.parallel and self._asked() < self.trials:
                batch.append(self._asked())
                self._suggest(self.study.ask())
            if not batch:
                return
            self.sweep.write()
            tried.update(batch)
            self.sweep.launch(batch, options, interrupts)

    def tell(self) -> None:
        """Say which trial was the best."""
        states = (self.optuna.trial.TrialState.COMPLETE,)
        if self.study.get_trials(deepcopy=False, states=states):
            best = self.study.best_trial
            words = " ".join(self.sweep.jobs[best.number].overrides)
            print(f"best: job {best.number}, {self.objective} {best.value:.4f}: {words}")

    def _asked(self) -> int:
        return len(self.study.get_trials(deepcopy=False))

    def _settle(self) -> list[int]:
        """Tell Optuna what has come of the trials under way; those that are not done."""
        state = self.optuna.trial.TrialState
        left = []
        for trial in self.study.get_trials(deepcopy=False, states=(state.RUNNING,)):
            # Whoever asked may have been killed before all was suggested or written.
            if trial.number >= len(self.sweep.jobs):
                self._suggest(self.optuna.trial.Trial(self.study, trial._trial_id))
            if self.sweep.status(trial.number) != "done":
                left.append(trial.number)
                continue
            results = read_run(self.sweep.path(trial.number)).get("results") or {}
            value = results.get(self.objective.removeprefix("final/"))
            if isinstance(value, int | float) and math.isfinite(value):
                self.study.tell(trial.number, value)
            else:
                self.study.tell(trial.number, state=state.FAIL)
        return left

    def _suggest(self, trial: Any) -> None:
        """Give a trial its values, and the sweep its job. Chance depends on seed and number only,
        so that no interruption changes what is tried next."""
        seed = (self.seed * 1_000_003 + trial.number) % 2**32
        samplers = self.optuna.samplers
        kinds = {"tpe": samplers.TPESampler, "random": samplers.RandomSampler}
        self.study.sampler = kinds[self.sampler](seed=seed)
        values = {name: self._value(trial, name, kind) for name, kind in self.space.items()}
        words = [f"{name}={value}" for name, value in values.items()]
        self.sweep.jobs.append(Job(words, to_plain(_with(self.base, values))))

    @staticmethod
    def _value(trial: Any, name: str, kind: dict[str, Any]) -> Any:
        if "choices" in kind:  # as text, as Optuna keeps no lists
            choices = [json.dumps(choice) for choice in kind["choices"]]
            return json.loads(trial.suggest_categorical(name, choices))
        suggest = trial.suggest_int if isinstance(kind["low"], int) else trial.suggest_float
        return suggest(name, kind["low"], kind["high"], log=kind["log"])
