"""A hyperparameter search: a sweep whose jobs Optuna proposes, a batch at a time.

Optuna's study is a file in the sweep's directory; trial n is job n. The value of a trial is read
from the files of its job, so a resumed search proposes the same trials.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from rlgames.config.commands import TrainConfig
from rlgames.config.options.search import HparamsConfig
from rlgames.config.schema import as_typed, key_fields, kind_of, members
from rlgames.config.typed import checked_value, from_plain, to_plain
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.metrics import direction, reason_unranked
from rlgames.core.rng import SEARCH_STREAM
from rlgames.core.signals import Interrupts
from rlgames.core.text import printable
from rlgames.core.untrusted import sanitized
from rlgames.factory.agents import load_agent, trained_config
from rlgames.factory.components import build_device
from rlgames.rollouts.holdout import split_layouts
from rlgames.runs.files import FINAL_PREFIX
from rlgames.runs.run_info import read_info
from rlgames.sweeps import launchers
from rlgames.sweeps.sweep import Job, Sweep
from rlgames.training.components import build_components, build_evaluator
from rlgames.training.evaluator import FINAL_EVAL_FACTOR

STORAGE = "optuna.db"

CHECKPOINTS = ("best", "final")
"""The checkpoints whose metrics may be an objective."""


@dataclass(frozen=True)
class Winner:
    """The best job of a search, evaluated twice.

    selection: its value in the evaluation at the end of its training, by which it was selected
    from all jobs. again: the same in other games. Both are equal where is_exact, because
    then chance has no part in the value. games: how many were played for `again`.
    """

    job: int
    objective: str
    selection: float
    again: float
    games: int
    is_exact: bool

    def __str__(self) -> str:
        if self.is_exact:
            return f"{self.objective} {self.selection:.4f} (exact)"
        return (
            f"{self.objective} {self.selection:.4f} in the games that selected it, "
            f"{self.again:.4f} in {self.games:,} other games"
        )


def evaluate_again(run: Path, job: int, objective: str, selection: float) -> Winner:
    """Evaluate the run of the best job on games that did not select it.

    Raises ConfigError for a run that cannot be loaded.
    """
    checkpoint, name = split_objective(objective)
    agent = load_agent(run, checkpoint=checkpoint)
    cfg = trained_config(run)
    build_device(str(agent.game.device), cfg.threads)
    split = split_layouts(agent.game, cfg.holdout, cfg.seed)
    evaluator = build_evaluator(cfg, agent.game, split)
    evaluator.set_policy(agent.policy)
    with torch.inference_mode():
        result = evaluator.evaluate(FINAL_EVAL_FACTOR * cfg.eval_games, SEARCH_STREAM)
    is_exact = result.evaluation.is_exact or name == "exploitability"
    games = result.evaluation.games
    return Winner(job, objective, selection, result.metrics[name], games, is_exact)


def import_optuna() -> Any:
    """Optuna; raises ConfigError where it is not installed."""
    try:
        import optuna  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ConfigError("hparams_search= needs Optuna", "pip install 'rlgames[optuna]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def plan_search(
    settings: HparamsConfig, space: list[str], objective: str | None, base: TrainConfig
) -> dict[str, Any]:
    """The settings of a search, as the manifest stores them.

    settings: of hparams_search. space: ranges of keys. objective: a final metric, None for the one
    that selects the best checkpoint. base: the config of all jobs.
    Raises ConfigError for a space or an objective that does not fit the base.
    """
    for word in space:
        name, kind = launchers.parse_range(word)
        if name == "seed":
            hint = f"train the best job's config with -m {word}"
            raise ConfigError("seed= cannot be searched over", hint)
        node, last = _owner(base, name)
        if node is None or last not in key_fields(type(node)):
            hint = "hparams_search.space=[] omits the keys of the preset"
            raise ConfigError(f"{name}= cannot be searched over", hint)
        kinds = members(kind_of(type(node), last))
        if isinstance(kind.get("low"), float) and int in kinds and float not in kinds:
            hint = f"use {name}=int({word.partition('=')[2]})"
            raise ConfigError(f"{name}= takes whole numbers, and {word} has others", hint)
        for value in kind.get("choices") or (kind["low"], kind["high"]):
            _with(base, {name: value})
    evaluator = build_components(base).evaluator
    checkpoint, name = split_objective(objective or evaluator.best_by)
    goal, names = evaluator.game.spec.goal, evaluator.metric_names
    if reason := reason_unranked(goal, name, names):
        hint = nearest(name, [each for each in names if direction(goal, each)])
        raise ConfigError(
            f"objective={objective} cannot rank runs of {base.game.name}: {reason}", hint
        )
    target = {"objective": f"{checkpoint}/{name}", "minimize": direction(goal, name) < 0}
    return to_plain(settings) | {"space": space} | target | {"base": to_plain(base)}


def split_objective(objective: str) -> tuple[str, str]:
    """The checkpoint and the metric of an objective: best/NAME, the same as NAME, or final/NAME."""
    checkpoint, slash, name = objective.partition("/")
    return (checkpoint, name) if slash and checkpoint in CHECKPOINTS else ("best", objective)


def _owner(base: TrainConfig, name: str) -> tuple[Any, str]:
    """The config that has a key, as it is typed, and the key's name in it; a game has none."""
    group, _, key = name.rpartition(".")
    return (getattr(base, group, None) if group else base), key


def _with(base: TrainConfig, values: dict[str, Any]) -> TrainConfig:
    """The base with other values, checked. Raises ConfigError."""
    for name, value in values.items():
        owner, key = _owner(base, name)
        prefix = name.removesuffix(key)
        changed = replace(owner, **{key: checked_value(type(owner), key, value, prefix)})
        base = changed if owner is base else replace(base, **{prefix.rstrip("."): changed})
    return base


def _storage(optuna: Any, path: Path) -> Any:
    """Optuna's storage in a file, whose name may have characters that an address cannot."""
    from sqlalchemy.pool import NullPool  # type: ignore[import-not-found,unused-ignore]

    connect = partial(sqlite3.connect, path)
    settings = {"creator": connect, "poolclass": NullPool}
    return optuna.storages.RDBStorage("sqlite://", engine_kwargs=settings)


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
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            text = f"{sweep.directory} has no valid search ({sanitized(error)})"
            raise ConfigError(text) from None
        path = sweep.directory.absolute() / STORAGE
        try:
            self.study = self.optuna.create_study(
                storage=_storage(self.optuna, path),
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
            with interrupts.shielded():  # a signal that came during an import ends the search
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
        """Evaluate the best trial again, on other games, if any is complete, and print it with its
        overrides. The manifest stores it as `winner`."""
        states = (self.optuna.trial.TrialState.COMPLETE,)
        if not self.study.get_trials(deepcopy=False, states=states):
            return
        best = self.study.best_trial
        run = self.sweep.path(best.number)
        winner = evaluate_again(run, best.number, self.objective, best.value)
        assert self.sweep.search is not None
        self.sweep.search["winner"] = asdict(winner)
        self.sweep.write()
        words = " ".join(self.sweep.jobs[winner.job].overrides)
        print(printable(f"best: job {winner.job}, {words}: {winner}"))

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
            checkpoint, name = split_objective(self.objective)
            info = read_info(self.sweep.path(trial.number))
            name = name if checkpoint == "best" else FINAL_PREFIX + name
            if name in info.results:
                self.study.tell(trial.number, info.results[name])
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
        words = [f"{name}={as_typed(value)}" for name, value in values.items()]
        self.sweep.jobs.append(Job(words, to_plain(_with(self.base, values))))

    @staticmethod
    def _value(trial: Any, name: str, kind: dict[str, Any]) -> Any:
        if "choices" in kind:  # as text, because Optuna stores no lists
            choices = [json.dumps(choice) for choice in kind["choices"]]
            return json.loads(trial.suggest_categorical(name, choices))
        suggest = trial.suggest_int if isinstance(kind["low"], int) else trial.suggest_float
        return suggest(name, kind["low"], kind["high"], log=kind["log"])
