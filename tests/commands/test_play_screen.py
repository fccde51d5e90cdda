"""`rlgames play` in place on a terminal: keys, cursors, undo, a fleet placed by hand."""

import contextlib
import json

import pytest
from helpers import make_game, rng
from processes import session

from rlgames.cli import play as cli_play
from rlgames.cli.play_screen import Cursor
from rlgames.games.fleets.placement import Placement
from rlgames.games.notation import legal_names
from rlgames.players.human import Human, LineInterface, PlayerQuit, Position
from rlgames.players.player import Random
from rlgames.rollouts.interactive import InteractiveGame
from rlgames.rollouts.play import collect_games

pytest.importorskip("prompt_toolkit")

UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
ENTER = "\r"


def press(terminal, keys):
    """Type, and wait until something is drawn."""
    size = len(terminal.raw)
    terminal.type(keys)
    terminal.wait_until(lambda _: len(terminal.raw) > size)


def test_2048_by_arrow_keys_until_it_is_over(tmp_path):
    terminal = session(tmp_path, "play", "game=2048", "board=2", "seed=3")
    terminal.wait_for("arrows or WASD: slide; u: undo")
    assert "equal tiles that meet merge" in terminal.screen.text
    for key in [UP, LEFT, DOWN, "d"] * 30:
        if "over with a score of" in terminal.screen.text:
            break
        press(terminal, key)
        terminal.wait_until(lambda text: "slide" in text or "play again" in text)
    assert terminal.screen.text.count("┌") == 1  # each board replaces the last one
    terminal.wait_for("Enter: play again, q: quit")
    terminal.type(ENTER)
    terminal.wait_for("turn 1, score 0")
    terminal.type("q")
    assert terminal.ended() == 0
    assert "you left the game" in terminal.screen.text


def test_tic_tac_toe_with_a_cursor_typed_cells_and_undo(tmp_path):
    words = ["play", "game=tictactoe", "opponent=win_or_block", "seed=1", "record=games"]
    terminal = session(tmp_path, *words)
    terminal.wait_for("turn 1, you play X")
    terminal.type(ENTER)  # the cursor is on the center
    expected = ("turn 3, you play X", "your opponent plays", " X ")
    terminal.wait_until(lambda text: all(words in text for words in expected))
    terminal.type("u")
    terminal.wait_for("turn 1, you play X")
    terminal.type("Z9" + ENTER)
    terminal.wait_for("'Z9' is not a legal move")
    terminal.type("a1")
    terminal.wait_for("turn 3, you play X")
    terminal.type("?")
    terminal.wait_for("take back your last move")
    terminal.type("\x03")
    assert terminal.ended() == 130
    assert "Traceback" not in terminal.raw
    assert not (tmp_path / "games").exists()


def test_a_duel_with_a_placed_fleet(tmp_path):
    words = ["play", "game=salvo_duel", "board=3", "ships=[2,1]", "seed=2"]
    terminal = session(tmp_path, *words)
    terminal.wait_for("place your ship of 2")
    terminal.type(" ")  # down
    terminal.type(RIGHT + ENTER)  # B1-B2
    terminal.wait_for("place your ship of 1")
    terminal.type("B2" + ENTER)
    terminal.wait_for("another ship lies on B2")
    terminal.type("C3" + ENTER)
    rule = "a turn fires one shot for each ship"
    text = terminal.wait_until(lambda text: "q: quit" in text and "their sea" in text)
    assert "your sea" in text
    assert rule in text
    first, second, third = (line.split("│") for line in text.splitlines() if line[:1].isdigit())
    assert [row[6].strip() for row in (first, second, third)] == ["a", "a", ""]
    assert [row[7].strip() for row in (first, second, third)] == ["", "", "b"]
    for number, shots in enumerate(("A1 B1", "C1 A2", "B2 C2", "A3 B3", "C3")):
        title = f"turn {2 * number + 1},"
        text = terminal.wait_until(
            lambda text, title=title: "q: quit" in text and (title in text or "again" in text)
        )
        if "play again" in text:
            break
        if number:
            assert text.count("your opponent plays ") == 1  # a line, whatever it has fired
        terminal.type(shots + ENTER)
    text = terminal.wait_for("play again")
    assert "you win" in text or "you lose" in text
    terminal.type("q")
    assert terminal.ended() == 0


@pytest.mark.parametrize(
    "name", ["battleship", "connect4", "gomoku", "hex", "othello", "tictactoe"]
)
def test_the_cursor_reaches_every_move_by_its_name(name):
    """In the game's own notation, which is a number on a board of one row."""
    game = make_game(f"game={name}")
    state = game.public(game.initial(1, rng(0)))
    cursor = Cursor(Position(game, state, ""))
    chosen = set()
    for _ in range(cursor.rows):
        for _ in range(cursor.columns):
            chosen.add(cursor.chosen())
            cursor.move("right")
        cursor.move("down")
    assert chosen >= {*legal_names(game, state, 0).values()} - {"swap"}


def test_the_screen_needs_a_terminal(rlgames):
    done = rlgames("play", "game=2048", "interface=screen")
    assert done.returncode == 2
    assert done.stderr == ("rlgames: interface=screen needs a terminal; use interface=line\n")


class Typed:
    """A person who types these lines; what was printed."""

    def __init__(self, *lines):
        self.lines, self.text = list(lines), ""
        self.interface = LineInterface(self.ask, self.print)

    def ask(self, prompt):
        if not self.lines:
            raise EOFError
        return self.lines.pop(0)

    def print(self, text):
        self.text += text + "\n"


def play(game, person, seed=0, opponent=True):
    human = Human(game, None, person.interface, can_undo=not game.spec.hidden)
    players = [human, Random(game)][: 1 + opponent]
    generator = rng(seed)
    state = game.initial(1, generator)
    return InteractiveGame(game, players, [0, 1][: 1 + opponent], state, generator).collect()


def test_a_move_that_is_taken_back_and_played_again_has_the_same_dice():
    game = make_game("game=2048", "board=2")
    lines = ["up", "left", "down", "right"] * 30
    straight = Typed(*lines)
    with pytest.raises(PlayerQuit):
        play(game, Typed("up", "u"), opponent=False)
    _, final = play(game, straight, opponent=False)
    taken_back = Typed("up", "u", *lines)
    moves, again = play(game, taken_back, opponent=False)
    assert again.state.tiles.tolist() == final.state.tiles.tolist()
    assert len(moves) == int(again.state.turn[0])


def test_a_game_is_recorded_as_the_common_loop_records_it():
    game = make_game("game=tictactoe")
    players, generator = [Random(game), Random(game)], rng(5)
    moves, final = collect_games(game, players, 1, generator)
    generator = rng(5)
    state = game.initial(1, generator)
    ours, last = InteractiveGame(game, players, [0, 1], state, generator).collect()
    assert ours.action.tolist() == moves.action.tolist()
    assert ours.player.tolist() == moves.player.tolist()
    assert last.state.score.tolist() == final.state.score.tolist()


def test_several_shots_on_one_line():
    game = make_game("game=salvo", "board=2", "ships=[2]", "shots=2", "aim=sequential")
    person = Typed("A1 B2 A2", "B1, A2")
    with contextlib.suppress(PlayerQuit):
        play(game, person, opponent=False)
    assert "not played: A2; the turn was over" in person.text
    assert person.text.count("turn 1") == 1
    assert "each turn shoots at 2 cells" in person.text
    person = Typed("A1 A1", "u")
    with pytest.raises(PlayerQuit):
        play(game, person, opponent=False)
    assert "'A1' is not a legal move" in person.text
    assert "no move can be taken back: the answer has told you something" in person.text


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
    assert fleet.are_layouts(layout[None]).all()
    assert (fleet.layouts == layout).all(1).sum() == 1  # numbered as the rules number ships
    placement.remove_last()
    assert placement.next_length == 2


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
    fleet = make_game("game=salvo_duel", "board=3", "ships=[2,2]").fleet
    for layout in fleet.layouts:
        placement = Placement(fleet)
        for ship in (2, 1):
            placement.place((layout == ship).nonzero()[:, 0].tolist())
        assert placement.layout().tolist() == layout.tolist()


def test_records_of_games_with_undo_hold_only_what_counts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    person = Typed("up", "u", "left", "u", "u", *["up", "left", "down", "right"] * 40)
    words = ["game=2048", "board=2", "seed=3", "record=games"]
    monkeypatch.setattr(cli_play, "_make_interface", lambda kind: person.interface)
    assert cli_play.play_command(None, words) == 0
    game = json.loads((tmp_path / "games").read_text().splitlines()[1])
    assert f"after {len(game['moves'])} turns" in person.text
