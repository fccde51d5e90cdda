"""Boards with a number for each row: the same answers as with one number, and large boards."""

import pytest
import torch
from helpers import rng

from rlgames.games.bit_layout import BitLayout
from rlgames.games.capabilities import ExactKey, find
from rlgames.games.k_in_a_row import KInARow, gomoku
from rlgames.games.notation import parse, parse_action
from rlgames.games.row_layout import RowLayout
from rlgames.players.player import Random
from rlgames.players.scripted import WinOrBlock
from rlgames.rollouts.play import collect_games

SHAPES = [(5, 6, 4), (7, 7, 5), (6, 6, 3), (2, 20, 5), (8, 3, 7), (6, 5, 1)]


@pytest.mark.parametrize("shape", SHAPES)
def test_both_layouts_see_the_same_cells_lines_and_planes(shape):
    rows, columns, line = shape
    one, many = BitLayout(rows, columns, line, False), RowLayout(rows, columns, line)
    cells = torch.rand(500, rows * columns, generator=rng()) < torch.rand(500, 1, generator=rng(1))
    own, words = one.stones(cells), many.stones(cells)
    assert torch.equal(one.contains(own), cells)
    assert torch.equal(many.contains(words), cells)
    assert torch.equal(one.has_line(own), many.has_line(words))
    assert one.has_line(own).any()
    assert torch.equal(one.is_full(own), many.is_full(words))
    first = one.planes(torch.stack([own, own], 1)).reshape(500, 2, -1)
    assert torch.equal(first, many.planes(torch.stack([words, words], 1)).reshape(500, 2, -1))


@pytest.mark.parametrize("shape", [(5, 6, 4), (7, 7, 5), (2, 20, 5)])
def test_the_cells_that_complete_a_line_are_those_after_which_there_is_one(shape):
    rows, columns, line = shape
    layout = RowLayout(rows, columns, line)
    cells = torch.rand(300, rows * columns, generator=rng()) < 0.5
    stones = layout.stones(cells)
    cells = cells[~layout.has_line(stones)]
    stones = layout.stones(cells)
    completing = layout.contains(layout.completing_cells(stones))
    assert completing.any()
    for cell in range(rows * columns):
        after = layout.has_line(stones | layout.cell_bits[cell])
        assert torch.equal(completing[:, cell], after)


def test_scripted_players_win_and_block_on_large_boards():
    game = gomoku(15, 5)
    moves, _ = collect_games(game, [Random(game)], 20, rng(1))
    player = WinOrBlock(game)
    options = player.options(moves.state)
    assert not (options & ~game.legal_action_mask(moves.state)).any()
    text = [["."] * 15 for _ in range(15)]
    for place in range(4):
        text[3 + place][3 + place], text[10][2 + place] = "X", "O"
    state = parse(game, "\n".join(" ".join(row) for row in text))
    wins = options_of(game, player, state)
    assert wins == ["C3", "H8"]
    after = game.apply_action(state, torch.tensor([parse_action(game, state, 0, "A1")]))
    assert options_of(game, player, after) == ["B11", "G11"]
    won = game.apply_action(state, torch.tensor([parse_action(game, state, 0, "C3")]))
    assert won.score.tolist() == [[1, -1]]


def options_of(game, player, state):
    actions = player.options(state)[0].nonzero()[:, 0].tolist()
    return [game.action_to_string(state, 0, action) for action in actions]


def test_the_largest_boards():
    assert find(gomoku(7, 5), ExactKey) is None
    assert isinstance(gomoku(8, 5).layout, RowLayout)
    assert type(gomoku(7, 5).layout) is BitLayout
    with pytest.raises(ValueError, match="at most 30 columns"):
        KInARow(3, 31, 4, False)
    with pytest.raises(ValueError, match="62 is the most"):
        KInARow(8, 8, 4, True)
