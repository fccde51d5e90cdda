"""Boards as they are drawn: every game, every width, without color and in ASCII."""

import re

import pytest
from helpers import make_game, rendered, rng

from rlgames.config.conf import option_names
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.notation import parse, render
from rlgames.players.player import Random
from rlgames.terminal.boards import BoardView

SMALL = {"battleship": ["ships=[3]"], "salvo": ["board=3", "ships=[2]"], "2048": ["board=3"]}


def after(game, plies):
    """A public position, random moves from the start, and the full one before it."""
    state = before = game.initial(1, rng(1))
    for ply in range(plies):
        before, now = state, rng(1).fold_in(ply)
        state = game.step(state, Random(game).choose(game.public(state), now), now)
    return game.public(state), before


def shares(game, state):
    """Probabilities that differ: the first legal action has the most."""
    legal = game.legal_action_mask(state)[0].double()
    weight = legal / (1 + legal.cumsum(0))
    return weight / weight.sum()


GAMES = option_names("game")


@pytest.mark.parametrize("name", GAMES)
def test_every_board_is_drawn_and_no_line_is_too_long(name):
    game = make_game(f"game={name}", *SMALL.get(name, ()))
    state, before = after(game, 3)
    board = BoardView(game, state, shares(game, state), game.public(before))
    assert board.boards
    for width in (120, 80, 40, 20):
        text = rendered(board, width, color_system=None)
        assert max(map(len, text.splitlines())) <= width
        for row in board.boards[0]:
            assert all(mark in text for mark in row if mark != ".")


@pytest.mark.parametrize("name", GAMES)
def test_a_board_needs_no_color_and_no_more_than_ascii(name):
    game = make_game(f"game={name}", *SMALL.get(name, ()))
    state, _ = after(game, 2)
    board = BoardView(game, state, shares(game, state))
    colors = r"\x1b\[[0-9;]*(?:[349][0-8])[0-9;]*m"
    assert not re.search(colors, rendered(board, no_color=True, color_system="truecolor"))
    assert rendered(board, encoding="ascii", color_system=None).isascii()


@pytest.mark.parametrize("name", ["tictactoe", "connect4", "salvo_duel"])
def test_percentages_on_the_board_add_up(name):
    game = make_game(f"game={name}", *SMALL.get(name, ()))
    state, _ = after(game, 2)
    board = BoardView(game, state, shares(game, state))
    told = [int(text) for text in re.findall(r"(\d+)%", rendered(board, color_system=None))]
    assert abs(sum(told) - 100) <= len(told) / 2 + 1
    assert max(told) == round(100 * max(board.opinion))


def test_the_last_move_is_marked():
    game = make_game("game=tictactoe")
    state, before = after(game, 2)
    assert rendered(BoardView(game, state), color_system=None).count("[") == 0
    text = rendered(BoardView(game, state, since=before), color_system=None)
    assert re.findall(r"\[ *(.) *\]", text) == ["O"]


def test_the_likeliest_moves_add_up():
    game = make_game("game=salvo", *SMALL["salvo"])
    state, _ = after(game, 0)
    moves = BoardView(game, state, shares(game, state)).top_actions()
    assert sum(share for _, share in moves) == pytest.approx(1)
    assert moves[-1][0] == "others"
    assert [share for _, share in moves[:-1]] == sorted((s for _, s in moves[:-1]), reverse=True)


def test_a_game_that_draws_no_board_is_shown_as_it_writes_itself():
    class Spoken(KInARow):
        def boards(self, state, row, reveal=False):
            return []

        def caption(self, state, row):
            return f"[bold]{int(state.turn[row])} stones lie on the board"

    game = Spoken(3, 3, 3, gravity=False)
    state, _ = after(game, 2)
    text = rendered(BoardView(game, state, shares(game, state)), color_system=None)
    assert "[bold]2 stones lie" in text
    assert len(re.findall(r"[ABC][123] .*%", text)) == 7


def test_a_board_is_read_without_its_labels_too():
    for name in ("tictactoe", "connect4", "2048"):
        game = make_game(f"game={name}", *SMALL.get(name, ()))
        state, _ = after(game, 3)
        text = render(game, state, 0)
        bare = "\n".join(" ".join(row) for row in game.boards(state, 0)[0])
        assert render(game, parse(game, bare), 0) == text
        for wrong in ("", ". .\n. .", ". . .\n. . .", ". . .\n" * 4, text + "\n" + text):
            with pytest.raises(ValueError, match="row"):
                parse(game, wrong)
