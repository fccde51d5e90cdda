"""The tables of docs/results.md: what they compute, and what they show of unfinished work."""

import json
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import rlgames
from rlgames.cli.table import COMMANDS
from rlgames.commands.configs import EvalConfig
from rlgames.config.compose import load_config
from rlgames.config.training import TrainConfig
from rlgames.core.errors import ConfigError
from rlgames.games.salvos import expected_random_turns

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))

import dedieu_amar  # noqa: E402
import open_questions  # noqa: E402
import record  # noqa: E402
import reproduce  # noqa: E402
import results_curves  # noqa: E402
import results_page  # noqa: E402
import steps  # noqa: E402
import strength  # noqa: E402
from results import Figures, mean  # noqa: E402
from results_battleship import CASES, RULES, first_below, last_window, random_turns  # noqa: E402
from results_strength import FLEETS  # noqa: E402
from steps import Step  # noqa: E402

STEPS = [*reproduce.battleship(), *reproduce.lines(), *dedieu_amar.steps()]
STRENGTH = [*strength.tiles(), *strength.lines(), *strength.sea()]
RUNS = ("teacher=", "opponent=")  # of other steps


def lines(*values, every=100):
    return [{"games": every * n, "train/turns": value} for n, value in enumerate(values, 1)]


def test_a_window_covers_the_games_that_it_names():
    log = lines(9.0, 9.0, 6.0, 5.0)
    assert last_window(log, "train/turns", 200) == 5.5
    assert last_window(log, "train/turns", 150) == pytest.approx((5 * 100 + 6 * 50) / 150)
    # A log line of 2,320 games says nothing about the last 2,000.
    with pytest.raises(ConfigError, match="2,320"):
        last_window(lines(6.0, 5.0, every=2320), "train/turns", 2000)


def test_a_bound_is_passed_once_a_whole_window_is_below():
    log = lines(8.0, 4.0, 5.0, 4.0, 4.0)
    assert first_below(log, 4.6, 200) == 300
    assert first_below(log, 4.1, 200) == 500
    assert first_below(log, 3.0, 200) == float("inf")


def test_equal_values_of_three_seeds_have_no_interval():
    assert mean([4.5, 4.5, 4.5], 3) == "4.500 (3 equal)"
    assert mean([4.5, 4.5], 1) == "4.5 (4.5, 4.5)"
    assert mean([4.0, 5.0, 6.0]) == "5.00 ± 2.48"


def test_a_difference_has_welchs_interval():
    # By hand: variances 1 and 4, standard error √(1/3 + 4/3), 2.94 degrees of freedom.
    assert open_questions.difference([1.0, 2.0, 3.0], [3.0, 5.0, 7.0]) == "-3.00 ± 4.16"
    assert open_questions.difference([1.0, 1.0], [2.0, 2.0]) == "-1.00"
    assert open_questions.difference([1.0], [2.0, 2.0]) == "–"


def test_random_play_differs_from_his_in_cases_three_and_four():
    errors = {}
    for case, (_, _, reported) in CASES.items():
        average, deviation = random_turns(*RULES[case])
        errors[case] = round((float(reported) - average) / (deviation / 500**0.5), 1)
    assert errors == {1: 1.0, 2: -1.5, 3: 3.7, 4: -6.1, 5: -2.3}


def test_random_play_on_the_standard_fleet_is_computed():
    assert FLEETS["fleet"].random_turns == f"{17 * 101 / 18:.2f}" == "95.39"
    for fleet in FLEETS.values():
        assert fleet.random_turns == f"{expected_random_turns(100, 17, fleet.shots):.2f}"


def test_a_training_continues_where_it_was_interrupted(tmp_path):
    step = Step("landy/0", ("train", "experiment=landy", "seed=0"))
    run = str(tmp_path / "landy" / "0")
    assert step.command(tmp_path) == ["train", "experiment=landy", "seed=0", f"out={run}"]
    rlgames.train(["experiment=landy", "games=20", "eval_games=1", f"out={run}"])
    assert step.command(tmp_path) == ["resume", run]
    measured = Step("landy/0.final", ("eval", "{landy/0}"))
    assert measured.command(tmp_path) == ["eval", run]


@dataclass(frozen=True)
class Sleep(Step):
    """Writes when it began and ended."""

    def run(self, out):
        begun = time.monotonic()
        time.sleep(0.3)
        (out / f"{self.name}.json").write_text(json.dumps([begun, time.monotonic()]))


def test_steps_run_side_by_side_as_far_as_their_threads_find_cores(tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    planned = [Sleep("both", ("eval",), threads=2), *(Sleep(name, ("eval",)) for name in "abc")]
    assert steps.run_all(planned, tmp_path)
    times = {step.name: json.loads(step.path(tmp_path).read_text()) for step in planned}
    at_once = {
        name: {other for other in times if times[other][0] < end and begun < times[other][1]}
        for name, (begun, end) in times.items()
    }
    assert at_once["both"] == {"both"}
    assert at_once["a"] == at_once["b"] == {"a", "b"}


def test_long_chains_begin_first(tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    planned = [
        Sleep("alone", ("eval",), 5.0),
        Sleep("first", ("eval",), 1.0),
        Sleep("second", ("eval", "{first}"), 9.0),
    ]
    assert steps.run_all(planned, tmp_path)
    times = {step.name: json.loads(step.path(tmp_path).read_text()) for step in planned}
    assert sorted(times, key=times.__getitem__) == ["first", "second", "alone"]


def test_what_another_command_left_is_done_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)  # the one that steps redirect to their logs

    quick = "solve_seconds=0"

    def planned(board):
        train = Step("small/0", ("train", "game=tictactoe", f"board={board}", "games=1", quick))
        play = ("eval", "{small/0}", "games=2", "opponent=random", "format=json", quick)
        other = ("eval", "game=tictactoe", "player=random", "games=2", "format=json", quick)
        return [train, Step("small/0.played", play), Step("other", other)]

    assert steps.run_all(planned(3), tmp_path)
    times = [step.path(tmp_path).stat().st_mtime_ns for step in planned(3)]
    assert steps.run_all(planned(3), tmp_path)
    assert times == [step.path(tmp_path).stat().st_mtime_ns for step in planned(3)]
    train, played, other = planned(4)
    assert [step.done(tmp_path) for step in (train, played, other)] == [False, True, True]
    assert not steps.run_all([train, played, other], tmp_path, ("small/0.",))  # needs the other
    assert steps.run_all([train, played, other], tmp_path)
    config = (train.path(tmp_path) / "config.yaml").read_text(encoding="utf-8")
    assert "board: 4" in config
    after = [step.path(tmp_path).stat().st_mtime_ns for step in (train, played, other)]
    assert after[0] > times[0]
    assert after[1] > times[1]
    assert after[2] == times[2]
    played.path(tmp_path).unlink()
    assert steps.run_all([train, played, other], tmp_path, ("small/0.",))
    assert played.done(tmp_path)


@pytest.mark.parametrize("done", ["nothing", "one seed"])
def test_tables_show_what_there_is(done, tmp_path):
    if done == "one seed":
        run = tmp_path / "landy" / "0"
        run.mkdir(parents=True)
        log = [*lines(*[7.0] * 30), {"games": 3000, "eval/turns": 5.0, "time/seconds": 12.0}]
        (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
        unfinished = tmp_path / "landy" / "1"
        unfinished.mkdir()
        (unfinished / "metrics.jsonl").write_text(json.dumps(log[0]) + "\n")
        for path, status in ((run, "done"), (unfinished, "running")):
            (path / "run.json").write_text(json.dumps({"status": status}))
        greedy = {"moves": {"mean": 4.75}, "reference": {"random": 8.25, "optimal": 4.5}}
        (tmp_path / "landy" / "0.final.json").write_text(json.dumps(greedy))
    page = results_page.table(tmp_path, STEPS)
    (late,) = [line for line in page.splitlines() if line.startswith("| sampling policy")]
    (final,) = [line for line in page.splitlines() if line.startswith("| final network, greedy")]
    if done == "one seed":
        assert "| about 4.55 (plot) | 7.00 | – | – | 8.25 | 4.50 |" in late
        assert "| – | 4.750 | – | – | 8.25 | 4.50 |" in final
    else:
        assert "| about 4.55 (plot) | – | – | – |" in late
    assert "`rlgames train experiment=landy_loop log_every=100 seed=SEED`" in page
    assert "final: `rlgames eval RUN checkpoint=final games=all`" in page


def _plain(word):
    return word.replace("{", "").replace("}", "").replace("OUT/", "")


@pytest.mark.slow
@pytest.mark.parametrize("steps", [STEPS, STRENGTH], ids=["reproduce", "strength"])
def test_every_training_of_the_page_can_be_composed(steps):
    names: set[str] = set()
    for step in steps:
        assert step.name not in names
        assert set(step.needs) <= names
        names.add(step.name)
        searches = {word.rpartition("+")[2] for word in step.words if "}" in word and "+" in word}
        assert len(searches) < 2  # the keys of a search would be refused by the other
        if step.words[0] == "eval" and "{" not in step.words[1]:
            load_config(EvalConfig, list(step.words[1:]))
        if step.words[0] == "train" and step.name.endswith("/0"):
            words = [word for word in step.words[1:] if not word.startswith(RUNS)]
            load_config(TrainConfig, [re.sub(r"[{}]|OUT/", "", word) for word in words])


@pytest.mark.parametrize(("what", "words"), results_page.FIGURES)
def test_every_plot_of_the_documents_has_a_command(what, words):
    command, *rest = words.split()
    directories = [word for word in rest if "=" not in word]
    cfg: Any = load_config(
        COMMANDS[command].config, [word for word in rest if word not in directories]
    )
    trained = {step.name.split("/")[0] for step in STEPS if step.words[0] == "train"}
    if command == "report":
        assert all(re.fullmatch(r"train/\w+", metric) for metric in cfg.metric)
        assert {Path(directory).name for directory in directories} <= trained
    else:
        assert cfg.out == "RUN"


def test_a_command_is_shown_as_it_is_typed():
    words = ("train", "experiment=hickman", "init_from={hickman/0}/x", "solve_seconds=0", "seed=0")
    step = Step("greedy/0", words)
    figures = Figures(Path(), {step.name: step.words, "greedy/0.final": ("eval", "{greedy/0}")})
    assert figures.commands("greedy") == (
        "- `greedy`: `rlgames train experiment=hickman init_from=hickman/SEED/x seed=SEED`\n"
        "  - final: `rlgames eval RUN`"
    )


def test_figures_of_several_days_add_up(tmp_path):
    path = tmp_path / "strength.json"
    steps = [Step(name, ("eval", "game=2048", f"games={name}")) for name in ("1", "2")]
    for day, (step, score) in enumerate(zip(steps, (10.123456789, 20.0), strict=True)):
        out = tmp_path / str(day)
        out.mkdir()
        report = {"score": {"mean": score, "median": 1.0}, "reach": {"8": {"rate": 0.5}}, "seed": 7}
        step.path(out).write_text(json.dumps(report))
        written = record.update(path, out, steps)
    assert json.loads(path.read_text()) == written
    figures = record.RecordedFigures(tmp_path, steps, written)
    assert figures.report("1") == {"score": {"mean": 10.1235}, "reach": {"8": {"rate": 0.5}}}
    assert figures.report("2") == {"score": {"mean": 20.0}, "reach": {"8": {"rate": 0.5}}}
    assert figures.report("3") is None
    assert re.fullmatch(r"on 20\d\d-\d\d-\d\d", figures.dates())


def test_a_figure_of_another_command_does_not_count(tmp_path):
    before, now = (Step("x/0", ("train", f"games={n}")) for n in (1, 2))
    run = before.path(tmp_path)
    run.mkdir(parents=True)
    (run / "run.json").write_text('{"status": "done"}')
    (run / "metrics.jsonl").write_text('{"games": 1, "time/seconds": 9.0}\n')
    written = record.update(tmp_path / "strength.json", tmp_path, [before])
    assert record.RecordedFigures(tmp_path, [before], written).seconds("x") == [9.0]
    assert record.RecordedFigures(tmp_path, [now], written).seconds("x") == []


def test_curves_are_drawn_once_all_seeds_are_done(tmp_path, monkeypatch):
    pictures = tmp_path / "docs" / "pictures"
    pictures.mkdir(parents=True)
    monkeypatch.setattr(results_curves, "RESULTS", pictures.parent / "results.md")
    monkeypatch.setattr(results_curves, "CURVES", {"small": "points in tic-tac-toe"})
    words = ["game=tictactoe", "games=64", "batch=32", "policy.layers=[8]", "eval_every=32"]
    picture = pictures / "strength_small.png"
    for seed in range(3):
        assert not picture.exists()
        run = tmp_path / "small" / str(seed)
        rlgames.train([*words, "solve_seconds=0", f"seed={seed}", f"out={run}"])
        text = results_curves.of_curves(Figures(tmp_path))
        assert ("(pictures/strength_small.png)" in text) == (seed == 2)
    assert picture.read_bytes()[:4] == b"\x89PNG"
