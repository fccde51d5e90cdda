"""Breakthrough: exact values, symmetry, keys, text, and the names of moves."""

import pytest
import torch
from helpers import rng
from markers import slow
from reference_rules import BreakthroughBook

from rlgames.games.breakthrough import Breakthrough
from rlgames.games.notation import parse, parse_action, parse_actions, render
from rlgames.players.player import Random
from rlgames.rollouts.conformance import check
from rlgames.rollouts.play import collect_games
from rlgames.solvers.graph import Graph

CAPTURES = """O to move
4 O . O
3 . X .
2 . . X
1 X . .
  a b c"""


def some_positions(game):
    """Every seventh position of random games."""
    moves, _ = collect_games(game, [Random(game)], 30, rng(2))
    return moves.state[torch.arange(0, len(moves), 7)]


@pytest.mark.parametrize(
    "rules",
    [(3, 2, 1), (3, 3, 1), (4, 2, 1), (4, 2, 2), (4, 3, 1), slow([5, 2, 2]), slow([4, 4, 1])],
)
def test_values_are_those_of_plain_minimax(rules):
    solution = Graph(Breakthrough(*rules), 60, 2**30).solve([None, None])
    assert solution.mean == value_by_the_book(rules)


def value_by_the_book(rules):
    """What the first seat gets with the best play of both, by the reference rules."""
    values: dict[str, float] = {}

    def value(book):
        if book.done:
            return book.score[0]
        position = f"{book.current_seat} {book.cells}"
        if position not in values:
            best = max if book.current_seat == 0 else min
            values[position] = best(value(after(book, a)) for a in book.legal_action_mask())
        return values[position]

    return value(BreakthroughBook(*rules))


def after(book, action):
    copied = BreakthroughBook(book.rows, book.columns, 0)
    copied.cells = [list(line) for line in book.cells]
    copied.current_seat = book.current_seat
    copied.play(action)
    return copied


def test_both_seats_see_the_start_alike():
    game = Breakthrough(6, 5, 2)
    start = game.initial(1, rng())
    other = game.view_from_seat(start, 1)
    assert torch.equal(game.observe(start), game.observe(other))
    assert torch.equal(game.legal_action_mask(start), game.legal_action_mask(other))
    assert torch.equal(game.cells(start), game.cells(other))


def test_turns_are_counted_while_all_pieces_are_there():
    game = Breakthrough(8, 8, 2)
    state = some_positions(game)
    is_full = (game.cells(state) > 0).flatten(1).sum(1) == 32
    assert is_full.any()
    state = state[is_full]
    texts = [render(game, state, row) for row in range(len(state))]
    assert torch.equal(game.parse_all(texts).turn, state.turn)


def test_moves_and_captures_have_the_names_of_the_field():
    game = Breakthrough(4, 3, 1)
    state = parse(game, CAPTURES)
    legal = game.legal_action_mask(state)[0].nonzero()[:, 0].tolist()
    names = {game.action_to_string(state, 0, action) for action in legal}
    assert names == {"a4xb3", "a4a3", "c4xb3", "c4c3"}
    for text in ("a4xb3", "A4XB3", "a4b3", "a4-b3", "a4b3*", " a4xb3 "):
        action = parse_action(game, state, 0, text, exact=True)
        assert game.action_to_string(state, 0, action) == "a4xb3"
    end = game.apply_action(state, torch.tensor([parse_action(game, state, 0, "c4xb3")]))
    assert render(game, end, 0).splitlines()[2] == " 3 . O ."
    for text in ("a4b4", "b3a4", "a4", "a4b3b3", "x"):
        with pytest.raises(ValueError, match=r"not a legal move; legal moves: .*a4"):
            parse_action(game, state, 0, text, exact=True)


def test_names_of_many_positions_are_read_at_once():
    game = Breakthrough(5, 4, 1)
    state = some_positions(game)
    action = game.legal_action_mask(state).long().argmax(1)
    names = [game.action_to_string(state, row, int(a)) for row, a in enumerate(action)]
    assert torch.equal(parse_actions(game, state, names), action)


def test_the_last_row_and_the_last_piece_win():
    game = Breakthrough(4, 3, 1)
    for text, move in [
        ("X to move\nO . O\n. X .\n. . .\n. . X", "b3b4"),
        ("X to move\nO . O\n. X .\n. . .\n. . X", "b3xc4"),
        ("X to move\n. . .\n. . O\n. X .\n. . .", "b2xc3"),
    ]:
        state = parse(game, text)
        end = game.apply_action(state, torch.tensor([parse_action(game, state, 0, move)]))
        assert end.done.all()
        assert end.score.tolist() == [[1, -1]]
        again = parse(game, render(game, end, 0))
        assert again.score.tolist() == [[1, -1]]
        assert torch.equal(again.words, end.words)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Z to move\n. . .\n. . .\n. . .\n. . .", "X to move, O to move or game over"),
        ("game over\nO O O\n. . .\n. . .\nX X X", "not over"),
        ("X to move\nO X .\n. . .\n. . .\nX O .", "only one seat can win"),
        ("X to move\n. . .\n. . .\n. . .\n. . .", "only one seat can win"),
        ("X to move\nO O O\nO . .\n. . .\nX X X", "no more than 3 pieces"),
        ("X to move\nO O O\n. . .\n. . .", "3 rows; the board has 4"),
    ],
)
def test_impossible_positions_are_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse(Breakthrough(4, 3, 1), text)


def test_home_rows_must_fit():
    with pytest.raises(ValueError, match="home_rows=2 is more than half of rows=3"):
        Breakthrough(3, 3, 2)


def test_large_boards_are_refused():
    with pytest.raises(ValueError, match="a board of 9x8 has 72 cells, and 64 is the most"):
        Breakthrough(9, 8, 2)


@pytest.mark.parametrize("rules", [(3, 2, 1), (4, 3, 2), (7, 5, 3)])
def test_other_boards_follow_the_contract(rules):
    check(Breakthrough(*rules))
