"""`rlgames report compare=`: statistics of agents over seeds and games."""

import json

import pytest
from helpers import check_refused, read_result, write_report
from written_runs import reported, write_run

RANGES = {"small": (7.0, 3.0), "large": (20.0, 10.0)}
"""What random and optimal play take on each board."""

LEVELS = {"ppo": (0.9, 0.92, 0.94), "reinforce": (0.5, 0.7, 0.6)}
"""The normalized scores of each learner's seeds."""


def write(path, board, learner, seed, score, **more):
    random, optimum = RANGES[board]
    turns = random + (optimum - random) * score
    write_run(
        path,
        results={"turns": turns, "random": random, "optimal": optimum},
        game={"name": "salvo", "board": {"small": 4, "large": 6}[board]},
        learner={"name": learner},
        seed=seed,
        **more,
    )
    write_report(path, "train_final", {"turns": turns + 0.5})


@pytest.fixture
def runs(tmp_path):
    for board in RANGES:
        for learner, scores in LEVELS.items():
            for seed, score in enumerate(scores):
                path = tmp_path / "runs" / board / f"{learner}_{seed}"
                write(path, board, learner, seed, score)
    return tmp_path / "runs"


def entry(entries, **fields):
    return next(each for each in entries if all(each[k] == v for k, v in fields.items()))


def test_several_games_are_compared_between_random_play_and_the_optimum(runs, typed):
    report = json.loads(reported(typed, "runs", "compare=learner", "format=json"))
    assert [each["agent"] for each in report["agents"]] == ["learner=ppo", "learner=reinforce"]
    assert {each["title"] for each in report["statistics"]} == {
        "salvo board=4", "salvo board=6", "2 games (salvo board=4, salvo board=6)",
    }  # fmt: skip
    best = {"metric": "normalized score", "checkpoint": "best (selected)"}
    ppo = entry(report["statistics"], agent="learner=ppo", **best)
    assert (len(ppo["games"]), ppo["runs"]) == (2, 6)
    assert ppo["mean"]["value"] == pytest.approx(0.92)
    assert ppo["iqm"]["value"] == pytest.approx(0.92)
    low, high = ppo["mean"]["ci95"]
    assert low < 0.92 < high < 0.96
    pair = entry(report["pairs"], **best)
    assert pair["difference"]["value"] == pytest.approx(0.32)
    low, high = pair["difference"]["ci95"]
    assert 0 < low < 0.32 < high


def test_one_game_is_also_compared_in_its_own_metric(runs, typed):
    report = json.loads(reported(typed, "runs/large", "compare=learner", "format=json"))
    turns = entry(report["statistics"], metric="turns", checkpoint="final", agent="learner=ppo")
    assert turns["mean"]["value"] == pytest.approx(10.8 + 0.5)
    pair = entry(report["pairs"], metric="turns", checkpoint="best (selected)")
    assert pair["difference"]["value"] == pytest.approx(-3.2)


def test_values_that_differ_by_rounding_are_equal(tmp_path, typed):
    """Ten runs of two agents, all at the optimum but for the last digit of a sum."""
    nearly = 3.0 + 1e-15
    for learner in ("first", "second"):
        for seed in range(10):
            path = tmp_path / "runs" / f"{learner}_{seed}"
            write(path, "small", learner, seed, 1.0)
            is_exact = (seed + (learner == "first")) % 3
            turns = {"turns": 3.0 if is_exact else nearly}
            write_report(path, "train_best", read_result(path) | turns)
    report = json.loads(reported(typed, "runs", "compare=learner", "format=json"))
    assert [each["agent"] for each in report["agents"]] == ["learner=first", "learner=second"]
    for pair in report["pairs"]:
        assert pair["difference"] == {"value": 0.0, "ci95": None}
        assert str(pair["difference"]["value"]) == "0.0"
    for row in report["statistics"]:
        assert row["mean"]["ci95"] is None
        assert row["iqm"]["ci95"] is None
    rows = json.loads(reported(typed, "runs", "format=json"))["rows"]
    assert [row["config"]["learner"] for row in rows] == ["first", "second"]
    assert [row["gap_to_optimal"] for row in rows] == [0.0, 0.0]
    assert "-0.0" not in reported(typed, "runs", "compare=learner") + reported(typed, "runs")


def test_every_format_shows_the_statistics(runs, typed):
    write(runs / "odd", "small", "ppo", 3, 0.9)
    (runs / "odd" / "run.json").write_text("{")
    table = reported(typed, "runs", "compare=learner")
    assert "left out, because they are not done or damaged: 1 of 13 runs" in table
    assert "0.9200 (" in table
    assert "A - B" in table
    assert "agents, salvo board=4" in table
    markdown = reported(typed, "runs", "compare=learner", "format=markdown")
    assert "| learner=ppo | normalized score, best (selected) | 6 | 0.9200 (" in markdown


@pytest.mark.parametrize("format", ["table", "markdown", "latex", "json"])
def test_seeds_that_failed_are_counted_in_every_format(runs, typed, format):
    write(runs / "bad", "small", "ppo", 3, 0.9, status="failed")
    text = reported(typed, "runs/small", "runs/bad", "compare=learner", f"format={format}")
    if format == "json":
        ppo = entry(json.loads(text)["statistics"], agent="learner=ppo", metric="turns")
        assert (ppo["runs"], ppo["of_runs"]) == (3, 4)
    else:
        assert "3 of 4" in text
        assert "left out, because they are not done or damaged: 1 of 7 runs" in text
    titles = reported(typed, "runs/small", "runs/bad", f"format={format}")
    assert format == "json" or "means over the seeds that are done (6 of 7)" in titles


def test_games_without_an_optimum_are_compared_on_their_own(runs, typed):
    for learner, score in (("ppo", 0.5), ("reinforce", 0.4)):
        results = {"points": score, "random": 0.5, "exploitability": 1 - score}
        write_run(
            runs / f"ttt_{learner}",
            results=results,
            facts={"metric": "points", "best_by": "exploitability"},
            game={"name": "tictactoe"},
            learner={"name": learner},
        )
    found = json.loads(reported(typed, "runs", "compare=learner", "format=json"))
    assert found["agents"][0]["agent"] == "learner=ppo"
    metrics = [each["metric"] for each in found["statistics"] if each["title"] == "tictactoe"]
    assert [*dict.fromkeys(metrics)] == ["points", "exploitability"]
    assert entry(found["statistics"], metric="normalized score")["title"].startswith("2 games (")


def test_what_cannot_be_compared_is_refused_in_one_line(runs, typed):
    write(runs / "odd", "small", "ppo", 3, 0.9, lr=0.5)
    write(runs / "even", "small", "ppo", 4, 0.9, lr=0.1)
    for words, hint in (
        (["compare=lerner"], "learner"),
        (["compare=learner"], "differ in lr"),
        (["compare=learner", "width=column"], "width= is for learning curves"),
        (["compare=learner", "format=csv"], "use format=json"),
    ):
        check_refused(typed("report", "runs", *words), hint)
    names = ["runs/small/ppo_0", "runs/large/reinforce_0"]
    check_refused(typed("report", *names, "compare=learner"), "has no run of")


def test_the_best_agents_of_many_are_compared(tmp_path, typed):
    for number in range(12):
        for seed in range(2):
            score = 0.05 * number + 0.01 * seed
            folder = tmp_path / "runs" / f"{number}_{seed}"
            write(folder, "small", "ppo", seed, score, lr=number)
    found = json.loads(reported(typed, "runs", "compare=lr", "top=10", "format=json"))
    assert [agent["config"]["lr"] for agent in found["agents"]] == [*range(11, 1, -1)]
