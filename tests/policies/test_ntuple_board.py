"""N-tuple networks of two seats: what they add up, also in kernels, and their tuples."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers import generator, make_game, ntuple, rng

from rlgames.games.board_game import BoardGame
from rlgames.games.k_in_a_row import KInARow
from rlgames.kernels.ntuple import (
    enter,
    find_places,
    make_move,
    score_moves,
    take_back,
)
from rlgames.kernels.rules import load
from rlgames.players.player import Random
from rlgames.policies.tuples import lines, random_walks
from rlgames.rollouts.play import collect_games
from rlgames.solvers.optimum import solver_of

SQUARE = "right upper turned"
BOARDS = {
    "connect4": ("game=connect4", [[0, 8, 16, 24], [3, 10, 17, 4], [35, 36, 41], [38]], "right"),
    "upright": ("game=connect4 rows=5 columns=4 line=3", [[0, 1, 2, 3], [16, 5]], "right"),
    "tictactoe": ("game=tictactoe", [[0, 1, 2], [4], [8, 5, 1], [0, 4, 8]], SQUARE),
    "gomoku": ("game=gomoku board=5 line=4", [[0, 1, 2, 7], [12, 13]], SQUARE),
    "large": ("game=gomoku board=9", [[0, 1, 2, 80], [64, 72], [40]], SQUARE),
    "othello": ("game=othello board=4", [[0, 1, 2, 7], [5, 6, 9]], SQUARE),
    "othello 8x8": ("game=othello board=8", [[0, 1, 9], [27, 28, 63]], SQUARE),
    "hex": ("game=hex board=5 swap=true", [[0, 1, 6], [12, 13, 24]], "half"),
    "breakthrough": ("game=breakthrough rows=5 columns=4", [[0, 1, 6], [12, 13, 19]], "right"),
}
KEYS = [{}, {"stages": 3}, {"per_seat": False}, {"per_seat": False, "stages": 4}]


def made(name, num_cell_values=16, **keys):
    """A game, and a network whose values are small whole numbers, so that sums are exact in any
    order."""
    words, tuples, _ = BOARDS[name]
    game = make_game(*words.split())
    policy = ntuple(game, tuples, num_cell_values, **keys)
    policy.values.copy_(torch.randint(-50, 50, policy.values.shape, generator=generator(5)).float())
    policy.payoffs = 10_000.0, 5.0
    return game, policy


def positions(game, count=200):
    """Positions after moves of random games, final ones included."""
    moves, _ = collect_games(game, [Random(game)], max(2, count // 8), rng(2))
    return game.apply_action(moves.state, moves.action)[:count]


def views(name, game):
    """The cells of the board as the drawing and each of its reflections and rotations show them."""
    _, rows, columns = game.spec.observation
    found = [torch.arange(rows * columns).view(rows, columns)]
    for change in BOARDS[name][2].split():
        turn = {
            "right": lambda grid: grid.flip(1),
            "upper": lambda grid: grid.flip(0),
            "turned": lambda grid: grid.T,
            "half": lambda grid: grid.flip(0, 1),
        }[change]
        found += [turn(grid) for grid in found]
    return found


def seen_by_second(name, board):
    """A board of marks as the second seat sees it, whose stones are 1."""
    rows, columns = len(board), len(board[0])
    if name == "hex":  # joins the left and the right
        board = [[board[column][row] for column in range(columns)] for row in range(rows)]
    if name == "breakthrough":  # moves down
        board = [line[::-1] for line in board[::-1]]
    return [[(0, 2, 1)[value] for value in line] for line in board]


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("name", BOARDS)
def test_a_board_in_progress_is_worth_what_its_tuples_hold_in_every_view(name, keys):
    """Against reading the drawn board view by view; each order of the same cells counts once."""
    game, policy = made(name, **keys)
    state, tuples = positions(game), BOARDS[name][1]
    has_gravity = name in ("connect4", "upright")
    radix = 4 if has_gravity else 3
    size = sum(radix ** len(each) for each in tuples)
    stages, per_seat = keys.get("stages", 1), keys.get("per_seat", True)
    actual = policy.value(game, state).tolist()
    for row in (~state.done).nonzero()[:, 0].tolist():
        drawn = game.boards(state, row)[0]
        board = [[f".{game.seat_marks}".index(mark) for mark in line] for line in drawn]
        stones = sum(value > 0 for line in board for value in line)
        mover = 1 - int(state.current_seat[row])
        open_cells = []
        if has_gravity:
            for column in range(game.columns):
                empty = [line for line in range(game.rows) if board[line][column] == 0]
                open_cells += [(max(empty), column)] if empty else []
        if mover == 1 and not per_seat:
            board = seen_by_second(name, board)
        for line, column in open_cells:
            board[line][column] = 3
        values = [value for line in board for value in line]
        part = stones * stages // (len(values) + 1) + (stages * mover if per_seat else 0)
        first, total = size * part, 0.0
        for each in tuples:
            for cells in {tuple(view.flatten()[each].tolist()) for view in views(name, game)}:
                number = sum(values[cell] * radix**n for n, cell in enumerate(cells))
                total += float(policy.values[first + number])
            first += radix ** len(each)
        assert actual[row] == total


def test_a_win_is_worth_its_reward_and_nothing_in_progress_is_worth_as_much():
    game, policy = made("tictactoe")
    policy.values.fill_(1e9)
    state = game.parse_all(["X X .\nO O .\n. . ."])
    scores, _ = policy.scores(game, state)
    assert scores[0].argmax() == 2
    assert scores[0, 2] == 10_000.0
    assert scores[0, [5, 6]].tolist() == pytest.approx([9_990.0, 9_990.0])
    last = game.parse_all(["X X O\nO O X\nX O ."])  # the first seat draws
    assert policy.scores(game, last)[0][0, 8] == 5.0
    assert policy.best(game, last).tolist() == [5.0]


def test_random_walks_are_distinct_walks_and_the_same_at_each_call():
    def walks(rows, columns, count=70):
        symmetries = KInARow(rows, columns, 1, True).symmetries()
        return random_walks(rows, columns, symmetries, count)

    tuples = walks(6, 7)
    assert tuples == walks(6, 7)
    assert [len(set(each)) for each in tuples] == [8] * 70
    assert walks(6, 7, 90)[:70] == tuples
    assert len({frozenset(each) for each in walks(6, 7, 160)}) == 160
    mirror = torch.arange(42).view(6, 7).flip(1).flatten()
    sides = [frozenset((frozenset(t), frozenset(mirror[t].tolist()))) for t in tuples]
    assert len(set(sides)) == 70
    assert all(len(each) == 8 for each in walks(2, 5))
    assert all(max(each) < 12 for each in walks(1, 12))


def test_lines_run_in_all_directions_and_one_of_each_symmetric_pair_is_enough():
    every = lines(3, 4, torch.arange(12)[None], 3)
    across, down = (
        [[0, 1, 2], [1, 2, 3], [4, 5, 6], [5, 6, 7], [8, 9, 10], [9, 10, 11]],
        [[0, 4, 8]],
    )
    down += [[n, n + 4, n + 8] for n in (1, 2, 3)]
    assert sorted(map(sorted, every)) == sorted(
        [*across, *down, [0, 5, 10], [1, 6, 11], [2, 5, 8], [3, 6, 9]]
    )
    assert len(lines(8, 8, make_game("game=othello", "board=8").symmetries(), 5)) == 14
    assert lines(3, 4, torch.arange(12)[None], 7) == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 10, 11],
    ]  # a whole side


def test_without_tuples_a_board_has_walks_or_is_one_tuple_and_keys_add_to_them():
    othello = make_game("game=othello")
    assert len(ntuple(othello, None).tuples) == 70
    assert len(ntuple(othello, [[0]], line_length=4, num_tuples=2).tuples) == 1 + 10 + 2
    assert ntuple(make_game("game=tictactoe"), None).tuples == [list(range(9))]


def live(game, number):
    """Positions of random games in which a move is due."""
    moves, _ = collect_games(game, [Random(game)], max(2, number // 8), rng(3))
    return moves.state[torch.randperm(len(moves), generator=generator(4))[:number]]


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("name", BOARDS)
def test_kernels_find_what_the_batched_policy_does_and_return_to_where_they_were(name, keys):
    """What the moves are worth, and where the values are, with one number between the values."""
    game, policy = made(name, **keys)
    state, rules = live(game, 60), game.rules
    scores, _ = policy.scores(game, state)
    scores = scores.masked_fill(~game.legal_action_mask(state), -torch.inf)
    policy.values = policy.values.repeat_interleave(2)[::2]
    network, table, _, memory, *_ = policy.compiled(game)
    words = state.words.numpy()
    after = game.apply_action(state, scores.argmax(1))
    indices, num = 2 * policy.feature_indices(game, after), len(policy.tuple_of)
    for row, seat in enumerate(state.current_seat.tolist()):
        position = load(rules.start, words, row)
        enter(network, rules, position, seat, memory)
        for _ in range(2):
            best = score_moves(network, rules, position, seat, table, np.float32(0), memory)
            assert memory.scores.tolist() == scores[row].tolist()
            assert best == int(scores[row].argmax())
            moved, is_over, _ = make_move(network, rules, position, seat, best, memory)
            assert is_over == bool(after.done[row])
            if not is_over:
                first, offset = find_places(network, moved, seat, memory)
                places = memory.places[int(first) : int(first) + num] + offset
                assert places.tolist() == indices[row].tolist()
            take_back(network, rules, position, moved, seat, memory)


def test_a_game_derived_from_another_is_played_by_its_own_rules():
    """Misère: who completes a line loses; nothing but its table of rules says so."""
    game, policy = made("tictactoe")
    assert isinstance(game, BoardGame)
    state = game.parse_all(["X X .\nO O .\n. . ."])
    lost = replace(game.apply_action(state, torch.tensor([2])), score=torch.tensor([[-1.0, 1.0]]))
    assert policy.value(game, lost).tolist() == [-10_000.0]
    derived = type("Derived", (KInARow,), {})
    assert not solver_of(derived(4, 4, 4, True, "other")).about.startswith("alpha-beta")
    assert solver_of(KInARow(4, 4, 4, True)).about.startswith("alpha-beta")
