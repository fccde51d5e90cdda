"""The rule books against counts and positions that are known."""

import functools
import itertools

import pytest
from reference_rules import DuelBook, LinesBook, SalvoBook, SlideBook, pushed

UP, RIGHT, DOWN, LEFT = range(4)


def after(rules, actions):
    book = LinesBook(*rules)
    for action in actions:
        book.play(action)
    return book


def stones(*rows):
    """Cells from text: x is the first seat's stone, o the second's."""
    return [[{"x": 0, "o": 1, ".": None}[letter] for letter in row] for row in rows]


def tiles(rows):
    """A 2048 board with these tiles on it."""
    book = SlideBook(len(rows), len(rows[0]))
    for index, value in enumerate(itertools.chain.from_iterable(rows)):
        if value:
            book.place(index, value)
    return book


@pytest.mark.parametrize(
    ("rules", "actions", "score"),
    [
        ((3, 3, 3, False), [0, 3, 1, 4, 2], [1, -1]),
        ((3, 3, 3, False), [0, 2, 1, 5, 3, 8], [-1, 1]),
        ((3, 3, 3, False), [0, 1, 4, 2, 8], [1, -1]),
        ((3, 3, 3, False), [2, 0, 4, 1, 6], [1, -1]),
        ((3, 3, 3, False), [0, 1, 2, 4, 3, 5, 7, 6, 8], [0, 0]),
        ((3, 3, 3, False), [0, 2, 1, 3, 4, 5, 6, 7, 8], [1, -1]),
        ((6, 7, 4, True), [0, 1, 0, 1, 0, 1, 0], [1, -1]),
        ((6, 7, 4, True), [0, 0, 1, 1, 2, 2, 3], [1, -1]),
        ((6, 7, 4, True), [0, 1, 1, 2, 2, 3, 2, 3, 3, 6, 3], [1, -1]),
        ((6, 7, 4, True), [6, 5, 5, 4, 4, 3, 4, 3, 3, 0, 3], [1, -1]),
        ((6, 7, 4, True), [0, 3, 0, 3, 0, 3, 6, 3], [-1, 1]),
        ((1, 6, 5, False), [0, 5, 1, 4, 2, 3], [0, 0]),
        ((1, 1, 2, True), [0], [0, 0]),
        ((2, 2, 3, False), [0, 1, 2, 3], [0, 0]),
        ((3, 5, 4, False), [0, 5, 1, 6, 3, 7, 2], [1, -1]),
        ((1, 6, 3, False), [0, 2, 1, 3, 4, 5], [0, 0]),
        ((1, 7, 3, False), [0, 2, 1, 3, 5, 4], [-1, 1]),
    ],
)
def test_lines_end_as_they_should(rules, actions, score):
    for length in range(len(actions)):
        assert not after(rules, actions[:length]).done
    book = after(rules, actions)
    assert book.done
    assert book.legal_action_mask() == []
    assert book.score == score
    assert book.turn == len(actions)


def test_more_than_a_line_wins_too():
    book = after((1, 9, 3, False), [0, 7, 1, 8, 3, 5, 4])
    assert not book.done
    book.play(6)
    assert book.cells == stones("xx.xxoooo")
    assert book.score == [-1, 1]


def test_stones_fall_and_full_columns_close():
    book = after((3, 2, 5, True), [0, 0, 0, 1])
    assert book.cells == stones("x.", "o.", "xo")
    assert book.legal_action_mask() == [1]
    assert book.current_seat == 0
    with pytest.raises(ValueError, match="not legal"):
        book.play(0)


@pytest.mark.parametrize(
    ("line", "result", "gained"),
    [
        ([2, 2, 2, 2], [4, 4, 0, 0], 8),
        ([4, 2, 2, 0], [4, 4, 0, 0], 4),
        ([2, 2, 4, 0], [4, 4, 0, 0], 4),
        ([2, 2, 4, 8], [4, 4, 8, 0], 4),
        ([2, 2, 2, 0], [4, 2, 0, 0], 4),
        ([2, 0, 2, 2], [4, 2, 0, 0], 4),
        ([0, 0, 0, 2], [2, 0, 0, 0], 0),
        ([2, 0, 0, 2], [4, 0, 0, 0], 4),
        ([8, 4, 2, 2], [8, 4, 4, 0], 4),
        ([4, 4, 8, 8], [8, 16, 0, 0], 24),
        ([2, 4, 2, 4], [2, 4, 2, 4], 0),
        ([0, 0, 0, 0], [0, 0, 0, 0], 0),
        ([1024, 0, 1024], [2048, 0, 0], 2048),
        ([2], [2], 0),
    ],
)
def test_tiles_merge_once_and_at_the_wall_first(line, result, gained):
    assert pushed(line) == (result, gained)
    across, along = tiles([line]), tiles([[tile] for tile in line])
    assert across.slid(LEFT) == ([result], gained)
    assert along.slid(UP) == ([[tile] for tile in result], gained)
    across, along = tiles([line[::-1]]), tiles([[tile] for tile in line[::-1]])
    assert across.slid(RIGHT) == ([result[::-1]], gained)
    assert along.slid(DOWN) == ([[tile] for tile in result[::-1]], gained)
    assert (LEFT in tiles([line]).legal_action_mask()) == (result != line)


def test_a_move_slides_counts_and_places_a_tile():
    book = tiles([[2, 0, 2], [0, 4, 4], [0, 0, 0]])
    assert book.legal_action_mask() == [UP, RIGHT, DOWN, LEFT]
    book.play(LEFT, (8, 2))
    assert book.cells == [[4, 0, 0], [8, 0, 0], [0, 0, 2]]
    assert (book.score, book.turn, book.done) == ([12], 1, False)
    book.play(DOWN, (0, 4))
    assert book.cells == [[4, 0, 0], [4, 0, 0], [8, 0, 2]]
    assert (book.score, book.turn) == ([12], 2)
    book.play(UP, (8, 2))
    assert book.cells == [[8, 0, 2], [8, 0, 0], [0, 0, 2]]
    assert (book.score, book.turn) == ([20], 3)
    with pytest.raises(ValueError, match="already has a tile"):
        book.play(UP, (0, 2))


def test_a_slide_that_changes_nothing_is_not_legal():
    assert tiles([[2, 4], [0, 0]]).legal_action_mask() == [DOWN]
    assert tiles([[2, 0], [4, 0]]).legal_action_mask() == [RIGHT]
    assert tiles([[2, 2], [4, 8]]).legal_action_mask() == [RIGHT, LEFT]
    assert tiles([[2, 4], [2, 8]]).legal_action_mask() == [UP, DOWN]
    assert tiles([[2]]).legal_action_mask() == []


def test_the_game_is_over_when_nothing_moves():
    book = tiles([[4, 2], [0, 4]])
    book.play(LEFT, (3, 2))
    assert book.cells == [[4, 2], [4, 2]]
    book = tiles([[4, 2], [0, 4]])
    book.play(LEFT, (3, 4))
    assert book.cells == [[4, 2], [4, 4]]
    assert not book.done
    book = tiles([[4, 2], [0, 8]])
    book.play(LEFT, (3, 4))
    assert book.cells == [[4, 2], [8, 4]]
    assert book.done
    assert book.legal_action_mask() == []


def test_a_salvo_takes_all_its_shots_or_all_that_are_left():
    book = SalvoBook(2, 3, {0, 5}, 4)
    with pytest.raises(ValueError, match="wrong number"):
        book.play_set({0})
    book.play_set({0, 1, 2, 3})
    assert (book.score, book.turn, book.done) == ([1], 1, False)
    assert book.legal_action_mask() == [4, 5]
    with pytest.raises(ValueError, match="shot at"):
        book.play_set({3, 4})
    book.play_set({4, 5})
    assert (book.score, book.turn, book.done, book.legal_action_mask()) == ([2], 2, True, [])


def test_single_shots_find_one_ship_in_the_known_mean_number_of_turns():
    @functools.cache
    def turns(order):
        book = SalvoBook(1, 4, {1, 2}, 1)
        for cell in order:
            if not book.done:
                book.play(cell)
        return book.turn

    orders = list(itertools.permutations(range(4)))
    assert sum(map(turns, orders)) * 3 == 10 * len(orders)  # 2 * (4 + 1) / (2 + 1)


def test_a_duel_fires_as_many_shots_as_ships_are_afloat():
    book = DuelBook(2, 3, [[{0}, {1, 2}], [{3, 4}, {5}]])
    assert book.shots == 2
    book.play(5)
    assert (book.current_seat, book.turn) == (0, 0)
    assert book.legal_action_mask() == [0, 1, 2, 3, 4]
    assert len(book.afloat(1)) == 2  # nothing lands before the turn is over
    book.play(0)
    assert (book.current_seat, book.turn, book.shots) == (1, 1, 1)
    assert book.legal_action_mask() == [0, 1, 2, 3, 4, 5]
    book.play(0)
    assert (book.current_seat, book.turn, book.shots) == (0, 2, 1)
    assert book.legal_action_mask() == [1, 2, 3, 4]
    book.play(3)
    book.play(4)
    book.play(4)
    assert book.done
    assert book.score == [1, -1]
    assert book.turn == 5
    assert book.legal_action_mask() == []


def test_a_duel_can_be_won_by_the_second_seat():
    book = DuelBook(1, 3, [[{0, 1}], [{2}]])
    for cell in (0, 0, 1):
        book.play(cell)
    assert not book.done
    book.play(1)
    assert book.done
    assert book.score == [-1, 1]


def test_a_duel_has_no_more_shots_than_cells():
    book = DuelBook(1, 3, [[{0}, {1}, {2}], [{0}, {1, 2}]])
    for cell in (2, 1, 0):
        assert (book.current_seat, book.done) == (0, False)
        book.play(cell)
    assert (book.turn, book.score) == (1, [1, -1])
    book = DuelBook(1, 4, [[{0}, {1}, {2}], [{0}, {3}]])
    for cell in (0, 1, 2):
        book.play(cell)
    book.play(3)
    assert (book.current_seat, book.turn, book.shots) == (0, 2, 1)
