"""Learning curves as numbers: their points, moving means, and aggregates over seeds and games."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rlgames.core.errors import ConfigError
from rlgames.core.untrusted import MAX_NUMBER
from rlgames.evaluation.estimates import STATISTICS, Estimate, Floats

Curve = tuple[Floats, Floats]
"""x, rising, and y, float64 [N] each."""

MARGIN = 0.01
"""A seed counts this fraction of the x axis beyond its range. Batches that several threads finish
end at slightly different numbers of games, and a mean over fewer seeds would jump there."""

MAX_PLACES = 2000

X_AXES = {
    "games": ("", "games played"),
    "moves": ("time/moves", "moves made"),
    "updates": ("time/updates", "updates"),
    "seconds": ("time/seconds", "wall-clock time (s)"),
}
"""By the value of x=: the metric that holds it, and the label of the axis with its unit."""


def points(games: Sequence[float], values: Sequence[float]) -> Curve:
    """A metric over games; where a number of games has several values, the last one counts."""
    x, y = np.array(games, np.float64), np.array(values, np.float64)
    valid = (np.abs(x) <= MAX_NUMBER) & (np.abs(y) <= MAX_NUMBER)
    x, last = np.unique(x[valid][::-1], return_index=True)
    return x, y[valid][::-1][last]


def moving_mean(curve: Curve, window: int) -> Curve:
    """The mean over the last `window` games, at each point from that many games on.

    curve: games and means since the point before, from game 0. A line of the log that lies partly
    within the window counts for that part. Raises ConfigError if a line covers more games.
    """
    games, means = curve
    sizes = np.diff(games, prepend=0.0)
    if len(games) and sizes.max() > window:
        text = f"window={window} is shorter than the {sizes.max():,.0f} games of a log line"
        raise ConfigError(text, f"train with log_every={window} and a batch that divides it")
    ends = np.concatenate([[0.0], games])
    totals = np.concatenate([[0.0], np.cumsum(sizes * means)])
    x = games[games >= window]
    return x, (np.interp(x, ends, totals) - np.interp(x - window, ends, totals)) / window


def over_seeds(
    games: Sequence[Sequence[Curve]], aggregate: str, is_shared: bool = False
) -> tuple[Floats, Floats, tuple[Floats, Floats] | None, list[int]]:
    """The aggregate, [N], at each place where a seed has a point, its 95% interval, None for one
    seed, and how many curves count at each place.

    games: for each game the curve of each seed, which is straight between its points. A seed counts
    only within its range of x, give or take MARGIN. is_shared: only places that all seeds have
    count. N is at most MAX_PLACES, evenly among all places: no figure shows more.
    """
    every = [curve for curves in games for curve in curves]
    x = np.unique(np.concatenate([places for places, _ in every]))
    if is_shared:
        first, last = max(places[0] for places, _ in every), min(places[-1] for places, _ in every)
        x = x[(x >= first) & (x <= last)]
    margin = MARGIN * np.ptp(x) if len(x) else 0.0
    x = x[np.unique(np.linspace(0, len(x) - 1, min(len(x), MAX_PLACES)).round().astype(int))]
    values = [np.array([_at(x, curve, margin) for curve in curves]) for curves in games]
    middle, low, high = np.empty((3, len(x)))
    counts = list[int]()
    for place in range(len(x)):
        scores = [game[~np.isnan(game[:, place]), place] for game in values]
        value = middle[place] = float(STATISTICS[aggregate](np.concatenate(scores)))
        low[place], high[place] = Estimate.of_seeds(scores, aggregate).interval or (value, value)
        counts.append(sum(map(len, scores)))
    has_band = any(len(curves) > 1 for curves in games)
    return x, middle, (low, high) if has_band else None, counts


def seeds_in_words(num_seeds: int, x: Floats, counts: Sequence[int], unit: str) -> str:
    """How many seeds a curve is of, and from where on it is of fewer: "5 seeds, 4 from 1,200 games
    on". counts: at each x; of more than two lower numbers, the first and the last are said."""
    text, known = f"{num_seeds} seed{'s' * (num_seeds != 1)}", num_seeds
    changes = list[str]()
    for place, count in enumerate(counts):
        if count != known:
            where = f" from {x[place]:,.0f} {unit} on" if place else " with values"
            changes.append(f"{count}{where}")
        known = count
    shown = changes if len(changes) <= 2 else [changes[0], changes[-1]]
    return ", ".join([text, *shown])


def _at(x: Floats, curve: Curve, margin: float) -> Floats:
    """The values, [N], of a curve at x; NaN beyond its ends by more than a margin."""
    is_known = (x >= curve[0][0] - margin) & (x <= curve[0][-1] + margin)
    return np.where(is_known, np.interp(x, *curve), np.nan)


def up_to_optimum(
    y: Floats, low: Floats, high: Floats, random: float, optimum: float
) -> tuple[Floats, Floats]:
    """The limits of a band around y, [N] each, no better than the optimum unless y is better.

    random: what random play reaches, which tells whether higher is better.
    """
    if random < optimum:
        return low, np.maximum(y, np.minimum(high, optimum))
    return np.minimum(y, np.maximum(low, optimum)), high


def along(curve: Curve, axis: Curve) -> Curve:
    """A curve over games as one over another axis, without points beyond what was logged of it.

    axis: over games, from 0 on.
    """
    games, y = curve
    known, places = axis
    if not len(games) or not len(known):
        return np.empty(0), np.empty(0)
    if known[0] > 0:
        known, places = np.concatenate([[0.0], known]), np.concatenate([[0.0], places])
    x = np.interp(games, known, places)
    inside = games <= known[-1]
    x, y = x[inside], y[inside]
    rising = np.diff(x, prepend=-math.inf) > 0
    return x[rising], y[rising]
