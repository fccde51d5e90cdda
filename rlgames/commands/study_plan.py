"""`rlgames study`: the jobs of a study, planned and checked."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from rlgames.commands.arena import competitors
from rlgames.commands.evaluate import check_games
from rlgames.commands.match import check_no_opponent
from rlgames.commands.report import CURVE_KEYS
from rlgames.commands.study_file import (
    REFERENCE,
    Study,
    StudyEvaluation,
    StudyRun,
    read_study,
)
from rlgames.commands.study_jobs import OUTPUT, Job, JobEvaluation, StudyJobs
from rlgames.config.commands import (
    MOVABLE_PLAYERS,
    AnalyzeConfig,
    ArenaConfig,
    EvalConfig,
    ReportConfig,
    SolveConfig,
    StudyConfig,
    TrainConfig,
)
from rlgames.config.compose import load_config
from rlgames.config.files import Files
from rlgames.config.options.players import ExactConfig
from rlgames.config.options.rewards import RewardConfig
from rlgames.config.plugins import plugins_override
from rlgames.config.registry import make
from rlgames.config.schema import OptionConfig, arguments, as_typed
from rlgames.config.typed import make_option, to_plain
from rlgames.config.words import parse_word
from rlgames.core.errors import ConfigError, nearest
from rlgames.evaluation.evaluate import openings_to_play
from rlgames.games.game import Game
from rlgames.players.player import Agent
from rlgames.runs.agents import build_player, with_search
from rlgames.runs.directory import FILES, FOLDERS
from rlgames.runs.find import located
from rlgames.training.parts import build_training

DIRECTORY = Path("outputs") / "studies"
RECORDS = "records"
"""The folder of records."""

UNCOUNTED = ("run", "runs", "players", "format", "plugins", "device", "threads")
"""Keys of an evaluation that its numbers do not depend on."""


@dataclass
class PlannedStudy:
    """A study and its jobs. games: the game of each run, by its name; rules: its words."""

    study: Study
    config: StudyConfig
    work: StudyJobs
    games: dict[str, Game[Any]] = field(default_factory=dict)
    rules: dict[str, list[str]] = field(default_factory=dict)

    def jobs_of(self, run: StudyRun) -> list[Job]:
        """The jobs of a run, in the order of its seeds."""
        by_name = {job.name: job for job in self.work.jobs}
        return [by_name[f"{run.name}/{seed}"] for seed in run.seeds]


def plan_study(cfg: StudyConfig) -> PlannedStudy:
    """Read a study and check all of its jobs. Raises ConfigError."""
    if cfg.file is None:
        hint = nearest("", [*Files().names("study"), "a YAML file"])
        raise ConfigError("study needs one study, by its name or as a file", hint)
    study = read_study(cfg.file, cfg.seeds)
    directory = Path(cfg.out) if cfg.out else DIRECTORY / study.name
    shared = [word for word in [plugins_override(list(cfg.plugins))] if word]
    planned = PlannedStudy(study, cfg, StudyJobs(directory, shared))
    for leaf in study.leaves:
        _add_jobs(planned, leaf, shared)
        _check_curves(leaf)
    _check_after(planned.work.jobs)
    return planned


def _add_jobs(planned: PlannedStudy, study: Study, shared: list[str]) -> None:
    """Add the jobs of a study without parts. shared: words that all commands get."""
    jobs = planned.work.jobs
    known = {job.name: job for job in jobs}
    for run in study.runs.values():
        try:
            if run.name in (*FILES, *FOLDERS, RECORDS, OUTPUT):
                raise ConfigError("a study has its own file or folder of that name", "rename it")
            config, rules, agent = _run_config(run, shared)
            planned.games[run.name] = make("game", rules)
            usual = Files().option_values("game", rules.name)
            words = [f"{k}={as_typed(v)}" for k, v in arguments(rules).items() if v != usual[k]]
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
                paths = [path for path in paths if run_of(path) != job.name]
                job.after.extend(dict.fromkeys(map(run_of, [*job.links.values(), *paths])))
                _add(jobs, known.get(job.name), job)
        except ConfigError as error:
            where = "" if error.error.startswith("evaluations.") else f"runs.{run.name}: "
            raise ConfigError(f"{where}{error.error}", error.hint) from None


def _run_config(
    run: StudyRun, shared: list[str]
) -> tuple[TrainConfig | None, OptionConfig, Agent | None]:
    """The checked configs of a training, None for a player, and of its game, and its agent, None
    if other runs have to be there first."""
    wrong = next((w for w in run.words if parse_word(w).name in ("seed", "out", "plugins")), None)
    if wrong and run.is_training:
        raise ConfigError(f"{wrong} does not belong to a run", "the study has seeds: and out=")
    words = [REFERENCE.sub(lambda m: f"{m[1]}/{m[2] or 0}", word) for word in run.words]
    if not run.is_training:
        cfg = load_config(EvalConfig, [*shared, *words])
        if cfg.game is None:
            raise ConfigError("a player needs a game", "as in player=random game=salvo")
        return None, cfg.game, None
    every = [*shared, *words]
    config = load_config(TrainConfig, every)
    agent = None
    if words == [*run.words]:  # otherwise the runs that it names do not exist yet
        config = located(config)
        agent = build_training(config).agent  # which checks that they fit together
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
    words = [*run.words, f"seed={seed}"] if run.is_training else []
    return Job(f"{run.name}/{seed}", words, plain, links=links)


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
            overrides = [w for w in words if "=" in w]
            checked = to_plain(load_config(ArenaConfig, [*shared, *overrides]))
            known = [w for w in evaluation.words if not re.search("[={]|^exact", w)]
            if known:  # the others do not exist yet, or would solve the game
                every = [*shared, *planned.rules[run.name], *overrides]
                competitors(known, load_config(ArenaConfig, every))
        else:
            schema = AnalyzeConfig if evaluation.command == "analyze" else EvalConfig
            own = [] if config is not None else first
            cfg: Any = load_config(schema, [*shared, *own, *words])
            game, rules = planned.games[run.name], cfg.game if config is None else config.game
            check_no_opponent(game, cfg.opponent, cfg.opponent_search)
            if words == [*evaluation.words] and (agent is not None or config is None):
                trained = None if agent is None or config is None else (agent, config.reward)
                _check_match(cfg, game, rules, trained)
            checked = to_plain(cfg)
    except ConfigError as error:
        text = f"evaluations.{evaluation.name} of {run.name}: {error.error}"
        raise ConfigError(text, error.hint) from None
    # A run plays the game of its checkpoint.
    left_out = (*UNCOUNTED, "game") if config is not None else UNCOUNTED
    return first, {key: value for key, value in checked.items() if key not in left_out}


def _check_curves(study: Study) -> None:
    """Raises ConfigError for words of curves: that do not say how learning curves are drawn: the
    others write files, or print."""
    valid = ("by", "where", *CURVE_KEYS)
    for name, text in study.curves.items():
        words = [word for word in text.split() if "=" in word]
        try:
            load_config(ReportConfig, words)
            for word in words:
                if word.partition("=")[0] not in valid:
                    raise ConfigError(
                        f"{word} is not a key of curves", f"valid: {', '.join(valid)}"
                    )
        except ConfigError as error:
            raise ConfigError(f"curves.{name}: {error.error}", error.hint) from None


def _check_match(
    cfg: Any, game: Game[Any], rules: OptionConfig, trained: tuple[Agent, RewardConfig] | None
) -> None:
    """Raises ConfigError for players, searches and games of evaluations that cannot be combined.

    cfg: their config. rules: of the game. trained: the agent of a run as it starts its training,
    and its reward; None for a player.
    """
    check_games(game, cfg.games)
    openings_to_play(game, cfg.games)
    if trained is not None and cfg.search is not None:
        agent, reward = trained
        with_search(agent, game, cfg.search, reward)
    opponent = cfg.opponent or (cfg.opponent_search and make_option("player", "random"))
    for player, search in ((cfg.player, cfg.search), (opponent, cfg.opponent_search)):
        if player is not None and not isinstance(player, ExactConfig):  # which solves the game
            build_player(player, game, rules, search)


def _check_after(jobs: Sequence[Job]) -> None:
    """Raises ConfigError for jobs that need no training of the study, or each other."""
    by_name = {job.name: job for job in jobs}
    for job in jobs:
        for name in job.after:
            if name not in by_name:
                hint = nearest(name, [*by_name])
                raise ConfigError(f"{job.name} needs {name}, which the study lacks", hint)
        words = " ".join(word for each in job.evaluations for word in each.words)
        for name in [*job.links.values(), *re.findall(r"\{([^}]+)\}(?!/)", words)]:
            if name in by_name and not by_name[name].config:
                hint = "write the words of that player"
                raise ConfigError(f"{job.name} needs {name}, a player and not a run", hint)
    waiting = {name: {*job.after} for name, job in by_name.items()}
    while ready := {name for name, after in waiting.items() if not after & {*waiting}}:
        waiting = {name: after for name, after in waiting.items() if name not in ready}
    if waiting:
        name, after = next(iter(waiting.items()))
        other = min(after & {*waiting})
        raise ConfigError(f"{name} needs {other}, which needs it", "omit one of them")


def run_study(planned: PlannedStudy) -> int:
    """Run what is missing, and say what is not done; the exit code. Raises ConfigError and
    Interrupted."""
    work, cfg = planned.work, planned.config
    jobs = selected(planned)
    with work.owned():
        work.set_changed_aside()
        work.run(jobs, cfg.jobs)
    return work.report(jobs)


def selected(planned: PlannedStudy) -> list[Job]:
    """The jobs that only= names, with those that they need. Raises ConfigError."""
    jobs, only = planned.work.jobs, planned.config.only
    names = [job.name for job in jobs]
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
        chosen |= {name for job in jobs if job.name in chosen for name in job.after}
    return [job for job in jobs if job.name in chosen]
