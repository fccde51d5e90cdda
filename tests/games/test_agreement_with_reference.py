"""The batched games move for move against the rule books, on boards of many sizes."""

import random
from itertools import chain
from typing import Any

import pytest
import torch
from helpers import game_2048, rng
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from markers import slow
from reference_rules import BreakthroughBook, HexBook, LinesBook, OthelloBook, SlideBook

from rlgames.games.breakthrough import Breakthrough
from rlgames.games.hex import Hex
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.othello import Othello

BATCH = 3
FOURS = 0.1
SLIDES = [(4, 4), (3, 3), (2, 4), (4, 2), (1, 4), (3, 2), (4, 3)]


def compare(game, state, books, cells):
    """Everything that a rule book knows, of every row."""
    assert state.done.tolist() == [book.done for book in books]
    assert state.turn.tolist() == [book.turn for book in books]
    assert state.score.tolist() == [book.score for book in books]
    assert game.cells(state).tolist() == cells
    legal, current_seat = game.legal_action_mask(state).tolist(), state.current_seat.tolist()
    for row, book in enumerate(books):
        if book.done:
            assert all(legal[row])
        else:
            allowed = [action for action, is_legal in enumerate(legal[row]) if is_legal]
            expected = [from_mover(game, book, action) for action in book.legal_action_mask()]
            assert allowed == sorted(expected)
            assert current_seat[row] == book.current_seat


def from_mover(game, book, action):
    """An action of a book as the game numbers it, and the other way around: in Hex the second seat
    sees rows and columns exchanged."""
    if not isinstance(game, Hex) or book.current_seat == 0 or action == game.num_cells:
        return action
    size = game.spec.observation[1]
    return action % size * size + action // size


def choose(books, numbers, actions):
    """A legal action a row, by that row's number; a finished row may be given any action."""
    options = [book.legal_action_mask() or range(actions) for book in books]
    return [
        allowed[number % len(allowed)] for allowed, number in zip(options, numbers, strict=True)
    ]


# ---------------------------------------------------------------- stones in a row


def stones(books):
    """The cells as the batched game writes them: 0 empty, 1 the first seat's, 2 the second's."""
    return [
        [[0 if cell is None else cell + 1 for cell in row] for row in book.cells] for book in books
    ]


def play_lines(rules, batch, plies):
    """Play batched and by the book; plies: for every ply a number a row to choose by."""
    rows, columns, line, gravity = rules
    game = KInARow(rows, columns, line, gravity, name="lines")
    assert game.spec.actions == (columns if gravity else rows * columns)
    return play_stones(game, [LinesBook(*rules) for _ in range(batch)], plies)


def play_stones(game, books, plies):
    """Play a game of two seats' stones batched and by its books; plies as in play_lines."""
    state = game.initial(len(books), rng())
    compare(game, state, books, stones(books))
    for numbers in plies:
        chosen = choose(books, numbers, game.spec.actions)
        numbered = [from_mover(game, *each) for each in zip(books, chosen, strict=True)]
        state = game.apply_action(state, torch.tensor(numbered))
        for book, action in zip(books, chosen, strict=True):
            if not book.done:
                book.play(action)
        compare(game, state, books, stones(books))
    return books


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 5),
    columns=st.integers(1, 6),
    line=st.integers(2, 5),
    gravity=st.booleans(),
    choices=st.binary(min_size=30 * BATCH, max_size=30 * BATCH),
)
def test_lines_play_by_the_book(rows, columns, line, gravity, choices):
    assume(line <= max(rows, columns))
    plies = [choices[start : start + BATCH] for start in range(0, len(choices), BATCH)]
    play_lines((rows, columns, line, gravity), BATCH, plies[: rows * columns + 1])


@pytest.mark.parametrize("rules", [(9, 9, 5, False), (6, 11, 8, False), slow([15, 15, 5, False])])
def test_a_few_games_on_large_boards_play_by_the_book(rules):
    draw = random.Random(repr(rules))
    plies = [[draw.randrange(1 << 20) for _ in range(8)] for _ in range(rules[0] * rules[1])]
    assert all(book.done for book in play_lines(rules, 8, plies))


@pytest.mark.parametrize(("size", "games"), [(4, 200), (6, 20), slow((8, 60))])
def test_random_games_of_othello_play_by_the_book(size, games):
    draw = random.Random(size)
    game = Othello(size)
    plies = [[draw.randrange(1 << 20) for _ in range(games)] for _ in range(game.spec.max_plies)]
    books = play_stones(game, [OthelloBook(size) for _ in range(games)], plies)
    assert all(book.done for book in books)
    assert any(book.turn % 2 != (sum(map(len, filled(book))) % 2) for book in books)  # a pass


def filled(book):
    return [[cell for cell in row if cell is not None] for row in book.cells]


@pytest.mark.parametrize(
    ("size", "swap", "games"),
    [(2, True, 200), (4, False, 100), (5, True, 100), slow((8, False, 100)), slow((11, True, 60))],
)
def test_random_games_of_hex_play_by_the_book(size, swap, games):
    draw = random.Random(size)
    game = Hex(size, swap)
    plies = [[draw.randrange(1 << 20) for _ in range(games)] for _ in range(game.spec.max_plies)]
    books = play_stones(game, [HexBook(size, swap) for _ in range(games)], plies)
    assert all(book.done for book in books)


@pytest.mark.parametrize(
    ("rules", "games"),
    [
        ((3, 2, 1), 200),
        ((4, 4, 2), 100),
        ((5, 7, 1), 50),
        ((6, 3, 3), 50),
        slow(((8, 8, 2), 60)),
        slow(((10, 4, 2), 60)),
    ],
)
def test_random_games_of_breakthrough_play_by_the_book(rules, games):
    draw = random.Random(repr(rules))
    game = Breakthrough(*rules)
    plies = [[draw.randrange(1 << 20) for _ in range(games)] for _ in range(game.spec.max_plies)]
    books = play_stones(game, [BreakthroughBook(*rules) for _ in range(games)], plies)
    assert all(book.done for book in books)


# ---------------------------------------------------------------- sliding tiles


def exponents(cells):
    """The cells as the batched game writes them: 0 empty, 1 for 2, 2 for 4, ..."""
    return [[value.bit_length() - 1 if value else 0 for value in row] for row in cells]


def slide_book(board):
    """A rule book at a board of exponents."""
    book = SlideBook(len(board), len(board[0]))
    for index, exponent in enumerate(exponent for row in board for exponent in row):
        if exponent:
            book.place(index, 2**exponent)
    return book


def compare_slides(game, state, books):
    compare(game, state, books, [exponents(book.cells) for book in books])


def play_slides(game, state, moves):
    """Play batched and by the book; moves: three numbers a row for every move."""
    books = [slide_book(board) for board in game.cells(state).tolist()]
    compare_slides(game, state, books)
    for numbers in moves:
        chosen = choose(books, [number[0] for number in numbers], 4)
        state = game.apply_action(state, torch.tensor(chosen))
        slid, uniform = [], []
        chances: list[tuple[Any, int] | None] = []
        for book, action, (_, where, what) in zip(books, chosen, numbers, strict=True):
            if book.done:
                slid.append(book.cells)
                chances.append(None)
                uniform.append([0.5, 0.5])
                continue
            slid.append(book.slid(action)[0])
            empty = [index for index, value in enumerate(chain(*slid[-1])) if value == 0]
            nth = where % len(empty)
            four = what % 4 == 3
            chances.append((empty[nth], 4 if four else 2))
            uniform.append([(nth + 0.5) / len(empty), FOURS * 0.99 if four else FOURS * 1.01])
        assert game.cells(state).tolist() == [exponents(cells) for cells in slid]
        state = game.apply_chance(state, torch.tensor(uniform))
        for book, action, chance in zip(books, chosen, chances, strict=True):
            if not book.done:
                book.play(action, chance)
        compare_slides(game, state, books)
    return books


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(1, 4),
    columns=st.integers(2, 4),
    seed=st.integers(0, 1000),
    choices=st.binary(min_size=40 * 3 * BATCH, max_size=40 * 3 * BATCH),
)
def test_slides_play_by_the_book(rows, columns, seed, choices):
    assume(rows * columns > 2)  # two tiles leave no room on two cells
    game = game_2048(rows, columns, fours=FOURS)
    triples = [choices[start : start + 3] for start in range(0, len(choices), 3)]
    moves = [triples[start : start + BATCH] for start in range(0, len(triples), BATCH)]
    play_slides(game, game.initial(BATCH, rng(seed)), moves)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_slides_from_any_board_play_by_the_book(data):
    rows, columns = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 4))
    assume(rows * columns > 2)
    # Three moves make no tile beyond what a game can reach, 2 to the number of cells + 1, and none
    # beyond 32,768, the largest on up to 16 cells.
    highest = data.draw(st.integers(1, min(rows * columns - 1, 12)))
    board = st.lists(
        st.lists(st.integers(0, highest), min_size=columns, max_size=columns),
        min_size=rows,
        max_size=rows,
    ).filter(lambda cells: any(map(any, cells)))
    boards = data.draw(st.lists(board, min_size=BATCH, max_size=BATCH))
    choices = data.draw(st.binary(min_size=9 * BATCH, max_size=9 * BATCH))
    triples = [choices[start : start + 3] for start in range(0, len(choices), 3)]
    moves = [triples[start : start + BATCH] for start in range(0, len(triples), BATCH)]
    game = game_2048(rows, columns, fours=FOURS)
    play_slides(game, game.from_exponents(torch.tensor(boards)), moves)


@pytest.mark.parametrize(("rows", "columns"), SLIDES)
def test_what_chance_may_add_is_by_the_book(rows, columns):
    """Every empty cell is as likely; a four has its probability; the rest follows the rules."""
    game = game_2048(rows, columns, fours=FOURS)
    draw = random.Random(rows + 10 * columns)
    top = min(3, rows * columns)
    boards = [
        [[draw.randint(0, top) for _ in range(columns)] for _ in range(rows)] for _ in range(60)
    ]
    books = [slide_book(board) for board in boards]
    kept = [index for index, book in enumerate(books) if not book.done]
    books = [books[index] for index in kept]
    state = game.from_exponents(torch.tensor([boards[index] for index in kept]))
    chosen = choose(books, [draw.randrange(12) for _ in books], 4)
    slid = game.apply_action(state, torch.tensor(chosen))
    probability, outcomes = game.chance_outcomes(slid)
    width = probability.shape[1]
    cells, done = game.cells(outcomes).tolist(), outcomes.done.tolist()
    score, turn = outcomes.score[:, 0].tolist(), outcomes.turn.tolist()
    for row, (book, action) in enumerate(zip(books, chosen, strict=True)):
        before, gained = book.slid(action)
        empty = [index for index, value in enumerate(chain(*before)) if value == 0]
        expected = {}
        for index in empty:
            for value, share in ((2, 1 - FOURS), (4, FOURS)):
                further = SlideBook(rows, columns)
                further.cells = [list(line) for line in before]
                further.place(index, value)
                expected[str(exponents(further.cells))] = (share / len(empty), further.done)
        found = {}
        for column in range(width):
            if probability[row, column] > 0:
                place = row * width + column
                assert str(cells[place]) not in found
                found[str(cells[place])] = (probability[row, column].item(), done[place])
                assert (score[place], turn[place]) == (gained, 1)
        assert found.keys() == expected.keys()
        for name, (share, over) in expected.items():
            assert found[name][0] == pytest.approx(share)
            assert found[name][1] == over


@pytest.mark.parametrize("fours", [0.0, 0.1, 1.0])
def test_the_ends_of_the_uniform_numbers_choose_the_first_and_the_last_cell(fours):
    game = game_2048(3, 4, fours=fours)
    below_one = 1 - 2**-24
    for count in range(1, 12):
        filled = [1 if index >= count else 0 for index in range(12)]
        board = torch.tensor(filled).reshape(1, 3, 4)
        state = game.from_exponents(board)
        for action in game.legal_action_mask(state)[0].nonzero()[:, 0].tolist():
            slid = game.apply_action(state, torch.tensor([action]))
            before = game.cells(slid).flatten()
            empty = (before == 0).nonzero()[:, 0]
            for first, second in [(0.0, 0.0), (below_one, below_one)]:
                after = game.cells(
                    game.apply_chance(slid, torch.tensor([[first, second]]))
                ).flatten()
                changed = (after != before).nonzero()[:, 0].tolist()
                assert changed == [empty[-1 if first else 0].item()]
                assert after[changed[0]] == (2 if second < fours else 1)
