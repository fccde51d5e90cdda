"""N-tuple networks of k in a row: what they add up, also in kernels, and the default tuples."""

import numpy as np
import pytest
import torch
from helpers import generator, rng

from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Random
from rlgames.policies.ntuple import Ntuple, pack_network
from rlgames.policies.ntuple_lines import random_walks
from rlgames.rollouts.play import collect_games
from rlgames.solvers.optimum import solver_of

BOARDS = {
    "connect4": (KInARow(6, 7, 4, True), [[0, 8, 16, 24], [3, 10, 17, 4], [35, 36, 41], [38]]),
    "upright": (KInARow(5, 4, 3, True), [[0, 1, 2, 3], [16, 5]]),
    "tictactoe": (KInARow(3, 3, 3, False), [[0, 1, 2], [4], [8, 5, 1], [0, 4, 8]]),
    "5x5": (KInARow(5, 5, 4, False), [[0, 1, 2, 7], [12, 13]]),
}


def filled(game, tuples, num_cell_values=16):
    """A network whose values are small whole numbers, so that sums are exact in any order."""
    policy = Ntuple(game, 0.0, tuples, num_cell_values, 0.0, None, None, True, 1)
    policy.values.copy_(torch.randint(-50, 50, policy.values.shape, generator=generator(5)).float())
    policy.payoffs = 10_000.0, 5.0
    return policy


def positions(game, count=200):
    """Positions after moves of random games, final ones included."""
    moves, _ = collect_games(game, [Random(game)], count // 5, rng(2))
    return game.apply_action(moves.state, moves.action)[:count]


def views(game):
    """The cells of the board as the drawing and each of its reflections and rotations show them."""
    grid = torch.arange(game.rows * game.columns).view(game.rows, game.columns)
    if game.gravity:
        return [grid, grid.flip(1)]
    turned = [grid, grid.flip(0), grid.flip(1), grid.flip(0, 1)]
    return turned + [view.T for view in turned]


@pytest.mark.parametrize("num_cell_values", [3, 16])
@pytest.mark.parametrize("name", BOARDS)
def test_a_board_in_progress_is_worth_what_its_tuples_hold_in_every_view(name, num_cell_values):
    """Against reading the drawn board view by view; each order of the same cells counts once."""
    game, tuples = BOARDS[name]
    policy, state = filled(game, tuples, num_cell_values), positions(game)
    radix = 4 if game.gravity and num_cell_values > 3 else 3
    actual = policy.value(game, state).tolist()
    for row in (~state.done).nonzero()[:, 0].tolist():
        marks = "".join("".join(line) for line in game.boards(state, row)[0])
        values = [".XO".index(mark) for mark in marks]
        if radix == 4:
            for column in range(game.columns):
                pile = [n for n, mark in enumerate(marks) if n % game.columns == column]
                empty = [n for n in pile if marks[n] == "."]
                if empty:
                    values[empty[-1]] = 3
        stones = len(marks.replace(".", ""))
        total = 0.0
        first = 0 if stones % 2 else sum(radix ** len(each) for each in tuples)
        for each in tuples:
            for cells in {tuple(view.flatten()[each].tolist()) for view in views(game)}:
                number = sum(values[cell] * radix**n for n, cell in enumerate(cells))
                total += float(policy.values[first + number])
            first += radix ** len(each)
        assert actual[row] == total


def test_a_win_is_worth_its_reward_and_nothing_in_progress_is_worth_as_much():
    game, tuples = BOARDS["tictactoe"]
    policy = filled(game, tuples)
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
    game, _ = BOARDS["connect4"]
    tuples = random_walks(game)
    assert tuples == random_walks(game)
    assert [len(set(each)) for each in tuples] == [8] * 70
    assert random_walks(game, 90)[:70] == tuples
    assert len({frozenset(each) for each in random_walks(game, 160)}) == 160
    mirror = torch.arange(42).view(6, 7).flip(1).flatten()
    sides = [frozenset((frozenset(t), frozenset(mirror[t].tolist()))) for t in tuples]
    assert len(set(sides)) == 70
    assert random_walks(BOARDS["tictactoe"][0]) == [list(range(9))]
    assert random_walks(BOARDS["tictactoe"][0], 160) == [list(range(9))]
    assert all(len(each) == 8 for each in random_walks(KInARow(2, 5, 3, True)))
    assert all(max(each) < 12 for each in random_walks(KInARow(1, 12, 3, True)))


class Derived(KInARow):
    """Whose rules nobody knows."""


def test_what_knows_the_rules_does_not_take_a_derived_game_for_its_base():
    with pytest.raises(ValueError, match="not other"):
        Ntuple(Derived(3, 3, 3, False, "other"), 0.0, [[0, 1]], 3, 0.0, None, None, True, 1)
    assert not solver_of(Derived(4, 4, 4, True, "other")).about.startswith("alpha-beta")
    assert solver_of(KInARow(4, 4, 4, True)).about.startswith("alpha-beta")


COMPILED = {
    (6, 7, 4, True): [[0, 8, 16, 24], [3, 10, 17, 4], [35, 36, 41], [38]],
    (5, 4, 3, True): [[0, 1, 2, 3], [16, 5]],
    (1, 31, 4, True): [[0, 1, 2, 3], [30]],
    (61, 1, 4, True): [[60, 59, 58], [0]],
    (3, 3, 3, False): [[0, 1, 2], [4], [8, 5, 1]],
    (5, 5, 4, False): [[0, 1, 2, 7], [12, 13]],
    (4, 6, 5, False): [[0, 1, 2, 7], [23, 22]],
}


def states(game, number):
    """Positions of random games in which a move is due."""
    moves, _ = collect_games(game, [Random(game)], max(1, number // 8), rng(3))
    chosen = torch.randperm(len(moves), generator=generator(4))[:number]
    return moves.state[chosen]


def check(board, radix, number, stride=1):
    """What the moves are worth, as the batched policy has it, and where the values are."""
    from rlgames.kernels.ntuple import enter, find_places, make_memory, score_moves
    from rlgames.kernels.rules import load

    game = KInARow(*board)
    policy = filled(game, COMPILED[board], radix)
    policy.payoffs = 150.0, 5.0
    state, rules = states(game, number), game.rules
    scores, _ = policy.scores(game, state)
    scores = scores.masked_fill(~game.legal_action_mask(state), -torch.inf)
    compiled = pack_network(game, policy, stride)
    table = policy.values.repeat_interleave(stride).numpy()
    memory = make_memory(compiled, game.spec.actions)
    positions = state.words.numpy()
    indices = stride * policy.feature_indices(game, state)
    for row, seat in enumerate(state.current_seat.tolist()):
        position = load(rules.start, positions, row)
        enter(compiled, position, seat, memory)
        # The last move, or that before the first one, was made by the other seat.
        offset = find_places(compiled, position, 1 - seat, memory)
        assert (memory.places + offset).tolist() == indices[row].tolist()
        best = score_moves(compiled, rules, position, seat, table, np.float32(0), memory)
        assert memory.scores.tolist() == scores[row].tolist()
        assert best == int(scores[row].argmax())


@pytest.mark.parametrize("radix", [3, 4])
@pytest.mark.parametrize("board", COMPILED)
def test_moves_are_worth_what_the_batched_policy_says(board, radix):
    check(board, radix, 100)


def test_statistics_may_lie_between_the_values():
    check((6, 7, 4, True), 4, 100, stride=4)
