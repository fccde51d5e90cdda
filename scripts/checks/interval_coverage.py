"""How often each interval contains the truth, by simulation; writes docs/dev/coverage.md.

Each case draws experiments whose truth is known, and asks the function that the commands call for
its interval. Games of evaluations are drawn from the results of games that are played first.

    python scripts/checks/interval_coverage.py [--simulations 20000] [--print]
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from rlgames.commands.arena import competitors
from rlgames.config.commands import ArenaConfig
from rlgames.config.compose import load_config
from rlgames.core.text import markdown_table, with_section
from rlgames.evaluation.elo import elo_intervals, elo_ratings, points_per_game
from rlgames.evaluation.estimates import Estimate, Interval, interquartile_mean, mean_interval
from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.rng import Rng

PAGE = Path(__file__).resolve().parents[2] / "docs" / "dev" / "coverage.md"

SIMULATIONS = 20_000

GAMES = 40_000
"""Games from whose results evaluations are drawn."""

Floats = NDArray[np.float64]
Outcomes = list[tuple[float, Interval | None]]
"""True values, each with the interval that should contain it; None contains nothing."""
Experiment = Callable[[int, np.random.Generator], Outcomes]
"""An experiment with a sample of this size."""
Population = Callable[[], Floats]
"""Results from which evaluations are drawn; the games are played at the first call."""


@dataclass(frozen=True)
class Case:
    """A kind of interval in a situation. sizes: of the samples.

    is_right: whether 94 to 96% are claimed; otherwise the table says what is reached. cost: how
    many times fewer simulations it gets, because they take longer.
    """

    kind: str
    situation: str
    experiment: Experiment
    sizes: Sequence[int] = (20, 100, 2000)
    is_right: bool = True
    cost: int = 1


def measure(
    experiment: Experiment, size: int, simulations: int, seed: int = 0
) -> tuple[float, int]:
    """Run an experiment this many times: the fraction of the intervals that contained the truth,
    and their number."""
    rng = np.random.default_rng(seed)
    hits = [
        interval is not None and interval[0] <= truth <= interval[1]
        for _ in range(simulations)
        for truth, interval in experiment(size, rng)
    ]
    return sum(hits) / len(hits), len(hits)


@cache
def results(player: str, rules: str, games: int) -> tuple[Floats, Floats]:
    """Turns and scores [G] of a player's games."""
    cfg = load_config(ArenaConfig, rules.split())
    _, game, players = competitors([player], cfg)
    opponent = competitors(["random"], cfg)[2][0] if game.spec.seats == 2 else None
    rng = Rng(0, f"coverage {player}")
    with torch.inference_mode():
        state = evaluate(game, players[0], EvaluationSettings(games), rng, opponent).state
    return state.turn.double().numpy(), state.score[:, 0].double().numpy()


def means_of_games(games: int) -> list[Case]:
    fleet = "game=salvo board=10 ships=[5,4,3,3,2] shots=1"
    populations: dict[str, Population] = {
        "2048, scores of random play": lambda: results("random", "game=2048", games // 2)[1],
        "battleship 10×10, turns of random play": lambda: results("random", fleet, games // 2)[0],
    }
    cases = [
        Case("mean of games", name, partial(_mean, values)) for name, values in populations.items()
    ]
    in_both_seats = partial(_mean_over_seats, games // 4)
    cases.append(Case("mean of games", "Connect 4, turns in both seats", in_both_seats))
    values = populations["battleship 10×10, turns of random play"]
    few = np.array([0.4, 0.2, 0.1, 0.1, 0.1, 0.1])
    many = np.linspace(1, 3, 1000) / 2000
    for name, weights in (("6 layouts", few), ("1,000 layouts, each twice", many)):
        words = f"all of {name}, weighted by their probabilities"
        cases.append(Case("mean of games", words, partial(_weighted_mean, values, weights), [2000]))
    return cases


def _mean(population: Population, count: int, rng: np.random.Generator) -> Outcomes:
    values = population()
    return [(float(values.mean()), mean_interval(rng.choice(values, count)))]


def _mean_over_seats(games: int, count: int, rng: np.random.Generator) -> Outcomes:
    turns, seat = results("win_or_block", "game=connect4", games)[0], np.arange(count) % 2
    first, second = turns[::2], turns[1::2]
    truth = float(first.mean() + second.mean()) / 2
    value = np.where(seat == 0, rng.choice(first, count), rng.choice(second, count))
    return [(truth, mean_interval(value, stratum=seat))]


def _weighted_mean(
    population: Population, weights: Floats, count: int, rng: np.random.Generator
) -> Outcomes:
    """The games of a layout take longer the later the layout comes."""
    levels, values = np.linspace(0, 50, len(weights)), population()
    layout = np.arange(count) % len(weights)
    weight = weights[layout] / np.bincount(layout)[layout]
    truth = float(values.mean() + (weights * levels).sum())
    return [(truth, mean_interval(rng.choice(values, count) + levels[layout], weight, layout))]


def rates() -> list[Case]:
    def single(center: float, count: int, rng: np.random.Generator) -> Outcomes:
        low, high = (0.4, 0.6) if center == 0.5 else (center / 2, center * 2)
        rate = rng.uniform(low, high)
        return [(rate, Estimate.of_rate((int(rng.binomial(count, rate)), count)).interval)]

    def seats(first: float, second: float, count: int, rng: np.random.Generator) -> Outcomes:
        both = [1 - (1 - rate) * rng.uniform(0.5, 1.5) for rate in (first, second)]
        parts = [(int(rng.binomial(count // 2, rate)), count // 2) for rate in both]
        return [(sum(both) / 2, Estimate.of_rate(*parts).interval)]

    cases = [
        Case("rate", f"about {center:g}", partial(single, center)) for center in (0.5, 0.1, 0.01)
    ]
    return cases + [
        Case(
            "rate over both seats", f"about {first:g} and {second:g}", partial(seats, first, second)
        )
        for first, second in ((0.5, 0.5), (0.9, 0.6), (0.99, 0.8))
    ]


def rates_of_moves() -> list[Case]:
    """Of games with 5 to 20 moves, whose rates of mistakes have a beta distribution."""

    def moves(alike: float, count: int, rng: np.random.Generator) -> Outcomes:
        total = rng.integers(5, 21, count)
        rate = rng.beta(0.1 / alike, 0.9 / alike, count)
        lost = rng.binomial(total, rate)
        return [(0.1, Estimate.of_moves(lost.astype(float), total.astype(float)).interval)]

    situations = {"hardly alike in a game": 0.01, "alike in a game": 0.25}
    return [
        Case("rate of moves", f"about 0.1, {name}", partial(moves, alike), (100, 200, 2000))
        for name, alike in situations.items()
    ]


def elo() -> list[Case]:
    def tournament(strengths: tuple[float, ...], draws: float) -> Experiment:
        count = len(strengths)
        pairs = list(itertools.combinations(range(count), 2))
        # The first seat is 100 points better. The truth is the rating from all possible games.
        rates = {(i, j): _outcome_rates(strengths[i] - strengths[j], draws) for i, j in pairs}
        wins = np.zeros((count, count))
        for (row, column), rate in rates.items():
            points = points_per_game(rate)
            wins[row, column], wins[column, row] = 1e9 * points, 1e9 * (1 - points)
        truth = elo_ratings(wins)

        def experiment(games: int, rng: np.random.Generator) -> Outcomes:
            tables = [
                (i, j, rng.multinomial(games // 2, rates[i, j]).astype(float), False)
                for i, j in pairs
            ]
            intervals = elo_intervals(tables, count)
            assert intervals is not None
            # The ratings of two players mirror each other.
            players = range(1 if count == 2 else count)
            return [(truth[each], (intervals[0][each], intervals[1][each])) for each in players]

        return experiment

    situations = {
        "two equal players": ((0.0, 0.0), 0.0),
        "two equal players, half of the games drawn": ((0.0, 0.0), 0.5),
        "two players, 200 points apart": ((200.0, 0.0), 0.3),
        "two players, 400 points apart": ((400.0, 0.0), 0.3),
        "four players from 0 to 600 points": ((600.0, 300.0, 100.0, 0.0), 0.3),
    }
    return [
        Case("Elo", name, tournament(*how), (100, 1000), cost=10)
        for name, how in situations.items()
    ]


def _outcome_rates(difference: float, draws: float) -> Floats:
    """[2, 3]: the rates of wins, draws and losses in each seat; draws: up to this many of the games
    that the weaker player does not lose."""
    rates = []
    for seat in (100.0, -100.0):
        points = 1 / (1 + 10 ** (-(difference + seat) / 400))
        drawn = 2 * draws * min(points, 1 - points)
        rates.append([points - drawn / 2, drawn, 1 - points - drawn / 2])
    return np.array(rates)


SEEDS = (3, 5, 10)

SHAPES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "skewed (log-normal, σ = 0.5)": lambda rng, n: np.exp(0.5 * rng.standard_normal(n)),
    "one seed in five fails": lambda rng, n: np.where(
        rng.random(n) < 0.8, rng.normal(1, 0.05, n), rng.normal(0.3, 0.1, n)
    ),
}
"""How the results of seeds are distributed."""


def seeds() -> list[Case]:
    cases = []
    for name, draw in SHAPES.items():
        is_normal = name == "normal"
        many = draw(np.random.default_rng(1), 400_000)
        experiment = partial(_seed_mean, draw, float(many.mean()), "mean")
        cases.append(Case("mean over seeds", name, experiment, SEEDS, is_normal))
        experiment = partial(_seed_mean, draw, float(interquartile_mean(many)), "iqm")
        kind = "interquartile mean over seeds"
        cases.append(Case(kind, name, experiment, SEEDS, is_normal, cost=10))
    return cases


def _seed_mean(
    draw: Callable[..., Floats], truth: float, how: str, count: int, rng: np.random.Generator
) -> Outcomes:
    return [(truth, Estimate.of_seeds([draw(rng, count)], how).interval)]


def pairs_of_agents() -> list[Case]:
    def difference(spread: float, count: int, rng: np.random.Generator) -> Outcomes:
        first = 1 + rng.standard_normal(count)
        second = spread * rng.standard_normal(count)
        return [(1.0, Estimate.difference([first], [second]).interval)]

    spreads = {"equal spread": 1, "spread 1 : 2": 2, "spread 1 : 4": 4}
    return [
        Case("difference of agents", name, partial(difference, spread), SEEDS)
        for name, spread in spreads.items()
    ]


def all_cases(games: int = GAMES) -> list[Case]:
    """Every kind of interval that a command prints; games: how many are played to draw from. That
    of a paired difference is the mean's."""
    return [
        *means_of_games(games),
        *rates(),
        *rates_of_moves(),
        *elo(),
        *seeds(),
        *pairs_of_agents(),
    ]


def table(cases: list[Case], simulations: int) -> str:
    lines = []
    for case in cases:
        found = [measure(case.experiment, n, simulations // case.cost)[0] for n in case.sizes]
        is_right = all(0.94 <= round(fraction, 3) <= 0.96 for fraction in found)
        cells = [f"{100 * part:.1f} ({n:,})" for part, n in zip(found, case.sizes, strict=True)]
        lines.append([case.kind, case.situation, "; ".join(cells), "" if is_right else "outside"])
        print(*lines[-1], sep=" | ", flush=True)
    return markdown_table(["interval", "of", "covered, % (sample size)", ""], lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulations", type=int, default=SIMULATIONS)
    parser.add_argument("--print", action="store_true", help="leave the page as it is")
    chosen = parser.parse_args()
    text = table(all_cases(), chosen.simulations)
    if not chosen.print:
        page = with_section(PAGE.read_text(encoding="utf-8"), "coverage", f"\n{text}\n")
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
