"""`rlgames play` through a real terminal, and the records it leaves."""

import fcntl
import json
import re
import signal
import struct
import termios
import time

import pytest
from helpers import check_refused, make_game_and_rules
from markers import quick
from processes import Terminal

from rlgames.rollouts import records

ASKS = "your move (h for help): "


@pytest.mark.parametrize("seat", quick([1, 2], 2))
def test_a_whole_game_in_each_seat(seat, tmp_path):
    terminal = Terminal(
        tmp_path, "play", "game=tictactoe", f"seat={seat}",
        "opponent=win_or_block", "record=my games.jsonl", "seed=1",
    )  # fmt: skip
    cells = [column + row for row in "123" for column in "ABC"]
    for asked, cell in enumerate(["Z9", "", "h", "p", *cells, *cells], 1):
        shown, text = terminal.wait_for(ASKS, "you win", "you lose", "a draw")
        if text != ASKS:
            break
        if asked == 1:
            assert ("your opponent plays" in shown) == (seat == 2)
            assert f"you play {'XO'[seat - 1]}" in shown
            assert "3 in a row win" in shown
        if asked == 2:
            assert "'Z9' is not a legal move" in shown
        if asked == 4:
            assert "as in: " in shown
        if asked == 5:
            assert re.search(r"\d\.\d{4}", shown)  # the values of the bundled agent
        terminal.type(cell + "\n")
    assert text in ("you win", "you lose", "a draw")
    assert terminal.ended() == 0
    lines = [json.loads(line) for line in (tmp_path / "my games.jsonl").read_text().splitlines()]
    assert len(lines) == 2
    players = [move["player"] for move in lines[1]["moves"]]
    assert players[seat - 1] == "human"
    assert players[2 - seat] == "opponent"
    score = {"you win": 1, "you lose": -1, "a draw": 0}[text]
    assert lines[1]["score"][seat - 1] == score
    path = tmp_path / "my games.jsonl"
    read = records.read(path, *make_game_and_rules("game=tictactoe")).trajectories
    assert len(read) == len(players)
    assert float(read.score_delta[read.seat == seat - 1].sum()) == score


def test_the_input_ends(tmp_path):
    terminal = Terminal(tmp_path, "play", "game=connect4", "record=games")
    terminal.wait_for(ASKS)
    terminal.type("4\n")
    terminal.wait_for(ASKS)
    terminal.type("\x04")  # control-D
    shown, _ = terminal.wait_for("the game is not recorded")
    assert "the input ended" in shown
    assert terminal.ended() == 2
    assert not (tmp_path / "games").exists()


def test_a_person_leaves(tmp_path):
    terminal = Terminal(tmp_path, "play", "game=2048")
    terminal.wait_for(ASKS)
    terminal.type("q\n")
    terminal.wait_for("you left the game")
    assert terminal.ended() == 0


def test_control_c_ends_a_game_quietly(tmp_path):
    terminal = Terminal(tmp_path, "play", "game=2048")
    terminal.wait_for(ASKS)
    time.sleep(0.5)  # until it waits for an answer, and does not only say so
    terminal.send(signal.SIGINT)
    assert terminal.ended() == 130
    assert "Traceback" not in terminal.shown


def test_a_resize_changes_nothing(tmp_path):
    terminal = Terminal(tmp_path, "play", "game=salvo", "shots=1", "board=2", "ships=[2]")
    terminal.wait_for(ASKS)
    size = struct.pack("HHHH", 10, 20, 0, 0)
    fcntl.ioctl(terminal.file, termios.TIOCSWINSZ, size)
    terminal.send(signal.SIGWINCH)
    for cell in ["A1", "A2", "B1", "B2"] * 2:  # readline asks again when the window changes
        terminal.type(cell + "\n")
        _, text = terminal.wait_for(ASKS, "the whole fleet is sunk")
        if text != ASKS:
            break
    assert text == "the whole fleet is sunk"
    assert terminal.ended() == 0


def test_2048_alone_with_an_agents_hints(rlgames, tmp_path):
    done = rlgames(
        "train", "game=2048", "board=2", "games=64", "batch=32", "policy=mlp", "policy.layers=[8]",
        "solve_seconds=0", "out=run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    terminal = Terminal(tmp_path, "play", "run", "seed=3")
    terminal.wait_for(ASKS)
    terminal.type("p\n")
    shown, _ = terminal.wait_for(ASKS)
    assert any(word in shown for word in ("up", "down", "left", "right"))
    for word in ["up", "left", "down", "right"] * 40:
        terminal.type(word + "\n")
        shown, text = terminal.wait_for(ASKS, "over with a score of")
        if text != ASKS:
            break
    assert text == "over with a score of"
    assert terminal.ended() == 0


def test_a_person_can_be_evaluated(tmp_path):
    words = ["player=human", "game=tictactoe", "games=2", "batch=1"]
    terminal = Terminal(tmp_path, "eval", *words)
    cells = [column + row for row in "123" for column in "ABC"] * 4
    for cell in cells:
        _, text = terminal.wait_for(ASKS, "won / drawn / lost")
        if text != ASKS:
            break
        terminal.type(cell + "\n")
    assert text != ASKS
    assert terminal.ended() == 0


def test_a_game_ends_with_the_share_of_proven_moves(tmp_path):
    words = ["game=connect4", "opponent=exact", "opponent.move_positions=200"]
    terminal = Terminal(tmp_path, "play", *words, "seed=1")
    for column in "1234567" * 12:
        shown, text = terminal.wait_for(ASKS, "proven optimal")
        if text != ASKS:
            break
        terminal.type(column + "\n")
    assert re.search(r"\d+% of the opponent's moves were $", shown)
    assert terminal.ended() == 0


def test_an_evaluation_without_its_person_ends_in_one_line(rlgames):
    done = rlgames("eval", "player=human", "game=tictactoe", "games=2")
    assert (done.returncode, done.stderr) == (2, "rlgames: the input ended before the game did\n")


def test_a_seat_that_is_not_there_is_refused(rlgames):
    for words in (["game=tictactoe", "seat=3"], ["game=tictactoe", "seat=0"], []):
        check_refused(rlgames("play", *words))


def test_the_opponent_is_named_first(rlgames):
    for words, name in {
        ("game=tictactoe",): "random",
        ("tictactoe",): "tictactoe",
        ("game=tictactoe", "search=mcts"): "random with search=mcts",
        ("tictactoe", "opponent=win_or_block"): "win_or_block",
    }.items():
        assert rlgames("play", *words).stdout.startswith(f"you play against {name}\n")
    done = rlgames("play", "2048", "opponent=random")
    assert done.stderr == "rlgames: 2048 is a one-player game; remove opponent=\n"


@pytest.mark.parametrize(("name", "word"), [("2048", "undo"), ("tictactoe", "u")])
def test_the_help_names_a_word_that_takes_back(name, word, tmp_path):
    terminal = Terminal(tmp_path, "play", name, "seed=1")
    terminal.wait_for(ASKS)
    terminal.type("h\n")
    shown, _ = terminal.wait_for(ASKS)
    assert re.search(rf"^  {word} +take back your last move", shown, re.MULTILINE)
