"""Round-robin tournaments: a cross table, and Elo ratings with intervals."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rlgames.core import progress
from rlgames.evaluation.elo import Floats, Table, cross_table, rate
from rlgames.evaluation.evaluate import OUTCOMES, Evaluation, EvaluationSettings, evaluate
from rlgames.games.game import Game
from rlgames.players.player import Player


@dataclass(frozen=True)
class Arena:
    """The result of a tournament of N players.

    evaluations: of the pairs (row, column) with row < column, for the row's player.
    points: [N, N], the fraction of games that row won against column, where draws count half;
    NaN on the diagonal. elo: [N], with mean 0. intervals: low [N] and high [N], 95%; None if all
    games that the players can play against each other were played.
    """

    evaluations: dict[tuple[int, int], Evaluation]
    points: Floats
    elo: Floats
    intervals: tuple[Floats, Floats] | None


def compete(
    game: Game[Any],
    names: list[str],
    players: list[Player],
    games: int,
    rng_of_pair: Callable[[str, str], torch.Generator],
) -> Arena:
    """Each pair plays this many games, half of them in each seat; two players without chance play
    each of their games once, and games of a seat that are all the same count as one.

    rng_of_pair: the generator of the games between two players, given their names.
    """
    count = len(players)
    evaluations: dict[tuple[int, int], Evaluation] = {}
    tables: list[Table] = []
    pairs = [*itertools.combinations(range(count), 2)]
    for number, (row, column) in enumerate(pairs):
        settings = EvaluationSettings(games)
        rng = rng_of_pair(names[row], names[column])
        with progress.part(number, len(pairs)):
            result = evaluate(game, players[row], settings, rng, players[column])
        evaluations[row, column] = result
        tables.append((row, column, outcome_counts(result), result.is_exact))
    table = cross_table(tables, count)
    with np.errstate(invalid="ignore"):
        points = (table[..., 0] + table[..., 1] / 2) / table.sum(2)
    return Arena(evaluations, points, *rate(tables, count))


def outcome_counts(result: Evaluation) -> Floats:
    """The games that the player won, drew and lost in each seat, [2, 3]."""
    seats = result.outcomes_by_seat
    return np.array([[float(seat[name].count) for name in OUTCOMES] for seat in seats])
