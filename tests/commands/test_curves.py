"""Learning curves of `rlgames report`: their numbers, their panels, and what is refused."""

import json
import math
import statistics

import numpy as np
import pytest
from helpers import check_refused, write_report
from matplotlib.colors import to_rgb
from PIL import Image
from written_runs import SWEEP, write_run

from rlgames.drawing import figures
from rlgames.evaluation.curves import along, moving_mean, over_seeds, up_to_optimum
from rlgames.evaluation.estimates import student_t
from rlgames.runs.table import Run

SALVO = {"name": "salvo", "board": 4}
LARGE = {"name": "salvo", "board": 6}
ENDS = {4: (8.0, 4.0), 6: (20.0, 10.0)}
"""What random and optimal play take on each board."""


def write(path, game, turns, losses=(), **settings):
    """A run that is done, with an evaluation and a line of training after each 100 games."""
    random, optimum = ENDS[game["board"]]
    results = {"turns": turns[-1], "random": random, "optimal": optimum}
    lines = [{"games": 100 * place, "train/loss": loss} for place, loss in enumerate(losses, 1)]
    write_run(path, turns=turns, results=results, lines=lines, game=game, **settings)


@pytest.fixture
def sweep(tmp_path):
    """Two values of lr with three seeds each, on one board."""
    for job, (lr, seed, turn) in enumerate(SWEEP):
        turns = (8.0, 7.0, 6.5, turn)
        write(tmp_path / "sweep" / str(job), SALVO, turns, (3.0, 2.0), lr=lr, seed=seed)
    return tmp_path / "sweep"


@pytest.fixture
def drawn(typed, monkeypatch):
    """Draw curves and return their axes, and the legend."""
    shown = []

    def draw(*words):
        monkeypatch.setattr(figures, "save_figure", lambda figure, path: shown.append(figure))
        said = typed("report", *words, "curves=x.svg")
        assert said.returncode == 0, said.stderr
        figure = shown.pop()
        (legend,) = figure.legends or [None]
        return [axes for axes in figure.axes if axes.get_visible()], legend

    return draw


def line_of(axes, label):
    return next(line for line in axes.lines if line.get_label() == label)


def names(legend):
    return [text.get_text() for text in legend.get_texts()]


def test_a_curve_is_labeled_and_lies_between_dashed_references(sweep, drawn):
    (axes,), legend = drawn("sweep")
    assert axes.get_xlabel() == "games played"
    assert axes.get_ylabel() == "turns per game\n(greedy play)"
    # By their final values: 5.5 turns and 4.75 turns.
    assert names(legend) == ["lr=0.1", "lr=0.2", "random play", "optimum"]
    assert legend.get_title().get_text() == "mean of 3 seeds, band: 95% interval"
    curve = line_of(axes, "lr=0.2")
    assert list(curve.get_xdata()) == [100, 200, 300, 400]
    assert curve.get_ydata()[-1] == pytest.approx(4.75)
    for name, level in (("random play", 8), ("optimum", 4)):
        assert line_of(axes, name).get_ydata()[0] == level
        assert line_of(axes, name).is_dashed()
    assert not curve.is_dashed()


def test_a_wide_band_does_not_flatten_the_curves(sweep, drawn):
    (axes,), _ = drawn("sweep")
    low, high = axes.get_ylim()
    assert (low, high) == (pytest.approx(3.8), pytest.approx(8.2))  # 4 and 8, and 5% more
    band = axes.collections[1].get_paths()[0].vertices[:, 1]
    half = student_t(2) * statistics.stdev([5.0, 6.0, 5.5]) / math.sqrt(3)
    assert (band.min(), band[-2] > 8) == (pytest.approx(5.5 - half), False)


def test_metrics_are_rows_of_panels_and_games_are_columns(sweep, drawn):
    for seed in range(2):
        for lr, turns in ((0.1, (19.0, 15.0)), (0.2, (18.0, 12.0))):
            folder = sweep / f"large{seed}_{lr}"
            write(folder, LARGE, turns, (4.0, 3.0), lr=lr, seed=seed)
    panels, legend = drawn("sweep", "metric=[eval/turns,train/loss]")
    assert [axes.get_title() for axes in panels] == 2 * ["salvo board=4", "salvo board=6"]
    labels = [axes.get_ylabel() for axes in panels]
    assert labels == 2 * ["turns per game\n(greedy play)"] + 2 * ["loss\n(training)"]
    assert [axes.get_xlabel() for axes in panels] == ["", "", "games played", "games played"]
    assert names(legend) == ["lr=0.1", "lr=0.2", "random play", "optimum"]
    assert [line_of(axes, "lr=0.1").get_color() for axes in panels] == 4 * ["#D55E00"]
    assert [line_of(panels[k], "optimum").get_ydata()[0] for k in (0, 1)] == [4, 10]


def test_games_without_values_of_a_metric_are_left_out_and_named(sweep, drawn, typed):
    write(sweep / "large", LARGE, (9.0,))
    (sweep / "large" / "metrics.jsonl").write_text('{"games": 100, "train/loss": 4.0}\n')
    panels, legend = drawn("sweep")
    assert [axes.get_title() for axes in panels] == ["salvo board=4"]
    assert "without values: salvo board=6" in legend.get_title().get_text()
    said = typed("report", "sweep/large", "curves=x.png")
    assert "no run has values of eval/turns" in said.stderr


@pytest.mark.parametrize(
    ("x", "label", "places"),
    [
        ("moves", "moves made", [700, 1400, 2100, 2800]),
        ("updates", "updates", [1, 2, 3, 4]),
        ("seconds", "wall-clock time (s)", [2, 4, 6, 8]),
    ],
)
def test_other_axes(x, label, places, sweep, drawn):
    (axes,), _ = drawn("sweep", f"x={x}")
    assert axes.get_xlabel() == label
    assert list(line_of(axes, "lr=0.1").get_xdata()) == places


def test_a_line_of_the_log_between_two_others_lies_between_them_on_every_axis():
    axis = np.array([100.0, 200.0]), np.array([10.0, 40.0])
    x, y = along((np.array([50.0, 150.0, 250.0]), np.array([1.0, 2.0, 3.0])), axis)
    assert (list(x), list(y)) == ([5, 25], [1, 2])  # nobody knows when 250 games were played


def test_aggregates_and_bands():
    x = np.array([1.0])
    seeds = [[(x, np.array([y])) for y in (1.0, 2.0, 4.0, 9.0)]]

    def at(aggregate):
        _, (value,), ((low,), (high,)), _ = over_seeds(seeds, aggregate)
        return value, low, high

    half = student_t(3) * statistics.stdev([1, 2, 4, 9]) / 2
    assert at("mean") == pytest.approx((4, 4 - half, 4 + half))
    value, low, high = at("iqm")
    assert low < 1 < value == 3 < 5 < high
    assert over_seeds([seeds[0][:1]], "mean")[2] is None


@pytest.mark.parametrize(("random", "band"), [(9.0, ([3.0], [3.5])), (0.0, ([2.5], [3.2]))])
def test_a_band_ends_at_the_optimum(random, band):
    low, high, y = np.array([2.5]), np.array([3.5]), np.array([3.2])
    assert [*map(list, up_to_optimum(y, low, high, random, 3.0))] == [*band]
    assert list(up_to_optimum(np.array([2.9]), low, high, 9.0, 3.0)[0]) == [2.9]


def test_seeds_count_within_their_own_games():
    one = np.array([1.0, 3.0]), np.array([2.0, 4.0])
    other = np.array([2.0, 3.0]), np.array([5.0, 8.0])
    x, y, band, _ = over_seeds([[one, other]], "mean")
    assert (list(x), list(y)) == ([1, 2, 3], [2, 4, 6])
    assert band[1][2] - y[2] == pytest.approx(student_t(1) * math.sqrt(8 / 2))
    assert list(over_seeds([[one, other]], "mean", is_shared=True)[0]) == [2, 3]
    later = np.array([5.0, 6.0]), np.array([5.0, 8.0])
    assert len(over_seeds([[one, later]], "mean", is_shared=True)[0]) == 0


def test_seeds_that_end_almost_together_all_count_to_the_end():
    """As after learning in several threads, whose last batch may be longer."""
    one = np.array([100.0, 10_000.0]), np.array([2.0, 4.0])
    other = np.array([110.0, 10_050.0]), np.array([5.0, 8.0])
    x, y, *_ = over_seeds([[one, other]], "mean")
    assert list(x) == [100, 110, 10_000, 10_050]
    assert (y[0], y[-1]) == (3.5, 6)


def test_a_figure_says_from_where_on_it_is_of_fewer_seeds(tmp_path, drawn):
    """Otherwise the mean jumps where a seed ends, under the number of all."""
    for seed in range(5):
        turns = (7.0,) * (4 if seed < 4 else 2)
        write(tmp_path / "of5" / str(seed), SALVO, turns, seed=seed)
    failed = tmp_path / "of5" / "4" / "run.json"
    failed.write_text(failed.read_text().replace('"done"', '"failed"'))
    _, legend = drawn("of5")
    words = "mean of 5 seeds, 4 from 300 games on, band: 95% interval"
    assert legend.get_title().get_text() == words
    _, legend = drawn("of5", "x=moves")
    words = "mean of 5 seeds, to the end of the shortest run, because 1 not done"
    assert legend.get_title().get_text().startswith(words)
    write(tmp_path / "of5" / "whole", SALVO, (7.0,) * 4, lr=0.5)
    write(tmp_path / "of5" / "pair", SALVO, (7.0,) * 4, lr=0.5, seed=1)
    _, legend = drawn("of5")
    assert legend.get_title().get_text().splitlines() == [
        "mean of 5 seeds, band: 95% interval",
        "lr=0.1: 5 seeds, 4 from 300 games on",
        "lr=0.5: 2 seeds",
    ]


def test_seeds_without_other_differences_are_named_by_their_folder(sweep, drawn):
    write(sweep.parent / "one" / "0", SALVO, (5.0,))
    write(sweep.parent / "one" / "1", SALVO, (6.0,), seed=1)
    _, legend = drawn("one")
    assert names(legend)[0] == "one"
    _, legend = drawn("one/1")
    assert names(legend)[0] == "one/1"


def test_sample_efficiency_pools_games_between_random_play_and_the_optimum(sweep, drawn):
    for seed in range(2):
        for lr, turns in ((0.1, (19.0, 15.0)), (0.2, (18.0, 12.0))):
            write(sweep / f"large{seed}_{lr}", LARGE, turns, lr=lr, seed=seed)
    (axes,), legend = drawn("sweep", "compare=lr", "aggregate=iqm")
    assert axes.get_title() == "2 games"
    assert axes.get_ylabel() == "normalized score\n(greedy play)"
    assert legend.get_title().get_text() == "interquartile mean of 3 seeds, band: 95% interval"
    x, y = line_of(axes, "lr=0.2").get_data()
    assert list(x) == [100, 200]
    # 8 of 8 to 4 turns and 18 of 20 to 10 turns: 0 and 0.2; the middle three of 0, 0, 0, 0.2, 0.2.
    assert y[0] == pytest.approx((0 + 0 + 0.2) / 3)
    (small, large), _ = drawn("sweep", "compare=lr", "metric=eval/turns")
    assert len(line_of(small, "lr=0.2").get_xdata()) == 4
    assert list(line_of(large, "lr=0.1").get_ydata()) == [19, 15]


@pytest.mark.parametrize("style", figures.COLORS)
def test_lines_can_be_told_apart_without_colors(style):
    colors = figures.COLORS[style]
    assert len({*figures.MARKERS}) == len({*colors}) == figures.MAX_LINES
    brightness = [float(np.dot(to_rgb(color), (0.2126, 0.7152, 0.0722))) for color in colors]
    assert max(brightness) < 0.8  # on white paper
    if style == "gray":
        assert all(len({*to_rgb(color)}) == 1 for color in colors)
        assert min(abs(np.diff(brightness))) > 0.2


def test_a_file_has_the_width_that_is_asked_for(sweep, typed, tmp_path):
    assert "curves: a.png" in typed("report", "sweep", "curves=a.png", "width=column").stdout
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.width == pytest.approx(3.25 * 150, abs=1)


def test_a_window_averages_training_metrics_over_games(tmp_path, typed, drawn):
    games, means = np.array([100.0, 200.0, 400.0]), np.array([8.0, 6.0, 5.0])
    x, y = moving_mean((games, means), 200)
    assert list(x) == [200, 400]
    assert list(y) == [7, 5]
    x, y = moving_mean((games, means), 300)
    assert list(x) == [400]
    assert y[0] == pytest.approx((6 + 2 * 5) / 3)
    assert len(moving_mean((games, means), 500)[0]) == 0

    write(tmp_path / "run", SALVO, (5.0,), [4.0, 6.0] * 5)
    (axes,), legend = drawn("run", "metric=train/loss", "window=200")
    assert list(axes.lines[0].get_ydata()) == [5] * 9
    assert legend.get_title().get_text() == "mean of the last 200 games"
    words = ["run", "curves=x.png", "metric=train/loss"]
    said = typed("report", *words, "window=2000")
    assert "window=2000 is longer than every run" in said.stderr
    said = typed("report", *words, "window=50")
    check_refused(said, "window=50 is shorter than the 100 games of a log line", "log_every=50")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["x=moves"], "add curves=FILE.png"),
        (["curves=x.gif"], ".png, .svg or .pdf"),
        (["curves=x.png", "aggregate=iq"], "did you mean iqm?"),
        (["curves=x.png", "width=100"], "valid: 1 to 40"),
        (["curves=x.png", "metric=[eval/turns,train/los]"], "did you mean train/loss?"),
        (["curves=x.png", "metric=eval/turns", "window=100"], "metric=train/turns"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(words, hint, sweep, typed):
    check_refused(typed("report", "sweep", *words), hint)


def test_axes_and_scores_that_are_not_known_are_refused(tmp_path, typed):
    write(tmp_path / "runs" / "old", SALVO, (5.0,))
    path = tmp_path / "runs" / "old" / "metrics.jsonl"
    path.write_text('{"games": 100, "eval/turns": 5.0}\n')
    said = typed("report", "runs", "curves=x.png", "x=moves")
    assert "no run has values of eval/turns and time/moves" in said.stderr
    write(tmp_path / "runs" / "new", SALVO, (5.0, 4.0), lr=0.2)
    assert typed("report", "runs", "curves=x.png", "x=moves").returncode == 0
    (tmp_path / "runs" / "new" / "run.json").unlink()
    write_report(path.parent, "train_best", {"turns": 5.0, "random": 8.0})
    said = typed("report", "runs", "curves=x.png", "metric=normalized")
    assert "needs a known optimum, and salvo has none" in said.stderr


def test_without_matplotlib_a_hint_says_what_to_install(sweep, typed, monkeypatch):
    monkeypatch.setattr("rlgames.core.errors.find_spec", lambda name: None)
    said = typed("report", "sweep", "curves=x.png")
    check_refused(said, "needs matplotlib; pip install 'rlgames-lab[figures]'")


def test_each_game_shows_the_metric_that_selects_its_checkpoints(sweep, drawn):
    path = sweep / "2048"
    write(path, {"name": "2048", "board": 4}, (9.0, 8.0))
    run = json.loads((path / "run.json").read_text())
    run |= {"metric": "score", "best_by": "score"}
    write_report(path, "train_best", {"score": 5.0, "turns": 9.0})
    (path / "run.json").write_text(json.dumps(run))
    lines = [{"games": 100 * n, "eval/score": 50.0 * n, "eval/turns": n} for n in (1, 2, 3)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    panels, _ = drawn("sweep")
    labels = {axes.get_title(): axes.get_ylabel().partition("\n")[0] for axes in panels}
    assert labels == {"2048": "score per game", "salvo": "turns per game"}


def test_effects_show_each_value_of_each_setting_with_its_interval(sweep, typed, monkeypatch):
    for seed, turn in enumerate((9.0, 10.0, 11.0)):
        write(sweep / f"large{seed}", LARGE, (turn,), lr=0.1, seed=seed)
    shown = []
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: shown.append(figure))
    assert "effects: x.svg" in typed("report", "sweep", "effects=x.svg").stdout
    board, lr = shown.pop().axes
    assert [axes.get_xlabel() for axes in (board, lr)] == ["board", "lr"]
    assert (board.get_ylabel(), lr.get_ylabel()) == ("turns per game\n(greedy play)", "")
    assert [text.get_text() for text in board.get_xticklabels()] == ["4", "6"]
    # Only lr=0.1 has both boards, and only board=4 both values of lr.
    assert list(board.lines[0].get_ydata()) == [5.5, 10.0]
    assert list(lr.lines[0].get_ydata()) == [5.5, 4.75]
    low, high = board.collections[0].get_segments()[1][:, 1]
    assert high - low == pytest.approx(2 * student_t(2) * math.sqrt(1 / 3))


def test_points_are_those_of_parsed_lines(tmp_path):
    rows = [{"games": g, "train/turns": 1 / g, "train/turns per": 9.0, "x": -1e-30} for g in (1, 3)]
    rows.append({"games": 3, "train/turns": 7.5e20})
    lines = [json.dumps(row) for row in rows]
    lines += ['{"games": 5, "train/turns": NaN}', '{"games": 6, "train/turns": 1.0']
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    x, y = Run(path=tmp_path, status="done").points("train/turns")
    assert (list(x), list(y)) == ([1, 3], [1.0, 7.5e20])
    x, y = Run(path=tmp_path, status="done").points("x")
    assert (list(x), list(y)) == ([1, 3], [-1e-30] * 2)


def test_long_curves_are_drawn_at_as_many_places_as_a_figure_shows():
    x = np.arange(10_001.0)
    places, y, _, _ = over_seeds([[(x, 2 * x), (x, 4 * x)]], "mean")
    assert len(places) == 2000
    assert (places[0], places[-1]) == (0, 10_000)
    assert np.array_equal(y, 3 * places)
