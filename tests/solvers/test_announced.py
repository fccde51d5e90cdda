"""The optimum with announced sinkings, against a search through the rules themselves."""

import itertools
from functools import cache
from typing import Any

import pytest
import torch
from helpers import rng

from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.games.battleship import Battleship
from rlgames.games.notation import parse
from rlgames.players.exact import exact_player
from rlgames.players.fleets import Density
from rlgames.rollouts.holdout import split_layouts
from rlgames.solvers.announced import AnnouncedSolution
from rlgames.solvers.budget import OutOfBudget
from rlgames.solvers.optimum import find_optimum
from rlgames.solvers.position import solve_position

GAMES = [
    (1, 5, [2, 1], 1, "joint"),
    (1, 6, [2, 2], 1, "joint"),
    (1, 6, [1, 2], 2, "joint"),
    (1, 6, [3, 1], 2, "sequential"),
    (2, 3, [2, 1], 1, "joint"),
    (1, 6, [2], 5, "joint"),
]


def announced(rows, columns, ships, shots, aim="auto"):
    return Battleship(rows, columns, ships, shots, aim, show=["sunk"])


def best_by_the_rules(rows, columns, ships, shots):
    """The optimum by trying all turns; what is known is the list of fleets that are possible."""
    lines = {
        length: [
            frozenset(cells)
            for cells in (
                *(
                    [row * columns + column + step for step in range(length)]
                    for row in range(rows)
                    for column in range(columns - length + 1)
                ),
                *(
                    [(row + step) * columns + column for step in range(length)]
                    for row in range(rows - length + 1)
                    for column in range(columns)
                ),
            )
        ]
        for length in set(ships)
    }
    fleets = {
        tuple(sorted(map(tuple, map(sorted, fleet))))
        for fleet in itertools.product(*(lines[length] for length in ships))
        if len(frozenset().union(*fleet)) == sum(ships)
    }
    return best_of_fleets(fleets, rows * columns, shots)


def best_of_fleets(fleets, num_cells, shots):
    """The same for fleets that are equally likely, each a tuple of ships, each a tuple of cells."""

    def answer(fleet, shot, turn):
        cells = {cell for ship in fleet for cell in ship}
        sunk = [len(ship) for ship in fleet if set(ship) <= shot | turn and not set(ship) <= shot]
        return frozenset(turn & cells), tuple(sorted(sunk))

    @cache
    def best(possible, shot):
        if all(set().union(*fleet) <= shot for fleet in possible):
            return 0.0
        free = sorted(set(range(num_cells)) - shot)
        values = []
        for turn in map(frozenset, itertools.combinations(free, min(shots, len(free)))):
            results: dict[object, list[object]] = {}
            for fleet in possible:
                results.setdefault(answer(fleet, shot, turn), []).append(fleet)
            values.append(
                1
                + sum(
                    len(left) / len(possible) * best(frozenset(left), shot | turn)
                    for left in results.values()
                )
            )
        return min(values)

    return best(frozenset(fleets), frozenset())


@pytest.mark.parametrize(("rows", "columns", "ships", "shots", "aim"), GAMES)
def test_the_optimum_is_that_of_a_search_by_the_rules(rows, columns, ships, shots, aim):
    game = announced(rows, columns, ships, shots, aim)
    optimum = find_optimum(game, 60)
    assert optimum is not None
    assert optimum.value == pytest.approx(best_by_the_rules(rows, columns, ships, shots))


@pytest.mark.parametrize(("rows", "columns", "ships", "shots", "aim"), GAMES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_optimum_of_some_layouts_is_that_of_a_search(rows, columns, ships, shots, aim, seed):
    game = announced(rows, columns, ships, shots, aim)
    split: Any = split_layouts(game, 0.4, seed)
    for layouts in (split.trained_on, split.held_out):
        fleets = {
            tuple(
                sorted(
                    tuple((row == ship).nonzero()[:, 0].tolist())
                    for ship in range(1, len(ships) + 1)
                )
            )
            for row in layouts.ships
        }
        optimum = find_optimum(game, 60, layouts=layouts)
        assert optimum is not None
        assert optimum.value == pytest.approx(best_of_fleets(fleets, rows * columns, shots))


@pytest.mark.parametrize(
    ("rows", "columns", "ships", "shots", "aim"), [*GAMES, (4, 4, [4], 1, "auto")]
)
def test_the_exact_player_needs_as_many_turns_as_the_optimum(rows, columns, ships, shots, aim):
    game = announced(rows, columns, ships, shots, aim)
    result = evaluate(game, exact_player(game, 60, 1.0), EvaluationSettings("all"), rng())
    optimum = find_optimum(game, 60)
    assert optimum is not None
    assert result.turns.mean == pytest.approx(optimum.value)


def test_announced_sinkings_shorten_the_game():
    told, untold = announced(1, 9, [2, 2, 3], 1), Battleship(1, 9, [2, 2, 3])
    values = [find_optimum(game, 60) for game in (told, untold)]
    assert values[0] is not None
    assert values[1] is not None
    assert values[0].value == pytest.approx(7.8)
    assert values[1].value == pytest.approx(8.3)
    density = [
        evaluate(game, Density(game, 64), EvaluationSettings("all"), rng()).turns.mean
        for game in (told, untold)
    ]
    assert values[0].value <= density[0] < density[1]


def test_the_value_of_a_position_is_the_least_of_its_actions():
    game = announced(1, 6, [2, 1], 1)
    start = game.public(game.initial(1, rng()))
    value = solve_position(game, start, 60)
    optimum = find_optimum(game, 60)
    assert value is not None
    assert optimum is not None
    assert value.value == pytest.approx(optimum.value)
    after = parse(game, "hits: 1@1\nsunk: none\n. x . . . .")
    value = solve_position(game, after, 60)
    assert value is not None
    # The hit is one end or the other of the ship of 2, or the second of two neighbors.
    assert value.value == min(turns for turns in value.actions if turns is not None)
    assert value.actions[1] is None


def test_boards_that_are_too_large_run_out_of_budget():
    with pytest.raises(OutOfBudget):
        AnnouncedSolution(announced(5, 5, [4, 2], 1), 0.5, 1 << 30)
    assert find_optimum(announced(10, 10, [5, 4, 3, 3, 2], 1), 0.5) is None


def test_hits_that_no_layout_explains_are_refused():
    game = announced(1, 6, [2, 1], 1)
    impossible = parse(game, "hits: 0@1 5@2\nsunk: 2@2\nx . . . . x")
    with pytest.raises(ValueError, match="no layout"):
        solve_position(game, impossible, 10)
    assert torch.is_tensor(impossible.hit_turn)
