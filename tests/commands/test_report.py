"""Runs beside each other, from files alone; its numbers are worked out anew from the files."""

import csv
import io
import json
import math
import os
import re
import statistics
import subprocess
import sys
from typing import Any

import pytest
from helpers import check_refused, command, read_result, write_report
from markers import one_in
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from written_runs import GAME, SWEEP, reported, write_run

import rlgames as package
from rlgames.commands.comparison import in_words
from rlgames.evaluation.estimates import student_t
from rlgames.runs.directory import lock_directory
from rlgames.runs.files import flatten, read_metrics
from rlgames.runs.find import find_runs

T = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 9: 2.2622, 30: 2.0423, 1000: 1.9623}
"""Student's t, 97.5%, by degrees of freedom, from a printed table."""


@pytest.fixture
def sweep(tmp_path):
    """Two values of lr with three seeds each."""
    for job, (lr, seed, turn) in enumerate(SWEEP):
        write_run(tmp_path / "sweep" / str(job), turns=(8.0, 7.0, 6.5, turn), lr=lr, seed=seed)
    return tmp_path / "sweep"


def by_hand(directory):
    """Mean, half an interval and number of runs by settings, from the files and the table T."""
    groups: dict[Any, Any] = {}
    for path in directory.iterdir():
        facts = json.loads((path / "run.json").read_text())
        cfg = facts["config"]
        del cfg["out"], cfg["seed"]
        turns = read_result(path)["turns"]
        groups.setdefault(json.dumps(cfg, sort_keys=True), []).append(turns)
    found = []
    for values in groups.values():
        n = len(values)
        half = T[n - 1] * math.sqrt(statistics.variance(values) / n)
        found.append((statistics.mean(values), half, n))
    return sorted(found)


def test_the_numbers_are_those_of_the_files(sweep, typed):
    found = json.loads(reported(typed, "sweep", "format=json"))
    assert {"path", "status", "config", "results"} <= set(found["runs"][0])
    assert found["runs"][0]["results"] == {"turns": 5.0, "optimal": 4.0, "final.turns": 6.0}
    assert found["runs"][0]["best_games"] == 300
    assert [run["path"] for run in found["runs"]] == [f"sweep/{job}" for job in range(6)]
    for row, (mean, half, n) in zip(found["rows"], by_hand(sweep), strict=True):
        turns = row["results"]["turns"]
        assert (turns["value"], turns["seeds"]) == (pytest.approx(mean, abs=1e-12), n)
        low, high = turns["ci95"]
        assert (low, high) == (pytest.approx(mean - half, 1e-4), pytest.approx(mean + half, 1e-4))
        assert row["gap_to_optimal"] == pytest.approx((mean - 4) / 4, abs=1e-12)
        assert row["results"]["final.turns"]["value"] == pytest.approx(mean + 1, abs=1e-12)
        assert row["final_gap_to_optimal"] == pytest.approx((mean - 3) / 4, abs=1e-12)
    assert [row["config"] for row in found["rows"]] == [{"lr": 0.2}, {"lr": 0.1}]
    assert found["best"] == ["sweep/3"]


def test_the_row_of_a_value_is_the_mean_over_the_other_settings(tmp_path, typed):
    turns = {(0.1, 10): (5.0, 6.0), (0.1, 20): (7.0, 9.0), (0.2, 10): (4.0, 4.5), (0.2, 20): (5, 6)}
    for (lr, batch), values in turns.items():
        for seed, turn in enumerate(values):
            path = tmp_path / "runs" / f"{lr},{batch},{seed}"
            write_run(path, turns=(turn,), lr=lr, batch=batch, seed=seed)
    better, worse = json.loads(reported(typed, "runs", "by=lr", "format=json"))["rows"]
    assert (better["config"], worse["config"]) == ({"lr": 0.2}, {"lr": 0.1})
    found = worse["results"]["turns"]
    assert (found["value"], found["seeds"]) == (6.75, 4)
    # The seeds of each batch vary by 0.5 and 2; their means have the weight 1/2.
    parts = [0.5 / 2 / 4, 2 / 2 / 4]
    freedom = sum(parts) ** 2 / sum(part**2 for part in parts)
    half = student_t(freedom) * math.sqrt(sum(parts))
    assert found["ci95"] == pytest.approx([6.75 - half, 6.75 + half])
    # A value of batch that not every lr has, and a run that is not done, would bias a mean.
    write_run(tmp_path / "runs" / "more", turns=(90.0,), lr=0.1, batch=30)
    write_run(tmp_path / "runs" / "now", status="running", turns=(80.0,), lr=0.2, batch=30)
    lines = reported(typed, "runs", "by=lr", "columns=[lr,runs,turns|.2f|mean]").splitlines()
    assert lines[0].startswith("8 runs, means over batch, seed ± 95%, 2 left out: not done")
    assert [line.split() for line in lines[5:7]] == [["0.2", "4", "4.88"], ["0.1", "4", "6.75"]]
    lines = reported(typed, "runs", "by=seed", "columns=[seed,turns|.2f]").splitlines()
    assert [line.split() for line in lines[5:7]] == [["0", "5.25"], ["1", "6.38"]]


def test_a_seed_counts_once(sweep, typed):
    before = json.loads(reported(typed, "sweep", "format=json"))["rows"]
    write_run(sweep / "again", turns=(4.5,), lr=0.2, seed=0)
    after = json.loads(reported(typed, "sweep", "format=json"))["rows"]
    assert [row["results"] for row in after] == [row["results"] for row in before]
    assert len(after[0]["runs"]) == 4


def test_every_format_says_the_same(sweep, typed):
    (mean, half, _), _ = by_hand(sweep)
    value = f"{mean:.4f} ± {half:.4f}"
    final = [f"{mean + 1:.4f} ± {half:.4f}", "4.0000", "18.75%", "43.75%"]
    cells = ["0.2", "done", "3", value, *final, "9.0", "sweep/3"]
    told = reported(typed, "sweep")
    row = next(line for line in told.splitlines() if line.startswith("0.2 "))
    assert re.split(r" {2,}", row) == cells
    assert told.splitlines()[-1] == "best run: rlgames eval sweep/3"
    told = reported(typed, "sweep", "format=markdown")
    lines = [line.strip("| ").split(" | ") for line in told.splitlines()[:4]]
    assert lines[0] == [
        *("lr", "status", "runs", "turns best", "turns final", "optimal"),
        *("gap best", "gap final", "seconds", "run"),
    ]
    assert lines[2] == cells
    assert told.splitlines()[-1] == "best run: `rlgames eval sweep/3`"
    told = reported(typed, "sweep", "format=latex").splitlines()
    assert told[1:3] == ["\\begin{tabular}{llrrrrrrrl}", "\\toprule"]
    row = told[5].removesuffix(" \\\\").split(" & ")
    assert [cell.replace("$\\pm$", "±").replace("\\%", "%") for cell in row] == cells
    assert told[-1] == "% best run: rlgames eval sweep/3"
    rows = list(csv.DictReader(io.StringIO(reported(typed, "sweep", "format=csv"))))
    assert float(rows[0]["turns"]) == mean
    assert float(rows[0]["final.turns"]) == mean + 1
    assert float(rows[0]["turns high"]) == pytest.approx(mean + half, 1e-4)
    assert float(rows[0]["final.turns high"]) == pytest.approx(mean + 1 + half, 1e-4)
    assert (rows[0]["lr"], rows[1]["run"]) == ("0.2", "sweep/0")


def test_the_best_run_is_evaluated_with_the_modules_it_needs(typed, tmp_path):
    write_run(tmp_path / "runs" / "mine", plugins=["mine", "own.parts"])
    line = "best run: rlgames eval runs/mine 'plugins=[mine,own.parts]'"
    assert reported(typed, "runs").splitlines()[-1] == line
    for odd in (["a b"], ["\x1b"], "mine", [], [3]):
        write_run(tmp_path / str(odd) / "run", plugins=odd)
        assert "plugins" not in reported(typed, str(odd)).splitlines()[-1]


def test_markdown_has_what_differs_within_a_game_and_the_main_figures(sweep, typed):
    """Beside Salvo with two values of lr two runs of another game, which have more of all."""
    for seed, share in enumerate((0.5, 0.25)):
        figures = dict.fromkeys(("points", "win", "draw", "loss", "exploitability"), share)
        write_run(
            sweep / f"other{seed}", game={"name": "tictactoe", "line": 3}, results=figures,
            facts={"metric": "points", "best_by": "exploitability"}, seed=seed, batch=64,
            learner={"name": "q", "rate": 0.5},
        )  # fmt: skip
    told = reported(typed, "sweep", "format=markdown").splitlines()[0]
    names = told.strip("| ").split(" | ")
    assert names[:4] == ["game", "lr", "status", "runs"]
    assert names[-5:] == ["optimal", "gap best", "gap final", "seconds", "run"]
    assert {*names[4:-5]} == {
        *(f"{name} best" for name in ("turns", "exploitability", "points")),
        "turns final",
    }
    whole = reported(typed, "sweep", "format=csv").splitlines()[0].split(",")
    assert {"learner", "lr", "win"} <= {*whole}


def test_rows_of_single_runs_and_their_order(sweep, typed):
    found = json.loads(reported(typed, "sweep", "by=run", "format=json"))
    turns = [row["results"]["turns"]["value"] for row in found["rows"]]
    assert turns == sorted(turns)
    assert found["rows"][0]["config"] == {"seed": 0, "lr": 0.2}
    assert found["rows"][0]["results"]["turns"]["ci95"] is None
    best = found["rows"]
    told = json.loads(reported(typed, "sweep", "by=run", "sort=-best", "format=json"))
    assert told["rows"] == best[::-1]
    for sort, key in (("seed", "seed"), ("-lr", "lr")):
        told = json.loads(reported(typed, "sweep", "by=run", f"sort={sort}", "format=json"))
        values = [row["config"][key] for row in told["rows"]]
        assert values == sorted(values, reverse=sort[0] == "-")


def test_better_is_what_the_run_is_judged_by(tmp_path, typed):
    two = {"metric": "points", "best_by": "exploitability"}
    one = {"metric": "score", "best_by": "score"}
    write_run(tmp_path / "a/0", results={"points": 0.9, "exploitability": 0.5}, facts=two, lr=1)
    write_run(tmp_path / "a/1", results={"points": 0.8, "exploitability": 0.1}, facts=two, lr=2)
    write_run(
        tmp_path / "b/0", results={"score": 10.0, "turns": 5.0, "optimal": 40.0}, facts=one, lr=1
    )
    write_run(
        tmp_path / "b/1", results={"score": 20.0, "turns": 9.0, "optimal": 40.0}, facts=one, lr=2
    )
    for folder in "ab":
        assert json.loads(reported(typed, folder, "format=json"))["best"] == [f"{folder}/1"]
    assert json.loads(reported(typed, "b", "format=json"))["rows"][0]["gap_to_optimal"] == 0.5


def test_a_gap_that_rounds_to_zero_has_no_sign(tmp_path, typed):
    write_run(tmp_path / "runs/0", turns=(3.999999,))
    told = reported(typed, "runs")
    assert "0.00%" in told
    assert "-0.00%" not in told


def test_different_games_are_not_compared(tmp_path, typed):
    write_run(tmp_path / "all/salvo/x", turns=(9.0,))
    write_run(tmp_path / "all/small/x", turns=(3.0,), game=GAME | {"board": 3})
    write_run(tmp_path / "all/small/y", turns=(2.0,), game=GAME | {"board": 3}, lr=0.2)
    found = json.loads(reported(typed, "all", "format=json"))
    assert sorted(found["best"]) == ["all/salvo/x", "all/small/y"]
    assert all(set(row["config"]) == {"board", "lr"} for row in found["rows"])


def test_what_follows_from_an_option_does_not_distinguish_runs(tmp_path, typed):
    ppo, reinforce = {"name": "ppo", "clip": 0.2, "rate": 1.0}, {"name": "reinforce", "rate": 2.0}
    for job, learner in enumerate((ppo, reinforce)):
        write_run(tmp_path / str(job), learner=learner)
    rows = json.loads(reported(typed, str(tmp_path), "format=json"))["rows"]
    assert [row["config"] for row in rows] == [{"learner": "ppo"}, {"learner": "reinforce"}]
    write_run(tmp_path / "2", learner=ppo | {"rate": 3.0})
    rows = json.loads(reported(typed, str(tmp_path), "format=json"))["rows"]
    assert [row["config"].get("learner.rate") for row in rows] == [1.0, 2.0, 3.0]


def test_jobs_are_listed_in_order(tmp_path):
    names = ["2026_9", "2026_10", "b", "lr=0.1,seed=9", "lr=0.1,seed=10", "lr=0.2,seed=0"]
    for name in names[::-1]:
        write_run(tmp_path / "sweep" / name)
    (tmp_path / "sweep" / ".hidden").mkdir()
    assert [path.name for path in find_runs([str(tmp_path / "sweep")])] == names


def test_a_sweep_that_has_just_begun_shows_what_it_sweeps(tmp_path, typed):
    """Of one job, nothing differs yet; with seeds= pooled, the seed is no column."""
    write_run(tmp_path / "lr/lr=0.1,seed=0", learner={"name": "td", "rate": 2.0})
    words = ["experiment=salvo,hits", "game.board=4,5", "lr=choice(0.1,0.2)", "seed=range(3)"]
    words += ["learner.rate=tag(log,interval(1,3))", "games=400", "game.ships=[4,2]", "+new=1,2"]
    overrides = {"hydra": {"overrides": {"task": words, "hydra": []}}}
    (tmp_path / "lr/multirun.yaml").write_text(json.dumps(overrides))
    swept = {"board": 4, "lr": 0.1, "learner.rate": 2.0}
    (row,) = json.loads(reported(typed, "lr", "format=json"))["rows"]
    assert row["config"] == swept
    (row,) = json.loads(reported(typed, "lr", "by=run", "format=json"))["rows"]
    assert row["config"] == swept | {"seed": 0}
    heading = reported(typed, "lr").splitlines()[3].split()
    assert heading[:3] == ["board", "lr", "learner.rate"]
    (tmp_path / "lr/multirun.yaml").write_text("[")
    assert json.loads(reported(typed, "lr", "format=json"))["rows"][0]["config"] == {}


def test_a_run_counts_once(sweep, typed):
    words = ["sweep", "sweep/0", "sweep/../sweep", "format=json"]
    assert len(json.loads(reported(typed, *words))["runs"]) == 6


def test_each_run_has_its_status(tmp_path, typed):
    names = ("done", "failed", "interrupted", "running", "died")
    for name in names:
        status = "running" if name == "died" else name
        run = write_run(tmp_path / "runs" / name, status)
        if name == "running":
            lock = lock_directory(run)
    (tmp_path / "runs/empty").mkdir()
    (tmp_path / "runs/loop").symlink_to(tmp_path / "runs")
    found = json.loads(reported(typed, "runs", "format=json"))
    lock.release()
    assert {run["path"]: run["status"] for run in found["runs"]} == {
        f"runs/{name}": name for name in names
    }
    assert found["best"] == ["runs/done"]
    assert "interrupted at 25%" in reported(typed, "runs", "by=run")


def test_runs_that_are_not_done_are_filled_in_from_their_metrics(tmp_path, typed):
    write_run(tmp_path / "runs/a", "interrupted", turns=(6.0, 5.0, 5.5), lr=0.1)
    write_run(tmp_path / "runs/b", "failed", turns=(7.0,), lr=0.2)
    write_run(tmp_path / "runs/c", turns=(4.0,), lr=0.3)
    rows = {
        row["lr"]: row for row in csv.DictReader(io.StringIO(reported(typed, "runs", "format=csv")))
    }
    best, final = "turns", "final.turns"
    assert [rows["0.1"][name] for name in (best, final)] == ["5.0", "5.5"]
    assert [rows["0.2"][name] for name in (best, final)] == ["7.0", "7.0"]
    assert [rows["0.3"][name] for name in (best, final)] == ["4.0", "5.0"]
    table = reported(typed, "runs")
    assert "5.0000*" in table
    assert "* so far" in table
    assert "4.0000*" not in table
    found = json.loads(reported(typed, "runs", "format=json"))
    assert found["best"] == ["runs/c"]
    assert found["runs"][0]["results"] == {}
    assert found["runs"][0]["so_far"] == {"turns": 5.0, "final.turns": 5.5}


def test_of_equal_evaluations_the_later_one_with_more_points_is_the_best_so_far(tmp_path, typed):
    """As the training itself selects its checkpoint."""
    write_run(tmp_path / "runs/a", "interrupted", facts={"metric": "points", "best_by": "win"})
    lines = [(10, 0.5, 0.6, 9.0), (20, 0.5, 0.7, 8.0), (30, 0.5, 0.7, 7.0), (40, 0.5, 0.6, 6.0)]
    names = ("games", "eval/win", "eval/points", "eval/turns")
    text = "".join(json.dumps(dict(zip(names, line, strict=True))) + "\n" for line in lines)
    (tmp_path / "runs/a/metrics.jsonl").write_text(text)
    found = json.loads(reported(typed, "runs", "format=json"))["runs"][0]["so_far"]
    assert (found["points"], found["turns"]) == (0.7, 7.0)


def test_seeds_that_are_done_are_not_mixed_with_others(tmp_path, typed):
    write_run(tmp_path / "runs/0", turns=(4.0,), seed=0)
    write_run(tmp_path / "runs/1", "interrupted", turns=(6.0,), seed=1)
    row = json.loads(reported(typed, "runs", "format=json"))["rows"][0]
    assert row["results"]["turns"]["value"] == 4.0
    assert "*" not in reported(typed, "runs").splitlines()[-2]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_unreadable_paths_are_reported(sweep, typed):
    (sweep / "1").chmod(0)
    try:
        found = json.loads(reported(typed, "sweep", "format=json"))
    finally:
        (sweep / "1").chmod(0o700)
    assert found["damaged"][0] == {"path": "sweep/1", "reason": "run.json: Permission denied"}


def test_nothing_controls_the_terminal(tmp_path, typed):
    evil = "\x1b]0;x\x07\x9b31m\u202e\n[red]"
    write_run(tmp_path / "runs" / evil.replace("\n", ""), turns=(4.0,), lr=evil)
    write_run(
        tmp_path / "runs" / "b",
        lr="|x|",
        results={evil: 1.0, "turns": 5.0},
        facts={"best_by": evil},
    )
    write_run(tmp_path / "runs" / "c", facts={"status": evil})
    for form in ("table", "csv", "markdown", "latex", "json"):
        told = reported(typed, "runs", f"format={form}", "curves=c.png", "metric=eval/turns")
        assert all(c.isprintable() or c == "\n" for c in told), form
        assert "[red]" in told.replace("\\", "").replace("{[}", "[").replace("{]}", "]")
    said = typed("report", f"no{evil}")
    assert all(c.isprintable() or c == "\n" for c in said.stderr)


@pytest.mark.parametrize(
    ("words", "hint"),
    one_in(
        3,
        [
            ([], "as in: rlgames report"),
            (["swep"], "did you mean sweep?"),
            (["empty"], "there is no run in empty"),
            (["sweep", "sort=trns"], "did you mean turns?"),
            (["sweep", "columns=[lr,trns]"], "did you mean turns?"),
            (["sweep", "by=lrr"], "by=lrr is not a setting; did you mean lr?"),
            (["sweep", "by=lr", "curves=x.png"], "by=lr is for tables; use compare="),
            (["sweep", "compare=lr", "sort=turns"], "sort= is for a table of runs"),
            (["sweep/0", "effects=x.png"], "differ in a setting"),
            (["sweep", "where=lr"], "where=lr is not a condition"),
            (["sweep", "where=trns<5"], "no run has trns; did you mean turns?"),
            (["sweep", "where=started>today"], "today is not a date"),
            (["sweep", "curves=/dev/null/x.png"], "its folder is a file"),
        ],
    ),
)
def test_bad_words_are_refused_in_one_line(words, hint, sweep, typed, tmp_path):
    (tmp_path / "empty").mkdir()
    check_refused(typed("report", *words), hint)


def test_settings_have_the_names_that_are_typed():
    flat = flatten({"game": {"name": "salvo", "board": 4}, "learner": {"name": "td"}, "out": "x"})
    own = {"game": "salvo", "board": 4, "learner": "td", "search": None}
    assert {name: flat[name] for name in own} == own
    assert "out" not in flat
    assert (
        in_words({"name": "salvo", "ships": [4, 2], "show": None}) == "salvo ships=[4,2] show=null"
    )


@pytest.mark.slow
def test_a_report_imports_no_torch(sweep):
    code = "import sys; from rlgames.commands import app; code = app.run('report', ['.'])\n"
    code += "assert (code, 'torch' in sys.modules) == (0, False)"
    done = subprocess.run([sys.executable, "-c", code], cwd=sweep, capture_output=True)
    assert done.returncode == 0, done.stderr


SMALL = ["board=3", "ships=[2]", "games=200", "batch=50", "policy.layers=[8]", "eval_every=100"]


def test_a_report_and_tensorboard_have_the_results_of_a_run(tmp_path):
    run = package.train([*SMALL, "game=salvo", f"out={tmp_path}/run"])
    (row,) = command("report", [str(run)], []).rows
    events = EventAccumulator(str(run)).Reload()
    facts = json.loads((run / "run.json").read_text())
    turns = read_result(run)["turns"]
    assert row.estimate("turns").value == turns
    assert row.mean("gap") == pytest.approx(turns / (31 / 12) - 1)
    assert events.Scalars("result/turns")[0].value == pytest.approx(turns)
    last = [line for line in read_metrics(run / "metrics.jsonl") if "eval/turns" in line][-1]
    assert facts["seconds"] >= last["time/seconds"]
    assert events.Scalars("train/loss")[-1].step == 200
    # TensorBoard takes every folder with events in it for another run.
    assert [path.parent for path in run.rglob("events.out*")] == [run]


def test_random_play_is_measured_at_once_where_that_is_quick(tmp_path):
    words = ["game=tictactoe", "policy=mlp", "games=40", "batch=20", "policy.layers=[8]"]
    words += ["eval_games=10"]
    run = package.train([*words, f"out={tmp_path}/run"])
    facts = json.loads((run / "run.json").read_text())
    assert (facts["metric"], facts["best_by"]) == ("points", "exploitability")
    assert 0.4 < read_result(run)["random"] < 0.6


@pytest.mark.parametrize(
    ("where", "jobs"),
    [
        ("lr=0.1", "012"),
        ("lr<0.15,seed>=1", "12"),
        ("lr!=0.1, turns<4.8", "34"),
        ("game=salvo,status=done,learner=t*", "012345"),
        ("ships=[4,2],path=*/5", "5"),
        ("ships!=[[4,2],[3]],path=*/5", "5"),
        ("started>2026-11-20,started<2026-11-21T12:00", "1"),
        ("played>0", ""),
        ("learner=ppo", ""),
    ],
)
def test_conditions_choose_runs(where, jobs, sweep, typed):
    run = json.loads((sweep / "1/run.json").read_text())
    (sweep / "1/run.json").write_text(json.dumps(run | {"start": "2026-11-21T10:00:00+00:00"}))
    if jobs:
        found = json.loads(reported(typed, "sweep", f"where={where}", "format=json"))
        assert [run["path"] for run in found["runs"]] == [f"sweep/{job}" for job in jobs]
    else:
        said = typed("report", "sweep", f"where={where}")
        assert (said.returncode, said.stdout) == (2, "")
        assert f"no run matches where={where}; 6 runs do not" in said.stderr


def test_a_report_shows_the_first_rows_and_the_chosen_columns(sweep, typed):
    lines = reported(typed, "sweep", "by=run", "top=2", "columns=[turns,run]").splitlines()
    assert lines[0] == "6 runs, the first 2"
    assert [line.split() for line in lines[5:7]] == [["4.5000", "sweep/3"], ["4.7500", "sweep/4"]]
    text = reported(typed, "sweep", "by=run", "top=1", "columns=turns", "format=csv")
    assert text == "turns\n4.5\n"
    empty = reported(typed, "sweep", "by=run", "top=1", "columns=[held_out_optimal]").splitlines()
    assert empty[2:3] == ["held_out_optimal"]
    whole = reported(typed, "sweep", "columns=all").splitlines()[3]
    assert " ".join(whole.split()) == "lr status runs best final optimal best final seconds run"


def test_what_a_terminal_has_no_room_for_is_named_not_cut(sweep, typed, monkeypatch):
    every = reported(typed, "sweep").splitlines()
    monkeypatch.setattr("rlgames.terminal.tables.terminal_width", lambda: 40)
    lines = reported(typed, "sweep").splitlines()
    assert all(len(line) <= 40 for line in lines[1:-2])
    assert lines[-2].startswith("no room for: ")
    assert len(every[3].split()) == len(lines[3].split()) + lines[-2].count(",") + 1
    assert {"lr", "run"} <= {*lines[3].split()}
    lines = reported(typed, "sweep", "columns=all", "top=1").splitlines()
    assert max(map(len, lines[1:-1])) <= 40
    assert ["lr", "0.2"] in [line.split() for line in lines]
    monkeypatch.setattr("rlgames.terminal.tables.terminal_width", lambda: 60)
    lines = reported(typed, "sweep", "compare=lr").splitlines()
    assert max(map(len, lines[:-1])) <= 60
    assert "no room for: runs, IQM" in lines


def test_runs_are_listed_the_newest_first(sweep, typed):
    for job, day in enumerate((3, 1, 2)):
        run = json.loads((sweep / f"{job}/run.json").read_text())
        run |= {"start": f"2026-11-0{day}T10:00:00+00:00"}
        (sweep / f"{job}/run.json").write_text(json.dumps(run))
    words = ["by=run", "where=lr=0.1", "sort=-started", "columns=[run,started]"]
    lines = [line.split() for line in reported(typed, "sweep", *words).splitlines()]
    assert [line[0] for line in lines[-4:-1]] == ["sweep/0", "sweep/2", "sweep/1"]
    found = reported(typed, "sweep", *words, "top=1", "format=csv")
    assert found == "run,started\nsweep/0,2026-11-03T10:00:00+00:00\n"


def test_the_numbers_of_reports_are_values_of_runs(sweep, typed):
    """As a column, in a condition, and to sort by; of one run with the interval over its games."""
    for job, (_, _, turn) in enumerate(SWEEP[:5]):
        rate = {"rate": turn / 10, "ci95": [turn / 10 - 0.1, turn / 10 + 0.1]}
        report = {"win": rate, "seats": [{"win": rate}], "exploitability": None}
        write_report(sweep / str(job), "exact", report, command="eval")
    columns = "columns=[lr,'exact.win.rate | 100*.1f',exact.seats.0.win.rate|.3f|by seed]"
    lines = reported(typed, "sweep", columns, "sort=-exact.win.rate").splitlines()
    half = 100 * T[2] * statistics.stdev([0.5, 0.6, 0.55]) / math.sqrt(3)
    assert lines[4].split() == ["0.1", "55.0", "±", f"{half:.1f}", "0.500,", "0.600,", "0.550"]
    assert lines[5].split() == ["0.2", "46.2", "(45.0,", "47.5)", "0.450,", "0.475"]
    words = ["by=run", "where=exact.win.rate>0.55", "columns=[run,exact.win.rate|.2f]"]
    row = reported(typed, "sweep", *words).splitlines()[4]
    assert row.split() == ["sweep/1", "0.60", "±", "0.10"]
    found = reported(typed, "sweep", "columns=[lr,exact.win.rate]", "format=csv")
    rows = [[*map(float, line.split(","))] for line in found.splitlines()[1:]]
    assert rows == [pytest.approx([0.2, 0.4625]), pytest.approx([0.1, 0.55])]
    rows = json.loads(reported(typed, "sweep", "columns=exact.win.rate", "format=json"))["rows"]
    assert [row["results"]["exact.win.rate"]["seeds"] for row in rows] == [2, 3]
    check_refused(
        typed("report", "sweep", "columns=exact.won.rate"), "did you mean exact.win.rate?"
    )
    check_refused(typed("report", "sweep", "columns=exact.win.rate|.1q"), ".1q is not a format")


def test_what_was_logged_is_a_value_of_a_run(sweep, typed):
    words = ["by=run", "top=1", "columns=[eval.turns.first1,eval.turns.last,train.ms_per_game]"]
    row = reported(typed, "sweep", *words).splitlines()[4]
    assert row.split() == ["8.0000", "4.5000", "20.0000"]
    write_run(sweep / "later", init_from=str(sweep / "0/checkpoints/best.safetensors"))
    write_run(sweep / "last", init_from=str(sweep / "later"))
    write_run(sweep / "loop", init_from=str(sweep / "loop"))
    words = ["by=run", "where=path=*l*", "sort=path", "columns=[train.total_seconds]", "format=csv"]
    assert reported(typed, "sweep", *words).split()[1:] == ["12.0", "10.0", "2.0"]
