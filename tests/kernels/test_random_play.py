"""Random play in a kernel: legal moves, and the right distribution."""

from typing import Any

import pytest
import torch
from helpers import check_uncompiled, game_2048, rng
from markers import quick

from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.games.breakthrough import Breakthrough
from rlgames.games.hex import Hex
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.notation import parse
from rlgames.games.othello import Othello
from rlgames.players.player import Random

BREAKTHROUGH = Breakthrough(5, 4, 1)
GAMES: list[Any] = [
    KInARow(3, 3, 3, False, "tictactoe"),
    KInARow(6, 7, 4, True, "connect4"),
    game_2048(4, 4),
    KInARow(7, 7, 5, False),
    KInARow(7, 7, 5, True),
    game_2048(3, 3, fours=0.5, encoding="exponents"),
    game_2048(2, 4),
    game_2048(1, 3),
    Othello(6),
    Hex(5, swap=True),
    BREAKTHROUGH,
    KInARow(9, 9, 5, False),
]
TICTACTOE, CONNECT4, GAME_2048 = GAMES[:3]


def name(game):
    _, rows, columns = game.spec.observation
    return f"{game.spec.name} {rows}x{columns}"


def is_same(first, second):
    """Bool [B]: the rows in which all fields of two batches of positions are equal."""
    same = torch.ones(len(first), dtype=torch.bool)
    for name, column in vars(first).items():
        other = getattr(second, name)
        assert other.dtype == column.dtype
        same &= (column == other).view(len(first), -1).all(1)
    return same


def follows(game, before, after):
    """Bool [B]: whether some legal move and some new tile lead to the second positions."""
    found = torch.zeros(len(before), dtype=torch.bool)
    legal = game.legal_action_mask(before)
    for action in range(game.spec.actions):
        moved = game.apply_action(before, torch.full((len(before),), action))
        if game.spec.num_chance_inputs:
            probability, outcomes = game.chance_outcomes(moved)
            for number, likely in enumerate(probability.T):
                is_next = is_same(outcomes[number :: probability.shape[1]], after)
                found |= legal[:, action] & (likely > 0) & is_next
        else:
            found |= legal[:, action] & is_same(moved, after)
    return found


def check_walks(game, positions, batch=97):
    """Moves of random games, one by one, until there are that many."""
    checked, seed = 0, 0
    state = game.initial(batch, rng(1))
    while checked < positions:
        after, num_moves = game.play_randomly(state, batch, rng(seed), plies=1)
        assert num_moves == len(state)
        assert bool(follows(game, state, after).all())
        checked, seed = checked + len(state), seed + 1
        state = after[~after.done]
        if 2 * len(state) < batch:
            state = type(state).cat([state, game.initial(batch - len(state), rng(seed))])


@pytest.mark.parametrize("game", quick(GAMES, *GAMES[:4]), ids=name)
def test_moves_are_those_of_the_rules(game):
    check_walks(game, 2_000)


def test_tictactoe_ends_as_often_as_theory_says():
    final, num_moves = TICTACTOE.play_randomly(TICTACTOE.initial(200_000, rng(0)), 64, rng(3))
    lead = final.score[:, 0]
    assert bool(final.done.all())
    assert num_moves == int(final.turn.sum())
    rates = [float((lead == sign).double().mean()) for sign in (1, -1, 0)]
    assert rates == pytest.approx([0.5849, 0.2881, 0.1270], abs=0.004)  # over 3.5 standard errors


@pytest.mark.parametrize("game", [TICTACTOE, CONNECT4, GAME_2048, BREAKTHROUGH], ids=name)
def test_legal_moves_and_new_tiles_have_their_probabilities(game):
    count, state = 40_000, half_played(game)
    after, _ = game.play_randomly(state[torch.zeros(count).long()], 64, rng(1), plies=1)
    total = 0.0
    for action in game.legal_action_mask(state)[0].nonzero()[:, 0]:
        probability, outcomes = game.chance_outcomes(game.apply_action(state, action[None]))
        for chance, row in zip(probability[0].tolist(), range(len(outcomes)), strict=True):
            expected = chance / int(game.legal_action_mask(state).sum())
            rate = float(is_same(after, outcomes[[row] * count]).double().mean()) if chance else 0.0
            assert rate == pytest.approx(expected, abs=4.5 * (expected / count) ** 0.5)
            total += rate
    assert total == pytest.approx(1)


def half_played(game):
    """A position with illegal moves, and moves of different results."""
    if game is GAME_2048:
        return game.from_exponents(
            torch.tensor([[[1, 2, 1, 2], [3, 1, 2, 1], [1, 2, 1, 4], [5, 0, 0, 0]]])
        )
    if game is TICTACTOE:
        return parse(game, "X . O\n. . .\nX . O")
    state = game.initial(1, rng(0))
    if game is BREAKTHROUGH:  # 10 of 60 actions are legal
        return state
    for column in (2, 2, 2, 2, 2, 2, 5):
        state = game.apply_action(state, torch.tensor([column]))
    return state


@pytest.mark.parametrize("game", quick(GAMES, *GAMES[:3]), ids=name)
def test_equal_seeds_give_equal_games(game):
    start = game.initial(200, rng(0))
    before = game.initial(200, rng(0))
    first, num_moves = game.play_randomly(start, 32, rng(7))
    second, _ = game.play_randomly(start, 5, rng(7))  # the batch changes nothing
    assert bool(is_same(start, before).all())  # the positions given do not change
    assert bool(is_same(first, second).all())
    if game.spec.actions > 1:
        assert not bool(is_same(first, game.play_randomly(start, 32, rng(8))[0]).all())
    assert num_moves == int(first.turn.sum())
    assert bool(game.is_valid(first).all() if game.spec.seats == 2 else first.done.all())


@pytest.mark.parametrize("game", [TICTACTOE, CONNECT4, GAME_2048], ids=name)
def test_finished_games_do_not_change_and_plies_are_limited(game):
    start = game.initial(90, rng(0))
    middle, num_moves = game.play_randomly(start, 7, rng(1), plies=6)
    assert num_moves == int(middle.turn.sum())
    assert bool(((middle.turn == 6) | middle.done).all())
    last, _ = game.play_randomly(middle, 200, rng(2))
    assert bool(last.done.all())
    assert bool(is_same(middle, last)[middle.done].all())
    assert game.play_randomly(last, 5, rng(3))[1] == 0
    assert len(game.play_randomly(last[:0], 5, rng(3))[0]) == 0


@pytest.mark.parametrize("game", quick([TICTACTOE, GAME_2048], TICTACTOE), ids=name)
def test_the_number_of_threads_does_not_change_an_evaluation(game, monkeypatch):
    results = []
    settings = EvaluationSettings(game.min_random_games, batch=500)
    for threads in (1, 2):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        player = Random(game)
        opponent = player if game.spec.seats == 2 else None
        results.append(evaluate(game, player, settings, rng(4), opponent))
    assert bool(is_same(results[0].state, results[1].state).all())
    assert bool(results[0].state.done.all())
    assert results[0].num_moves == results[1].num_moves == int(results[0].state.turn.sum())


@pytest.mark.parametrize("number", quick([0, 1, 2, 4, 9, 10], 0, 2))
def test_uncompiled_kernels_compute_the_same(number):
    check_uncompiled(
        "import test_random_play as t\n"
        f"game = t.GAMES[{number}]\n"
        "t.check_walks(game, 40, batch=20)\n"
        "state = game.play_randomly(game.initial(5, t.rng(1)), 4, t.rng(5))[0]\n"
        "print([tensor.tolist() for tensor in vars(state).values()])"
    )
