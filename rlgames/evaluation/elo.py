"""Round-robin tournaments: a cross table, and Elo ratings with intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlgames.core import progress
from rlgames.evaluation.estimates import MIN_GAMES, Estimate, Floats
from rlgames.evaluation.evaluate import Evaluation, EvaluationSettings, evaluate
from rlgames.games.game import Game
from rlgames.players.player import Player, leaving_out
from rlgames.rng import Rng

ELO_PER_LOGIT = 400 / math.log(10)

NUM_POSTERIOR_SAMPLES = 5000

PRIOR_COUNT = 0.25
"""Added to the wins, the draws and the losses in each seat when tables are sampled. Of 1/6, 1/4,
1/3 and 1/2, this is the one whose intervals contain the truth closest to 95% of the time."""

MIN_LOSING_RATE = 1e-9
"""Sampled rates are cut here, which is 3,600 Elo points, where ratings would become infinite."""

MAX_NEWTON_STEPS = 200

MAX_STEP = 1.0
"""Longer Newton steps, in logits, are shortened: where results are one-sided, steps of 2 and more
can jump back and forth over the maximum."""


Table = tuple[int, int, Floats, bool]
"""A pair (row, column); the games that row won, drew and lost in each seat, [2, 3]; and whether
they are all that can be played between the two, so that they do not vary."""


def rate(tables: Sequence[Table], count: int) -> list[Estimate]:
    """The ratings of `count` players, with mean 0.

    A player has no interval if all games are exact, and if the games of one of its pairs do not
    show how much they vary: fewer than MIN_GAMES, or a single one in a seat.
    """
    wins = np.zeros((count, count))
    unknown = set[int]()
    for row, column, results, is_exact in tables:
        games, points = results.sum(), points_per_game(results)
        wins[row, column], wins[column, row] = games * points, games * (1 - points)
        if not is_exact and (games < MIN_GAMES or (results.sum(1) == 1).any()):
            unknown |= {row, column}
    elo, intervals = elo_ratings(wins), elo_intervals(tables, count)
    games = (wins + wins.T).sum(1).round().astype(int)
    ratings = []
    for player, value in enumerate(elo.tolist()):
        interval = None
        if intervals is not None and player not in unknown:
            # One-sided results: the likeliest rating may lie at an end.
            low, high = float(intervals[0][player]), float(intervals[1][player])
            interval = min(low, value), max(high, value)
        ratings.append(Estimate(value, interval, int(games[player]), intervals is None))
    return ratings


def elo_ratings(wins: Floats) -> Floats:
    """Elo [N], with mean 0, from the points that row won against column, [N, N], by maximum
    likelihood.

    The model is Bradley and Terry's (1952); a draw counts as half a win. Half a drawn game
    is added to each pair that met, so that the rating of an undefeated player is finite.
    """
    has_met = wins + wins.T > 0
    return _fit((wins + 0.25 * has_met)[None])[0] * ELO_PER_LOGIT


def elo_intervals(tables: Sequence[Table], count: int) -> tuple[Floats, Floats] | None:
    """The 95% intervals of the ratings of `count` players, low [N] and high [N].

    Ratings are fitted to NUM_POSTERIOR_SAMPLES cross tables, whose rates are drawn from the
    Dirichlet distribution with PRIOR_COUNT in each seat; the interval lies between their quantiles.
    None if no pair varies.
    """
    if all(is_exact for _, _, _, is_exact in tables):
        return None
    rng = np.random.default_rng(0)
    wins = np.zeros((NUM_POSTERIOR_SAMPLES, count, count))
    for row, column, results, is_exact in tables:
        games = results.sum()
        if is_exact:
            points = np.full(NUM_POSTERIOR_SAMPLES, points_per_game(results))
            points = (games * points + 0.25) / (games + 0.5)  # as in elo_ratings
        else:
            points = np.zeros(NUM_POSTERIOR_SAMPLES)
            seats = results[results.sum(1) > 0]
            for seat in seats:
                rates = rng.dirichlet(seat + PRIOR_COUNT, NUM_POSTERIOR_SAMPLES)
                points += (rates[:, 0] + rates[:, 1] / 2) / len(seats)
            points = points.clip(MIN_LOSING_RATE, 1 - MIN_LOSING_RATE)
        wins[:, row, column], wins[:, column, row] = games * points, games * (1 - points)
    elo = _fit(wins) * ELO_PER_LOGIT
    low, high = np.percentile(elo, [2.5, 97.5], axis=0)
    return low, high


def points_per_game(results: Floats) -> float:
    """The points from the games won, drawn and lost in each seat, [2, 3]; the seats have the same
    weight."""
    seats = results[results.sum(1) > 0]
    return float(((seats[:, 0] + seats[:, 1] / 2) / seats.sum(1)).mean())


def _fit(wins: Floats) -> Floats:
    """Strengths [R, N] in logits, with mean 0, from the points won by row against column,
    [R, N, N]: by Newton's method on the log-likelihood, which is concave.

    Raises RuntimeError where it does not converge.
    """
    losses = wins.transpose(0, 2, 1)
    games = wins + losses
    count = wins.shape[1]
    strength = np.zeros(wins.shape[:2])
    if len(wins) > 1:  # the tables are alike: start at their mean
        strength += _fit(wins.mean(0, keepdims=True))
    diagonal = np.arange(count)
    for _ in range(MAX_NEWTON_STEPS):
        winning = 1 / (1 + np.exp(strength[:, None, :] - strength[:, :, None]))
        losing = winning.transpose(0, 2, 1)  # more digits than in 1 - winning
        gradient = (wins * losing - losses * winning).sum(2)
        curvature = games * winning * losing
        curvature[:, diagonal, diagonal] = 0.0
        hessian = -curvature
        hessian[:, diagonal, diagonal] = curvature.sum(2)
        # The likelihood does not depend on the mean; this term keeps the mean where it is, at 0.
        scale = hessian[:, diagonal, diagonal].mean(1)[:, None, None]
        step = np.linalg.solve(hessian + scale / count, gradient[..., None])[..., 0]
        longest = np.abs(step).max(1, keepdims=True)
        strength += step * np.minimum(1.0, MAX_STEP / np.maximum(longest, 1e-300))
        if longest.max() < 1e-9:
            return strength - strength.mean(1, keepdims=True)
    raise RuntimeError("the Elo ratings did not converge")


@dataclass(frozen=True)
class Arena:
    """The result of a tournament of N players.

    evaluations: of the pairs of players, for the first one. points: the fraction of games that row
    won against column, where a draw counts half. elo: the rating of each, as rate returns them.
    """

    evaluations: dict[tuple[int, int], Evaluation]
    points: list[list[float | None]]
    elo: list[Estimate]


def compete(
    game: Game[Any],
    names: list[str],
    players: list[Player],
    settings: EvaluationSettings,
    seed: int,
    failed: dict[int, Exception],
) -> Arena:
    """Each pair plays a number of games, half of them in each seat; two players without chance play
    each of their games once, and games of a seat that are all the same count as one.

    names: of the players; in their order, that of players does not change the result. Each pair of
    names has its own stream of random numbers. failed: receives the errors of players by their
    indices; the tournament is one of the others. Raises the first if fewer than two are left.
    """
    order = sorted(range(len(names)), key=names.__getitem__)
    played: dict[tuple[int, int], Evaluation] = {}
    pairs = [*itertools.combinations(order, 2)]
    for number, (row, column) in enumerate(pairs):
        rng = Rng(seed, f"arena {names[row]} {names[column]}", game.device)
        if not failed.keys() & {row, column}:
            with leaving_out(players, failed), progress.part(number, len(pairs)):
                played[row, column] = evaluate(game, players[row], settings, rng, players[column])
    left = [each for each in order if each not in failed]
    if failed and len(left) < 2:
        raise next(iter(failed.values()))
    place = {each: number for number, each in enumerate(sorted(left))}
    evaluations: dict[tuple[int, int], Evaluation] = {}
    points: list[list[float | None]] = [[None] * len(left) for _ in left]
    tables: list[Table] = []
    for (row, column), result in played.items():
        if not failed.keys() & {row, column}:
            evaluations[place[row], place[column]] = result
            points[place[row]][place[column]] = points_per_game(result.outcomes)
            points[place[column]][place[row]] = points_per_game(result.outcomes[:, ::-1])
            each = left.index(row), left.index(column)
            tables.append((*each, result.outcomes, result.is_exact))
    ratings = dict(zip(left, rate(tables, len(left)), strict=True))
    return Arena(evaluations, points, [ratings[each] for each in place])
