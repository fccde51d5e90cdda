"""The table at the end of a training, and what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from rlgames.commands.evaluate import (
    EXPLOITABILITY,
    Rows,
    estimate_of_goal,
    games_in_words,
    mean_text,
    number,
    opponent_names,
    print_columns,
    reach_rows,
    reference_rows,
    seat_rows,
    statistic_rows,
)
from rlgames.config.plugins import command_for_run
from rlgames.config.registry import REGISTRY
from rlgames.core.text import printable
from rlgames.runs.files import BEST_IN_WORDS, FINAL_IN_WORDS
from rlgames.training.evaluator import EvaluationResult
from rlgames.training.train import TrainingResult


def print_result(result: TrainingResult) -> None:
    """The table at the end of a training, with a column for each checkpoint that was evaluated."""
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


def print_next_commands(run: Path, modules: list[str], loggers: Iterable[str]) -> None:
    """The commands that people type next for a run that needs these plugins."""
    commands = [command_for_run(name, run, modules) for name in ("eval", "play")]
    viewers = [REGISTRY["logger"][name].viewer for name in loggers]
    for viewer in filter(None, viewers):
        commands.append(shlex.join(str(run) if word == "RUN" else word for word in viewer))
    for place, command in enumerate(commands):
        print(printable(("      " if place else "next: ") + command))


def _result_rows(result: TrainingResult, checkpoint: EvaluationResult) -> Rows:
    """The rows of one checkpoint in the table at the end of a training."""
    game, evaluation = result.game, checkpoint.evaluation
    if game.spec.goal == "outcome":
        exploitability = number(checkpoint.metrics.get("exploitability"))
        rows = [*seat_rows(evaluation), (EXPLOITABILITY, exploitability)]
        return rows + statistic_rows(opponent_names(checkpoint.opponent_statistics))
    value = mean_text(estimate_of_goal(evaluation, game.spec.goal))
    references = result.references
    rows = reference_rows(references.random, "trained, greedy", value, references.optimal)
    if checkpoint.held_out is not None:
        rows.append(("trained, held-out layouts", mean_text(checkpoint.held_out.turns)))
        rows.append(("exact optimum, held-out layouts", number(references.held_out_optimal)))
    return rows + reach_rows(evaluation)
