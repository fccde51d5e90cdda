"""A study runs what is missing, keeps its evaluations, and makes tables and pages of its record."""

import json
import re
import shutil
import signal
import time
from math import nan
from pathlib import Path

import numpy as np
import pytest
from processes import Process, run

from rlgames.commands.study import section, update_page
from rlgames.commands.study_file import parse_column, read_study
from rlgames.commands.study_plan import plan_study
from rlgames.commands.study_record import (
    NEVER,
    Cell,
    evaluate_expression,
    evaluation_command,
    logged,
    make_record,
)
from rlgames.config.commands import StudyConfig
from rlgames.config.compose import load_config
from rlgames.core.errors import ConfigError
from rlgames.terminal.tables import escape_latex

TINY = "game=tictactoe policy=mlp games=32 batch=32 policy.layers=[4] solve_seconds=0 eval_games=4"
STUDY = f"""
seeds: 2
runs:
  one: {TINY}
  two: {TINY} lr=0.1
evaluations:
  played: games=20 solve_seconds=0
table:
  columns:
    won: played.win.rate | 100*.1f | highest is best
    difference: "played.win.rate - one:played.win.rate | +.2f"
"""


def planned_study(folder, *words):
    """The plan of a study in this folder."""
    return plan_study(load_config(StudyConfig, [f"file={folder}/mine.yaml", *words]))


@pytest.fixture
def study(tmp_path):
    """Write a study and run it in a fork; the exit code and what it printed."""

    def go(text, *words):
        (tmp_path / "mine.yaml").write_text(text)
        return run(tmp_path, "study", "mine.yaml", "out=out", *words)

    return go


def starts(folder):
    """How many trainings and evaluations each job has started, by its directory."""
    logs = {path.parent: path.read_text() for path in Path(folder).glob("out/*/*/output.log")}
    return {
        "/".join(path.parts[-2:]): (
            len(re.findall("^rlgames (?:train|resume) ", text, re.M)),
            len(re.findall("^rlgames (?:eval|analyze) ", text, re.M)),
        )
        for path, text in logs.items()
    }


@pytest.mark.slow
def test_only_what_is_missing_runs(study, tmp_path):
    code, text = study(STUDY)
    assert code == 0, text
    names = [f"{name}/{seed}" for name in ("one", "two") for seed in (0, 1)]
    assert starts(tmp_path) == dict.fromkeys(names, (1, 1))
    assert study(STUDY)[0] == 0
    assert starts(tmp_path) == dict.fromkeys(names, (1, 1))
    # A further seed and a further evaluation.
    more = STUDY.replace("table:", "  again: games=30 solve_seconds=0\ntable:")
    assert study(more, "seeds=3")[0] == 0
    new = {"one/2": (1, 2), "two/2": (1, 2)}
    assert starts(tmp_path) == dict.fromkeys(names, (1, 2)) | new
    # Other overrides of one row.
    changed = more.replace("lr=0.1", "lr=0.2")
    code, text = study(changed, "seeds=3")
    assert (code, text.count("is replaced")) == (0, 3)
    again = dict.fromkeys((f"two/{seed}" for seed in range(3)), (1, 2))
    assert starts(tmp_path) == dict.fromkeys(names, (1, 2)) | new | again
    record = json.loads((tmp_path / "out/records/mine.json").read_text())
    assert record["runs"]["two"]["cells"]["played.win.rate"]["n"] == 3


@pytest.mark.slow
def test_a_killed_study_continues_where_it_was(study, tmp_path):
    (tmp_path / "mine.yaml").write_text(STUDY)
    process = Process(tmp_path, "study", "mine.yaml", "out=out")
    until = time.monotonic() + 60
    while not any(tmp_path.glob("out/*/*/evaluations/*.json")) and time.monotonic() < until:
        time.sleep(0.01)
    process.send(signal.SIGKILL)
    assert process.wait()[0] == -signal.SIGKILL
    code, text = study(STUDY)
    assert code == 0, text
    every = starts(tmp_path)
    assert len(every) == 4
    assert all(evaluations == 1 for _, evaluations in every.values())
    assert all(trainings <= 2 for trainings, _ in every.values())


CHAIN = f"""
runs:
  last: init_from={{middle}} {TINY}
  middle: init_from={{first}} {TINY}
  first: {TINY}
  other: {TINY}
"""


@pytest.fixture
def chain(tmp_path):
    """A study whose runs look trained by its configs."""

    def make(folder, text=CHAIN):
        (tmp_path / "mine.yaml").write_text(text)
        work = planned_study(tmp_path, f"out={tmp_path / folder}", "seeds=1").work
        for job in work.jobs:
            if not work.path(job).exists():
                work.path(job).mkdir(parents=True)
                (work.path(job) / "run.json").write_text('{"status": "done"}')
                (work.path(job) / "config.yaml").write_text(json.dumps(job.config))
        return work

    return make


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("first: ", "first: lr=0.1 ", {"last", "middle", "first"}),
        ("middle: ", "middle: lr=0.1 ", {"last", "middle"}),
        ("seeds", "seeds", set()),
    ],
)
def test_what_depends_on_a_changed_run_is_made_again(old, new, changed, chain, tmp_path):
    chain("out")
    chain("out", CHAIN.replace(old, new)).set_changed_aside()
    replaced = {path.name for path in (tmp_path / "out/.replaced").glob("*")}
    assert replaced == changed


def test_a_job_starts_only_after_those_it_needs(chain, monkeypatch):
    work, started = chain("out"), []
    for job in work.jobs:
        shutil.rmtree(work.path(job))

    def run(self, job, stop):
        started.append(job.name)
        work.path(job).mkdir(parents=True)
        (work.path(job) / "run.json").write_text('{"status": "done"}')

    monkeypatch.setattr(type(work), "_run", run)
    work.run(work.jobs, 1)
    assert started == ["first/0", "other/0", "middle/0", "last/0"]


@pytest.mark.slow
def test_a_study_counts_mistakes(study, tmp_path):
    text = STUDY.replace("  played:", "  mistakes: analyze games=20 worst=0\n  played:")
    text += "    mistakes: mistakes.losses.all.rate | 100*.1f\n"
    code, printed = study(text, "seeds=1", "only=one")
    assert code == 0, printed
    found = [json.loads(path.read_text()) for path in tmp_path.glob("out/one/0/evaluations/*")]
    report = next(each["report"] for each in found if "per_game" in each["report"])
    assert report["losses"]["all"]["positions"] > 20
    record = json.loads((tmp_path / "out/records/mine.json").read_text())
    cells = record["runs"]["one"]["cells"]
    rate = cells["mistakes.losses.all.rate"]["mean"]
    assert rate == pytest.approx(report["losses"]["all"]["rate"], abs=1e-6)


PLAYERS = """
runs:
  one: player=random game=tictactoe
evaluations:
  played: games=20 opponent=random
table:
  columns:
    won: played.win.rate
"""


def test_a_format_is_the_only_output(typed, tmp_path):
    (tmp_path / "mine.yaml").write_text(PLAYERS)
    said = typed("study", "mine.yaml", "out=out", "format=json")
    assert (said.returncode, "1 of 1 jobs done, in out\n" in said.stderr) == (0, True)
    won = json.loads(said.stdout)["mine"]["runs"]["one"]["cells"]["played.win.rate"]["mean"]
    assert won > 0
    said = typed("study", "mine.yaml", "out=out", "run=false", "format=markdown")
    assert f"| `one` | {won:g} ±" in said.stdout
    (tmp_path / "mine.yaml").write_text(PLAYERS.replace("win.rate", "wins.rate"))
    said = typed("study", "mine.yaml", "out=out", "run=false")
    assert (said.returncode, said.stdout) == (2, "")
    assert "played of one has no metric wins; did you mean win?" in said.stderr
    said = typed("study", "mine.yaml", "out=out", "format=json", "dry_run=true")
    assert (said.returncode, "dry_run= prints text" in said.stdout) == (2, True)


@pytest.mark.slow
def test_a_run_that_starts_from_another_comes_after_it(study, tmp_path):
    text = STUDY.replace("two: ", "two: init_from={one}/checkpoints/latest.safetensors ")
    text += "    seconds: training.total_seconds\n"
    code, printed = study(text, "seeds=1", "only=two")
    assert code == 0, printed
    assert starts(tmp_path) == {"one/0": (1, 1), "two/0": (1, 1)}
    config = (tmp_path / "out/two/0/config.yaml").read_text()
    assert f"init_from: {tmp_path / 'out/one/0'}/checkpoints/latest.safetensors" in config
    record = json.loads((tmp_path / "out/records/mine.json").read_text())
    assert record["runs"]["two"]["cells"]["training.total_seconds"]["mean"] > 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds: 2", "seeds: two", "seeds=two is neither a number of seeds nor a list"),
        ("runs:", "rums:", "did you mean runs"),
        ("columns:", "colums:", "did you mean columns"),
        ("won: played", "won: plaid", "no evaluation is called 'plaid'; did you mean played"),
        ("one:played", "ones:played", "no run is called 'ones'; did you mean one"),
        ("highest is best", "higest is best", "did you mean highest is best"),
        ("+.2f", "+.2z", ".2z is not a format"),
        ("games=20 ", "games=20 plugins=[x] ", "plugins=[x] is typed"),
        ("games=20 ", "games=20 record=/tmp/x ", "record=/tmp/x is outside the run"),
        ("games=20 ", "games=20 picture=a.svg ", "picture=a.svg is outside the run"),
        ("games=20 ", "games=20 record={}/../x ", "record={}/../x is outside the run"),
        ("+.2f", "1000000000.2f", "1000000000.2f is not a format"),
        ("- one:played.win.rate", "/ 0", "divides by 0"),
        ("table:", "tables: [{columns: []}]\ntable:", "tables= and table= are both set"),
        ("table:", "table:\n  rows: [[one]]", "no run is called \"['one']\""),
        (
            "table:",
            "reported: {x: {values: {}}}\ntable:",
            "reported.x has no values",
        ),
        (
            "played.win.rate |",
            "training.turns.below4.6.1over9 |",
            "training.turns.below4.6.1over9 is not a metric of training",
        ),
        ("table:", "parts: [learners]\ntable:", "a study of parts has no runs: of its own"),
        ("table:", "curves: {../../x: one}\ntable:", "'../../x' cannot be the name of a picture"),
        ("table:", "curves: {x: ones}\ntable:", "curves.x: no run is called 'ones'; did you mean"),
        ("table:", "curves: {x: width=page}\ntable:", "curves.x names no run"),
        ("seeds: 2", "seeds: [true]", "seeds=[True] is neither a number of seeds nor a list"),
    ],
)
def test_a_study_is_checked_as_a_whole(old, new, message, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(STUDY.replace(old, new))
    with pytest.raises(ConfigError) as error:
        read_study(str(path))
    assert message in f"{error.value.error}; {error.value.hint}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (TINY, "hikman", "runs.one: no experiment is called 'hikman'; did you mean hickman"),
        ("game=tictactoe", "game=salvo", "salvo is a one-player game; remove opponent="),
        ("games=20 ", "search=expectimax ", "expectimax plays one-player games with chance"),
        ("games=20 ", "games=al ", "played of one: games=al is not a choice; did you mean all?"),
        ("games=20 ", "games=1 ", "games=1 leaves out a seat of tictactoe; use games=2"),
        ("opponent=random", "opponent=density", "density plays battleship and salvo"),
        (
            "games=20 opponent=random solve_seconds=0",
            "arena random density",
            "density plays battle",
        ),
        ("two:", "records:", "runs.records: a study has its own file or folder of that name"),
        ("lr=0.1", "init_from={two}", "two/0 needs two/0, which needs it"),
        (
            "lr=0.1",
            "opponent={best}\n  best: player=exact game=tictactoe",
            "needs best/0, a player and not a run",
        ),
        (
            "table:",
            "curves: {x: one sort=best}\ntable:",
            "curves.x: sort=best is not a key",
        ),
        ("table:", "curves: {x: one windw=3}\ntable:", "curves.x: no key is called 'windw' here"),
    ],
)
def test_a_study_that_does_not_fit_its_games_is_an_error(old, new, message, typed, tmp_path):
    text = STUDY.replace("games=20 ", "games=20 opponent=random ").replace(old, new)
    (tmp_path / "mine.yaml").write_text(text)
    said = typed("study", "mine.yaml")
    assert (said.returncode, said.stderr.count("\n")) == (2, 1)
    assert message in said.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("page=missing/page.md", "there is no directory missing"),
        ("records=mine.yaml", "mine.yaml is not a directory"),
        ("out=mine.yaml", "mine.yaml is not a directory"),
        ("records=damaged", "mine.json is not a record of a study"),
    ],
)
def test_where_results_cannot_be_written_is_said_first(word, message, typed, tmp_path):
    (tmp_path / "mine.yaml").write_text(STUDY)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged/mine.json").write_text('{"runs": {"one": {"cells": {}}}}')
    said = typed("study", "mine.yaml", word, "dry_run=true")
    assert (said.returncode, message in said.stderr, said.stdout) == (2, True, ""), said.stderr


def test_a_study_is_not_a_part_of_itself(tmp_path):
    (tmp_path / "mine.yaml").write_text(f"parts: [{tmp_path}/other.yaml]")
    (tmp_path / "other.yaml").write_text(f"parts: [{tmp_path}/mine.yaml]")
    with pytest.raises(ConfigError, match=r"other.yaml: \S+mine.yaml: it is a part of itself"):
        read_study(str(tmp_path / "mine.yaml"))


@pytest.mark.parametrize("name", ["turns.at31", "turns.last65", "turns.first65", "turns.last63"])
def test_a_training_that_is_too_short_for_a_metric_has_none(name):
    lines = [{"games": 32.0 * number, "train/turns": 7.0} for number in (1, 2)]
    assert logged(lines, name) == (
        7.0 if name == "turns.last63" else pytest.approx(nan, nan_ok=True)
    )


def test_a_metric_that_a_training_did_not_log_is_named():
    with pytest.raises(ConfigError, match="logged no metric truns") as raised:
        logged([{"games": 32.0, "train/turns": 7.0}], "truns.last32")
    assert raised.value.hint == "did you mean turns?"


def test_a_record_names_the_seeds_that_are_done(tmp_path):
    (tmp_path / "mine.yaml").write_text(STUDY)
    planned = planned_study(tmp_path, f"out={tmp_path}/out", "seeds=3")
    for seed in (0, 2):
        path = tmp_path / f"out/one/{seed}"
        path.mkdir(parents=True)
        (path / "run.json").write_text('{"status": "done"}')
        (path / "metrics.jsonl").write_text('{"games": 32, "time/seconds": 1.5}\n')
    runs = make_record(planned, planned.study, {})["runs"]
    assert (runs["one"]["seeds"], runs["one"]["seconds"]["n"]) == ([0, 2], 2)
    assert (runs["two"]["seeds"], "seconds" in runs["two"]) == ([], False)


def test_a_record_keeps_the_seeds_that_this_directory_lacks(tmp_path):
    (tmp_path / "mine.yaml").write_text(STUDY)
    planned = planned_study(tmp_path, f"out={tmp_path}/out", "seeds=3")

    def done(*seeds):
        for seed in seeds:
            path = tmp_path / f"out/one/{seed}"
            path.mkdir(parents=True)
            (path / "run.json").write_text('{"status": "done"}')
            (path / "metrics.jsonl").write_text('{"games": 32, "time/seconds": 1.5}\n')

    done(0, 1)
    both = make_record(planned, planned.study, {})
    shutil.rmtree(tmp_path / "out/one/1")
    assert make_record(planned, planned.study, both)["runs"]["one"] == both["runs"]["one"]
    done(1, 2)
    assert make_record(planned, planned.study, both)["runs"]["one"]["seeds"] == [0, 1, 2]
    fewer = planned_study(tmp_path, f"out={tmp_path}/out", "seeds=1")
    assert make_record(fewer, fewer.study, both)["runs"]["one"]["seeds"] == [0]


def test_a_dry_run_lists_the_jobs(typed, tmp_path):
    (tmp_path / "mine.yaml").write_text(STUDY)
    lines = typed("study", "mine.yaml", "dry_run=true", "only=two").stdout.splitlines()
    assert lines[0] == f"two/0: not started: {TINY} lr=0.1 seed=0; evaluations: played"
    assert lines[-1] == "2 of 4 jobs would run, in outputs/studies/mine"


def test_equal_values_of_three_seeds_have_no_interval():
    assert Cell.of([4.5, 4.5, 4.5]).shown(format=".3f") == "4.500 (3 equal)"
    assert Cell.of([4.5, 4.5]).shown(format=".1f") == "4.5 (4.5, 4.5)"
    assert Cell.of([4.0, 5.0, 6.0]).shown(format=".2f") == "5.00 ± 2.48"
    assert Cell.of([0.5], 0.1).shown(100, ".0f") == "50 ± 10"
    assert Cell.of([0.5], 0.1).contains(0.9) is None  # games say nothing of other seeds
    assert Cell.of([4.0, 5.0, 6.0]).contains(9.0) is False
    assert Cell.of([1.0, 2.0]).shown(format=".1f", option="by seed") == "1.0, 2.0"
    assert Cell.of([NEVER, 300.0, 400.0]).shown(format=",.0f") == "never"


def value(text, **samples):
    cells = {name: Cell.of(each) for name, each in samples.items()}
    words = text.split()
    return evaluate_expression(words, lambda term: cells.get(term) or Cell.of([float(term)]))


def test_a_difference_has_welchs_interval():
    # By hand: variances 1 and 4, standard error √(1/3 + 4/3), 2.94 degrees of freedom.
    difference = value("a - b", a=[1.0, 2.0, 3.0], b=[3.0, 5.0, 7.0])
    assert difference.shown(format="+.2f") == "-3.00 ± 4.16"
    assert value("a - b", a=[1.0, 1.0], b=[2.0, 2.0]).shown(format="+.2f") == "-1.00"


def test_intervals_of_single_seeds_add_in_squares():
    def combined(text, **cells):
        return evaluate_expression(text.split(), lambda term: cells.get(term))

    a, b, exact = Cell.of([1.0], 0.3), Cell.of([0.5], 0.4), Cell.of([2.0])
    assert combined("a - b", a=a, b=b).half == pytest.approx(0.5)
    assert combined("b - a", a=a, b=b).half == pytest.approx(0.5)
    assert combined("a * b", a=a, b=b).half == pytest.approx(np.hypot(0.15, 0.4))
    assert combined("a / b", a=a, b=b).half == pytest.approx(np.hypot(0.6, 1.6))
    assert combined("a / c", a=a, c=exact).half == pytest.approx(0.15)
    assert combined("c - c", c=exact).half is None
    seeds = Cell.of([4.0, 5.0, 6.0])
    assert combined("s - b", s=seeds, b=b).half == pytest.approx(np.hypot(seeds.half, 0.4))
    assert combined("b - s", s=seeds, b=b).half == pytest.approx(np.hypot(seeds.half, 0.4))
    assert combined("b - s", s=seeds, b=b).values == (-3.5, -4.5, -5.5)
    assert combined("s - b", s=Cell.of([4.0, 5.0]), b=b).half is None  # of two seeds


def test_each_seed_is_divided_by_a_single_value():
    assert value("a / 2 - 1", a=[4.0, 6.0, 8.0]).values == (1.0, 2.0, 3.0)


RECORDED = """
runs:
  one: tictactoe
  theory: player=exact game=tictactoe
evaluations:
  played: games=2000
before: "{{one:played.win.rate | 100*.0f}}% won."
reported:
  article: {values: {one: 0.5, theory: most}, compared: played.win.rate, source: figure 1}
table:
  rows: {one: this, theory: exact}
  columns:
    reported: reported.article | .2f
    won: played.win.rate | .2f | highest is best
"""


def test_a_page_is_made_from_the_record(tmp_path):
    (tmp_path / "mine.yaml").write_text(RECORDED)
    study = read_study(str(tmp_path / "mine.yaml"))
    cells = {"played.win.rate": Cell.of([0.9, 0.92, 0.94]).as_record()}
    cells["reported.article"] = Cell.of([0.5]).as_record()
    record = {"dates": ["2026-01-02"], "runs": {"one": {"cells": cells}}}
    text = section(study, {"mine": record})
    assert text.startswith("92 ± 5% won.\n\n| run | reported | won |\n| --- | --- | --- |\n")
    assert "| this | 0.50† | **0.92 ± 0.05** |\n| exact | most | – |" in text
    assert "Source: figure 1. † lies outside the 95% interval of `played.win.rate`: one-" in text
    assert "- `one`: `rlgames train experiment=tictactoe seed=SEED`" in text
    assert "- `theory`: `player=exact game=tictactoe`" in text
    assert "- played: `rlgames eval RUN games=2000`" in text
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- study mine -->\nold\n<!-- end of study mine -->\nafter\n")
    update_page(page, study, {"mine": record})
    assert page.read_text() == (
        f"before\n<!-- study mine -->\n{text}<!-- end of study mine -->\nafter\n"
    )


def test_a_column_has_a_metric_a_format_and_an_option():
    column = parse_column("won", "played.win.rate - one:played.win.rate | 100*.1f | by seed")
    assert column.terms == ["played.win.rate", "one:played.win.rate"]
    assert (column.factor, column.format, column.option) == (100.0, ".1f", "by seed")


def test_a_negative_number_has_a_minus_sign_in_latex():
    assert escape_latex("-1.5 ± 2, +3.7, 2026-11-24, (-2, -.5)") == (
        "$-$1.5 $\\pm$ 2, +3.7, 2026-11-24, ($-$2, -.5)"
    )


def test_the_arena_of_a_player_names_it_once(tmp_path):
    (tmp_path / "mine.yaml").write_text("""
runs: {shooter: player=density game=salvo}
evaluations: {beside: arena density random game=salvo games=4}
table: {rows: [shooter], columns: {lead: beside.pairs.0.difference.mean | .2f}}
""")
    planned = planned_study(tmp_path, f"out={tmp_path}/out")
    run, evaluation = planned.study.runs["shooter"], planned.study.evaluations[0]
    command = evaluation_command(run, evaluation, planned)
    assert command == "rlgames arena density random game=salvo games=4"
