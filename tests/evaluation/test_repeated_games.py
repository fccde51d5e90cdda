"""Games without chance are played once; games that repeat are no evidence of how games vary."""

import json

import pytest
import torch
from helpers import InOrder, game_2048, rng

import rlgames as package
from rlgames.commands.match import game_and_player, with_run
from rlgames.config.commands import EvalConfig
from rlgames.config.compose import load_config
from rlgames.evaluation.elo import compete
from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.games.battleship import Battleship
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.salvo_duel import SalvoDuel
from rlgames.players.player import Random


class Shrugging(InOrder):
    """It draws random numbers that never matter, as between equal scores that there are not."""

    is_deterministic = False

    def choose(self, state, rng):
        rng.uniform(len(state))
        return super().choose(state, rng)


class LateCoin(InOrder):
    """From its second move on it draws its actions."""

    is_deterministic = False

    def choose(self, state, rng):
        first = super().choose(state, rng)
        if bool((state.turn < 2).all()):
            return first
        u = rng.uniform(len(state))
        return torch.where(state.turn < 2, first, self.game.sample_legal_action(state, u))


def tic_tac_toe():
    return KInARow(3, 3, 3, False)


@pytest.mark.parametrize("games", [2, 3, 400, "auto", "all"])
def test_players_without_chance_play_each_seat_once(games):
    game = tic_tac_toe()
    found = evaluate(game, InOrder(game), EvaluationSettings(games), rng(), InOrder(game, True))
    assert (found.games, found.distinct_games, found.is_exact) == (2, 2, True)
    assert found.outcome_rate("win").interval is None
    assert found.turns.interval is None


def test_games_that_are_all_the_same_count_as_one_in_each_seat():
    """The rates are those of two games, however often they are repeated."""
    game = tic_tac_toe()
    players = Shrugging(game), InOrder(game, True)
    many = evaluate(game, players[0], EvaluationSettings(400), rng(), players[1])
    two = evaluate(game, players[0], EvaluationSettings(2), rng(), players[1])
    assert (many.games, many.distinct_games, many.is_exact) == (400, 2, False)
    assert (many.outcomes == two.outcomes).all()
    low, high = many.outcome_rate("win").interval
    assert high - low > 0.5
    assert many.turns.interval is None
    assert many.turns.value == two.turns.value


def test_chance_that_comes_late_is_chance():
    """Also where only one of the seats varies."""
    game = tic_tac_toe()
    found = evaluate(game, LateCoin(game), EvaluationSettings(400), rng(), InOrder(game, True))
    assert (found.games, found.is_exact) == (400, False)
    assert 10 < found.distinct_games < 400
    assert found.outcomes.sum(1).tolist() == [200, 200]


def test_independent_games_that_happen_to_be_alike_stay_independent():
    """A chance of 1 in 2 has two games, and 400 of them say more about it than two."""
    game = KInARow(1, 3, 2, False)  # the first seat wins unless it begins in a corner
    found = evaluate(game, Random(game), EvaluationSettings(402), rng(), InOrder(game))
    low, high = found.outcome_rate("win", 0).interval
    assert found.distinct_games < 20
    assert high - low < 0.15


@pytest.mark.parametrize("game", [Battleship(4, 4, [4, 2]), SalvoDuel(2, 2, [2])])
def test_layouts_are_chance_unless_all_of_them_are_played(game):
    opponent = InOrder(game, True) if game.spec.seats == 2 else None
    every = evaluate(game, InOrder(game), EvaluationSettings("auto"), rng(), opponent)
    assert every.is_exact
    assert every.games == len(game.openings(10**4)[0]) * game.spec.seats
    sampled = evaluate(game, InOrder(game), EvaluationSettings(4000), rng(), opponent)
    assert (sampled.games, sampled.is_exact) == (4000, False)
    assert sampled.distinct_games <= every.distinct_games
    low, high = sampled.turns.interval
    assert low - 0.1 < every.turns.value < high + 0.1


def test_dice_are_chance():
    game = game_2048(2, 2)
    found = evaluate(game, InOrder(game), EvaluationSettings(50), rng())
    assert (found.games, found.is_exact) == (50, False)
    assert found.distinct_games > 1


@pytest.mark.parametrize("games", [2, 3, 5, 401])
def test_each_seat_has_the_same_weight(games):
    """The first seat always wins this game, so that half of all games are won."""
    game = KInARow(2, 2, 1, False)
    found = evaluate(game, Random(game), EvaluationSettings(games), rng(), Random(game))
    assert found.outcome_rate("win").value == found.points == 0.5
    assert found.outcomes[:, 1:].tolist() == [[0, 0], [0, found.outcomes[1].sum()]]
    assert found.score.value == pytest.approx(0)
    low, high = found.outcome_rate("win").interval
    assert low + high == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("command", ["eval player=random", "arena random win_or_block"])
def test_one_game_of_two_seats_is_refused(command, typed):
    done = typed(*command.split(), "game=tictactoe", "games=1")
    assert done.returncode != 0
    assert "use games=2" in done.stderr


def test_ratings_rest_on_the_games_that_differ():
    """One in each seat, which do not show how much games vary."""
    game = tic_tac_toe()
    players = [Shrugging(game), InOrder(game, True)]
    many = compete(game, ["a", "b"], players, EvaluationSettings(400), lambda *_: rng(), {})
    two = compete(game, ["a", "b"], players, EvaluationSettings(2), lambda *_: rng(), {})
    for one, other in zip(many.elo, two.elo, strict=True):
        assert one.value == pytest.approx(other.value)
        assert one.interval is other.interval is None


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("chance") / "run"
    words = ["experiment=tictactoe_alphazero", "games=20", "batch=10", "solve_seconds=0"]
    package.train([*words, "search.simulations=4", "eval_games=4", f"out={out}"])
    return out


SEARCHES = {
    "value": ["search=mcts", "search.leaf=value"],
    "gumbel": ["search=mcts", "search.leaf=value", "search.rule=gumbel", "search.gumbel_scale=0"],
    "dedieu_amar": ["search=mcts", "search.leaf=value", "search.rule=dedieu_amar"],
    "one by one": ["search=mcts", "search.leaf=value", "search.num_parallel=1"],
    "depth": ["search=mcts", "search.leaf=value", "search.fixed_depth=true", "search.depth=3"],
    "rollout": ["search=rollout"],
    "none": [],
}
WITH_CHANCE = {
    "gumbel noise": ["search=mcts", "search.leaf=value", "search.rule=gumbel"],
    "rollouts": ["search=mcts", "search.leaf=rollout", "search.rollout_policy=uniform"],
    "dirichlet": ["search=mcts", "search.leaf=value", "search.dirichlet_fraction=0.5"],
}
FEW = ["search.simulations=8"]


@pytest.mark.parametrize("name", SEARCHES | WITH_CHANCE)
def test_searches_that_draw_no_random_number_say_so(name, run):
    """Random numbers change what the others choose."""
    words = (SEARCHES | WITH_CHANCE)[name]
    few = FEW if words else []
    cfg, path = with_run(load_config(EvalConfig, [f"run={run}", *words, *few]))
    game, player = game_and_player(cfg, torch.device("cpu"), path)
    state = game.initial(40, rng())
    first, second = (player.choose(state, rng(seed)) for seed in (4, 5))
    assert player.is_deterministic == torch.equal(first, second) == (name in SEARCHES)


def test_ties_that_there_are_not_make_no_evidence(run, typed):
    words = ["eval", str(run), f"opponent={run}", "sampling.ties=random", "games=40"]
    report = json.loads(typed(*words, "format=json").stdout)
    assert (report["games"], report["distinct_games"], report["exact"]) == (40, 2, False)
    low, high = report["win"]["ci95"]
    assert high - low > 0.3
    assert "40 games, 2 of them different" in " ".join(typed(*words).stdout.split())


def test_exact_rates_have_a_column_of_their_own(typed):
    """Those of each seat, and of both."""
    shown = typed("eval", "player=random", "game=tictactoe", "games=2").stdout
    rows = {line[:15].strip(): line[15:].split("  ") for line in shown.splitlines()}
    exact = {name: row[-1] for name, row in rows.items()}
    assert exact["first seat"] == "58.49% / 12.70% / 28.81%"
    assert exact["second seat"] == "28.81% / 12.70% / 58.49%"
    assert exact["both"] == "43.65% / 12.70% / 43.65%"
    assert set(rows["first seat"][0].strip().replace("%", "").split(" / ")) == {"0.00", "100.00"}


FLEET = ["game=salvo", "board=10", "ships=[5,4,3,3,2]", "shots=1"]
EXACT = 17 * 101 / 18
"""The mean turns of random play on 10×10 cells with 17 ship cells."""


def test_a_mean_that_theory_gives_stands_beside_the_simulated_one(typed):
    words = ["player=random", *FLEET, "games=200"]
    report = json.loads(typed("eval", *words, "format=json").stdout)
    assert report["exact_mean"] == report["reference"]["random"] == pytest.approx(EXACT)
    assert report["moves"]["mean"] != report["exact_mean"]
    assert "95.3889" in typed("eval", *words).stdout
    words = ["arena", "random", "hunt_target", *FLEET, "games=20"]
    players = json.loads(typed(*words, "format=json").stdout)["players"]
    assert [player["exact_mean"] for player in players] == [pytest.approx(EXACT), None]
    assert "95.3889" in typed(*words).stdout


def test_scores_of_games_whose_positions_can_be_listed_are_computed():
    """Random play, a player with a rule and the optimum of 2048 on 2×2."""
    words = ["game=2048", "board=2", "games=4000"]
    random, corner = (
        package.evaluate(None, [f"player={name}", *words]) for name in ("random", "corner")
    )
    low, high = random["score"]["ci95"]
    assert low - 0.5 < random["exact_mean"] == random["reference"]["random"] < high + 0.5
    low, high = corner["score"]["ci95"]
    assert low - 0.5 < corner["exact_mean"] < high + 0.5
    assert corner["reference"]["optimal"] > max(corner["exact_mean"], random["exact_mean"])
    unsolved = ["player=random", *words[:2], "games=20", "solve_seconds=0"]
    assert package.evaluate(None, unsolved)["exact_mean"] is None
