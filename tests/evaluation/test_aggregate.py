"""Statistics over seeds and games, against worked examples and textbooks."""

import numpy as np
import pytest

from rlgames.core.intervals import student_t, wilson_interval
from rlgames.evaluation.aggregate import (
    aggregate,
    difference_of_means,
    interquartile_mean,
    normalized,
)

INSTALL = "scipy is not installed: pip install -c constraints.txt '.[engines]'"
SEEDS = np.array([3.0, 1.0, 2.0, 9.0, 4.0])


def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end():
    assert interquartile_mean(np.arange(8.0)) == 3.5
    assert interquartile_mean(SEEDS) == 3.0
    assert interquartile_mean(np.array([1.0, 2.0, 9.0])) == 4.0
    two_rows = np.array([[0.0, 1, 2, 100], [5.0, 5, 5, 5]])
    assert interquartile_mean(two_rows).tolist() == [1.5, 5.0]


def test_the_interval_of_a_mean_over_seeds_is_students():
    low, high = aggregate([SEEDS])["mean"].interval
    half = student_t(4) * SEEDS.std(ddof=1) / 5**0.5
    assert (low, high) == pytest.approx((3.8 - half, 3.8 + half))


def test_seeds_that_say_nothing_of_how_they_vary_have_no_interval():
    for scores in ([np.array([4.0])], [np.full(5, 4.5)], [SEEDS, np.array([1.0])]):
        assert all(each.interval is None for each in aggregate(scores).values())


def test_seeds_are_resampled_within_each_game():
    """Games of very different level do not widen the interval."""
    apart = aggregate([SEEDS, SEEDS + 1000])["mean"].interval
    alike = aggregate([SEEDS, SEEDS])["mean"].interval
    assert apart[1] - apart[0] == pytest.approx(alike[1] - alike[0])


@pytest.mark.others
def test_a_welch_interval():
    """The example of Student's sleep data, as R's t.test gives it."""
    first = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
    second = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
    difference = difference_of_means([first], [second])
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
        assert aggregate([first])["mean"].interval == pytest.approx(tuple(interval), abs=1e-6)
        interval = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
        difference = difference_of_means([first], [second])
        assert difference.interval == pytest.approx(tuple(interval), abs=1e-3)
        won = count // 3
        interval = stats.binomtest(won, count).proportion_ci(method="wilson")
        assert wilson_interval(won, count) == pytest.approx(tuple(interval), abs=1e-4)


def test_normalized_scores_lie_between_random_play_and_the_optimum():
    turns = normalized(np.array([8.0, 6.0, 4.0]), random=8.0, optimum=4.0)
    assert turns.tolist() == [0.0, 0.5, 1.0]
