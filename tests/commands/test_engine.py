"""`rlgames engine`: commands of the Go Text Protocol through the pipes of real processes."""

import os
import random
import sys

import pytest
from helpers import check_refused, make_game, make_small_game, rng
from processes import Process

from rlgames import __version__
from rlgames.cli.engine import MAX_LINE_BYTES
from rlgames.commands.engine import Engine
from rlgames.config.files import OptionFiles
from rlgames.players.exact import exact_player
from rlgames.players.player import Player, Random

INSTALL = "open_spiel is not installed: pip install -c constraints.txt '.[engines]'"
REQUIRED = {
    *("protocol_version", "name", "version", "known_command", "list_commands", "quit"),
    *("boardsize", "clear_board", "komi", "play", "genmove"),
}
"""The commands that section 6.1 of the specification requires of every engine."""


class Controller:
    """The other side of an engine's process."""

    def __init__(self, folder, *words):
        (reading, self.to), (self.of, writing) = os.pipe(), os.pipe()

        def prepare():
            for number in (self.to, self.of):
                os.close(number)
            os.dup2(reading, 0)
            os.dup2(writing, 1)
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115

        self.process = Process(folder, "engine", *words, prepare=prepare)
        for number in (reading, writing):
            os.close(number)
        self.answers = os.fdopen(self.of)

    def send(self, data):
        os.write(self.to, data)

    def ask(self, command):
        """The answer to a command, without the empty line behind it."""
        self.send(command.encode() + b"\n")
        lines = []
        while (line := self.answers.readline()) != "\n":
            assert line, f"the engine has ended: {self.process.output()}"
            lines.append(line)
        return "".join(lines).rstrip("\n")

    def __call__(self, command):
        """The result of a command that succeeds."""
        answer = self.ask(command)
        assert answer[0] == "=", answer
        return answer[2:]

    def quit(self):
        assert self("quit") == ""
        assert self.process.wait()[0] == 0


def engine(*overrides, player=Random, seed=0):
    game = make_game(*overrides)
    return Engine(game, player(game), rng(seed))


def test_the_required_commands_are_there():
    asked = engine("game=tictactoe")
    listed = asked.answer("list_commands")[2:].split()
    assert {*listed} >= REQUIRED
    assert len({*listed}) == len(listed)
    for name in listed:
        assert asked.answer(f"known_command {name}") == "= true\n\n"
    assert asked.answer("known_command final_status_list") == "= false\n\n"
    assert asked.answer("protocol_version") == "= 2\n\n"
    assert asked.answer("7 version") == f"=7 {__version__}\n\n"
    assert asked.answer("name") == "= rlgames\n\n"


def test_lines_are_read_as_the_specification_says():
    asked = engine("game=tictactoe")
    assert asked.answer("\n") == asked.answer("# a comment\n") == asked.answer(" \t\r\n") == ""
    assert asked.answer("12 play b\tB2 # the center\r\n") == "=12\n\n"
    assert asked.answer("play\x07 W a1\n") == "=\n\n"
    assert asked.answer("3") == "?3 unknown command\n\n"
    assert asked.answer("3 nonsense") == "?3 unknown command\n\n"
    assert asked.answer("showboard") == (
        "= \n   A B C\n 1 O . .\n 2 . X .\n 3 . . .\nturn 3, black to move\n\n"
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("play b z9", "illegal move: 'z9' is not a legal move; legal moves: A1, B1"),
        ("play b a1 b1", "illegal move"),
        ("play w a1", "illegal move: it is black's turn"),
        ("genmove w", "illegal move: it is black's turn"),
        ("play red a1", "syntax error: play takes a color, black or white"),
        ("play a1", "syntax error: play takes a color"),
        ("play b", "syntax error: play takes a color and a move"),
        ("play", "syntax error"),
        ("genmove", "syntax error"),
        ("genmove b a1", "syntax error: genmove takes a color"),
        ("boardsize 19", "unacceptable size: the board has 3 columns, 3 rows"),
        ("boardsize 3 4", "unacceptable size"),
        ("boardsize -3", "syntax error"),
        ("boardsize", "syntax error"),
        ("boardsize " + "9" * 5000, "syntax error"),
        ("komi 6.5", "komi must be 0"),
        ("komi nan", "komi must be 0"),
        ("komi much", "syntax error"),
        ("undo", "cannot undo: no move was played"),
        ("undo 2", "syntax error: undo takes no arguments"),
        ("known_command", "syntax error"),
        ("final_score", "cannot score: the game is not over"),
        ("rlgames-position X X X / . . . / . . .", "invalid position: 3 X and 0 O"),
        ("rlgames-position", "invalid position"),
        ("rlgames-position ' / \u00e9\u2028", "invalid position"),
    ],
)
def test_an_error_is_one_line_and_changes_nothing(command, message):
    asked = engine("game=tictactoe")
    before = asked.answer("showboard")
    answer = asked.answer(command)
    assert answer.startswith(f"? {message}")
    assert answer.endswith("\n\n")
    assert len(answer.splitlines()) == 2
    assert len(answer) < 400
    assert asked.answer("showboard") == before


def test_a_player_that_fails_is_answered_in_one_line():
    class Broken(Player):
        def __init__(self, game):
            pass

        def choose(self, state, rng):
            raise RuntimeError("two\nlines")

    asked = engine("game=tictactoe", player=Broken)
    assert asked.answer("5 genmove b").startswith("?5 RuntimeError: two lines")
    assert asked.answer("play b A1") == "=\n\n"


def test_perfect_play_wins_what_can_be_won_and_the_score_says_who():
    asked = engine("game=tictactoe", player=lambda game: exact_player(game, 60, 1))
    for command in ("play b A1", "play w A2", "genmove b", "play w C3"):
        assert asked.answer(command)[0] == "="
    assert asked.answer("rlgames-position X . . / O O . / . X .") == "=\n\n"
    assert asked.answer("reg_genmove black") == "= C2\n\n"
    assert asked.answer("rlgames-position X X . / O O . / . . .") == "=\n\n"
    assert asked.answer("genmove black") == "= C1\n\n"
    assert asked.answer("final_score") == "= B+1\n\n"
    assert asked.answer("genmove white") == "? illegal move: the game is over\n\n"
    assert asked.answer("rlgames-legal_moves") == "=\n\n"
    assert "the game is over" in asked.answer("showboard")
    assert asked.answer("rlgames-position X X O / O O X / X O X") == "=\n\n"
    assert asked.answer("final_score") == "= 0\n\n"
    assert asked.answer("rlgames-position X X . / O O . / X . .") == "=\n\n"
    assert asked.answer("genmove w") == "= C2\n\n"
    assert asked.answer("final_score") == "= W+1\n\n"


def test_a_move_that_is_undone_and_played_again_meets_the_same_chance():
    asked = engine("game=2048", "board=3")
    boards = []
    for _ in range(20):
        move = asked.answer("rlgames-legal_moves")[2:].split()[0]
        before = asked.answer("showboard")
        assert asked.answer(f"play {move}") == "=\n\n"
        boards.append(asked.answer("showboard"))
        assert asked.answer("undo") == "=\n\n"
        assert asked.answer("showboard") == before
        assert asked.answer(f"play b {move}") == "=\n\n"
        assert asked.answer("showboard") == boards[-1]
    assert len({*boards}) == 20
    assert asked.answer("play w up") == "? invalid color: 2048 is played alone, by black\n\n"


def test_a_game_for_one_is_played_to_its_score():
    asked = engine("game=2048", "board=2", seed=1)
    while (answer := asked.answer("genmove"))[0] == "=":
        assert answer[2:].strip() in ("up", "right", "down", "left")
    assert answer == "? illegal move: the game is over\n\n"
    score = int(asked.state.score[0, 0])
    assert asked.answer("final_score") == f"= {score}\n\n"
    assert score > 0


def test_a_hidden_fleet_stays_hidden_and_no_answer_is_taken_back():
    asked = engine("game=battleship", "board=6", "ships=[2]")
    assert asked.answer("boardsize 6 1") == "=\n\n"
    assert asked.answer("genmove b")[0] == "="
    assert asked.answer("undo") == "? cannot undo: the answer has shown what was hidden\n\n"
    assert asked.answer("rlgames-position . o x . . .") == "=\n\n"
    assert asked.answer("play 3") == "=\n\n"  # the other cell of the ship
    assert asked.answer("final_score") == "= 3\n\n"


@pytest.mark.parametrize("name", OptionFiles().names("game"))
def test_every_game_is_played_and_set_up_as_text(name, typed):
    """By the names of its moves and by its boards alone, to the score that the rules give."""
    game = make_small_game(name)
    if game.spec.seats > 1 and game.spec.hidden:
        check_refused(typed("engine", f"game={name}", "player=random"), "each seat hides something")
        return
    asked = Engine(game, Random(game), rng(2))
    other = Engine(game, Random(game), rng(3))
    draw = random.Random(name)
    while not bool(asked.state.done[0]):
        *board, status = asked.answer("showboard").strip("= \n").splitlines()
        assert other.answer(f"rlgames-position {' / '.join(board)}") == "=\n\n"
        assert other.answer("showboard").strip("= \n").splitlines()[:-1] == board
        moves = asked.answer("rlgames-legal_moves")[2:].splitlines()[:-1]
        color = "black " * (game.spec.seats > 1) if "white" not in status else "white "
        assert asked.answer(f"play {color}{draw.choice(moves)}") == "=\n\n"
    score = asked.answer("final_score")[2:].strip()
    if game.spec.seats == 1:
        measured = asked.state.score[0, 0] if game.spec.goal == "score" else asked.state.turn[0]
        assert float(score) == float(measured)
    else:
        first = float(asked.state.score[0, 0])
        assert {"B": 1, "W": -1, "0": 0}[score[0]] == (first > 0) - (first < 0)


def test_two_engines_play_each_other_through_pipes(tmp_path):
    """A scripted match in which each engine is told the other's moves; both see the same board."""
    first = Controller(tmp_path, "tictactoe", "seed=1")
    second = Controller(tmp_path, "player=exact", "game=tictactoe", "seed=1")
    results = []
    for number in range(4):
        players = [first, second] if number % 2 else [second, first]
        for each in players:
            assert each("boardsize 3") == each("clear_board") == ""
        for ply in range(9):
            color = "bw"[ply % 2]
            mover, other = players[ply % 2], players[1 - ply % 2]
            move = mover(f"genmove {color}")
            assert move in other("rlgames-legal_moves").split()
            assert other(f"{ply} play {color} {move}".partition(" ")[2]) == ""
            assert mover("showboard") == other("showboard")
        results.append(first("final_score"))
        assert second("final_score") == results[-1]
    assert results == ["0"] * 4  # the shipped agent plays perfectly, too
    assert first.ask("42 genmove b") == "?42 illegal move: the game is over"
    for each in (first, second):
        each.quit()


def test_untrusted_lines_are_bounded_and_the_end_of_the_input_ends_the_engine(tmp_path):
    asked = Controller(tmp_path, "game=tictactoe", "player=random")
    asked.send(b"x" * MAX_LINE_BYTES)
    asked.send(b"x" * MAX_LINE_BYTES)
    assert asked.ask("") == f"? a command has at most {MAX_LINE_BYTES} bytes"
    assert asked.ask("play b \0\x1b[2J").startswith("? illegal move: '[2J' is not a legal move")
    asked.send(b"play b \xff\xfe\n")
    assert asked.ask("play b A1").startswith("? illegal move")
    assert asked.answers.readline() == "=\n"
    os.close(asked.to)
    code, output = asked.process.wait()
    assert (code, output) == (0, "")


def test_the_same_seed_gives_the_same_game(tmp_path):
    games = []
    for _ in range(2):
        asked = Controller(tmp_path, "game=2048", "player=random", "seed=5")
        games.append([asked("genmove") for _ in range(8)])
        asked.quit()
    assert games[0] == games[1]


def test_what_no_engine_can_play_is_refused(typed):
    check_refused(typed("engine", "salvo_duel"), "each seat hides something", "rlgames play")
    check_refused(typed("engine", "game=tictactoe", "player=human"), "not the moves of a person")
    check_refused(typed("engine", "game=connect4", "rows=5"), "engine needs a run or a player")
    check_refused(typed("engine"), "engine needs a run or a game")


def actions_by_name(names, state):
    """OpenSpiel's actions, by the names that rlgames has for them in this position."""
    return {names(action): action for action in state.legal_actions()}


@pytest.mark.parametrize(
    ("game", "rules", "names"),
    [
        (
            "tic_tac_toe",
            ("game=tictactoe",),
            lambda action: "ABC"[action % 3] + str(action // 3 + 1),
        ),
        ("connect_four", ("game=connect4",), lambda action: str(action + 1)),
    ],
)
def test_an_engine_plays_the_bots_of_open_spiel(game, rules, names, tmp_path):
    """OpenSpiel holds the rules: every move is legal there, and both agree on the result."""
    pyspiel = pytest.importorskip("pyspiel", reason=INSTALL)
    spiel = pyspiel.load_game(game)
    rollouts = pyspiel.RandomRolloutEvaluator(1, 1)
    draw = random.Random(1)
    asked = Controller(tmp_path, *rules, "seed=1")
    results = []
    for number in range(4):
        bots = [
            pyspiel.MCTSBot(spiel, rollouts, 2.0, 50, 10, False, number, False),
            pyspiel.make_uniform_random_bot(1 - number % 2, draw.randrange(2**30)),
        ]
        bot, seat = bots[number // 2], number % 2
        asked("clear_board")
        state = spiel.new_initial_state()
        while not state.is_terminal():
            color = "bw"[state.current_player()]
            legal = actions_by_name(names, state)
            assert {*asked("rlgames-legal_moves").split()} == {*legal}
            if state.current_player() == seat:
                action = legal[asked(f"genmove {color}")]
            else:
                action = bot.step(state)
                asked(f"play {color} {names(action)}")
            state.apply_action(action)
        score = int(state.returns()[0])
        assert asked("final_score") == {1: "B+1", 0: "0", -1: "W+1"}[score]
        results.append(state.returns()[seat])
    assert sum(results[2:]) >= 0  # against random play
    asked.quit()
