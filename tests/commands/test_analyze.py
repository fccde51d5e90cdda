"""`rlgames analyze`: mistakes against perfect play."""

import json
import math
import shlex
from pathlib import Path

import pytest
import torch
from helpers import check_refused, command, make_game, rng
from markers import quick

import rlgames as package
from rlgames.build.agents import open_run
from rlgames.core.errors import ConfigError
from rlgames.evaluation import analysis
from rlgames.evaluation.analysis import distinct
from rlgames.evaluation.estimates import Estimate
from rlgames.evaluation.positions import read_positions
from rlgames.rng import REPORT_STREAM, Rng
from rlgames.runs.find import shipped_agents
from rlgames.solvers.alphabeta_solver import AlphaBetaSolver
from rlgames.solvers.optimum import find_optimum

ROOT = Path(__file__).resolve().parents[2]
POSITIONS = ROOT / "scripts/checks/connect4_test_positions.txt"


def analyze(*words, run=None):
    return command("analyze", run, [*words]).as_dict()


@pytest.fixture(scope="module")
def salvo(tmp_path_factory):
    """An agent that has learned little, and no chance in its play."""
    out = tmp_path_factory.mktemp("runs") / "salvo"
    words = ["game=salvo", "board=3", "ships=[2]", "shots=1", "policy.layers=[8]"]
    return package.train([*words, "games=64", "batch=32", "solve_seconds=0", f"out={out}"])


def test_labeled_positions_are_counted_by_their_labels():
    """By a second count of the file's marks, for the bundled agent."""
    run = shipped_agents()["connect4"]
    report = analyze(f"positions={POSITIONS}", run=run)
    game = make_game("game=connect4")
    state = read_positions(POSITIONS, game).state
    action = open_run(run).agent().choose(state, Rng(0, REPORT_STREAM)).tolist()
    counts: dict[str, tuple[int, int, int]] = {}
    lines = [line.split() for line in POSITIONS.read_text().splitlines() if line[0] != "#"]
    for (stage, level, _, marks, _), column in zip(lines, action, strict=True):
        worth = ["-=+".find(mark) for mark in marks]
        for name in (f"{stage}_{level}", "all"):
            lost, allow, total = counts.get(name, (0, 0, 0))
            allows = min(each for each in worth if each >= 0) < max(worth)
            counts[name] = lost + (worth[column] < max(worth)), allow + allows, total + 1
    assert {*counts} == {*report["losses"]}
    for name, (lost, allow, total) in counts.items():
        losses = report["losses"][name]
        assert (losses["count"], losses["allow"], losses["positions"]) == (lost, allow, total)
        assert losses["rate"] == lost / total
        assert losses["ci95"] == [*Estimate.of_rate((lost, total)).interval]


def test_losses_add_up_to_what_play_is_worse_than_the_optimum(salvo, monkeypatch):
    report = analyze("games=all", run=salvo)
    played = package.evaluate(salvo, ["games=all"])
    assert report["exact"]
    assert report["losses"]["all"]["ci95"] is None
    lost = played["moves"]["mean"] - played["reference"]["optimal"]
    assert lost > 0.1
    assert report["per_game"] == pytest.approx(lost, abs=1e-9)
    by_turn = sum(each["loss"]["mean"] * each["met"] for each in report["turns"])
    assert by_turn / report["games"] == pytest.approx(lost, abs=1e-9)
    monkeypatch.setattr(analysis, "MAX_TURN_ROWS", -(-len(report["turns"]) // 2))
    pairs = analyze("games=all", run=salvo)["turns"]
    assert [each["first"] for each in pairs] == list(range(1, 2 * len(pairs), 2))
    assert sum(each["met"] for each in pairs) == report["losses"]["all"]["met"]


@pytest.mark.slow
def test_losses_in_2048_add_up_to_the_gap_of_the_mean_score():
    game = make_game("game=2048", "board=2")
    words = ["player=corner", "game=2048", "board=2"]
    report = analyze(*words, "games=20000")
    played = package.evaluate(None, [*words, "games=2"])
    gap = find_optimum(game, 60).value - played["exact_mean"]
    assert gap > 1
    assert report["per_game"] == pytest.approx(gap, abs=4 * gap / math.sqrt(20000))


WORDS = {
    "tictactoe": ["game=tictactoe"],
    "connect4": ["game=connect4", "rows=3", "columns=3", "line=3"],
    "othello": ["game=othello", "board=4"],
    "hex": ["game=hex", "board=3"],
    "breakthrough": ["game=breakthrough", "rows=4", "columns=3", "home_rows=1"],
    "2048": ["game=2048", "board=1", "columns=3"],
    "battleship": ["game=battleship", "board=4", "ships=[2]"],
    "salvo": ["game=salvo", "board=3", "ships=[2]"],
}


@pytest.mark.parametrize("name", quick(WORDS, "tictactoe", "connect4", "salvo"))
def test_perfect_play_loses_nothing_and_random_play_does(name):
    exact = analyze("player=exact", *WORDS[name], "games=60")
    random = analyze("player=random", *WORDS[name], "games=60")
    assert exact["losses"]["all"]["count"] == 0
    assert exact["losses"]["all"]["loss"]["mean"] == 0.0
    assert exact["worst"] == []
    assert exact["losses"]["all"]["positions"] == exact["losses"]["all"]["met"] > 60
    assert random["losses"]["all"]["count"] > 10
    losses = [each["loss"] for each in random["worst"]]
    assert 1 < len(losses) <= 10
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] > 0


def test_the_commands_of_the_worst_positions_show_the_loss(typed):
    words = ["player=random", "game=tictactoe"]
    worst = analyze(*words, "games=20", "worst=2", "seed=4")["worst"]
    assert len(worst) == 2
    for each in worst:
        program, *command = shlex.split(each["command"])
        assert program == "rlgames"
        done = typed(*command, "format=json")
        shown = json.loads(done.stdout)
        exact = {action["action"]: action["exact"] for action in shown["actions"]}
        assert abs(shown["exact"] - exact[each["move"]]) == pytest.approx(each["loss"])
        assert {exact[name] for name in each["best"]} == {shown["exact"]}


def test_positions_as_show_takes_them_are_analyzed(tmp_path):
    file = tmp_path / "positions.txt"
    file.write_text("# X can win, then O can\nX X . / O O . / . . .\nO O . / X X . / . . X\n")
    report = analyze("player=win_or_block", "game=tictactoe", f"positions={file}")
    assert report["losses"]["all"]["positions"] == 2
    assert report["losses"]["all"]["count"] == 0
    assert report["games"] is None
    random = analyze("player=random", "game=tictactoe", f"positions={file}")
    assert random["losses"]["all"]["allow"] == 2


def test_moves_with_scores_are_analyzed(tmp_path):
    """Positions as Pascal Pons's files have them; the solver's values are those of the score."""
    file, words = tmp_path / "positions.txt", ["player=win_or_block", "game=connect4"]
    file.write_text(
        "2252576253462244111563365343671351441 -1\n7422341735647741166133573473242566 1\n"
        "23163416124767223154467471272416755633 0\n"
    )
    report = analyze(*words, f"positions={file}")
    assert (report["losses"]["all"]["positions"], report["turns"][-1]["last"]) == (3, 39)
    file.write_text(file.read_text().replace(" 0", " -2"))
    with pytest.raises(ConfigError, match="the score of position 3 has another sign than its"):
        analyze(*words, f"positions={file}")
    for line, error in {
        "1112 x": "is not a list of moves and a score",
        "1111111 2": "an illegal move of connect4",
        "1212121 -18": "positions of finished games",
    }.items():
        file.write_text("12 1\n" + line)
        with pytest.raises(ConfigError, match=error):
            analyze(*words, f"positions={file}")


def test_pictures_and_tables(tmp_path, typed):
    pytest.importorskip("matplotlib")
    words = ["player=random", "game=tictactoe", "games=20", "worst=3"]
    words += ["opponent_search=mcts", "opponent_search.simulations=8"]
    done = typed("analyze", *words, "picture=turns.svg")
    assert done.returncode == 0, done.stderr
    assert "random against random+mcts, 20 games" in done.stdout
    assert "lost per game against perfect play" in done.stdout
    assert "rlgames show player=random game=tictactoe" in done.stdout
    assert (tmp_path / "turns.svg").read_text().startswith("<?xml")
    report = json.loads(typed("analyze", *words, "format=json").stdout)
    assert report == package.analyze(None, words)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["game=tictactoe"], "analyze needs a run"),
        (["player=random", "game=salvo_duel"], "rules of game=salvo_duel"),
        (["player=density", "game=salvo", "board=10", "ships=[5,4,3,3,2]"], "no exact solver"),
        (
            ["player=random", "game=2048", "games=1", "solve_positions=1"],
            "raise solve_positions=",
        ),
        (["player=random", "game=tictactoe", "positions=missing.txt"], "holds no positions"),
        (["player=random", "game=2048", "board=2", "opponent=random"], "one-player game"),
        (["player=random", "game=tictactoe", "picture=a.gif"], "is not a picture"),
        (["player=random", "game=tictactoe", "positions=a", "opponent=random"], "omit opponent="),
        (["player=random", "game=tictactoe", "positions=a", "games=9"], "omit games="),
        (["player=random", "game=tictactoe", "worst=-1"], "worst"),
    ],
)
def test_what_cannot_be_analyzed_gets_one_line(words, hint, typed):
    check_refused(typed("analyze", *words), hint)


def test_a_limit_on_positions_gives_the_same_values_on_every_machine(monkeypatch):
    words = ["player=win_or_block", "game=connect4", "games=8", "worst=0"]
    first, second = (analyze(*words, "solve_positions=2000") for _ in range(2))
    assert first == second
    assert 0 < first["losses"]["all"]["positions"] < first["losses"]["all"]["met"]
    more = analyze(*words, "solve_positions=20000")
    assert more["losses"]["all"]["positions"] > first["losses"]["all"]["positions"]
    monkeypatch.setattr(AlphaBetaSolver, "usual_total", 5000)
    monkeypatch.setattr(analysis, "VALUES", 0)
    fewer = analyze(*words, "solve_positions=20000")
    assert 0 < fewer["losses"]["all"]["positions"] < more["losses"]["all"]["positions"]


def test_equal_positions_count_once():
    game = make_game("game=tictactoe")
    start = game.initial(3, rng())
    after = game.step(start, torch.tensor([0, 4, 0]), rng())
    first, where = distinct(type(start).cat([start, after]))
    assert len(first) == 3
    assert where[0] == where[1] == where[2]
    assert where[3] == where[5] != where[4]


def test_a_board_of_one_row_is_a_position_too(tmp_path):
    file = tmp_path / "positions.txt"
    file.write_text(". o . . .\n. . x . .\n")
    game = make_game("game=battleship", "board=5", "ships=[2]")
    assert len(read_positions(file, game).group) == 2
    lines = [line for line in POSITIONS.read_text().splitlines() if line[0] != "#"]
    file.write_text(lines[0].replace(" ", "/a ", 1))
    labeled = read_positions(file, make_game("game=connect4"))
    assert labeled.outcome is not None


def test_files_of_positions_have_comments_and_blank_lines(tmp_path):
    lines = [line for line in POSITIONS.read_text().splitlines() if line[0] != "#"][:2]
    file, game = tmp_path / "positions.txt", make_game("game=connect4")
    file.write_text("\n".join(["#two positions", "  ", lines[0], "", "# the second", lines[1]]))
    assert read_positions(file, game).outcome.shape == (2, 7)
    file.write_text("#one\n\n. . . / . . . / . . .\n#another\nX . . / . . . / . . .\n")
    assert len(read_positions(file, make_game("game=tictactoe")).group) == 2


def test_positions_that_do_not_fit_a_game_are_an_error(tmp_path):
    file = tmp_path / "positions.txt"
    file.write_text("X X X X / . . . .\n")
    with pytest.raises(ConfigError, match="is not a position of tictactoe: "):
        analyze("player=random", "game=tictactoe", f"positions={file}")
    file.write_text(". . . / . . . / . . .\nX X X X / . . . .\n")
    with pytest.raises(ConfigError, match=r"'X X X X / . . . .' is not a position of tictactoe: "):
        analyze("player=random", "game=tictactoe", f"positions={file}")
    file.write_text("X X X / O O . / . . .\n")
    with pytest.raises(ConfigError, match="holds only positions of finished games"):
        analyze("player=random", "game=tictactoe", f"positions={file}")
