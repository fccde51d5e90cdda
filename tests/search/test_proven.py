"""Searches that back up proven outcomes (search.solve=true) prove what is true and play by it."""

from dataclasses import replace

import pytest
import torch
from helpers import rng

from rlgames.games.game_2048 import Game2048
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.othello import Othello
from rlgames.games.salvo_duel import SalvoDuel
from rlgames.kernels.tree_search import UNSOLVED
from rlgames.players.player import Agent, Random
from rlgames.policies.mlp import Mlp
from rlgames.sampling import Argmax
from rlgames.search import mcts
from rlgames.search.mcts import Mcts, MctsSettings
from rlgames.search.proven import prefer_proven
from rlgames.solvers.graph import Graph

TICTACTOE = KInARow(3, 3, 3, gravity=False)
CONNECT4 = KInARow(6, 7, 4, gravity=True)
SETTINGS = MctsSettings(simulations=60, num_parallel=5, leaf="value", solve=True)


def network(game):
    """A network that learned nothing, with large outputs."""
    policy = Mlp(game, [16], "tanh", "orthogonal", bias=True, value=True, rng=rng(1))
    torch.nn.init.normal_(policy.logits.weight, generator=rng(2))
    torch.nn.init.normal_(policy.value.weight, generator=rng(3))
    return policy


def searched(game, state, settings, *, compiled):
    """The result of a search, and the outcomes that it proved for the seats to move: int64 [B, A],
    UNSOLVED where it proved none."""
    search = Mcts(game, Agent(game, network(game), Argmax()), settings)
    if not compiled:
        search._evaluator = None
    parts = []

    def recorded(tree, result):
        parts.append(tree.solved[: len(result.visits)])
        return prefer_proven(tree, result)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mcts, "prefer_proven", recorded)
        result = search.search(state, rng())
    solved = torch.cat(parts)
    is_solved = solved != UNSOLVED
    return result, torch.where(is_solved, solved * (1 - 2 * state.current_seat[:, None]), UNSOLVED)


@pytest.fixture(scope="module")
def boards():
    """Every board of tic-tac-toe in which somebody has to move, and the exact outcomes of its
    actions for the seat to move: int64 [B, A], -2 for illegal ones."""
    graph = Graph(TICTACTOE, 60, 1 << 30)
    state = TICTACTOE.state_from_key(torch.cat([layer.keys for layer in graph.layers.values()]))
    solution, legal = graph.solve([None, None]), TICTACTOE.legal_action_mask(state)
    outcome = torch.full(legal.shape, -2)
    row, action = legal.nonzero(as_tuple=True)
    after = TICTACTOE.apply_action(state[row], action)
    value = (after.score[:, 0] - after.score[:, 1]).sign()
    live = ~after.done
    value[live] = graph.state_values(solution, after[live]).float().sign()
    outcome[row, action] = (value * (1 - 2 * state.current_seat[row])).long()
    return state, outcome


def check_result(result, solved, legal):
    """Actions and probabilities follow what is proven."""
    chosen = solved.gather(1, result.action[:, None])[:, 0]
    wins, losses = (solved == 1) & legal, (solved == -1) & legal
    assert (chosen[wins.any(1)] == 1).all()
    assert (result.policy[wins.any(1)][~wins[wins.any(1)]] == 0).all()
    has_hope = (legal & ~losses).any(1)
    assert (chosen[has_hope] != -1).all()
    assert (result.policy[has_hope][losses[has_hope]] == 0).all()
    assert (result.policy[~legal] == 0).all()
    assert torch.allclose(result.policy.sum(1), torch.ones(len(legal)))


@pytest.mark.parametrize("num_parallel", [1, 7])
@pytest.mark.parametrize("rule", ["puct", "dedieu_amar"])
def test_what_few_simulations_prove_is_exact(boards, rule, num_parallel):
    state, outcome = boards
    legal = TICTACTOE.legal_action_mask(state)
    settings = replace(SETTINGS, rule=rule, num_parallel=num_parallel)
    result, solved = searched(TICTACTOE, state, settings, compiled=True)
    is_solved = solved != UNSOLVED
    assert not is_solved[~legal].any()
    assert torch.equal(solved[is_solved], outcome[is_solved])
    assert 0.3 < float(is_solved[legal].float().mean()) < 1
    check_result(result, solved, legal)
    best = outcome.amax(1)
    is_proven = (solved == 1).any(1) | (is_solved | ~legal).all(1)
    assert torch.equal(result.value[is_proven], best[is_proven].float())


def check_all_proven(boards, rows, simulations, *, compiled):
    """Searches from these boards prove the exact value of each, and choose a best action."""
    state, outcome = boards[0][rows], boards[1][rows]
    settings = replace(
        SETTINGS, simulations=simulations, num_parallel=4, temperature=100.0, c_puct=100.0
    )
    result, solved = searched(TICTACTOE, state, settings, compiled=compiled)
    legal = outcome > -2
    assert ((solved == 1).any(1) | ((solved != UNSOLVED) | ~legal).all(1)).all()
    best = outcome.amax(1)
    assert torch.equal(result.value, best.float())
    assert torch.equal(outcome.gather(1, result.action[:, None])[:, 0], best)
    check_result(result, solved, legal)


@pytest.mark.parametrize(("compiled", "every"), [(True, 1), (False, 100)])
def test_the_value_of_every_board_from_four_stones_on_is_proven(boards, compiled, every):
    rows = (boards[0].turn >= 4).nonzero()[::every, 0]
    check_all_proven(boards, rows, 1000, compiled=compiled)


@pytest.mark.slow
def test_the_values_of_boards_with_fewer_stones_are_proven(boards):
    few = (boards[0].turn < 4).nonzero()[:, 0]
    check_all_proven(boards, few[1::30], 20_000, compiled=True)
    check_all_proven(boards, few[:1], 400_000, compiled=True)


@pytest.mark.parametrize("game", [CONNECT4, TICTACTOE, KInARow(4, 5, 3, gravity=True)], ids=str)
@pytest.mark.parametrize("keys", [{}, {"depth": 3}, {"num_parallel": 1}, {"rule": "dedieu_amar"}])
def test_the_kernel_proves_what_the_rules_in_torch_prove(game, keys):
    state, found = game.initial(8, rng(5)), []
    for ply in range(12):
        found.append(state[~state.done])
        state = game.apply_action(state, Random(game).choose(state, rng(ply)))
    state = type(state).cat(found)
    settings = replace(SETTINGS, **keys)
    result, solved = searched(game, state, settings, compiled=True)
    expected, expected_solved = searched(game, state, settings, compiled=False)
    assert torch.equal(solved, expected_solved)
    assert torch.equal(result.visits, expected.visits)
    assert torch.equal(result.action, expected.action)
    for name in ("q", "policy", "value"):
        assert torch.allclose(getattr(result, name), getattr(expected, name), atol=1e-4)
    check_result(result, solved, game.legal_action_mask(state))


@pytest.mark.parametrize("leaf", ["value", "rollout"])
def test_othello_where_seats_pass(leaf):
    """Near the end, a proven outcome is that of best play."""
    game = Othello(4)
    state, exact = exact_outcomes(game)
    settings = replace(SETTINGS, simulations=100, num_parallel=10, leaf=leaf)
    result, solved = searched(game, state, settings, compiled=False)
    is_solved = solved != UNSOLVED
    assert is_solved.sum() > 10
    assert torch.equal(solved[is_solved], exact[is_solved])
    check_result(result, solved, game.legal_action_mask(state))


def exact_outcomes(game, count=12, plies=4):
    """Positions this many plies before the end of random games, and the exact outcomes of their
    actions for the seat to move, int64 [B, A]; -2 for illegal ones."""
    state, trace = game.initial(count, rng(5)), []
    while not state.done.all():
        trace.append(state)
        state = game.apply_action(state, Random(game).choose(state, rng(len(trace))))
    length = torch.stack([~each.done for each in trace]).sum(0).tolist()
    picked = [trace[max(0, end - plies)][row : row + 1] for row, end in enumerate(length)]
    outcome = torch.full((count, game.spec.actions), -2)
    for row, position in enumerate(picked):
        sign = 1 - 2 * int(position.current_seat)
        for action in game.legal_action_mask(position)[0].nonzero()[:, 0].tolist():
            outcome[row, action] = sign * minimax(game, position, action)
    return type(state).cat(picked), outcome


def minimax(game, state, action):
    """The outcome for seat 0 of an action in one position."""
    after = game.apply_action(state, torch.tensor([action]))
    if bool(after.done):
        return int((after.score[0, 0] - after.score[0, 1]).sign())
    actions = game.legal_action_mask(after)[0].nonzero()[:, 0].tolist()
    values = (minimax(game, after, each) for each in actions)
    return (max if int(after.current_seat) == 0 else min)(values)


def test_a_forced_win_is_found_and_valued_exactly():
    rows = [". . . . . . ."] * 4 + [". . O O O . .", ". . X X X . ."]
    state = CONNECT4.parse("\n".join([*rows, "1 2 3 4 5 6 7"]))
    result, solved = searched(CONNECT4, state, SETTINGS, compiled=True)
    assert solved[0].tolist().count(1) >= 1
    assert float(result.value) == 1
    assert int(result.action) in (1, 5)
    assert float(result.policy[0, [1, 5]].sum()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("game", "keys", "words"),
    [
        (Game2048(3, 3), {}, "for two seats without chance or hidden information, not 2048"),
        (
            SalvoDuel(4, 4, [2]),
            {},
            "for two seats without chance or hidden information, not salvo_duel",
        ),
        (TICTACTOE, {"rule": "gumbel"}, "search.rule=puct or dedieu_amar, not gumbel"),
    ],
    ids=lambda each: "",
)
def test_where_nothing_can_be_proven_the_key_is_refused(game, keys, words):
    with pytest.raises(ValueError, match=words) as error:
        Mcts(game, Random(game), MctsSettings(solve=True, **keys))
    assert "\n" not in str(error.value)


def test_without_the_key_nothing_is_proven():
    settings = replace(SETTINGS, solve=False)
    search = Mcts(CONNECT4, Agent(CONNECT4, network(CONNECT4), Argmax()), settings)
    tree, _ = search.new_tree(CONNECT4.initial(2, rng()))
    assert len(tree.solved) == 0
