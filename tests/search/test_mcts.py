"""Tree search: agrees with minimax, uses only what is visible, beats the player it is built on."""

import json
from typing import Any

import pytest
import torch
from helpers import game_2048, generator, make_small_game, ntuple, rng, some_states, untrained
from markers import quick, slow

import rlgames as package
from rlgames.build.players import with_search
from rlgames.commands.arena import competitors
from rlgames.config.commands import ArenaConfig, TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.conf import option_names
from rlgames.config.typed import make_option
from rlgames.core.errors import ConfigError
from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.games.battleship import Battleship
from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Agent, Random
from rlgames.sampling import Argmax
from rlgames.search import mcts
from rlgames.search.alphabeta import AlphaBetaSearch
from rlgames.search.mcts import Mcts
from rlgames.solvers.graph import Graph

GAMES = option_names("game")
TICTACTOE = KInARow(3, 3, 3, gravity=False)
CONNECT4 = KInARow(6, 7, 4, gravity=True)


def with_network(game, **settings):
    """A search guided by a network that learnt nothing, value head and all."""
    return Mcts(game, untrained(game, 1, value=True), make_option("search", "mcts", **settings))


def test_tic_tac_toe_is_played_perfectly_from_five_stones_on():
    """On every such board, one of those that turning and mirroring make of each other."""
    graph = Graph(TICTACTOE, 60, 1 << 30)
    state = TICTACTOE.state_from_key(torch.cat([layer.keys for layer in graph.layers.values()]))
    assert len(state) == 4520
    turned = TICTACTOE.cells(state).flatten(1).long()[:, TICTACTOE.symmetries()]
    numbers = (turned * 3 ** torch.arange(9)).sum(2)
    state = state[(numbers[:, 0] == numbers.min(1).values) & (state.turn >= 5)]
    search = Mcts(
        TICTACTOE, Random(TICTACTOE), make_option("search", "mcts", simulations=200, c_puct=3.0)
    )
    best = graph.best_actions(graph.solve([None, None]), state)
    assert best.gather(1, search.choose(state, rng())[:, None]).all()


def test_hidden_information_does_not_affect_the_search():
    game = Battleship(4, 4, [4])
    layouts, _ = game.openings(100)
    state = game.public(game.apply_action(layouts, torch.zeros(len(layouts), dtype=torch.int64)))
    missed = state[(~state.hit.any(1)).nonzero()[:, 0]]
    search = Mcts(game, Random(game), make_option("search", "mcts", simulations=50))
    chosen = [search.choose(missed[row : row + 1], rng(3)) for row in range(len(missed))]
    assert len(chosen) == 6
    assert len({int(action) for action in chosen}) == 1


def test_values_use_only_visible_information():
    """One ship of one cell among three: 2 turns. Who knew it after the first shot: 5/3."""
    game = Battleship(1, 3, [1])
    state = game.public(game.initial(20, rng()))
    found = Mcts(game, Random(game), make_option("search", "mcts", simulations=400)).search(
        state, rng()
    )
    visits = found.visits
    turns = 3 - 2 * found.q  # Q is 0 for the most turns that came, 3, and 1 for the fewest, 1
    assert float((turns * visits).sum() / visits.sum()) == pytest.approx(2.0, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES)
def test_search_beats_the_player_it_is_built_on(name):
    game = make_small_game(name)
    random = Random(game)
    search = Mcts(game, random, make_option("search", "mcts", simulations=64))
    if game.spec.seats == 2:
        assert evaluate(game, search, EvaluationSettings(60), rng(), random).points > 0.6
        return
    ours, theirs = (
        evaluate(game, player, EvaluationSettings(60), rng()) for player in (search, random)
    )
    if game.spec.goal == "turns":
        assert ours.turns.interval[1] < theirs.turns.interval[0]
    else:
        assert ours.score.interval[0] > theirs.score.interval[1]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *quick([(name, {}) for name in GAMES], *((name, {}) for name in ("salvo", "2048", "hex"))),
        *(slow((name, {"rule": "dedieu_amar", "depth": 2})) for name in GAMES),
        # The kernels of other games would be compiled for this alone.
        *quick([(name, {"leaf": "value"}) for name in GAMES], ("connect4", {"leaf": "value"})),
    ],
)
def test_visits_add_up_are_legal_and_depend_on_the_seed_only(name, settings):
    game = make_small_game(name)
    state = some_states(game)
    search = with_network(game, simulations=21, rollout=3, **settings)
    action = search.choose(state, rng(1))
    assert torch.equal(action, search.choose(state, rng(1)))
    assert game.legal_action_mask(state).gather(1, action[:, None]).all()
    rows = (~state.done).nonzero()[:, 0]
    live = state[rows]
    result = search.search(live, rng(1).rows(len(state))[rows])
    visits, quality = result.visits, result.q
    assert (visits.sum(1) == 21).all()
    assert not visits[~game.legal_action_mask(live)].any()
    assert ((quality >= 0) & (quality < 1)).all()
    assert torch.equal(action[rows], (visits + quality).argmax(1))


def test_rows_are_searched_independently(monkeypatch):
    """Where nothing is left to chance a row's choice does not depend on its neighbours."""
    state = some_states(CONNECT4, 30)
    live = state[(~state.done).nonzero()[:, 0]]
    search = with_network(CONNECT4, simulations=40, leaf="value")
    result = search.search(live, rng())
    visits, quality = result.visits, result.q
    order = torch.randperm(len(live), generator=generator())
    for rows, parts in ((order, 1 << 24), (torch.arange(5), 1 << 24), (order, 2000)):
        monkeypatch.setattr(mcts, "MAX_NODE_ACTIONS", parts)
        result = search.search(live[rows], rng(9))
        again, value = result.visits, result.q
        assert torch.equal(again, visits[rows])
        assert torch.allclose(value, quality[rows], atol=1e-5)


def test_small_2048_is_played_almost_optimally():
    game = game_2048(2, 2)
    graph = Graph(game, 60, 1 << 30)
    keys = torch.cat([layer.keys for layer in graph.layers.values()])
    action = Mcts(
        game, Random(game), make_option("search", "mcts", simulations=200, c_puct=4.0)
    ).choose(game.state_from_key(keys), rng())
    chosen = dict(zip(keys.tolist(), action.tolist(), strict=True))

    def decider(state):
        found = torch.tensor([chosen[key] for key in game.key(state).tolist()])
        return torch.nn.functional.one_hot(found, 4)

    best, found = (graph.solve([one]).mean for one in (None, decider))
    assert best == pytest.approx(66.964, abs=1e-3)
    assert 0.99 * best < found <= best


def test_the_value_head_is_scaled_to_the_units_of_the_game():
    """Scores were learnt at a hundredth: a leaf is worth its score so far and 100 values more."""
    game = game_2048(2, 2)
    node = make_option("search", "mcts", leaf="value")
    reward = load_config(TrainConfig, ["experiment=2048_ppo"]).reward
    player = with_network(game).player
    search: Any = with_search(player, game, node, reward)
    assert (search.utility.value, search.utility.value_scale) == ("score", pytest.approx(100))
    for words in (
        ["reward=score", "reward.minus=random_turn"],
        ["reward=score", "reward.scored=score"],
    ):
        reward = load_config(TrainConfig, ["game=2048", *words]).reward
        with pytest.raises(ConfigError, match="value head"):
            with_search(player, game, node, reward)


def test_a_fixed_depth_needs_a_depth():
    with pytest.raises(ValueError, match=r"search\.depth=N"):
        Mcts(TICTACTOE, Random(TICTACTOE), make_option("search", "mcts", fixed_depth=True))


SMALL_RUN = ["games=40", "batch=20", "solve_seconds=0", "policy.layers=[8]"]
FEW = ["games=4", "solve_seconds=0"]


def test_search_on_the_command_line(rlgames, tmp_path):
    run = package.train(["game=tictactoe", "policy=mlp", *SMALL_RUN, f"out={tmp_path}/first"])
    words = ["eval", "first", "search=mcts", "search.simulations=8", *FEW]
    report = json.loads(rlgames(*words, "format=json").stdout)
    assert report["search"]["name"] == "mcts"
    assert report["search"]["simulations"] == 8
    assert report["opponent_search"] is None
    shown = rlgames(*words, "search.leaf=value").stdout
    assert "first with mcts (8 simulations) against random, 4 games" in shown
    words = ["player=random", f"opponent={run}", "opponent_search=mcts", "game=tictactoe", *FEW]
    report = package.evaluate(None, words)
    assert report["search"] is None
    assert report["opponent_search"]["simulations"] == 100


def test_players_of_an_arena_have_each_their_own_search(tmp_path):
    words = ["experiment=connect4_ntuple", "policy.num_tuples=4"]
    words += ["games=64", "batch=64", "eval_games=2", "log_every=64"]
    run = package.train([*words, "solve_seconds=0", f"out={tmp_path}/first"])
    for who in ([f"{run}+alphabeta", "random+mcts"], ["random+mcts", f"{run}+alphabeta"]):
        players = dict(zip(who, competitors(who, load_config(ArenaConfig, []))[2], strict=True))
        assert isinstance(players["random+mcts"], Mcts)
        assert isinstance(players[f"{run}+alphabeta"], AlphaBetaSearch)
    few = load_config(ArenaConfig, ["search=mcts", "search.simulations=10"])
    assert competitors(who, few)[2][who.index("random+mcts")].settings.simulations == 10
    few = load_config(ArenaConfig, ["game=tictactoe", "search=rollout"])
    with pytest.raises(ConfigError, match="no player searches with search=rollout"):
        competitors(["random+mcts", "random"], few)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["search=mtcs"], "mtcs"),
        (["opponent_search=mtcs"], "mtcs"),
        (["search=mcts", "search.value=score"], "outcome"),
        (["search=mcts", "search.c_puct=0"], "c_puct"),
        (["search=mcts", "search.rule=gumbel", "search.dirichlet_fraction=0.25"], "gumbel_scale"),
        (["search=mcts", "player=exact", "game=connect4"], "probabilities"),
        (["opponent_search=mcts", "game=2048"], "one-player"),
    ],
)
def test_unsuitable_players_and_games_are_refused(words, hint):
    with pytest.raises(ConfigError, match=hint):
        package.evaluate(None, ["player=random", "game=tictactoe", *words])


def test_leaves_of_n_tuples_are_worth_their_best_move():
    """Without values, only a search sees that the other seat would win with its next move."""
    agent = Agent(TICTACTOE, ntuple(TICTACTOE, None), Argmax("first"))
    state = TICTACTOE.parse_all(["X . .\nX O .\n. . ."])
    assert agent.choose(state, rng()).tolist() == [1]
    settings = make_option("search", "mcts", simulations=60, leaf="value")
    assert Mcts(TICTACTOE, agent, settings).choose(state, rng()).tolist() == [6]
