"""Players: legal, seeded, without hidden information; and the rule of each."""

import math
from contextlib import suppress
from typing import Any

import pytest
import torch
from helpers import game_2048, made, make_small_game, rng

from rlgames.build.players import build_player
from rlgames.config import compose
from rlgames.config.commands import EvalConfig
from rlgames.config.conf import option_names
from rlgames.config.registry import REGISTRY, make
from rlgames.config.schema import arguments
from rlgames.config.typed import make_option
from rlgames.core.errors import ConfigError
from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.games.battleship import Battleship
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.notation import parse
from rlgames.players.fleets import HuntTarget
from rlgames.players.player import HasProbabilities, Player, Random
from rlgames.players.scripted import Corner, WinOrBlock
from rlgames.rollouts.play import collect_games


def players_of(game):
    """Each scripted player that plays a game."""
    for name, part in REGISTRY["player"].items():
        if not part.make or name in ("human", "program"):  # which have tests of their own
            continue
        with suppress(ValueError):
            yield part.load()(game, **arguments(make_option("player", name)))


class Checked(Player):
    """Passes positions on to a player and checks its actions and probabilities."""

    def __init__(self, game, player):
        self.game, self.player = game, player

    def choose(self, state, generator):
        action = self.player.choose(state, generator)
        assert action.dtype == torch.int64
        assert self.game.legal_action_mask(state).gather(1, action[:, None]).all()
        if not isinstance(self.player, HasProbabilities):
            return action
        likely = self.player.probabilities(state)
        assert torch.allclose(likely.sum(1), torch.ones(len(likely), dtype=torch.float64))
        live = ~state.done
        assert (likely.gather(1, action[:, None])[:, 0] > 0)[live].all()
        assert not (likely[live] > 0)[~self.game.legal_action_mask(state)[live]].any()
        return action


@pytest.mark.parametrize("name", option_names("game"))
def test_actions_are_legal_and_seeded_and_match_the_probabilities(name):
    game = make_small_game(name)
    players = list(players_of(game))
    assert len(players) >= 2  # one besides random
    for player in players:
        checked = Checked(game, player)
        (one, _), (other, _) = (collect_games(game, [checked], 20, rng(3)) for _ in range(2))
        assert torch.equal(one.action, other.action)
        if player.is_deterministic:
            assert torch.equal(*(player.choose(one.state, rng(seed)) for seed in (4, 5)))


@pytest.mark.parametrize("rules", [(3, 3, 3, False), (6, 7, 4, True), (4, 5, 3, True)])
def test_win_or_block_wins_if_possible_and_else_blocks(rules):
    game = KInARow(*rules)
    moves, _ = collect_games(game, [Random(game)], 200, rng(1))
    player = WinOrBlock(game)
    wins, blocks = (game.completing_actions(moves.state, of_other=of) for of in (False, True))
    can_win, can_block = wins.any(1, keepdim=True), blocks.any(1, keepdim=True)
    assert 0 < can_win.sum() < len(moves)
    assert 0 < (can_block & ~can_win).sum() < len(moves)
    legal = game.legal_action_mask(moves.state)
    expected = torch.where(can_win, wins, torch.where(can_block, blocks, legal))
    assert torch.equal(player.options(moves.state), expected)


def test_corner_prefers_down_then_left():
    game = game_2048(2, 2)
    for board, expected in (
        ("2 4\n. .", "down"),
        (". 2\n. 4", "left"),
        ("2 .\n4 .", "right"),
        (". .\n2 4", "up"),
    ):
        action = Corner(game).choose(parse(game, board), rng())
        assert game.action_to_string(None, 0, int(action[0])) == expected


def test_density_on_listed_layouts_shoots_at_the_likeliest_cell():
    game = Battleship(3, 3, [2, 1])
    moves, _ = collect_games(game, [Random(game)], 30, rng(2))
    layouts = game.layouts()
    player = made("player", "density", game, samples=10, steps=0)
    assert player.is_deterministic
    states: Any = moves.state
    action = player.choose(states, rng())
    for row in range(len(moves)):
        shot, hit = states.shot[row], states.hit[row]
        agree = layouts[((layouts & shot) == hit).all(1)]
        count = agree.sum(0).masked_fill(shot, -1)
        assert int(count[action[row]]) == int(count.max())


def test_density_does_not_spread_shots_where_layouts_are_sampled():
    game = Battleship(10, 10, [5, 4, 3, 3, 2], 2, aim="sequential")
    assert made("player", "density", game, samples=1, steps=1, miss_weight=0.4).miss_weight == 0.4
    with pytest.raises(ValueError, match="here they are sampled"):
        made("player", "density", game, samples=1, steps=0, miss_weight=0.4)
    many_ships = Battleship(10, 10, [2] * 12, 2, aim="sequential", show=["sunk"])
    with pytest.raises(ValueError, match="here they are sampled"):
        made("player", "density", many_ships, samples=1, steps=1, miss_weight=0.4)
    assert made("player", "density", many_ships, samples=1, steps=1).miss_weight == 0


@pytest.mark.parametrize("aim", ["joint", "sequential"])
def test_density_spreads_the_shots_of_a_turn(aim):
    """The second cell is chosen given that the first one is a miss, as far as weight says."""
    game = Battleship(4, 4, [3, 2], 2, aim=aim)
    layouts, weight = game.layouts(), 0.7
    player = made("player", "density", game, samples=1, steps=0, miss_weight=weight)
    state = game.initial(8, rng(4))
    differs = False
    while not bool(state.done.all()):
        before = state
        for _ in range(2 if aim == "sequential" else 1):
            state = game.apply_action(state, player.choose(game.public(state), rng()))
        for row in (~before.done).nonzero()[:, 0].tolist():
            shot, hit = before.shot[row], before.hit[row]
            agree = layouts[((layouts & shot) == hit).all(1)]
            p = agree.float().mean(0).masked_fill(shot, -1)
            first = int(p.argmax())
            missed = agree[~agree[:, first]]
            second = p.lerp(missed.float().mean(0), weight) if len(missed) else p.clone()
            second[shot] = second[first] = -1
            new = state.shot[row] & ~shot
            assert bool(new[first])
            others = new.nonzero()[:, 0].tolist()
            others.remove(first)
            assert all(float(second[cell]) >= float(second.max()) - 1e-6 for cell in others)
            p[first] = -1
            differs |= bool((p[others] < p.max()).any())
    assert differs


def test_density_needs_about_as_many_shots_with_samples_as_with_all_layouts():
    exact, sampled = Battleship(5, 5, [3, 2]), Battleship(5, 5, [3, 2])
    sampled.posterior._listed, sampled.posterior.exact = None, False
    found = [
        evaluate(
            game,
            made("player", "density", game, samples=60, steps=0),
            EvaluationSettings(400),
            rng(3),
        ).turns
        for game in (exact, sampled)
    ]
    assert not made("player", "density", sampled, samples=60, steps=0).is_deterministic
    assert abs(found[0].value - found[1].value) < 0.6


def test_hunt_target_shoots_next_to_hits_and_in_line():
    game = Battleship(4, 4, [3])
    one_hit = parse(game, "   A B C D\n 1 . . . .\n 2 . x . .\n 3 . . . .\n 4 . . . .")
    two_hits = parse(game, "   A B C D\n 1 . . . .\n 2 . x x .\n 3 . . . .\n 4 . . . .")
    nothing = parse(game, "   A B C D\n 1 . . . .\n 2 . . . .\n 3 . . . .\n 4 . . . .")
    player = HuntTarget(game)

    def shots(state):
        actions = {int(player.choose(state, rng(seed))[0]) for seed in range(60)}
        return {game.action_to_string(state, 0, action) for action in actions}

    assert shots(one_hit) == {"B1", "A2", "C2", "B3"}
    assert shots(two_hits) == {"A2", "D2"}
    assert shots(nothing) == {"A1", "C1", "B2", "D2", "A3", "C3", "B4", "D4"}


def test_players_refuse_other_games():
    for player, game in (("corner", "tictactoe"), ("win_or_block", "2048"), ("density", "2048")):
        cfg = compose.load_config(EvalConfig, [f"player={player}", f"game={game}"])
        sitting_at = make("game", cfg.game)
        with pytest.raises(ConfigError, match="plays"):
            build_player(cfg.player, sitting_at, cfg.game)


def test_tile_rates_are_those_of_the_final_boards():
    game = game_2048(3, 3)
    found: Any = evaluate(game, Random(game), EvaluationSettings(500), rng(5))
    tiles = game.tiles(found.state)
    most = 2 ** tiles.amax(1)
    for tile, reached in found.tiles.items():
        assert reached == (int((most >= int(tile)).sum()), 500)
    assert found.measures["grid_sum"].value == pytest.approx(
        float((2.0 ** tiles.double() * (tiles > 0)).sum(1).mean())
    )


def test_a_player_with_chance_plays_every_layout_equally_often():
    """Only its own chance varies then, not the layouts."""
    game = Battleship(4, 4, [4, 2])
    layouts = len(game.openings(1000)[0])
    every = evaluate(game, Random(game), EvaluationSettings("all"), rng(2))
    assert every.games == layouts * math.ceil(2000 / layouts)
    assert not every.is_exact
    low, high = every.turns.interval
    assert low - 0.05 < game.expected_random_turns() < high + 0.05
    sampled = evaluate(game, Random(game), EvaluationSettings(every.games), rng(2))
    wider = sampled.turns.interval[1] - sampled.turns.interval[0]
    assert high - low < wider * 1.05
