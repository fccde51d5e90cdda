"""Ratings of a cross table, and the intervals of ratings."""

import itertools
import json
import math
import shutil

import numpy as np
import pytest
from helpers import InOrder, rng

from rlgames.evaluation.elo import compete, elo_intervals, elo_ratings, rate
from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Random
from rlgames.runs.find import shipped_agents


def points_won(results):
    """[N, N], from a dict from pairs to the games that the first of them won, drew and lost."""
    count = 1 + max(max(pair) for pair in results)
    wins = np.zeros((count, count))
    for (row, column), (won, drawn, lost) in results.items():
        wins[row, column], wins[column, row] = won + drawn / 2, lost + drawn / 2
    return wins


def test_ratings_of_players_of_known_strength():
    """With 400 points between neighbours the weaker one scores 1 in 11."""
    points = np.array([[0.0, 10, 100], [1, 0, 10], [1, 1, 0]])
    wins = 1e6 * points / np.maximum(points + points.T, 1)
    assert elo_ratings(wins) == pytest.approx([400, 0, -400], abs=0.5)


def test_two_clusters_are_as_far_apart_as_their_games_say():
    """Each of A and B beats each of C and D in all of 1,000 games; inside a cluster all is even.
    With half a drawn game added, (1000.25 / 0.25) wins to losses are 1441 points."""
    even = dict.fromkeys(((0, 1), (2, 3)), (500, 0, 500))
    won = {(row, column): (1000, 0, 0) for row in (0, 1) for column in (2, 3)}
    half = 200 * np.log10(1000.25 / 0.25)
    expected = [half, half, -half, -half]
    assert elo_ratings(points_won(even | won)) == pytest.approx(expected, abs=1e-6)
    assert half == pytest.approx(720.4, abs=0.1)


def test_ratings_solve_the_equations_of_the_likelihood():
    """Each player's expected points are the points that it made."""
    generator = np.random.default_rng(2)
    for count in (2, 3, 6, 12):
        pairs = itertools.combinations(range(count), 2)
        table = points_won({pair: tuple(generator.integers(0, 300, 3)) for pair in pairs})
        wins = table + 0.25 * (table + table.T > 0)
        elo = elo_ratings(table)
        expected = (wins + wins.T) / (1 + 10 ** ((elo[None, :] - elo[:, None]) / 400))
        assert (expected.sum(1) - np.diag(expected)) == pytest.approx(wins.sum(1), abs=1e-6)
        assert elo.mean() == pytest.approx(0, abs=1e-9)


def test_everything_won_has_an_interval_with_a_width():
    results = np.array([[10.0, 0, 0], [10, 0, 0]])
    low, high = elo_intervals([(0, 1, results, False)], 2)
    assert np.isfinite([low, high]).all()
    assert (high - low > 300).all()
    few_low, few_high = elo_intervals([(0, 1, results / 10, False)], 2)
    assert few_low[0] < low[0]
    assert few_high[1] > high[1]


def test_two_deterministic_players_play_each_of_their_two_games_once():
    game = KInARow(3, 3, 3, False)
    players = [InOrder(game), InOrder(game, True), Random(game)]
    result = compete(
        game, ["first", "last", "random"], players, EvaluationSettings(1000), lambda *_: rng(), {}
    )
    assert result.evaluations[0, 1].games == 2
    assert result.evaluations[0, 1].is_exact
    assert result.evaluations[0, 1].turns.interval is None
    assert result.evaluations[0, 1].outcome_rate("win").interval is None
    assert result.evaluations[0, 2].games == 1000
    for rating in result.elo:
        assert rating.interval[0] < rating.value < rating.interval[1]
    exact = compete(
        game, ["first", "last"], players[:2], EvaluationSettings(1000), lambda *_: rng(), {}
    )
    assert all(rating.is_exact and rating.interval is None for rating in exact.elo)
    assert np.isfinite([rating.value for rating in exact.elo]).all()


def test_players_without_chance_are_rated_on_the_same_random_openings(typed, tmp_path):
    shutil.copy(shipped_agents()["tictactoe"], tmp_path / "copy.safetensors")
    words = ["tictactoe", "copy.safetensors", "random", "games=40"]
    report = json.loads(typed("arena", *words, "format=json").stdout)
    assert report["opening_turns"] == 2
    assert {(each["games"], each["exact"]) for each in report["pairs"]} == {(40, False)}
    assert all(each["distinct_games"] > 10 for each in report["pairs"])
    shown = typed("arena", *words).stdout
    assert "40 games per pair, random openings of 2 turns, each in both seats" in shown
    exact = json.loads(typed("arena", *words, "opening_turns=0", "format=json").stdout)
    assert any(each["exact"] for each in exact["pairs"])
    said = typed("eval", "tictactoe", "opponent=tictactoe", "solve_seconds=0").stdout
    assert "these are their only games; opening_turns=2 starts others" in said


def test_an_opening_is_the_same_in_both_seats_and_for_every_pair():
    game, starts = KInARow(4, 4, 3, False), []
    for players in ([InOrder(game), InOrder(game, True)], [InOrder(game, True), Random(game)]):
        settings = EvaluationSettings(60, batch=7, opening_turns=3, opening_seed=5)
        records = evaluate(game, players[0], settings, rng(), players[1], records=True).trajectories
        moves = [records.action[records.game == each][:3].tolist() for each in range(60)]
        assert moves[::2] == moves[1::2]
        assert len({*map(tuple, moves)}) > 25
        starts.append(moves)
    assert starts[0] == starts[1]


def test_ratings_converge_for_one_sided_results():
    generator = np.random.default_rng(4)
    for _ in range(20):
        count, games = int(generator.integers(2, 6)), int(generator.choice([1, 2, 50, 1000]))
        tables = [
            (*pair, 1.0 * generator.multinomial(games, generator.dirichlet([0.1] * 3), 2), False)
            for pair in itertools.combinations(range(count), 2)
        ]
        low, high = elo_intervals(tables, count)
        assert (low < high).all()
        ratings = rate(tables, count)
        assert np.isfinite([rating.value for rating in ratings]).all()
        for rating in ratings:
            assert games < 50 or rating.interval[0] <= rating.value <= rating.interval[1]


@pytest.mark.parametrize(
    ("results", "has_interval"),
    [
        ([[5, 0, 4], [5, 0, 5]], False),  # 19 games
        ([[5, 0, 5], [5, 0, 5]], True),
        ([[1, 0, 0], [15, 0, 15]], False),  # all games of a seat are the same
        ([[20, 0, 0], [0, 0, 0]], True),
    ],
)
def test_games_that_do_not_show_how_much_they_vary_give_no_interval(results, has_interval):
    short = (0, 1, np.array(results, float), False)
    exact = (0, 1, np.array(results, float), True)
    others = [(each, 2, np.full((2, 3), 50.0), False) for each in (0, 1)]
    assert [each.interval is not None for each in rate([short], 2)] == 2 * [has_interval]
    known = [each.interval is not None for each in rate([short, *others], 3)]
    assert known == [has_interval, has_interval, True]
    assert not any(each.is_exact for each in rate([short, *others], 3))
    assert all(each.interval is not None for each in rate([exact, *others], 3))
    assert all(each.is_exact for each in rate([exact], 2))


def test_intervals_of_the_fewest_games_contain_the_truth():
    """Over all results of ten games in each seat, exactly, without draws and with equal seats."""
    games, found = 10, {}
    for first, second in itertools.combinations_with_replacement(range(games + 1), 2):
        results = np.array([[first, 0, games - first], [second, 0, games - second]], float)
        found[first, second] = rate([(0, 1, results, False)], 2)[0].interval
    found |= {(second, first): interval for (first, second), interval in found.items()}
    coverage = dict[int, float]()
    for apart in (*range(0, 650, 50), 800):
        win = 1 / (1 + 10 ** (-apart / 400))
        chance = [
            math.comb(games, won) * win**won * (1 - win) ** (games - won)
            for won in range(games + 1)
        ]
        coverage[apart] = sum(
            chance[first] * chance[second]
            for (first, second), (low, high) in found.items()
            if low <= apart / 2 <= high
        )
    assert min(coverage[apart] for apart in range(0, 650, 50)) > 0.91
    assert max(coverage.values()) < 0.98
    # In docs/statistics.md. Only the interval of 20 games won, 81.8% of cases, contains it.
    assert coverage[800] == pytest.approx(0.820, abs=0.002)
