"""A person at the keyboard: lines of moves, undo, a fleet placed by hand."""

import contextlib
import io
import json

import pytest
from helpers import command, make_game, rng

from rlgames.games.fleets.placement import Placement
from rlgames.players.player import Random
from rlgames.rollouts.interactive import InteractiveGame
from rlgames.rollouts.play import collect_games
from rlgames.terminal.human import Human, PlayerQuit


@pytest.fixture
def type_lines(monkeypatch):
    """A function that lets a person type these lines."""

    def type_lines(*lines):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(line + "\n" for line in lines)))

    return type_lines


def play(game, seed=0, opponent=True):
    human = Human(game, can_undo=not game.spec.hidden)
    players = [human, Random(game)][: 1 + opponent]
    generator = rng(seed)
    state = game.initial(1, generator)
    return InteractiveGame(game, players, [0, 1][: 1 + opponent], state, generator).collect()


def test_a_move_that_is_taken_back_and_played_again_has_the_same_dice(type_lines):
    game = make_game("game=2048", "board=2")
    lines = ["up", "left", "down", "right"] * 30
    type_lines("up", "u")
    with pytest.raises(PlayerQuit):
        play(game, opponent=False)
    type_lines(*lines)
    _, final = play(game, opponent=False)
    type_lines("up", "u", *lines)
    moves, again = play(game, opponent=False)
    assert again.state.words.tolist() == final.state.words.tolist()
    assert len(moves) == int(again.state.turn[0])


def test_a_game_is_recorded_as_the_common_loop_records_it():
    game = make_game("game=tictactoe")
    players, own = [Random(game), Random(game)], rng(5).rows(1)
    moves, final = collect_games(game, players, 1, rng(5))
    ours, last = InteractiveGame(game, players, [0, 1], game.initial(1, own), own).collect()
    assert ours.action.tolist() == moves.action.tolist()
    assert ours.player.tolist() == moves.player.tolist()
    assert last.state.score.tolist() == final.state.score.tolist()


def test_several_shots_on_one_line(type_lines, capsys):
    game = make_game("game=salvo", "board=2", "ships=[2]", "shots=2", "aim=sequential")
    type_lines("A1 B2 A2", "B1, A2")
    with contextlib.suppress(PlayerQuit):
        play(game, opponent=False)
    text = capsys.readouterr().out
    assert "not played: A2; the turn was over" in text
    assert text.count("turn 1") == 1
    assert "each turn shoots at 2 cells" in text
    type_lines("A1 A1", "u")
    with pytest.raises(PlayerQuit):
        play(game, opponent=False)
    text = capsys.readouterr().out
    assert "'A1' is not a legal move" in text
    assert "no move can be taken back: the answer has told you something" in text


def test_a_fleet_is_placed_ship_by_ship():
    fleet = make_game("game=salvo_duel", "board=4", "ships=[3,2,2]").fleet
    placement = Placement(fleet)
    assert placement.next_length == 3
    for text, reason in {
        "A1-B2": "one row or column",
        "A1-D1": "no ship of 4 is left",
        "E1-E3": "'E1' is not a cell; write its two ends, as in A1-A3",
        "A1 A2 A3": "is not a ship",
    }.items():
        with pytest.raises(ValueError, match=reason):
            placement.place_text(text)
    placement.place_text("a3-a1")
    with pytest.raises(ValueError, match="another ship lies on A2"):
        placement.place_text("A2 B2")
    placement.place_text("C4-D4")
    placement.place_text("B1-C1")
    assert placement.next_length is None
    layout = placement.layout()
    assert (fleet.layouts == layout).all(1).sum() == 1  # numbered as the rules number ships
    placement.remove_last()
    assert placement.next_length == 2


def test_a_fleet_is_typed_before_the_game(type_lines, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    type_lines("h", "A1-A2", "u", "B1-B2", "B2", "C3", "q")
    words = ["game=salvo_duel", "board=3", "ships=[2,1]", "seed=2", "fleet=hand"]
    command("play", None, words)
    text = capsys.readouterr().out
    assert "the two ends of a ship" in text
    assert "another ship lies on B2" in text
    boards = text.rpartition("turn 1")[2].splitlines()[:-1]
    rows = [line.partition("| ")[2] for line in boards[-3:]]
    assert rows == ["1 . a .", "2 . a .", "3 . . b"]


def test_a_fleet_on_the_command_line(rlgames, tmp_path):
    words = ["play", "game=salvo_duel", "board=3", "ships=[2,1]"]
    for fleet, reason in {
        "A1-B2": "one row or column; write random, hand, or ships",
        "A1-A3": "no ship of 3 is left",
        "A1-A2": "lacks a ship of 1; list all ships: 2, 1",
    }.items():
        done = rlgames(*words, f"fleet={fleet}")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert reason in done.stderr
    done = rlgames("play", "game=tictactoe", "fleet=hand")
    assert "has no fleet of yours to place" in done.stderr


def test_every_layout_placed_by_hand_is_one_of_the_rules():
    game = make_game("game=salvo_duel", "board=3", "ships=[2,2]")
    for layout in game.fleet.layouts:
        placement = Placement(game.fleet)
        for ship in (2, 1):
            cells = (layout == ship).nonzero()[:, 0].tolist()
            placement.place_text(" ".join(game.cell_names[cell] for cell in cells))
        assert placement.layout().tolist() == layout.tolist()


def test_records_of_games_with_undo_hold_only_what_counts(
    type_lines, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    type_lines("up", "u", "left", "u", "u", *["up", "left", "down", "right"] * 40)
    words = ["game=2048", "board=2", "seed=3", "record=games"]
    command("play", None, words)
    game = json.loads((tmp_path / "games").read_text().splitlines()[1])
    assert f"after {len(game['moves'])} turns" in capsys.readouterr().out
