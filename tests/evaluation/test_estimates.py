"""Estimates over games and seeds, against worked examples and textbooks."""

import numpy as np
import pytest
import torch

from rlgames.evaluation.estimates import Estimate, interquartile_mean, normalized, student_t

INSTALL = "scipy is not installed: pip install -c constraints.txt '.[engines]'"
SEEDS = np.array([3.0, 1.0, 2.0, 9.0, 4.0])


def of_games(values, is_exact=False):
    value = torch.tensor(values).double()
    return Estimate.of_games(value, torch.full_like(value, 1 / len(values)), is_exact=is_exact)


def test_games_that_say_nothing_of_how_they_vary_have_no_interval():
    assert of_games([7.0]).interval is None
    assert of_games([3.0] * 500).interval is None
    assert of_games([3.0, 4.0]).interval is None
    assert of_games([3.0, 4.0] * 50, is_exact=True).interval is None
    low, high = of_games([3.0, 4.0] * 50).interval
    assert (low, high) == pytest.approx((3.5 - 1.984 * 0.05025, 3.5 + 1.984 * 0.05025), abs=1e-3)


@pytest.mark.others
def test_wilson_intervals():
    """Newcombe 1998, table I, and the ends."""
    assert Estimate.of_rate((81, 263)).interval == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert Estimate.of_rate((15, 148)).interval == pytest.approx((0.0624, 0.1605), abs=1e-4)
    assert Estimate.of_rate((0, 20)).interval == pytest.approx((0, 0.1611), abs=1e-4)
    assert Estimate.of_rate((20, 20)).interval[1] == 1
    assert Estimate.of_rate((20, 20), is_exact=True).interval is None


def test_the_rate_over_both_seats_varies_only_in_the_seats_that_vary():
    """Always won in one seat, even in the other: half the variance of a rate of 3/4."""
    low, high = Estimate.of_rate((1000, 1000), (500, 1000)).interval
    assert low < 0.75 < high
    assert high - low == pytest.approx(2 * 1.96 * (0.25 / 1000) ** 0.5 / 2, rel=0.02)
    assert Estimate.of_rate((7, 20), (0, 0)) == Estimate.of_rate((7, 20))


def test_moves_of_a_game_that_are_alike_make_an_interval_wider():
    """Each game loses value in all of its moves or in none of them."""
    total = np.full(60, 5.0)
    alike = Estimate.of_moves(total * (np.arange(60) % 3 == 0), total)
    assert alike.value == pytest.approx(1 / 3)
    assert 1.8 < alike.half / Estimate.of_rate((100, 300)).half < 2.4


def test_moves_that_are_independent_have_the_interval_of_wilson():
    picks = np.random.default_rng(1)
    total = np.full(4000, 5.0)
    count = picks.binomial(5, 0.2, 4000).astype(float)
    expected = Estimate.of_rate((int(count.sum()), 20000)).interval
    assert Estimate.of_moves(count, total).interval == pytest.approx(expected, abs=5e-4)
    none = Estimate.of_moves(np.zeros(50), np.full(50, 9.0))
    assert none.interval == Estimate.of_rate((0, 50)).interval
    assert Estimate.of_moves(np.zeros(1), np.ones(1)).interval is None
    ones = np.ones(30)
    assert Estimate.of_moves(ones, ones).interval == Estimate.of_rate((30, 30)).interval


def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end():
    assert interquartile_mean(np.arange(8.0)) == 3.5
    assert interquartile_mean(SEEDS) == 3.0
    assert interquartile_mean(np.array([1.0, 2.0, 9.0])) == 4.0
    two_rows = np.array([[0.0, 1, 2, 100], [5.0, 5, 5, 5]])
    assert interquartile_mean(two_rows).tolist() == [1.5, 5.0]


def test_the_interval_of_a_mean_over_seeds_is_students():
    half = student_t(4) * SEEDS.std(ddof=1) / 5**0.5
    assert Estimate.of_seeds([SEEDS]).interval == pytest.approx((3.8 - half, 3.8 + half))


@pytest.mark.parametrize("statistic", ["mean", "iqm"])
def test_seeds_that_say_nothing_of_how_they_vary_have_no_interval(statistic):
    for scores in ([np.array([4.0])], [np.full(5, 4.5)], [SEEDS, np.array([1.0])]):
        assert Estimate.of_seeds(scores, statistic).interval is None


def test_games_of_different_level_do_not_widen_an_interval():
    apart = Estimate.of_seeds([SEEDS, SEEDS + 1000])
    assert apart.half == pytest.approx(Estimate.of_seeds([SEEDS, SEEDS]).half)


@pytest.mark.others
def test_a_welch_interval():
    """The example of Student's sleep data, as R's t.test gives it."""
    first = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
    second = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
    difference = Estimate.difference([first], [second])
    assert difference.value == pytest.approx(-1.58)
    assert difference.interval == pytest.approx((-3.3654832, 0.2054832), abs=1e-3)


@pytest.mark.others
def test_statistics_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats", reason=INSTALL)
    draw = np.random.default_rng(0)
    for count in (4, 5, 8, 13, 40):
        first, second = draw.normal(size=count), draw.normal(0.5, 2, size=count + 3)
        assert interquartile_mean(first) == pytest.approx(stats.trim_mean(first, 0.25))
        interval = stats.ttest_1samp(first, 0).confidence_interval()
        assert Estimate.of_seeds([first]).interval == pytest.approx(tuple(interval), abs=1e-6)
        interval = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
        difference = Estimate.difference([first], [second])
        assert difference.interval == pytest.approx(tuple(interval), abs=1e-3)
        won = count // 3
        interval = stats.binomtest(won, count).proportion_ci(method="wilson")
        rate = Estimate.of_rate((won, count))
        assert rate.interval == pytest.approx(tuple(interval), abs=1e-4)


def test_normalized_scores_lie_between_random_play_and_the_optimum():
    turns = normalized(np.array([8.0, 6.0, 4.0]), random=8.0, optimum=4.0)
    assert turns.tolist() == [0.0, 0.5, 1.0]
