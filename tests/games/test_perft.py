"""Perft: sequences of legal moves by depth, against published numbers and the rule books.

A missing, an extra or a wrong move changes the counts from its depth on. Equal positions are
merged, so that hundreds of thousands of sequences take fractions of a second.
"""

from copy import deepcopy
from itertools import islice

import pytest
import torch
from helpers import game_2048, rng
from markers import slow
from reference_rules import (
    BreakthroughBook,
    DuelBook,
    HexBook,
    LinesBook,
    OthelloBook,
    SalvoBook,
    SlideBook,
)

from rlgames.games.battleship import Battleship
from rlgames.games.breakthrough import Breakthrough
from rlgames.games.hex import Hex
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.othello import Othello
from rlgames.games.salvo_duel import SalvoDuel


def perft(game, state):
    """By depth, from 1 on: sequences of moves and of what chance added, distinct positions, and
    sequences that ended the game."""
    ways = torch.ones(len(state), dtype=torch.int64)
    while len(state):
        row, action = game.legal_action_mask(state).nonzero().unbind(1)
        probability, after = game.chance_outcomes(game.apply_action(state[row], action))
        possible = (probability.flatten() > 0).nonzero()[:, 0]
        state = after[possible]
        ways = ways[row].repeat_interleave(probability.shape[1])[possible]
        content = state.content()
        hashes = content * torch.randint(2**62, content.shape[1:], generator=rng(1))
        positions, group = hashes.sum(1).unique(return_inverse=True)
        total = torch.zeros(len(positions), dtype=torch.int64).index_add_(0, group, ways)
        first = torch.full_like(total, len(state)).scatter_reduce_(
            0, group, torch.arange(len(state)), "amin"
        )
        state, ways = state[first], total
        yield int(ways.sum()), len(positions), int(ways[state.done].sum())
        state, ways = state[~state.done], ways[~state.done]


def counts(game, depth=None):
    return [ways for ways, _, _ in islice(perft(game, game.initial(1, rng())), depth)]


def book_counts(book, depth, chance=lambda book, action: [None]):
    """Sequences by depth, by a rule book: played one by one."""
    result, books = [], [book]
    for _ in range(depth):
        following = []
        for each in books:
            for action in each.legal_action_mask():
                for drawn in chance(each, action):
                    after = deepcopy(each)
                    after.play(action, drawn)
                    following.append(after)
        books = following
        result.append(len(books))
    return result


OTHELLO = [4, 12, 56, 244, 1396, 8200, 55_092, 390_216, 3_005_288, 24_571_284]
"""Leaves of the tree on 8 x 8, as published: a pass is a move, and a game that is over stays a leaf
at every greater depth. The shortest games end after 9 plies, in 228 ways."""


@pytest.mark.others
@pytest.mark.parametrize("depth", [8, slow(10)])
def test_othello_has_the_published_sequences(depth):
    game, leaves, ends, over = Othello(8), [], [], 0
    for ways, _, ended in islice(perft(game, game.initial(1, rng())), depth):
        leaves.append(ways + over)
        ends.append(ended)
        over += ended
    assert leaves == OTHELLO[:depth]
    assert ends[:9] == [0, 0, 0, 0, 0, 0, 0, 0, 228][:depth]


CONNECT4 = [1, 7, 49, 238, 1120, 4263, 16_422, 54_859, 184_275, 558_186, 1_662_623]
"""Positions after each ply on 6 x 7 (OEIS A212693)."""


@pytest.mark.others
@pytest.mark.parametrize("depth", [8, slow(10)])
def test_connect_four_has_the_published_positions(depth):
    game = KInARow(6, 7, 4, gravity=True)
    found = [boards for _, boards, _ in islice(perft(game, game.initial(1, rng())), depth)]
    assert found == CONNECT4[1 : depth + 1]


@pytest.mark.others
def test_tic_tac_toe_has_255168_games_and_5478_boards():
    game = KInARow(3, 3, 3, gravity=False)
    ways, boards, ended = zip(*perft(game, game.initial(1, rng())), strict=True)
    assert ways == (9, 72, 504, 3024, 15_120, 54_720, 148_176, 200_448, 127_872)
    assert (sum(ended), 1 + sum(boards)) == (255_168, 5478)


@pytest.mark.parametrize(
    ("game", "book", "depth"),
    [
        (KInARow(3, 4, 3, gravity=True), LinesBook(3, 4, 3, True), 4),
        (KInARow(2, 4, 3, gravity=False), LinesBook(2, 4, 3, False), 4),
        (Othello(4), OthelloBook(4), 5),
        slow((Othello(6), OthelloBook(6), 5)),
        (Hex(3, swap=True), HexBook(3, True), 3),
        (Hex(3, swap=False), HexBook(3, False), 3),
        (Breakthrough(5, 3, 1), BreakthroughBook(5, 3, 1), 3),
        slow((Breakthrough(6, 4, 2), BreakthroughBook(6, 4, 2), 4)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_boards_have_the_sequences_of_the_rule_books(game, book, depth):
    assert counts(game, depth) == book_counts(book, depth)


@pytest.mark.parametrize("fours", [0.0, 0.1])
def test_2048_has_the_sequences_of_slides_and_tiles_of_the_rule_book(fours):
    def tiles(book, action):
        cells = [cell for row in book.slid(action)[0] for cell in row]
        values = (2, 4) if fours else (2,)
        return [(index, value) for index, cell in enumerate(cells) if not cell for value in values]

    game, book = game_2048(2, 3, fours=fours), SlideBook(2, 3)
    book.place(0, 2)
    book.place(4, 2)
    state = game.from_exponents(torch.tensor([[[1, 0, 0], [0, 1, 0]]]))
    found = [ways for ways, _, _ in islice(perft(game, state), 2)]
    assert found == book_counts(book, 2, tiles)


def test_a_duel_has_the_sequences_of_the_rule_book():
    game = SalvoDuel(1, 3, [1, 1])
    state = game.initial(1, rng(2))
    fleets = [
        [{cell for cell, each in enumerate(layout) if each == ship} for ship in (1, 2)]
        for layout in state.ships[0].tolist()
    ]
    found = [ways for ways, _, _ in perft(game, state)]
    assert found == book_counts(DuelBook(1, 3, fleets), len(found))


def test_battleship_has_the_sequences_of_the_rule_book():
    game = Battleship(2, 3, [2], 1, show=[])
    state = game.initial(1, rng())
    cells = game.hidden_hits(state)[0, 0].nonzero()[:, 0].tolist()
    found = [ways for ways, _, _ in perft(game, state)]
    assert found == book_counts(SalvoBook(2, 3, cells, 1), len(found))
