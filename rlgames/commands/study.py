"""`rlgames study`: the jobs of a study, which are a sweep with evaluations."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

from rlgames.commands.arena import competitors
from rlgames.commands.run_config import check_no_opponent, drop_training_words
from rlgames.commands.study_checks import check_curves, check_match, check_metrics
from rlgames.commands.sweep import LAUNCHER_KEYS, Watch, check_new_sweep, job_options
from rlgames.config.commands import (
    MOVABLE_PLAYERS,
    AnalyzeConfig,
    ArenaConfig,
    EvalConfig,
    SolveConfig,
    StudyConfig,
    TrainConfig,
)
from rlgames.config.compose import load, load_config
from rlgames.config.files import Files
from rlgames.config.folders import split_folders
from rlgames.config.schema import OptionConfig, as_typed, defaults
from rlgames.config.studies import (
    REFERENCE,
    Study,
    StudyEvaluation,
    StudyRun,
    values_of,
)
from rlgames.config.study_file import read_study
from rlgames.config.typed import to_plain
from rlgames.config.words import is_hydra_word, key_of
from rlgames.core.errors import ConfigError, nearest
from rlgames.core.text import printable
from rlgames.factory.components import build_game
from rlgames.games.game import Game
from rlgames.players.player import Agent
from rlgames.runs import storage
from rlgames.runs.directory import (
    FILES,
    FOLDERS,
    DirectoryLock,
    claim_directory,
    lock_directory,
)
from rlgames.runs.hyperparameters import MANIFEST
from rlgames.runs.names import located
from rlgames.sweeps import launchers
from rlgames.sweeps.evaluations import FOLDER as EVALUATIONS
from rlgames.sweeps.evaluations import JobEvaluation
from rlgames.sweeps.sweep import Job, Sweep
from rlgames.training.components import build_components

DIRECTORY = Path("outputs") / "studies"
RECORDS = "records"
"""The folder of records."""

REPLACED = ".replaced"
"""The folder of runs whose overrides have changed since."""

UNCOUNTED = ("format", "plugins", "device", "threads")
"""Keys of an evaluation on which its numbers do not depend."""


@dataclass
class PlannedStudy:
    """A study and its jobs. games: the game of each run, by its name; rules: its words."""

    study: Study
    config: StudyConfig
    sweep: Sweep
    games: dict[str, Game[Any]] = field(default_factory=dict)
    rules: dict[str, list[str]] = field(default_factory=dict)

    def numbers(self, run: StudyRun) -> list[int]:
        """The jobs of a run, in the order of its seeds."""
        by_name = {job.directory: number for number, job in enumerate(self.sweep.jobs)}
        return [by_name[f"{run.name}/{seed}"] for seed in run.seeds]


def plan_study(names: Sequence[str], words: list[str]) -> PlannedStudy:
    """Read a study and check all of its jobs. Raises ConfigError."""
    if len(names) != 1:
        hint = nearest("", [*Files().names("study"), "a YAML file"])
        raise ConfigError("study needs one study, by its name or as a file", hint)
    folders, rest = split_folders(words)
    launcher = [word for word in rest if is_hydra_word(word)]
    for word in launcher:
        if not word.startswith(LAUNCHER_KEYS):
            raise ConfigError(f"{word} is not supported here", "only launchers are")
    launchers.check_launcher(launcher)
    cfg = load_config(StudyConfig, [word for word in rest if word not in launcher])
    study = read_study(names[0], folders, cfg.seeds)
    directory = Path(cfg.out) if cfg.out else DIRECTORY / study.name
    planned = PlannedStudy(study, cfg, Sweep(directory, [*names, *words], launcher))
    shared = job_options(words)
    for leaf in study.leaves:
        _add_jobs(planned, leaf, shared)
        for run, column in values_of(leaf):
            check_metrics(planned.games, leaf, run, column)
        check_curves(leaf)
    _check_after(planned.sweep.jobs)
    return planned


def _add_jobs(planned: PlannedStudy, study: Study, shared: list[str]) -> None:
    """Add the jobs of a study without parts. shared: words that all commands get."""
    jobs = planned.sweep.jobs
    known = {job.directory: job for job in jobs}
    for run in study.runs.values():
        try:
            if run.name in (*FILES, *FOLDERS, RECORDS):
                raise ConfigError("a study has its own file or folder of that name", "rename it")
            config, rules, agent = _run_config(run, shared)
            planned.games[run.name] = build_game(rules)
            usual = defaults(type(rules))
            words = [f"{k}={as_typed(v)}" for k, v in vars(rules).items() if v != usual[k]]
            planned.rules[run.name] = [f"game={rules.name}", *words]
            made = [
                (each, *_evaluation_config(planned, each, run, config, agent, shared))
                for each in study.evaluations
                if run.name in each.runs
            ]
            for seed in run.seeds:
                job = _job(run, seed, config)
                for each, first, plain in made:
                    if each.seeds is None or seed in each.seeds:
                        words = [each.command, *first, *(_with_seed(w, seed) for w in each.words)]
                        if not run.is_training and len(run.seeds) > 1:
                            words.append(f"seed={seed}")
                        name = f"{study.name}.{each.name}"
                        job.evaluations.append(JobEvaluation(name, words, plain))
                texts = [word for each in job.evaluations for word in each.words]
                paths = re.findall(r"\{([^}]+)\}", " ".join(texts))
                paths = [path for path in paths if run_of(path) != job.directory]
                job.after.extend(dict.fromkeys(map(run_of, [*job.links.values(), *paths])))
                _add(jobs, known.get(job.directory), job)
        except ConfigError as error:
            where = "" if error.error.startswith("evaluations.") else f"runs.{run.name}: "
            raise ConfigError(f"{where}{error.error}", error.hint) from None


def _run_config(
    run: StudyRun, shared: list[str]
) -> tuple[TrainConfig | None, OptionConfig, Agent | None]:
    """The checked configs of a training, None for a player, and of its game, and its agent, None
    if other runs have to be there first."""
    wrong = next((w for w in run.words if key_of(w) in ("seed", "out", "plugins")), None)
    if wrong and run.is_training:
        raise ConfigError(f"{wrong} does not belong to a run", "the study has seeds: and out=")
    words = [REFERENCE.sub(lambda m: f"{m[1]}/{m[2] or 0}", word) for word in run.words]
    if not run.is_training:
        cfg = load_config(EvalConfig, [*shared, *words])
        if cfg.game is None:
            raise ConfigError("a player needs a game", "as in player=random game=salvo")
        return None, cfg.game, None
    every = [*shared, *words]
    config = load(TrainConfig, every).config
    agent = None
    if words == [*run.words]:  # otherwise the runs that it names do not exist yet
        config = located(config)
        agent = build_components(config).agent  # which checks that they fit together
    return config, config.game, agent


def _job(run: StudyRun, seed: int, config: TrainConfig | None) -> Job:
    """The training of a seed; its links name other runs."""
    links = {}
    for word in run.words if run.is_training else ():
        name, _, value = word.partition("=")
        if match := REFERENCE.match(value):
            if name not in (*MOVABLE_PLAYERS, "init_from", "demonstrations"):
                raise ConfigError(f"{word}: {name} does not name a run", "write its value")
            links[name] = f"{match[1]}/{match[2] or seed}{value[match.end() :]}"
    plain = {} if config is None else to_plain(dataclasses.replace(config, seed=seed))
    words = [*run.words, *([f"seed={seed}"] if run.is_training else [])]
    return Job(words, plain, f"{run.name}/{seed}", links=links)


def run_of(path: str) -> str:
    """The directory of a run, by its own path or the path of one of its files."""
    return "/".join(path.split("/")[:2])


def _with_seed(word: str, seed: int) -> str:
    """A word whose references name the runs of a seed."""
    return REFERENCE.sub(lambda m: f"{{{m[1]}/{m[2] or seed}}}" if m[1] else "{}", word)


def _add(jobs: list[Job], other: Job | None, job: Job) -> None:
    """Add a job, or its evaluations to the same job of another part. Raises ConfigError."""
    if other is None:
        jobs.append(job)
        return
    if (job.config, job.links) != (other.config, other.links):
        raise ConfigError("another part trains it differently", "rename one")
    other.evaluations.extend(each for each in job.evaluations if each not in other.evaluations)
    other.after.extend(each for each in job.after if each not in other.after)


def _evaluation_config(
    planned: PlannedStudy,
    evaluation: StudyEvaluation,
    run: StudyRun,
    config: TrainConfig | None,
    agent: Agent | None,
    shared: list[str],
) -> tuple[list[str], dict[str, Any]]:
    """The words that an evaluation of a run begins with, and its plain config; checked."""
    words = [REFERENCE.sub(lambda m: f"{m[1]}/{m[2] or 0}", word) for word in evaluation.words]
    first = ["{}"] if run.is_training else [*run.words]
    try:
        if evaluation.command == "solve":
            first = planned.rules[run.name]
            checked = to_plain(load_config(SolveConfig, [*shared, *first, *words]))
        elif evaluation.command == "arena":
            first = ["{}"] if run.is_training else []
            if len([*first, *(word for word in words if "=" not in word)]) < 2:
                raise ConfigError("an arena needs at least two players", "add random")
            overrides = [w for w in words if "=" in w and not w.startswith("search.")]
            checked = to_plain(load_config(ArenaConfig, [*shared, *overrides]))
            known = [w for w in evaluation.words if not re.search("[={]|^exact", w)]
            if known:  # the others do not exist yet, or would solve the game
                searches = [w for w in words if w.startswith("search.") and "+" in "".join(known)]
                competitors(known, [*shared, *planned.rules[run.name], *overrides, *searches])
        else:
            schema = AnalyzeConfig if evaluation.command == "analyze" else EvalConfig
            typed = words if config is None else drop_training_words(schema, words, config)
            own = [] if config is not None else first
            cfg: Any = load_config(schema, [*shared, *own, *typed])
            game, rules = planned.games[run.name], cfg.game if config is None else config.game
            check_no_opponent(game, cfg.opponent, cfg.opponent_search)
            if words == [*evaluation.words] and (agent is not None or config is None):
                trained = None if agent is None or config is None else (agent, config.reward)
                check_match(cfg, game, rules, trained)
            checked = to_plain(cfg)
    except ConfigError as error:
        text = f"evaluations.{evaluation.name} of {run.name}: {error.error}"
        raise ConfigError(text, error.hint) from None
    # A run plays the game of its checkpoint.
    left_out = (*UNCOUNTED, "game") if config is not None else UNCOUNTED
    return first, {key: value for key, value in checked.items() if key not in left_out}


def _check_after(jobs: Sequence[Job]) -> None:
    """Raises ConfigError for jobs that need no training of the study, or each other."""
    by_name = {str(job.directory): job for job in jobs}
    for job in jobs:
        for name in job.after:
            if name not in by_name:
                hint = nearest(name, [*by_name])
                raise ConfigError(f"{job.directory} needs {name}, which the study lacks", hint)
        words = " ".join(word for each in job.evaluations for word in each.words)
        for name in [*job.links.values(), *re.findall(r"\{([^}]+)\}(?!/)", words)]:
            if name in by_name and not by_name[name].config:
                hint = "write the words of that player"
                raise ConfigError(f"{job.directory} needs {name}, a player and not a run", hint)
    waiting = {name: {*job.after} for name, job in by_name.items()}
    while ready := {name for name, after in waiting.items() if not after & {*waiting}}:
        waiting = {name: after for name, after in waiting.items() if name not in ready}
    if waiting:
        name, after = next(iter(waiting.items()))
        other = min(after & {*waiting})
        raise ConfigError(f"{name} needs {other}, which needs it", "omit one of them")


def run_study(planned: PlannedStudy, watch: Watch) -> int:
    """Claim the directory, run what is missing, and say what is not done; the exit code.

    Raises ConfigError and Interrupted.
    """
    sweep, cfg = planned.sweep, planned.config
    numbers, others = selected(planned), [Sweep.read(Path(name)) for name in cfg.merge]
    lock = _claim(planned)
    options = job_options(sweep.words)
    with sweep.owned(lock) as interrupts:
        for other in others:
            _merge(sweep, other)
        with watch(sweep):
            unfinished = {*sweep.unfinished}
            sweep.launch([n for n in numbers if n in unfinished], options, interrupts)
    return sweep.report(numbers)


def selected(planned: PlannedStudy) -> list[int]:
    """The jobs that only= names, with those that they need. Raises ConfigError."""
    sweep, only = planned.sweep, planned.config.only
    names = [sweep.name(number) for number in range(len(sweep.jobs))]
    parts = {leaf.name: leaf for leaf in planned.study.leaves}
    chosen = set[str]()
    for word in only:
        runs = [*parts[word].runs] if word in parts else []
        matches = {
            n for n in names if fnmatch(n.partition("/")[0], word) or n.split("/")[0] in runs
        }
        if not matches:
            known = [*dict.fromkeys(name.partition("/")[0] for name in names), *parts]
            raise ConfigError(f"only={word} names no run", nearest(word, known))
        chosen |= matches
    chosen = chosen or {*names}
    size = 0
    while len(chosen) > size:
        size = len(chosen)
        chosen |= {name for job in sweep.jobs if job.directory in chosen for name in job.after}
    return [number for number, name in enumerate(names) if name in chosen]


def _claim(planned: PlannedStudy) -> DirectoryLock:
    """The lock of the study's directory, whose manifest lists the jobs. Raises ConfigError."""
    sweep = planned.sweep
    if not (sweep.directory / MANIFEST).exists():
        check = partial(check_new_sweep, sweep)
        with claim_directory(str(sweep.directory), DIRECTORY, check) as lock:
            sweep.write()
        return lock
    lock = lock_directory(sweep.directory)
    try:
        old = Sweep.read(sweep.directory)
        if old.search is not None or any("/" not in str(job.directory) for job in old.jobs):
            raise ConfigError(f"{sweep.directory} holds a sweep", "name another out=")
        for name in _changed(old.jobs, sweep.jobs):
            _set_aside(sweep.directory, name)
        names = {job.directory for job in sweep.jobs}
        left = [number for number, job in enumerate(old.jobs) if job.directory not in names]
        sweep.jobs += [old.jobs[number] for number in left if old.status(number) == "done"]
        sweep.write()
    except BaseException:
        lock.release()
        raise
    return lock


def _changed(old: Sequence[Job], new: Sequence[Job]) -> list[str]:
    """The jobs whose results no longer count: trainings with other overrides, trainings that start
    from these or learn from their files, and players whose files a training learns from."""
    before = {job.directory: job for job in old}
    sources = {str(job.directory): {*map(run_of, job.links.values())} for job in new}
    linked = set[str]().union(*sources.values())
    changed = set[str]()
    for job in new:
        name, former = str(job.directory), before.get(job.directory)
        if former is None:
            continue
        if job.config:
            differs = (former.config, former.links) != (job.config, job.links)
        else:
            differs = name in linked and former.evaluations != job.evaluations
        if differs:
            changed.add(name)
    while more := {name for name, needed in sources.items() if needed & changed} - changed:
        changed |= more
    return [str(job.directory) for job in new if job.directory in changed]


def _set_aside(directory: Path, name: str) -> None:
    """Move the directory of a run that is replaced."""
    number = 0
    while os.path.lexists(directory / (target := f"{REPLACED}/{name}-{number}")):
        number += 1
    if os.path.lexists(directory / name):
        storage.move_folder(directory, name, target)
        print(printable(f"{name} is replaced; the former run is in {directory / target}"))


def _merge(sweep: Sweep, source: Sweep) -> None:
    """Copy what is done in another directory of the study and not in this one."""
    by_name = {source.name(number): number for number in range(len(source.jobs))}
    for number in range(len(sweep.jobs)):
        name, job = sweep.name(number), sweep.jobs[number]
        there = by_name.get(name)
        if there is None or sweep.status(number) == "done" or not source.path(there).is_dir():
            continue
        other = source.jobs[there]
        if (other.config, other.links) != (job.config, job.links) or not source.is_trained(there):
            continue
        part = name
        if job.config and sweep.is_trained(number):  # other weights have other evaluations
            part = f"{name}/{EVALUATIONS}"
        elif job.config:
            _set_aside(sweep.directory, name)
        if (source.directory / part).is_dir():
            storage.make_folder(sweep.directory, part)
            target = sweep.directory / part
            shutil.copytree(source.directory / part, target, dirs_exist_ok=True, symlinks=True)
