"""A study runs what is missing, keeps its evaluations, and makes tables and pages of its record."""

import json
import re
import shutil
import signal
import time
from contextlib import redirect_stderr, redirect_stdout
from math import nan
from pathlib import Path

import pytest
from helpers import read_result, write_report
from processes import Process, run

from rlgames.commands.study import check_metrics, make_record, seeds_left_out
from rlgames.commands.study_file import read_study
from rlgames.commands.study_plan import plan_study
from rlgames.config.commands import StudyConfig
from rlgames.config.compose import load_config
from rlgames.core.errors import ConfigError
from rlgames.core.jobs import OUTPUT, Outcome, Runner
from rlgames.core.text import with_section
from rlgames.runs.reports import Report
from rlgames.runs.table import ColumnText, Row, Run
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
    won: played.win.rate | 100*.1f
    seconds: train.seconds
"""
CHAIN = f"""
runs:
  last: init_from={{middle}} {TINY}
  middle: init_from={{first}} {TINY}
  first: {TINY}
  other: {TINY}
evaluations:
  played: games=20
  match: {{overrides: 'games=20 opponent={{first}}', runs: [other]}}
table: {{columns: {{won: played.win.rate, met: match.win.rate, seconds: train.seconds}}}}
"""
PLAYERS = """
runs:
  one: player=random game=tictactoe
evaluations:
  played: games=20 opponent=random
table:
  columns:
    won: played.win.rate
"""


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """Write a study; its plan."""

    def plan(text, *words):
        monkeypatch.chdir(tmp_path)
        Path("mine.yaml").write_text(text)
        return plan_study(load_config(StudyConfig, ["file=mine.yaml", *words]))

    return plan


@pytest.fixture
def study(tmp_path):
    """Write a study and run it in a fork; the exit code and what it printed."""

    def go(text, *words):
        (tmp_path / "mine.yaml").write_text(text)
        return run(tmp_path, "study", "mine.yaml", "out=out", *words)

    return go


@pytest.fixture
def _jobs_here(monkeypatch):
    """Jobs that need no others run in this process, which takes less than to start one."""

    def start(runner, job):
        job.task = job.prepare()
        job.task.directory.mkdir(parents=True, exist_ok=True)
        path = job.task.directory / OUTPUT
        with open(path, "a") as output, redirect_stdout(output), redirect_stderr(output):
            job.outcome = Outcome("done", job.task.function(*job.task.arguments))

    monkeypatch.setattr(Runner, "_start", start)


def complete(work, *names, **changed):
    """Make the directories of jobs as if they were done, with these keys changed."""
    for job in work.jobs.values():
        if names and job.name not in names:
            continue
        links = {
            key: str((work.directory / link).absolute())
            for key, link in job.links(job.words).items()
        }
        work.path(job).mkdir(parents=True, exist_ok=True)
        content = {"status": "done", "config": job.config | links | changed}
        (work.path(job) / "run.json").write_text(json.dumps(content))
        (work.path(job) / "metrics.jsonl").write_text('{"games": 32, "time/seconds": 1.5}\n')
        for each in job.reports:
            links = job.links(each.words).items()
            played = {key: str((work.directory / link).absolute()) for key, link in links}
            seats = {key: {"name": "run", "path": path} for key, path in played.items()}
            saved = {"checkpoints": work.checkpoints(job, each), "date": "2026-01-02"}
            saved |= {"command": each.words[0], "config": each.config | seats}
            write_report(work.path(job), each.name, {"win": {"rate": 0.5}}, **saved)


def names(jobs):
    return [job.name for job in jobs]


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
    # Other overrides of one row, and a run that was extended.
    code, text = run(tmp_path, "resume", "out/one/1", "games=64")
    assert code == 0, text
    changed = more.replace("lr=0.1", "lr=0.2")
    code, text = study(changed, "seeds=3", "run=false")
    assert text.count("does not count") == 4
    assert "out/one/1 does not count: it was trained with games=64, not 32" in text
    code, text = study(changed, "seeds=3")
    assert (code, text.count("is replaced"), "count" in text) == (0, 4, False)
    again = dict.fromkeys([*(f"two/{seed}" for seed in range(3)), "one/1"], (1, 2))
    assert starts(tmp_path) == dict.fromkeys(names, (1, 2)) | new | again
    record = json.loads((tmp_path / "out/records/mine.json").read_text())
    assert record["runs"]["two"]["evaluations"]["played"]["cells"]["win.rate"]["n"] == 3


@pytest.mark.slow
def test_a_killed_study_continues_where_it_was(study, tmp_path):
    (tmp_path / "mine.yaml").write_text(STUDY)
    process = Process(tmp_path, "study", "mine.yaml", "out=out")
    until = time.monotonic() + 60
    while not any(tmp_path.glob("out/*/*/reports/played.json")) and time.monotonic() < until:
        time.sleep(0.01)
    process.send(signal.SIGKILL)
    assert process.wait()[0] == -signal.SIGKILL
    code, text = study(STUDY)
    if code == 3:  # the training that was running then had not ended yet
        code, text = study(STUDY)
    assert code == 0, text
    every = starts(tmp_path)
    assert len(every) == 4
    assert all(evaluations == 1 for _, evaluations in every.values())
    assert all(trainings <= 2 for trainings, _ in every.values())


@pytest.mark.slow
def test_a_run_that_starts_from_another_comes_after_it(study, tmp_path):
    text = STUDY.replace("two: ", "two: init_from={one}/checkpoints/latest.safetensors ")
    text = text.replace("  played:", "  mistakes: analyze games=20 worst=0\n  played:")
    text = text.replace("train.seconds", "train.total_seconds")
    text += "    mistakes: mistakes.losses.all.rate\n"
    code, printed = study(text, "only=two", "seeds=[1]")
    assert code == 0, printed
    assert starts(tmp_path) == {"one/1": (1, 2), "two/1": (1, 2)}
    config = (tmp_path / "out/two/1/config.yaml").read_text()
    assert f"init_from: {tmp_path / 'out/one/1'}/checkpoints/latest.safetensors" in config
    record = json.loads((tmp_path / "out/records/mine.json").read_text())["runs"]["two"]
    assert record["cells"]["train.total_seconds"]["mean"] > 0
    losses = read_result(tmp_path / "out/two/1", "mistakes")["losses"]
    rate = record["evaluations"]["mistakes"]["cells"]["losses.all.rate"]["mean"]
    assert rate == pytest.approx(losses["all"]["rate"], abs=1e-6)
    # The directory may be moved, and its runs still count.
    (tmp_path / "out").rename(tmp_path / "moved")
    code, text = run(tmp_path, "study", "mine.yaml", "out=moved", "seeds=[1]", "dry_run=true")
    assert "0 of 2 jobs would run" in text


@pytest.mark.parametrize(
    ("edit", "changed", "stale", "reason"),
    [
        (("first: ", "first: lr=0.1 "), {}, "last middle first", ", not 0.1"),
        (("middle: ", "middle: lr=0.1 "), {}, "last middle", ", not 0.1"),
        (("{first} g", "{other} g"), {}, "last middle", "first/0, not other/0"),
        (("init_from={first} ", ""), {}, "last middle", "first/0, not null"),
        (("other: ", "other: opponent={first} "), {}, "other", "trained with opponent="),
        (("x", "x"), {"other/0": {"games": 2000}}, "other", "trained with games=2000, not 32"),
        (("x", "x"), {"first/0": {"game": 3}}, "last middle first", "its run.json is damaged"),
    ],
)
def test_only_a_training_with_the_settings_of_the_study_counts(
    edit, changed, stale, reason, planned, typed, tmp_path
):
    complete(planned(CHAIN))
    work = planned(CHAIN.replace(*edit))
    for name, values in changed.items():
        complete(work, name, **values)
    stale = stale.split()[::-1]
    lines = typed("study", "mine.yaml", "dry_run=true").stdout.splitlines()
    assert [line.partition("/")[0] for line in lines if ": replaced (" in line] == stale
    assert any(reason in line for line in lines)
    said = typed("study", "mine.yaml", "run=false", "page=page.md", "format=json")
    assert (said.returncode, said.stderr.count(" does not count: ")) == (0, len(stale))
    cells = {
        name: [part["cells"] for part in (run, *run["evaluations"].values())]
        for name, run in json.loads(said.stdout)["runs"].items()
    }
    assert {name for name, parts in cells.items() if not parts[0] or not parts[1]} == {*stale}
    # A match against a run that does not count has no value either.
    assert (not cells["other"][2]) == ("first" in stale or "other" in stale)
    assert (tmp_path / "page.md").read_text().count("| – | – | – |") == len(stale)
    work.set_aside([*work.jobs.values()])
    replaced = {path.name for path in work.directory.glob(".replaced/*")}
    assert replaced == {*stale}


def test_a_record_drops_what_starts_from_a_changed_run(planned):
    before = planned(CHAIN)
    complete(before)
    old = make_record(before, {})
    shutil.rmtree(before.directory)
    assert make_record(before, old) == old
    runs = make_record(planned(CHAIN.replace("first: ", "first: lr=0.1 ")), old)["runs"]
    assert [name for name, run in runs.items() if run["n"]] == ["other"]
    evaluations = runs["other"]["evaluations"]
    assert (evaluations["played"], evaluations["match"]["n"]) == (
        old["runs"]["other"]["evaluations"]["played"],
        0,
    )


def test_what_learns_from_the_games_of_a_changed_player_is_replaced(planned):
    text = CHAIN.replace("init_from={first}", "demonstrations={first}/games.jsonl")
    text = text.replace(f"first: {TINY}", "first: player=win_or_block game=tictactoe")
    text = text.replace(", met: match.win.rate", "").replace("opponent={first}", "")
    complete(planned(text))
    work = planned(text)
    assert work.replaced([*work.jobs.values()]) == []
    work = planned(text.replace("win_or_block", "random"))
    assert names(work.replaced([*work.jobs.values()])) == ["last/0", "middle/0"]
    assert "middle/0, which it needs, does not count" in work.difference(work.jobs["last/0"])


def test_only_the_chosen_runs_are_replaced(planned, typed):
    complete(planned(CHAIN))
    work = planned(CHAIN.replace(TINY, f"{TINY} lr=0.1"))
    middle, first = (work.jobs[name] for name in ("middle/0", "first/0"))
    assert names(work.replaced([middle, first])) == ["last/0", "middle/0", "first/0"]
    assert names(work.replaced([work.jobs["other/0"]])) == ["other/0"]
    lines = typed("study", "mine.yaml", "dry_run=true", "only=first").stdout.splitlines()
    assert [line.split()[:2] for line in lines[:-2]] == [
        [f"{name}/0:", "replaced"] for name in ("first", "middle", "last")
    ]
    assert lines[-2] == "1 of 4 jobs would run, in outputs/studies/mine"


def test_a_job_starts_only_after_those_it_needs(planned, monkeypatch):
    work, started = planned(CHAIN), list[str]()

    def run(runner, jobs):
        for job in jobs:
            assert all(other.name in started for other in job.needs)
            started.append(job.name)
            complete(work, job.name)

    monkeypatch.setattr("rlgames.core.jobs.Runner.run", run)
    work.run([*work.jobs.values()], 1)
    assert started == ["first/0", "middle/0", "other/0", "last/0"]


@pytest.mark.usefixtures("_jobs_here")
def test_studies_of_one_name_do_not_share_a_directory(typed, tmp_path):
    for folder in ("pa", "pb"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.yaml").write_text(PLAYERS)
    assert typed("study", "pa/same.yaml").returncode == 0
    for words in (["run=false"], ["dry_run=true"], ["out=outputs/studies/same"]):
        said = typed("study", "pb/same.yaml", *words)
        assert (said.returncode, said.stdout) == (2, "")
        assert "pa/same.yaml; use another out= for pb/same.yaml" in said.stderr
    assert typed("study", "pb/same.yaml", "out=other").returncode == 0
    # The project, and then the file, may be moved.
    for name in ("pa", "outputs"):
        (tmp_path / "moved").mkdir(exist_ok=True)
        (tmp_path / name).rename(tmp_path / "moved" / name)
    out = "out=moved/outputs/studies/same"
    assert typed("study", "pb/same.yaml", out, "run=false").returncode == 2
    assert typed("study", "moved/pa/same.yaml", out, "run=false").returncode == 0
    (tmp_path / "moved/pa/same.yaml").rename(tmp_path / "same.yaml")
    assert typed("study", "same.yaml", out).returncode == 0


@pytest.mark.usefixtures("_jobs_here")
def test_a_format_is_the_only_output(typed, tmp_path):
    (tmp_path / "mine.yaml").write_text(PLAYERS)
    said = typed("study", "mine.yaml", "out=out", "format=json")
    assert (said.returncode, "1 of 1 jobs done, in out\n" in said.stderr) == (0, True)
    part = json.loads(said.stdout)["runs"]["one"]["evaluations"]["played"]
    assert part["cells"]["win.rate"]["mean"] > 0
    said = typed("study", "mine.yaml", "out=out", "run=false", "format=markdown")
    assert f"| `one` | {part['cells']['win.rate']['mean']:g} ±" in said.stdout
    (tmp_path / "mine.yaml").write_text(PLAYERS.replace("win.rate", "wins.rate"))
    said = typed("study", "mine.yaml", "out=out", "run=false")
    assert (said.returncode, said.stdout) == (2, "")
    assert "no run has played.wins.rate; did you mean played.win.rate?" in said.stderr
    said = typed("study", "mine.yaml", "out=out", "format=json", "dry_run=true")
    assert (said.returncode, "dry_run= prints text" in said.stdout) == (2, True)


def test_names_are_text_as_it_is_typed(planned, typed):
    names = ["on", "1e-3", "0.10", "0.1", "null", "2048"]
    runs = "".join(f"  {name}: player=random game=tictactoe\n" for name in names)
    reported = f"reported: {{yes: {{{', '.join(f'{name}: 1.50' for name in names)}}}}}\n"
    columns = "columns: {no: 1e5.win.rate, on: reported.yes}"
    table = f"table: {{title: 2026-11-28, rows: [{', '.join(names)}], {columns}}}"
    text = f"runs:\n{runs}evaluations: {{1e5: games=20}}\n{reported}{table}"
    study = planned(text).study
    assert [*study.runs] == names == [*study.tables[0].rows] == [*study.reported["yes"]]
    assert [column.heading for column in study.tables[0].columns] == ["no", "on"]
    assert study.tables[0].title == "2026-11-28"
    for only, chosen in (("0.1*", ["0.10", "0.1"]), ("[null,on]", ["on", "null"])):
        lines = typed("study", "mine.yaml", f"only={only}", "dry_run=true").stdout.splitlines()
        assert [line.partition("/")[0] for line in lines[:-1]] == chosen
    assert typed("study", "mine.yaml", "only=2048", "dry_run=true").returncode == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds: 2", "seeds: two", "seeds=two is neither a number of seeds nor a list"),
        ("runs:", "rums:", "did you mean runs"),
        ("two:", "one:", "line 5 is not YAML: one is set twice"),
        ("two:", "ppo+:", "'ppo+' cannot be the name of a run; use letters, digits, _ and -"),
        ("played:", "v1.2:", "'v1.2' cannot be the name of an evaluation; use letters, digits"),
        ("played:", "train:", "'train' cannot be the name of an evaluation"),
        ("won: played", "won: plaid", "no evaluation is called 'plaid'; did you mean played"),
        ("played.win.rate", "played", "'played' is not a column; as in EVALUATION.PATH"),
        ("played.win.rate |", "played.win.rate - 1 |", "is not a column; as in REPORT.PATH"),
        ("100*.1f", "100*.1f | higest", "did you mean highest"),
        ("100*.1f", "+.2z", ".2z is not a format"),
        ("games=20 ", "games=20 plugins=[x] ", "plugins=[x] is typed"),
        ("games=20 ", "games=20 record=/tmp/x ", "record=/tmp/x is outside the run"),
        ("games=20 ", "games=20 record={}/../x ", "record={}/../x is outside the run"),
        ("table:", "table: [3]\ntables:", "no key is called 'tables'; did you mean table?"),
        ("table:", "reported: {x: {three: 1}}\ntable:", "reported.x: no run is called 'three'"),
        ("train.seconds", "train.turns.last0", "train.turns.last0 is not a metric of"),
        ("train.seconds", "reported.x", "reported.x: no values is called 'x'"),
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
        ("games=20 ", "search=expectimax ", "search=expectimax plays 2048"),
        ("games=20 ", "games=al ", "played of one: games=al is not a choice; did you mean all?"),
        ("games=20 ", "games=1 ", "games=1 leaves out a seat of tictactoe; use games=2"),
        ("opponent=random", "opponent=density", "density plays battleship and salvo"),
        ("two:", "records:", "runs.records: a study has its own file or folder of that name"),
        ("lr=0.1", "init_from={two}", "two/0 needs two/0, which needs it"),
        ("lr=0.1", "init_from={too}", "two/0 needs too/0, which the study lacks; did you mean"),
        (
            "lr=0.1",
            "opponent={best}\n  best: player=exact game=tictactoe",
            "needs best/0, a player and not a run",
        ),
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
        ("page=mistyped.md", "page=mistyped.md cannot be updated: it needs one line"),
        ("page=latin.md", "page=latin.md cannot be updated: it is not UTF-8 text"),
        ("page=damaged", "page=damaged cannot be updated: Is a directory"),
        ("records=mine.yaml", "mine.yaml is not a directory"),
        ("records=damaged", "mine.json is not a record of a study"),
    ],
)
def test_where_results_cannot_be_written_is_said_first(word, message, typed, tmp_path):
    (tmp_path / "mine.yaml").write_text(STUDY)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged/mine.json").write_text('{"runs": {"one": {"cells": {}}}}')
    (tmp_path / "latin.md").write_bytes("é".encode("latin-1"))
    (tmp_path / "mistyped.md").write_text("<!-- study mine -->\n<!-- end of study mine-->\nmore\n")
    said = typed("study", "mine.yaml", word)
    assert (said.returncode, message in said.stderr, said.stdout) == (2, True, ""), said.stderr
    assert not (tmp_path / "outputs").exists()


BEGIN, END = "<!-- study a -->", "<!-- end of study a -->"


@pytest.mark.parametrize(
    "page",
    [
        f"{BEGIN}\nold\n\n## Mine\n",
        f"{BEGIN}\nold\n<!-- End of study a -->\n## Mine\n",
        f"{BEGIN}\nold\n<!-- end of study a-->\n## Mine\n",
        f"{END}\n{BEGIN}\nold\n",
        f"{END}\nold\n",
        f"{BEGIN}\nold\n{END}\n{BEGIN}\nold\n{END}\n",
    ],
)
def test_a_section_without_its_comments_is_an_error(page):
    with pytest.raises(ValueError, match=f"it needs one line {BEGIN}, and after it one line {END}"):
        with_section(page, "study a", "new\n")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_section_changes_nothing_else_of_a_page(end):
    new = f"{BEGIN}{end}new{end}{END}{end}"
    for before in ("", f"text{end}", f"text{end}{end}"):
        for after in ("", end, f"{end}## Mine{end}\v{end}", "## Mine"):
            old = f"{before}{BEGIN}{end}old{end}{END}{end}{after}"
            page = with_section(old, "study a", "new\n")
            assert page == f"{before}{new}{after}" == with_section(page, "study a", "new\n")
    assert with_section(f"text{end}{BEGIN}{end}{END}", "study a", "new\n") == f"text{end}{new}"
    assert with_section(f"text{end}more", "study a", "new\n") == f"text{end}more{end}{new}"


def test_a_record_keeps_the_seeds_that_this_directory_lacks(planned):
    three = planned(STUDY, "seeds=3")
    complete(three, "one/0", "one/1")
    both = make_record(three, {})
    runs = both["runs"]
    assert (runs["one"]["seeds"], runs["one"]["n"]) == ([0, 1], 2)
    assert (runs["two"]["seeds"], runs["two"]["n"]) == ([], 0)
    shutil.rmtree(three.directory / "one/1")
    assert make_record(three, both) == both
    complete(three, "one/1", "one/2")
    assert make_record(three, both)["runs"]["one"]["seeds"] == [0, 1, 2]
    fewer = planned(STUDY, "seeds=1")
    assert make_record(fewer, both)["runs"]["one"]["seeds"] == [0]


def test_a_table_says_which_rows_lack_seeds(planned, typed):
    work = planned(STUDY, "seeds=3")
    complete(work, "one/0", "one/1", "one/2", "two/0", "two/2")
    for format in ("table", "markdown", "latex"):
        shown = typed("study", "mine.yaml", "seeds=3", "run=false", f"format={format}").stdout
        assert shown.count("values of fewer seeds than the study has: two 2 of 3\n") == 1
    complete(work, "two/1")
    assert "fewer seeds" not in typed("study", "mine.yaml", "seeds=3", "run=false").stdout


def test_an_evaluation_of_fewer_seeds_lacks_none(planned):
    text = STUDY.replace(
        "played: games=20 solve_seconds=0", "played: {overrides: games=20, seeds: 1}"
    )
    work = planned(text)
    complete(work)
    assert make_record(work, {})["runs"]["one"]["evaluations"]["played"]["n"] == 1
    assert not seeds_left_out(work.study, make_record(work, {}), work.study.tables[0])


def test_a_dry_run_says_what_the_trainings_cost(planned, typed, monkeypatch):
    work = planned(STUDY, "seeds=3")
    words = ["study", "mine.yaml", "seeds=3", "dry_run=true"]
    assert "how long 2 runs will take is known after a seed of each" in typed(*words).stdout
    complete(work, "one/0", "two/0")
    for name, seconds in (("one", 100.0), ("two", 20.5)):
        path = work.directory / name / "0/run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"seconds": seconds}))
    line = typed(*words).stdout.splitlines()[-1]
    assert line == "they train for about 4:01 one after another, by earlier seeds"
    shutil.rmtree(work.directory / "two")
    assert "about 3:20 one" in typed(*words).stdout
    assert "how long 1 run will take" in typed(*words).stdout
    monkeypatch.setattr("rlgames.commands.study.LARGE_BYTES", 1000)
    assert "checkpoints take about 0.0 GB, " in typed(*words).stdout


def test_a_dry_run_lists_the_jobs(typed, tmp_path):
    (tmp_path / "mine.yaml").write_text(STUDY)
    lines = typed("study", "mine.yaml", "dry_run=true", "only=two").stdout.splitlines()
    assert lines[0] == f"two/0: not started: {TINY} lr=0.1 seed=0; evaluations: played"
    assert lines[-2] == "2 of 4 jobs would run, in outputs/studies/mine"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("turns.last63", 8.0 + 1 / 63),
        ("turns.first32", 7.0),
        ("turns.first1", 7.0),
        ("turns.last65", nan),
    ],
)
def test_a_metric_of_training_is_a_mean_over_its_first_or_last_games(name, value, tmp_path):
    lines = [{"games": 32 * number, "train/turns": 5.0 + 2 * number} for number in (1, 2)]
    run = Run(path=tmp_path, status="done")
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert run.number(f"train.{name}")[0] == pytest.approx(value, nan_ok=True)
    with pytest.raises(ConfigError, match=r"no run has train\.truns\.last32") as error:
        check_metrics([run], [ColumnText("", "train.truns.last32")])
    assert error.value.hint == "did you mean train.turns.last32?"


def test_equal_values_of_three_seeds_have_no_interval(tmp_path):
    def shown(values, format=".1f", half=None):
        runs = []
        for seed, value in enumerate(values):
            ends = {} if half is None else {"ci95": [value - half, value + half]}
            report = Report("eval", {}, {}, "", {"b": {"rate": value} | ends})
            settings, path = {"seed": seed}, tmp_path / str(seed)
            runs.append(Run(path=path, status="done", settings=settings, reports={"a": report}))
        row, column = Row(runs), ColumnText.parse("", f"a.b.rate | {format}")
        found = row.estimate("a.b.rate")
        return column.cell(found.value, found.half, row.values("a.b.rate"))

    assert shown([4.5, 4.5, 4.5], ".3f") == "4.500 (3 equal)"
    assert shown([4.5, 4.5]) == "4.5 (4.5, 4.5)"
    assert shown([4.0, 5.0, 6.0], "+.2f") == "+5.00 ± 2.48"
    assert shown([4.0, 5.0, 6.0], ".2f | mean") == "5.00"
    assert shown([0.5], "100*.0f", 0.1) == "50 ± 10"
    assert shown([1.0, 2.0], ".1f | by seed") == "1.0, 2.0"
    assert shown([1.0, 2.0], ".1f | highest") == "2.0"
    assert shown([0.5], "") == "0.5"


def test_a_negative_number_has_a_minus_sign_in_latex():
    assert escape_latex("-1.5 ± 2, +3.7, 2026-11-24, (-2, -.5)") == (
        "$-$1.5 $\\pm$ 2, +3.7, 2026-11-24, ($-$2, -.5)"
    )


def test_equal_questions_are_composed_once(planned, monkeypatch):
    composed = list[tuple[str, ...]]()

    def load(schema, words):
        composed.append((schema.__name__, *words))
        return load_config(schema, words)

    monkeypatch.setattr("rlgames.commands.study_plan.load_config", load)
    planned(STUDY, "seeds=3")
    assert len(composed) == len({*composed}) > 0
