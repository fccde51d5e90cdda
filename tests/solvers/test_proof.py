"""Proof-number search: the values that listing all positions gives, within limits."""

import itertools
import time

import numpy as np
import pytest
import torch
from helpers import make_game, rng
from markers import one_in

from rlgames.kernels import rules
from rlgames.players.player import Random
from rlgames.rollouts.play import collect_games
from rlgames.solvers.graph import Graph
from rlgames.solvers.optimum import find_optimum, position_solver, solver_of, solver_reach
from rlgames.solvers.position import ListingSolver
from rlgames.solvers.proof import ProofSearch
from rlgames.solvers.proof_solver import ProofSolver

SMALL = [
    ["game=tictactoe"],
    ["game=connect4", "rows=4", "columns=4", "line=3"],
    ["game=othello", "board=4"],
    ["game=hex", "board=3", "swap=true"],
    ["game=hex", "board=3", "swap=false"],
    ["game=breakthrough", "rows=4", "columns=3", "home_rows=1"],
]
LARGE = [
    ["game=othello", "board=6"],
    ["game=hex", "board=7"],
    ["game=gomoku", "board=9"],
    ["game=breakthrough", "rows=6", "columns=6"],
]


def positions(game, games=12, seed=3):
    return collect_games(game, [Random(game)], games, rng(seed))[0].state


def one(state, row):
    return state[torch.tensor([row])]


@pytest.mark.parametrize("words", one_in(2, SMALL), ids=" ".join)
def test_values_and_actions_are_those_of_all_positions(words):
    game = make_game(*words)
    state = positions(game)
    graph = Graph(game, 60, 2 << 30)
    solution = graph.solve([None, None])
    expected = (1 - 2 * state.current_seat) * graph.state_values(solution, state)
    best = graph.best_actions(solution, state)
    search, small = ProofSearch(game), ProofSearch(game, 64)
    for row in range(len(state)):
        value, actions = search.search(one(state, row))
        assert value == expected[row]
        if row % 4 == 0 and game.spec.max_positions < 1e6:
            assert small.search(one(state, row))[0] == value
        found = torch.zeros(game.spec.actions, dtype=torch.bool)
        found[actions] = True
        assert actions
        assert not (found & ~best[row]).any()
        assert value >= 0 or torch.equal(found, best[row])


@pytest.mark.parametrize("words", [LARGE[0], LARGE[3]], ids=" ".join)
def test_rules_count_the_replies(words):
    game = make_game(*words)
    state = positions(game, 4)
    found = [rules.mobility(game.rules, tuple(each)) for each in state.words.tolist()]
    assert torch.tensor(found).clamp(min=1).equal(game.legal_action_mask(state).sum(1))


@pytest.mark.parametrize("columns", [3, 8])
def test_mirrored_positions_are_one(columns):
    game = make_game("game=breakthrough", "rows=8", f"columns={columns}")
    cells, found = np.zeros(8 * columns, np.float32), set()
    for each in positions(game, 2).words.tolist():
        rules.write_cells(game.rules, tuple(each), 0, cells)
        seen = [cells[symmetry].astype(np.int64) for symmetry in game.symmetries().numpy()]
        same = {rules.set_up(game.rules, each)[0] for each in seen}
        one, *others = {rules.canonical(game.rules, each) for each in same}
        assert one in same
        assert not others
        found |= same - {one}
    assert len(found) > 20


@pytest.mark.parametrize("words", LARGE, ids=" ".join)
def test_a_position_is_worth_as_much_as_its_best_move(words):
    game = make_game(*words)
    state, values = positions(game, 30, 4), set()
    for row in game.depth(state).argsort()[-120::8].tolist():
        before = one(state, row)
        value, actions = ProofSearch(game, 1e4).search(before, max_positions=2000)
        if value is None:
            continue
        sign, worth = 1 - 2 * int(before.current_seat), {}
        for action in legal(game, before):
            after = game.apply_action(before, torch.tensor([action]))
            if after.done:
                worth[action] = sign * int(after.score[0, 0])
            else:
                found, _ = ProofSearch(game, 1e4).search(after, max_positions=300_000)
                worth[action] = None if found is None else -found
        if None in worth.values():
            continue  # a proof takes too long
        assert value == max(worth.values())
        assert {worth[action] for action in actions} == {value}
        values.add(value)
    assert {1, -1} <= values


def test_limits_leave_questions_open_and_rule_out_moves_that_lose():
    game = make_game("game=gomoku", "board=9")
    state, search = game.initial(1, rng()), ProofSearch(game)
    for action in (39, 40, 8, 41, 72, 42, 80, 43):
        state = game.apply_action(state, torch.tensor([action]))
    # The other seat has four stones in a row, cells 40 to 43, with one end open.
    value, actions = search.search(state, max_positions=1000)
    assert search.positions <= 1000
    assert (value, actions) == (None, [44])
    search.clear()
    assert search.search(state, max_positions=2) == (None, [44])
    assert search.search(state, seconds=0) == (None, legal(game, state))


def legal(game, state):
    return game.legal_action_mask(state)[0].nonzero()[:, 0].tolist()


def test_a_result_depends_on_the_position_alone():
    game = make_game("game=othello", "board=6")
    state = positions(game)
    state = state[(game.legal_action_mask(state).sum(1) > 3).nonzero()[::9, 0]]
    solver = position_solver(game, max_positions=2000)
    assert isinstance(solver, ProofSolver)
    forward = [solver.best_actions(one(state, row)) for row in range(len(state))]
    back = [solver.best_actions(one(state, row)) for row in reversed(range(len(state)))]
    assert forward == back[::-1]
    known = [value is not None for value, _ in forward]
    assert 0 < sum(known) < len(known)


@pytest.mark.parametrize("words", one_in(2, SMALL[1:]), ids=" ".join)
def test_each_action_has_its_own_value(words):
    game = make_game(*words)
    state = positions(game, 4)
    listed = ListingSolver(game, memory=2 << 30).solve(state, 60)
    assert ProofSolver(game, memory=2 << 30).solve(state, 60) == listed


def test_what_a_limit_leaves_open_has_no_value():
    game = make_game("game=othello", "board=6")
    found = position_solver(game, max_positions=200).solve(positions(game, 1), 60)
    assert not any(each.value is None for each in found[-4:])
    assert all(each.value is None for each in found[:4])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["game=gomoku", "board=5", "line=3"], 1.0),
        (["game=breakthrough", "rows=5", "columns=5", "home_rows=1"], 1.0),
        (["game=hex", "board=5", "swap=false"], 1.0),
    ],
    ids=str,
)
def test_boards_with_too_many_positions_to_list_are_solved(words, value):
    game = make_game(*words)
    assert isinstance(solver_of(game), ProofSolver)
    assert solver_reach(game) == "yes"
    assert not solver_of(game).has_player
    assert find_optimum(game, 600).value == value
    assert find_optimum(game, 1e-9) is None


def test_large_boards_are_not_tried_from_the_start():
    game = make_game("game=othello", "board=8")
    assert solver_reach(game) == "smaller boards"
    assert find_optimum(game, 60) is None


def test_the_number_of_positions_does_not_depend_on_the_speed_of_the_machine(monkeypatch):
    game, found = make_game("game=hex", "board=3"), set()
    for step in (1e-6, 0.05):
        clock = itertools.count(0, step)
        monkeypatch.setattr(time, "perf_counter", lambda clock=clock: next(clock))
        search = ProofSearch(game)
        value, _ = search.search(game.initial(1, rng()), seconds=100)
        found.add((value, search.positions))
    assert len(found) == 1


def test_a_limit_of_time_is_kept_and_finds_what_is_near():
    game = make_game("game=gomoku", "board=9")
    state = game.initial(1, rng())
    start = time.perf_counter()
    ProofSearch(game).search(state, seconds=0.1)
    assert time.perf_counter() - start < 30  # of a slow machine
    game = make_game("game=gomoku", "board=6", "line=4")
    state = game.initial(1, rng())
    for action in (14, 0, 15, 30):  # an open row of two becomes one of three
        state = game.apply_action(state, torch.tensor([action]))
    found = position_solver(game).solve(state, 0.5)[0]
    assert found.value == 1
    assert found.actions[13] == 1 or found.actions[16] == 1
