"""search.solve_positions: exact where a position can be solved, elsewhere the search unchanged."""

import pytest
import torch
from helpers import check_message, make_game, ntuple, rng
from markers import one_in

from rlgames.build.players import with_search
from rlgames.config.commands import EvalConfig
from rlgames.config.compose import load_config
from rlgames.core.errors import ConfigError
from rlgames.players.player import Agent, Random
from rlgames.rollouts.play import collect_games
from rlgames.sampling import Argmax
from rlgames.search.endgame import ExactEndgameSearch
from rlgames.solvers.connect4 import AlphaBeta
from rlgames.solvers.graph import Graph


def search_of(game, *words):
    """A search around a player that knows nothing, as its words ask for."""
    config = load_config(EvalConfig, ["player=random", f"game={game.spec.name}", *words]).search
    player = Random(game)
    if config.name == "alphabeta":
        player = Agent(game, ntuple(game, [[0, 1, 2]], 3), Argmax("first"))
    return with_search(player, game, config, None)


def positions(game, seed=3):
    moves, _ = collect_games(game, [Random(game)], 12, rng(seed))
    return moves.state


MCTS = ["search=mcts", "search.simulations=4", "search.rollout_policy=uniform"]
SEARCHES = [[*MCTS, "search.rule=gumbel"], MCTS, ["search=alphabeta", "search.plies=1"]]


@pytest.mark.parametrize("words", SEARCHES)
def test_solved_positions_are_won_as_soon_and_lost_as_late_as_possible(words):
    rules = 4, 4, 3
    game = make_game("game=connect4", "rows=4", "columns=4", "line=3")
    state = positions(game)
    player = search_of(game, *words, "search.solve_positions=100000")
    exact = AlphaBeta(*rules)
    for row, column in enumerate(player.choose(state, rng()).tolist()):
        result = exact.analyze(*state.words[row].tolist())
        assert column in result.best_columns


@pytest.mark.parametrize("words", one_in(2, [["game=tictactoe"], ["game=othello", "board=4"]]))
def test_other_games_have_solvers_too(words):
    game = make_game(*words)
    state = positions(game)
    state = state[game.depth(state) > 4]
    graph = Graph(game, 60, 2 << 30, roots=state)
    best = graph.best_actions(graph.solve([None, None]), state)
    action = search_of(game, *MCTS, "search.solve_positions=20000").choose(state, rng())
    assert best.gather(1, action[:, None]).all()
    plain = search_of(game, *MCTS).choose(state, rng())
    assert not best.gather(1, plain[:, None]).all()


def test_beyond_the_limit_the_search_is_unchanged():
    game = make_game("game=connect4")
    first = game.initial(3, rng())
    plain, exact = (search_of(game, *MCTS, f"search.solve_positions={n}") for n in (0, 50))
    expected, result = plain.search(first, rng()), exact.search(first, rng())
    for name, column in vars(expected).items():
        assert torch.equal(column, getattr(result, name))


@pytest.mark.slow
@pytest.mark.parametrize("words", [["search.rule=gumbel"], ["search.rule=puct"]])
def test_moves_that_are_proven_to_lose_are_not_made(words):
    game = make_game("game=gomoku", "board=9")
    state = game.initial(1, rng())
    for action in (39, 40, 8, 41, 72, 42, 80, 43):  # four in a row with one end open
        state = game.apply_action(state, torch.tensor([action]))
    plain = search_of(game, *MCTS, *words).search(state, rng())
    result = search_of(game, *MCTS, *words, "search.solve_positions=1000").search(state, rng())
    assert result.policy[0].nonzero().tolist() == [[44]]
    assert result.action.tolist() == [44]
    assert result.value == plain.value


def test_the_policy_and_the_value_are_exact_where_solved():
    game = make_game("game=connect4", "rows=4", "columns=4", "line=3")
    state, rules = positions(game), (4, 4, 3)
    search = search_of(game, *MCTS, "search.solve_positions=100000")
    assert isinstance(search, ExactEndgameSearch)
    result = search.search(state, rng())
    assert torch.allclose(result.policy.sum(1), torch.ones(len(state)))
    for row in range(len(state)):
        exact = AlphaBeta(*rules).analyze(*state.words[row].tolist())
        assert result.value[row] == exact.value
        assert {*result.policy[row].nonzero()[:, 0].tolist()} == {*exact.best_columns}


def test_a_move_depends_on_the_position_alone():
    game = make_game("game=connect4")
    state = positions(game)
    players = [search_of(game, *SEARCHES[2], "search.solve_positions=300") for _ in range(2)]
    rows = range(len(state))
    moves = [[player.choose(state[row : row + 1], rng()) for row in rows] for player in players]
    together = players[0].choose(state[torch.arange(len(state)).flip(0)], rng())
    assert torch.equal(torch.cat(moves[0]), together.flip(0))
    assert torch.equal(torch.cat(moves[0]), torch.cat(moves[1]))


@pytest.mark.parametrize("name", ["salvo", "salvo_duel"])
def test_a_game_without_such_a_solver_says_so_before_it_is_played(name):
    with pytest.raises(ConfigError, match=r"search\.solve_positions=1000") as raised:
        search_of(make_game(f"game={name}"), "search=mcts", "search.solve_positions=1000")
    assert name in raised.value.error
    check_message(raised.value)


def test_exact_moves_are_not_best_for_another_value():
    words = ["search=mcts", "search.solve_positions=1000", "search.value=max_tile"]
    with pytest.raises(ConfigError, match=r"maximizes score, not search\.value=max_tile"):
        search_of(make_game("game=2048", "board=2"), *words)
    search_of(make_game("game=2048", "board=2"), *words[:2], "search.value=score")
