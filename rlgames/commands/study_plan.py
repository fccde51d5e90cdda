"""`rlgames study`: the jobs of a study, planned and checked."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from rlgames.build.players import build_player, with_search
from rlgames.commands.evaluate import check_games
from rlgames.commands.match import check_no_opponent
from rlgames.commands.study_file import Study, StudyEvaluation, StudyRun, read_study
from rlgames.commands.study_jobs import (
    OWNER,
    RECORDS,
    REFERENCE,
    Job,
    JobReport,
    StudyJobs,
    refer,
)
from rlgames.config.commands import (
    MOVABLE_PLAYERS,
    AnalyzeConfig,
    EvalConfig,
    SolveConfig,
    StudyConfig,
    TrainConfig,
)
from rlgames.config.compose import load_config
from rlgames.config.conf import option_names
from rlgames.config.options.players import ExactConfig
from rlgames.config.overrides import parse_word
from rlgames.config.plugins import plugins_override
from rlgames.config.registry import make
from rlgames.config.typed import make_option, to_plain
from rlgames.core.errors import ConfigError, nearest
from rlgames.evaluation.evaluate import openings_to_play
from rlgames.games.game import Game
from rlgames.players.player import Agent
from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.directory import FILES, FOLDERS
from rlgames.runs.find import located
from rlgames.runs.reports import question
from rlgames.training.parts import build_training

DIRECTORY = Path("outputs") / "studies"

Load = Callable[[type[Any], tuple[str, ...]], Any]
"""Composes the config of a command, once for the same words."""


def plan_study(cfg: StudyConfig) -> StudyJobs:
    """Read a study and check all of its jobs. Raises ConfigError."""
    if cfg.file is None:
        hint = nearest("", [*option_names("study"), "a YAML file"])
        raise ConfigError("study needs one study, by its name or as a file", hint)
    study = read_study(cfg.file, cfg.seeds)
    directory = Path(cfg.out) if cfg.out else DIRECTORY / study.name
    options = [word for word in [plugins_override(list(cfg.plugins))] if word]
    work = StudyJobs(study, directory, options)
    load: Any = cache(load_config)  # many runs are asked the same
    for run in study.runs.values():
        try:
            _add_jobs(work, run, load)
        except ConfigError as error:
            where = "" if error.error.startswith("evaluations.") else f"runs.{run.name}: "
            raise ConfigError(f"{where}{error.error}", error.hint) from None
    work.jobs = _ordered(work.jobs)
    return work


def _add_jobs(work: StudyJobs, run: StudyRun, load: Load) -> None:
    """Add the jobs of a run, whose game and settings exist and fit together. Raises ConfigError."""
    if run.name in (*FILES, *FOLDERS, RECORDS, OWNER):
        raise ConfigError("a study has its own file or folder of that name", "rename it")
    for word in run.words if run.is_training else ():
        key, _, value = word.partition("=")
        if parse_word(word).name in ("seed", "out", "plugins"):
            raise ConfigError(f"{word} does not belong to a run", "the study has seeds: and out=")
        if REFERENCE.match(value) and key not in (*MOVABLE_PLAYERS, "init_from", "demonstrations"):
            raise ConfigError(f"{word}: {key} does not name a run", "write its value")
    schema = TrainConfig if run.is_training else EvalConfig
    config = load(schema, (*work.options, *refer(run.words, 0, "RUN")))
    if config.game is None:
        raise ConfigError("a player needs a game", "as in player=random game=salvo")
    game, agent, nbytes = make("game", config.game), None, 0
    if run.is_training and not runs_in(run.words):
        config = located(config)
        training = build_training(config)
        state = {"learner": training.learner.state_dict()}
        agent, nbytes = training.agent, Checkpoint({}, 0, training.weights(), state).nbytes
    jobs = {seed: Job(run.name, seed, [], {}) for seed in run.seeds}
    for seed in jobs if run.is_training else ():
        plain = to_plain(dataclasses.replace(config, seed=seed))
        jobs[seed] = Job(run.name, seed, [*run.words, f"seed={seed}"], plain, nbytes=nbytes)
    for each in work.study.evaluations_of(run.name):
        asked = _question(each, run, game, config, agent, load)
        for seed, job in jobs.items():
            if each.seeds is None or seed in each.seeds:
                many = not run.is_training and len(run.seeds) > 1
                words = [*evaluation_words(each, run, "{}"), *([f"seed={seed}"] if many else [])]
                own = asked | ({"seed": seed} if many else {})
                job.reports.append(JobReport(each.name, words, own))
    work.jobs |= {job.name: job for job in jobs.values()}


def evaluation_words(each: StudyEvaluation, run: StudyRun, own: str = "RUN") -> list[str]:
    """What an evaluation of a run types, with references; own: the directory of the run."""
    first = [own] if run.is_training else run.words
    if each.command == "solve" and not run.is_training:  # it has no players
        first = [word for word in first if not word.startswith("player")]
    return [each.command, *first, *each.words]


def command_text(words: Sequence[str]) -> str:
    """A command as it is typed, with SEED for the seeds of other runs, and RUN for the own one."""
    return f"rlgames {shlex.join(refer(words, 'SEED', 'RUN'))}"


def run_command(run: StudyRun) -> str:
    """The command that trains a run, with SEED for its seed; the words of a player."""
    if not run.is_training:
        return " ".join(run.words)
    return command_text(["train", *run.words, "seed=SEED"])


def runs_in(words: Sequence[str]) -> set[str]:
    """The names of the runs that words refer to."""
    return {match[1] for match in REFERENCE.finditer(" ".join(words)) if match[1]}


def commands_needed(study: Study, words: Sequence[str]) -> list[str]:
    """The commands of the runs that words refer to, and of those that they need."""
    names, more = set[str](), runs_in(words)
    while more:
        names |= more
        more = {each for name in more for each in runs_in(study.runs[name].words)} - names
    return sorted(run_command(study.runs[name]) for name in names)


def _question(
    each: StudyEvaluation,
    run: StudyRun,
    game: Game[Any],
    trained: Any,
    agent: Agent | None,
    load: Load,
) -> dict[str, Any]:
    """The question of an evaluation of a run. Raises ConfigError unless it fits the game and the
    players that exist already.

    trained: the config of the run. agent: as it starts its training; None for a player, and if
    other runs have to be there first.
    """
    schema = {"eval": EvalConfig, "analyze": AnalyzeConfig, "solve": SolveConfig}[each.command]
    _, *words = refer(evaluation_words(each, run), 0, "RUN")
    try:
        cfg: Any = load(schema, (*words,))
        if each.command != "solve":
            check_no_opponent(game, cfg.opponent, cfg.opponent_search)
        if each.command == "solve" or runs_in([*each.words, *run.words]):
            return question(cfg)
        check_games(game, cfg.games)
        openings_to_play(game, cfg.games)
        if agent is not None and cfg.search is not None:
            with_search(agent, game, cfg.search, trained.reward)
        opponent = cfg.opponent or (cfg.opponent_search and make_option("player", "random"))
        for player, search in ((cfg.player, cfg.search), (opponent, cfg.opponent_search)):
            if player is not None and not isinstance(player, ExactConfig):  # which solves the game
                build_player(player, game, trained.game, search)
    except ConfigError as error:
        text = f"evaluations.{each.name} of {run.name}: {error.error}"
        raise ConfigError(text, error.hint) from None
    return question(cfg)


def _ordered(jobs: dict[str, Job]) -> dict[str, Job]:
    """The jobs, each after those that it needs. Raises ConfigError for jobs that need no training
    of the study, or each other."""
    for job in jobs.values():
        for name in job.after:
            if name not in jobs:
                hint = nearest(name, [*jobs])
                raise ConfigError(f"{job.name} needs {name}, which the study lacks", hint)
        played = [word for each in job.reports for word in each.words]
        for name in [*job.links(job.words).values(), *job.links(played).values()]:
            if name in jobs and name != job.name and not jobs[name].config:
                hint = "write the words of that player"
                raise ConfigError(f"{job.name} needs {name}, a player and not a run", hint)
    try:
        order = TopologicalSorter({name: sorted(job.after) for name, job in jobs.items()})
        return {name: jobs[name] for name in order.static_order()}
    except CycleError as error:
        other, name, *_ = error.args[1]
        raise ConfigError(f"{name} needs {other}, which needs it", "omit one of them") from None
