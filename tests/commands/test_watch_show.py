"""`rlgames watch` and `rlgames show`: games that end, positions and what they are worth."""

import io
import json
import re
import sys

import pytest
import torch
from helpers import SMALL_TRAINING, check_refused, make_game
from markers import one_in

import rlgames as package
from rlgames.config.conf import option_names
from rlgames.games.notation import parse
from rlgames.rng import Rng
from rlgames.runs.find import shipped_agents
from rlgames.solvers.optimum import find_optimum, position_solver
from rlgames.solvers.proof_solver import ProofSolver

SMALL = {"battleship": ["ships=[3]"], "salvo": ["board=3", "ships=[2]"], "2048": ["board=2"]}
SMALL |= {"salvo_duel": ["board=3", "ships=[2,1]"]}


@pytest.mark.parametrize("name", one_in(3, option_names("game")))
def test_a_game_is_watched_to_its_end(name, typed):
    words = ["watch", "player=random", f"game={name}", *SMALL.get(name, ())]
    done = typed(*words, "games=2", "seed=3")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert len(re.findall(r"after \d+ turns", done.stdout)) == 2
    frames = [part for part in done.stdout.split("\n\n") if part.startswith("turn ")]
    assert len(frames) > 3
    for frame in frames:
        told = [float(share) for share in re.findall(r"^  .* (\d+\.\d)%$", frame, re.M)]
        assert sum(told) == pytest.approx(100, abs=0.06 * len(told))
    assert typed(*words, "games=2", "seed=3").stdout == done.stdout


def test_who_does_not_tell_is_watched_all_the_same(typed):
    words = ["game=connect4", "rows=4", "columns=4", "line=3", "opponent=random"]
    done = typed("watch", "player=win_or_block", *words, "delay=0")
    assert done.returncode == 0
    assert "wins after" in done.stdout or "a draw" in done.stdout
    alone = typed("watch", "player=random", "game=2048", "opponent=random")
    assert "one-player game" in alone.stderr
    assert "needs a run" in typed("watch", "game=2048").stderr


def test_show_watch_and_play_tell_the_values_of_an_agent_that_learned_values(typed, monkeypatch):
    """No command calls a softmax of values, or the greedy choice, a probability."""
    report = json.loads(typed("show", "tictactoe", "format=json").stdout)
    assert {each["probability"] for each in report["actions"]} == {None}
    scores = {each["action"]: each["score"] for each in report["actions"]}
    assert [*scores.values()] == sorted(scores.values(), reverse=True)
    monkeypatch.setattr(sys, "stdin", io.StringIO("p\nq\n"))
    for said in (typed("play", "tictactoe").stdout, typed("watch", "tictactoe", "delay=0").stdout):
        listed = re.findall(r"^  (\w\d) +(-?\d\.\d{4})$", said, re.M)[:8]
        shown = {name: float(text) for name, text in listed}
        assert shown == {name: pytest.approx(scores[name], abs=5e-5) for name in shown}
        assert len(shown) == 8
        assert "%" not in said


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return package.train([*SMALL_TRAINING, f"out={tmp_path_factory.mktemp('show')}/run"])


def test_seats_and_marks_are_explained(run, typed):
    shown = typed("watch", str(run), "opponent=win_or_block", "games=2", "seed=1").stdout
    first, second = shown.split("turn 1, ")[1:]
    for game, names in ((first, [run, "win_or_block"]), (second, ["win_or_block", run])):
        assert game.startswith(f"seat 1, {names[0]}: ")
        assert f"turn 2, seat 2, {names[1]}: " in game
        ended = [f"seat {seat}, {name}, wins after " for seat, name in enumerate(names, 1)]
        assert any(line in game for line in [*ended, "a draw after "])
        assert "\nX: seat 1\n" in game
        assert "\nX: seat 1, O: seat 2\n" in game
    ahead = typed("watch", str(run), "search=mcts", "search.simulations=2").stdout
    assert f"turn 2, seat 2, {run}+mcts: " in ahead
    words = ["opponent=random", "opponent_search=mcts", "opponent_search.simulations=2", "delay=0"]
    shown = typed("watch", str(run), *words).stdout
    assert "turn 2, seat 2, random+mcts: " in shown
    assert "X: seat 1, O: seat 2\n" in shown
    shots = typed("watch", "player=random", "game=battleship", "ships=[3]").stdout
    assert "x: hit, o: missed\n" in shots
    assert "seat" not in shots


def test_a_directory_of_runs_is_answered_with_the_newest(run, typed, tmp_path):
    for number, name in enumerate(("b", "a", "c")):
        (tmp_path / "outputs" / name / "checkpoints").mkdir(parents=True)
        start = f'{{"status": "done", "start": "2026-11-2{number}"}}'
        (tmp_path / "outputs" / name / "run.json").write_text(start)
        if name != "c":
            (tmp_path / "outputs" / name / "checkpoints" / "latest.safetensors").touch()
    for command in ("eval", "watch", "show", "play"):
        hints = "outputs holds no checkpoint", "its newest run is outputs/a\n"
        check_refused(typed(command, "outputs"), *hints)
    assert "newest" not in typed("eval", "outputs/c").stderr
    assert "did you mean outputs?" in typed("eval", "output").stderr
    random = ["watch", "player=random", "game=tictactoe"]
    assert "as in: rlgames watch outputs/a, or with player=random game=" in typed("watch").stderr
    assert "did you mean outputs?" in typed(*random, "opponent=outputz").stderr
    listed = typed(*random, "opponent=nobody").stderr
    players = "corner density density_rollout exact human hunt_target program random win_or_block"
    assert {*players.split(), *shipped_agents()} == {*re.findall(r"\w+", listed.split(":")[-1])}


def test_a_position_as_json(run, typed):
    done = typed("show", str(run), "state=. X . / . O . / . . .", "format=json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert " ".join(report["position"].split()) == "A B C 1 . X . 2 . O . 3 . . ."
    assert (report["seat"], report["exact"], report["unit"]) == (1, 0.0, "outcome")
    moves = {each["action"]: each for each in report["actions"]}
    assert set(moves) == {"A1", "C1", "A2", "C2", "A3", "B3", "C3"}
    assert sum(move["probability"] for move in moves.values()) == pytest.approx(1)
    assert {name for name, move in moves.items() if move["exact"] == -1} == {"B3"}
    agent = package.load(run)
    state = parse(agent.game, report["position"])
    _, value = agent.policy.scores(agent.game, state)
    assert report["value"] == pytest.approx(value.item())


def test_a_position_for_a_person(run, typed, monkeypatch):
    done = typed("show", str(run), "state=X X . / O O . / . . .")
    assert "exact: won, by C1" in done.stdout
    assert re.search(r"B3 .*lost", done.stdout)
    assert "\x1b" not in done.stdout
    words = ["game=hex", "board=6", "player=random"]
    assert "exact: not found within 0.1 s; " in typed("show", *words, "solve_seconds=0.1").stdout
    monkeypatch.setattr(ProofSolver, "usual_positions", 1000)
    assert "exact: not found within 1,000 positions; " in typed("show", *words).stdout
    done = typed("show", str(run), "state=X X X / O O . / . . .")
    assert "seat 1 wins after 5 turns" in done.stdout
    watched = typed("watch", str(run), "sampling=stochastic", "search=mcts", "search.simulations=8")
    assert watched.returncode == 0, watched.stderr


def test_a_position_from_a_file_and_from_standard_input(run, typed, tmp_path, monkeypatch):
    board = "   A B C\n 1 . X .\n 2 . O .\n 3 . . .\n"
    (tmp_path / "a board").write_text(board)
    told = typed("show", str(run), "state=@a board").stdout
    assert told == typed("show", str(run), f"state={board}").stdout
    monkeypatch.setattr(sys, "stdin", io.StringIO(board))
    assert told == typed("show", str(run), "state=-").stdout


@pytest.mark.parametrize(
    ("game", "state", "hint"),
    one_in(
        3,
        [
            ("tictactoe", ". X . / . O .", "2 rows"),
            ("tictactoe", ". X . / . Q . / . . .", "'Q'"),
            ("tictactoe", "X X . / . . . / . . .", "take turns"),
            ("tictactoe", "X X X / O O . / O . .", "line"),
            ("tictactoe", "", "empty"),
            ("tictactoe", "@nowhere", "No such file"),
            ("connect4", "X . . . . . . " + "/ . . . . . . . " * 5, "floats"),
            ("2048", "3 . . . / . . . . / . . . . / . . . .", "'3' is none"),
            ("salvo", "o . . . / . o . . / . . o . / . . . o", "no layout"),
            ("salvo_duel", "a b c", "first line"),
        ],
    ),
)
def test_a_state_that_cannot_be_gets_one_line(game, state, hint, typed):
    check_refused(typed("show", f"game={game}", f"state={state}", "solve_seconds=5"), hint)


@pytest.mark.parametrize(
    "words",
    [
        ["game=tictactoe"],
        ["game=battleship", "ships=[3]"],
        ["game=salvo", "board=3", "ships=[2]"],
        ["game=salvo", "board=3", "ships=[2]", "aim=sequential"],
        ["game=salvo", "board=3", "ships=[2]", "shots=1"],
        ["game=connect4", "rows=3", "columns=3", "line=3"],
        ["game=2048", "board=1", "columns=3"],
    ],
)
def test_the_beginning_is_worth_what_solve_says(words):
    game = make_game(*words)
    states, weight = game.public(game.initial(1, Rng())), torch.ones(1)
    if game.spec.name == "2048":  # chance comes before the first move
        states, weight = game.openings(1000)
    exact = position_solver(game).solve(states, 30)
    best = min if game.spec.goal == "turns" else max
    for each in exact:
        assert best(action for action in each.actions if action is not None) == each.value
    worth = torch.tensor([each.value for each in exact], dtype=torch.float64)
    assert float((worth * weight).sum()) == pytest.approx(find_optimum(game, 30).value)


def test_a_solved_position_of_connect_4_says_in_how_many_plies_it_ends(rlgames):
    board = ". X . . . X O / O X X . . O O / X X O O O X O / O O O X X O X / X X O O O X X / "
    board += "X O X X O O X"
    done = rlgames("show", "game=connect4", f"state={board}", "format=json")
    report = json.loads(done.stdout)
    moves = {each["action"]: (each["exact"], each["plies"]) for each in report["actions"]}
    assert report["exact"] is not None
    assert all(plies is not None for _, plies in moves.values())
    printed = rlgames("show", "game=connect4", f"state={board}").stdout
    assert "plies" in printed
