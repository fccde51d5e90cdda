"""`rlgames train`: one run, and the check of a sweep.

What a training needs is imported once its words are checked, so that errors are reported at once.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlgames.config.commands import TrainConfig
from rlgames.config.conf import command_file
from rlgames.config.overrides import as_word, split_named
from rlgames.config.plugins import command_for_run
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import groups_of, key_fields
from rlgames.config.typed import make_option, own_keys
from rlgames.core.errors import ConfigError
from rlgames.core.processes import no_garbage_collection
from rlgames.core.text import printable
from rlgames.runs import storage
from rlgames.runs.files import BEST_IN_WORDS, FINAL_IN_WORDS
from rlgames.runs.find import find_run, located, read_config

if TYPE_CHECKING:
    from rlgames.commands.evaluate import Rows
    from rlgames.training.evaluator import EvaluationResult
    from rlgames.training.train import TrainingResult


@dataclass(frozen=True)
class Result:
    """What a training reached, and its config."""

    config: TrainConfig
    training: TrainingResult


def run(config: TrainConfig, preset: str | None = None) -> Result:
    """Train, with a view of the progress; preset: that the config comes from."""
    config = located(config)
    with no_garbage_collection():
        from rlgames.terminal.progress import training_view
        from rlgames.training.train import train
    with training_view(config.games, in_words(config, preset)) as callback:
        return Result(config, train(config, callback))


def in_words(config: TrainConfig, preset: str | None) -> str:
    """What is trained, for people; preset: its name, if there is one."""
    chosen = [f"{group}={getattr(config, group).name}" for group in ("game", "policy", "learner")]
    return " ".join(chosen) + (f", preset {preset}" if preset else "")


def with_stored_words(typed: Sequence[str]) -> list[str]:
    """The words of a training that names a run: those that set what the run has, then the others.

    The settings of an option that is replaced are left out. Raises ConfigError for a run that
    cannot be read, and for more than one.
    """
    named, others = split_named(typed)
    if not named:
        return [*typed]
    if len(named) > 1:
        raise ConfigError(f"train takes one run, and {named[1]} is another", "omit it")
    chosen = {word.name: word.options for word in others}
    if chosen.get("experiment"):
        text = f"{named[0]} and experiment= both name the settings of the training"
        raise ConfigError(text, "omit one of them")
    stored = read_config(find_run(named[0], is_player=False))
    words, keys = ["experiment=null"], dict[str, Any]()
    for name, group in groups_of(TrainConfig).items():
        value = getattr(stored, name)
        options = [*value] if group.is_list else [value.name] if value is not None else []
        if chosen.get(name, options) != options:
            continue
        words.append(f"{name}={as_word(options) if group.is_list else ','.join(options) or 'null'}")
        if group.is_list:
            for option, each in value.items():
                keys |= own_keys(f"{name}.{option}", group, each)
        elif value is not None:
            keys |= own_keys(name, group, value)
    usual = command_file("train")[1]
    for name in key_fields(TrainConfig).keys() - {"out", "plugins"}:
        if (value := getattr(stored, name)) != usual[name]:
            keys[name] = value
    typed_names = {word.name.removeprefix("game.") for word in others}
    words += [f"{key}={as_word(value)}" for key, value in keys.items() if key not in typed_names]
    return [*words, *(str(word) for word in others)]


def check_sweep(jobs: Iterable[tuple[list[str], TrainConfig]]) -> None:
    """Check jobs of a sweep before the first one starts. Raises ConfigError for parts that do not
    fit together, and for a directory that Windows cannot name."""
    for words, config in jobs:
        from rlgames.training.parts import check_parts

        if storage.IS_WINDOWS and (bad := re.search(r'[<>:"|?*]', ",".join(words))):
            hint = "hydra.sweep.subdir='${hydra.job.num}' numbers the directories"
            raise ConfigError(f"Windows allows no {bad[0]} in the name of a job's directory", hint)
        try:
            check_parts(config)
        except ConfigError as error:
            label = ", ".join(word for word in words if word not in error.error)
            raise ConfigError(f"{label}{': ' * bool(label)}{error.error}", error.hint) from None


def show(result: Result) -> None:
    """Print what the training reached, and what people type next."""
    training, config = result.training, result.config
    from rlgames.runs.diagnosis import certain_cause

    print_result(training)
    if cause := certain_cause(training.directory):
        doctor = command_for_run("doctor", training.directory, config.plugins)
        print(printable(f"{cause}; {doctor} try=true finds what helps"))
    commands = [
        command_for_run(name, training.directory, config.plugins) for name in ("eval", "play")
    ]
    for viewer in filter(None, (REGISTRY["logger"][name].viewer for name in config.logger)):
        words = [str(training.directory) if word == "RUN" else word for word in viewer]
        commands.append(shlex.join(words))
    if config.game == make_option("game", "battleship"):
        commands.append("rlgames train experiment=fleet   # 10x10 cells with the whole fleet")
    for place, command in enumerate(commands):
        print(printable(("      " if place else "next: ") + command))


def print_result(result: TrainingResult) -> None:
    """Print a table with a column for each checkpoint that was evaluated."""
    from rlgames.commands.evaluate import games_in_words, print_columns

    game, evaluation = result.game, result.best.evaluation
    columns = {BEST_IN_WORDS: result.best, FINAL_IN_WORDS: result.final}
    if result.final is result.best:
        columns = {f"{BEST_IN_WORDS} and {FINAL_IN_WORDS}": result.best}
    games = games_in_words(
        evaluation.games, evaluation.distinct_games, evaluation.is_exact, game.spec.seats
    )
    if game.spec.goal == "outcome":
        title = f"trained, greedy, against {result.opponent}, {games}"
    else:
        if result.best.held_out is not None:
            games = games.replace("layouts", "training layouts")
            games = games if evaluation.is_exact else f"{games} on training layouts"
        title = f"{game.spec.goal} per game, {games}"
    rows_of_each = [_result_rows(result, each) for each in columns.values()]
    print_columns(title, list(columns), rows_of_each)
    print(printable(f"{result.seconds:.1f} s, in {result.directory}"))


def _result_rows(result: TrainingResult, checkpoint: EvaluationResult) -> Rows:
    """The rows of one checkpoint in the table at the end of a training."""
    from rlgames.commands import evaluate

    game, evaluation = result.game, checkpoint.evaluation
    if game.spec.goal == "outcome":
        exploitability = evaluate.number(checkpoint.metrics.get("exploitability"))
        rows = [*evaluate.seat_rows(evaluation), (evaluate.EXPLOITABILITY, exploitability)]
        names = evaluate.opponent_names(checkpoint.opponent_statistics)
        return rows + evaluate.statistic_rows(names)
    value = evaluate.mean_text(evaluate.estimate_of_goal(evaluation, game.spec.goal))
    references = result.references
    rows = evaluate.reference_rows(references.random, "trained, greedy", value, references.optimal)
    if checkpoint.held_out is not None:
        rows.append(("trained, held-out layouts", evaluate.mean_text(checkpoint.held_out.turns)))
        optimum = evaluate.number(references.held_out_optimal)
        rows.append(("exact optimum, held-out layouts", optimum))
    return rows + evaluate.reach_rows(evaluation)
