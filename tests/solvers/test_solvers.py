"""Exact values over all positions, and what is built on them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers import game_2048, made, rng

from rlgames.games.battleship import Battleship
from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Random
from rlgames.rollouts.play import GamePool
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.graph import Graph, exact_results, exploitability
from rlgames.solvers.optimum import find_optimum, solver_of

INSTALL = "needs the other engines: make test-engines"
TICTACTOE = KInARow(3, 3, 3, gravity=False)


@pytest.fixture(scope="module")
def graph():
    return Graph(TICTACTOE, 60, 1 << 30)


def shares(solution):
    """The shares of games that the first seat wins, draws and loses."""
    return (
        (solution.mean_abs + solution.mean) / 2,
        1 - solution.mean_abs,
        (solution.mean_abs - solution.mean) / 2,
    )


def test_tic_tac_toe_in_exact_fractions(graph):
    randomly = Random(TICTACTOE).probabilities
    perfect = made("player", "exact", TICTACTOE).probabilities
    first, second = exact_results(graph, randomly, randomly)
    assert (first["win"], second["draw"]) == pytest.approx((737 / 1260, 8 / 63), abs=1e-12)
    first, second = exact_results(graph, perfect, randomly)
    assert first == pytest.approx({"win": 75257 / 77760, "draw": 2503 / 77760, "loss": 0.0})
    assert second == pytest.approx({"win": 2645 / 3402, "draw": 757 / 3402, "loss": 0.0})
    assert shares(graph.solve([None, randomly]))[0] == pytest.approx(191 / 192)
    lost, drawn, won = shares(graph.solve([randomly, None]))
    assert (won, lost) == pytest.approx((881 / 945, 7 / 945))
    assert shares(graph.solve([None, None])) == (0, 1, 0)
    assert drawn == pytest.approx(1 - won - lost)


def test_exploitability_is_what_a_best_response_gains(graph):
    value, seats = exploitability(graph, made("player", "exact", TICTACTOE).probabilities)
    assert (value, seats) == (0, [0, 0])
    value, seats = exploitability(graph, Random(TICTACTOE).probabilities)
    assert seats == pytest.approx([(881 - 7) / 945, 191 / 192])
    assert value == pytest.approx(sum(seats) / 2)


@pytest.mark.others
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_exploitability_is_that_of_open_spiel(graph, seed):
    """Of a policy with its own random probabilities in each of the 5,478 positions."""
    pyspiel = pytest.importorskip("pyspiel", reason=INSTALL)
    from open_spiel.python import policy
    from open_spiel.python.algorithms.exploitability import exploitability as theirs

    def weights(cells):
        """Between 0.1 and 1.1 for each action; cells: 0 empty, 1 the first seat's, 2 the other's"""
        place = sum(cell * 3**number for number, cell in enumerate(cells))
        return np.random.default_rng([seed, place]).uniform(0.1, 1.1, 9)

    def ours(state):
        cells = TICTACTOE.cells(state).flatten(1).tolist()
        each = torch.tensor(np.array([weights(row) for row in cells]))
        each *= TICTACTOE.legal_action_mask(state)
        return each / each.sum(1, keepdim=True)

    def by_text(state):
        text = "".join(str(state).split())
        each = weights([".xo".index(letter) for letter in text])
        legal = state.legal_actions()
        return [(action, each[action] / each[legal].sum()) for action in legal]

    game = pyspiel.load_game("tic_tac_toe")
    expected = theirs(game, policy.tabular_policy_from_callable(game, by_text))
    assert exploitability(graph, ours)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("rows", "columns", "value"), [(2, 2, 66.964), (2, 3, 480.258), (3, 2, 480.258)]
)
def test_known_values_of_2048(rows, columns, value):
    assert find_optimum(game_2048(rows, columns), 60).value == pytest.approx(value, abs=5e-4)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 2), (2, 1)])
def test_2048_needs_three_cells(rows, columns):
    with pytest.raises(ValueError, match="over before the first move; use 3 cells"):
        game_2048(rows, columns)


def test_what_is_too_large_is_said_to_be():
    with pytest.raises(OutOfBudget):
        Graph(KInARow(6, 7, 4, gravity=True), 60, 1 << 30)
    with pytest.raises(OutOfBudget):
        Graph(KInARow(4, 5, 4, gravity=True), 0.05, 1 << 30)
    with pytest.raises(OutOfBudget):
        Graph(KInARow(4, 5, 4, gravity=True), 60, 1 << 20)
    assert find_optimum(game_2048(4, 4), 60) is None


@pytest.mark.parametrize(
    ("rules", "optimal"),
    [
        ((4, 4, [4], 1), 6.0),
        ((4, 4, [2], 2), 85 / 24),
        ((4, 4, [4], 2, "sequential"), 3.375),
        ((4, 4, [4, 2], 2), 5.05),
        ((1, 10, [3]), 4.5),
    ],
)
def test_the_exact_gunner_reaches_the_optimum_over_all_layouts(rules, optimal):
    game = Battleship(*rules)
    player = made("player", "exact", game)
    states, weight = game.openings(1000)
    results = GamePool(game, [player], len(states), rng(), initial_states=lambda *_: states).run()
    assert float((weight * results.turns).sum()) == pytest.approx(optimal)


class AlwaysHits(Battleship):
    """Battleship in which every shot hits."""

    def apply_action(self, state, action):
        after = super().apply_action(state, action)
        return replace(after, hit=after.shot)


def test_the_solver_of_battleship_solves_neither_a_derived_game_nor_announced_sunk_ships():
    assert solver_of(Battleship(3, 3, [2])) is not None
    assert solver_of(AlwaysHits(3, 3, [2])) is None
    assert solver_of(Battleship(3, 3, [2], show=["sunk"])) is None


def test_the_exact_player_of_2048_reaches_its_value():
    game = game_2048(2, 2)
    results = GamePool(game, [made("player", "exact", game)], 20_000, rng(1)).run()
    score = results.score[:, 0].double()
    assert abs(float(score.mean()) - 66.964) < 4 * float(score.std()) / 20_000**0.5
