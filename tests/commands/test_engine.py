"""`rlgames engine`: commands of the Go Text Protocol through the pipes of real processes."""

import os
import random
import re
import sys

import pytest
from helpers import check_refused, make_game, make_small_game, rng
from processes import Process

from rlgames import __version__
from rlgames.cli.engine import MAX_LINE_BYTES, Engine
from rlgames.config.files import Files
from rlgames.players.exact import exact_player
from rlgames.players.player import Player, Random

INSTALL = "not installed: pip install -c constraints.txt '.[engines]'"
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


def engine(*overrides, player=Random, seed=0, **keys):
    game = make_game(*overrides)
    return Engine(game, player(game), rng(seed), **keys)


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
        "= \n   A B C\n 3 . . .\n 2 . X .\n 1 O . .\nturn 3, black to move\n\n"
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("play b z9", "illegal move: 'z9' is not a legal move; legal moves: A3, B3"),
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
    for command in ("play b A3", "play w A2", "genmove b", "play w C1"):
        assert asked.answer(command)[0] == "="
    assert asked.answer("rlgames-position X . . / O O . / . X .") == "=\n\n"
    assert asked.answer("reg_genmove black") == "= C2\n\n"
    assert asked.answer("rlgames-position X X . / O O . / . . .") == "=\n\n"
    assert asked.answer("genmove black") == "= C3\n\n"
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
    assert asked.answer("play D1") == "=\n\n"  # the other cell of the ship
    assert asked.answer("final_score") == "= 3\n\n"


def marks(asked):
    """The rows of the board from the bottom, without their labels."""
    lines = asked.answer("showboard").splitlines()
    rows = [line.split() for line in lines if re.fullmatch(r" *[0-9]+ [.XOox# ]+", line)]
    assert [int(row[0]) for row in rows] == [*range(len(rows), 0, -1)]
    return ["".join(row[1:]) for row in reversed(rows)]


def test_cells_are_vertices_of_the_protocol():
    """Section 2.11: columns are letters without I, and rows are counted from below."""
    asked = engine("game=gomoku", "board=15")
    assert "   A B C D E F G H J K L M N O P\n" in asked.answer("showboard")
    legal = asked.answer("rlgames-legal_moves")[2:].split()
    assert {*legal} == {f"{c}{r}" for c in "ABCDEFGHJKLMNOP" for r in range(1, 16)}
    for move in ("b J1", "w P15", "b a15", "w p1"):
        assert asked.answer(f"play {move}") == "=\n\n"
    rows = marks(asked)
    assert rows[0] == "." * 8 + "X" + "." * 5 + "O"
    assert rows[14] == "X" + "." * 13 + "O"
    for move in ("I1", "I9", "Q1", "A16", "A0", "AA1"):
        assert asked.answer(f"play b {move}").startswith("? illegal move")
    largest = engine("game=gomoku", "board=19")
    assert largest.answer("play b T19") == "=\n\n"
    assert marks(largest)[18] == "." * 18 + "X"


@pytest.mark.parametrize(
    ("words", "moves", "row", "shown"),
    [
        ("game=tictactoe", "b A1", 1, "X.."),
        ("game=hex board=11", "b L11 w K11 b J1", 11, "." * 9 + "OX"),
        ("game=hex board=3 swap=true", "b C3 w swap", 1, "O.."),
        ("game=othello board=6", "b E3", 3, "..XXX."),
        ("game=connect4 rows=4 columns=10", "b J1 w J2 b K1", 2, "." * 8 + "O."),
        ("game=breakthrough rows=5 columns=9", "b J2J3 w H4xJ3", 3, "." * 8 + "O"),
    ],
)
def test_every_board_has_the_vertices_of_the_protocol(words, moves, row, shown):
    asked = engine(*words.split())
    colors_and_moves = moves.split()
    for color, move in zip(colors_and_moves[::2], colors_and_moves[1::2], strict=True):
        assert asked.answer(f"play {color} {move}") == "=\n\n"
    assert marks(asked)[row - 1] == shown


def test_a_stone_is_named_by_the_cell_into_which_it_falls():
    asked = engine("game=connect4")
    assert asked.answer("play b D2").startswith("? illegal move")
    for number, color in enumerate("bwbwbw"):
        assert asked.answer(f"play {color} D{number + 1}") == "=\n\n"
    assert asked.answer("rlgames-legal_moves") == "= A1\nB1\nC1\nE1\nF1\nG1\n\n"


def test_the_notation_of_play_is_an_option(typed):
    """For boards that are larger than those of the protocol it is the only one."""
    asked = engine("game=gomoku", "board=15", has_vertices=False)
    assert asked.answer("play b I1") == "=\n\n"
    assert " 1 . . . . . . . . X . . . . . .\n 2" in asked.answer("showboard")
    assert engine("game=connect4", has_vertices=False).answer("play b 4") == "=\n\n"
    words = ("engine", "game=salvo", "board=26", "player=random")
    check_refused(typed(*words), "25 rows and columns", "coordinates=play")
    check_refused(typed("engine", "game=hex", "coordinates=sgf"), "coordinates=sgf", "gtp, play")


@pytest.mark.parametrize("has_vertices", [True, False])
@pytest.mark.parametrize("name", Files().names("game"))
def test_every_game_is_played_and_set_up_as_text(name, has_vertices, typed):
    """By the names of its moves and by its boards alone, to the score that the rules give."""
    game = make_small_game(name)
    if game.spec.seats > 1 and game.spec.hidden:
        check_refused(typed("engine", f"game={name}", "player=random"), "each seat hides something")
        return
    asked = Engine(game, Random(game), rng(2), has_vertices)
    other = Engine(make_small_game(name), Random(game), rng(3), has_vertices)
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
    """OpenSpiel's actions, by the vertices of the protocol."""
    return {names(action, state): action for action in state.legal_actions()}


def column_vertex(action, state):
    """Where a stone falls, from OpenSpiel's board."""
    stones = [line[action] for line in str(state).split()]
    return "ABCDEFG"[action] + str(7 - stones.count("."))


@pytest.mark.others
@pytest.mark.parametrize(
    ("game", "rules", "names"),
    [
        (
            "tic_tac_toe",
            ("game=tictactoe",),
            lambda action, state: "ABC"[action % 3] + str(3 - action // 3),
        ),
        ("connect_four", ("game=connect4",), column_vertex),
    ],
)
def test_an_engine_plays_the_bots_of_open_spiel(game, rules, names, tmp_path):
    """OpenSpiel holds the rules: every move is legal there, and both agree on the result."""
    pyspiel = pytest.importorskip("pyspiel", reason=f"open_spiel is {INSTALL}")
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
                asked(f"play {color} {names(action, state)}")
            state.apply_action(action)
        score = int(state.returns()[0])
        assert asked("final_score") == {1: "B+1", 0: "0", -1: "W+1"}[score]
        results.append(state.returns()[seat])
    assert sum(results[2:]) >= 0  # against random play
    asked.quit()


def has_five(stones, cell):
    """Whether a set of cells, (row, column), has five in a row through one of them."""
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        length = 1
        for sign in (1, -1):
            row, column = cell
            while (row := row + sign * down, column := column + sign * right) in stones:
                length += 1
        if length >= 5:
            return True
    return False


@pytest.mark.others
@pytest.mark.slow
def test_a_go_library_reads_a_hundred_games_on_15_x_15(tmp_path):
    """The controller knows cells only as sgfmill reads and writes vertices, and holds the rules:
    every move is on an empty cell, both see the same stones, and agree on who has five in a row."""
    common = pytest.importorskip("sgfmill.common", reason=f"sgfmill is {INSTALL}")
    asked = Controller(tmp_path, "game=gomoku", "player=random", "seed=1")
    draw = random.Random(1)
    cells = [(row, column) for row in range(15) for column in range(15)]
    results = []
    for number in range(100):
        asked("boardsize 15")
        stones: dict[str, set[tuple[int, int]]] = {"b": set(), "w": set()}
        order = draw.sample(cells, len(cells))
        winner = ""
        for ply in range(len(cells)):
            color = "bw"[ply % 2]
            empty = [cell for cell in order if cell not in stones["b"] | stones["w"]]
            if ply % 2 == number % 2:
                cell = common.move_from_vertex(asked(f"genmove {color}"), 15)
            else:
                cell = empty[0]
                asked(f"play {color} {common.format_vertex(cell)}")
            assert cell in empty
            stones[color].add(cell)
            if has_five(stones[color], cell):
                winner = color
                break
            if ply == 20 + number:
                legal = {
                    common.move_from_vertex(v, 15) for v in asked("rlgames-legal_moves").split()
                }
                assert legal == {*empty} - {cell}
        board = [line.split()[1:] for line in asked("showboard").splitlines()[2:17]]
        shown = {(14 - r, c): mark for r, row in enumerate(board) for c, mark in enumerate(row)}
        assert {cell for cell in cells if shown[cell] == "X"} == stones["b"]
        assert {cell for cell in cells if shown[cell] == "O"} == stones["w"]
        results.append(asked("final_score"))
        assert results[-1] == (f"{winner.upper()}+1" if winner else "0")
    assert {"B+1", "W+1"} <= {*results}
    asked.quit()
