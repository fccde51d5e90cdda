"""N-tuple networks: what they add up, how their values move, how well they play."""

import itertools
import re
from typing import Any

import pytest
import torch
from helpers import learner_of, make_game, make_learner, make_policy, rng
from markers import one_in

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.core.errors import ConfigError
from rlgames.games.game_2048 import Game2048
from rlgames.learners.td import SharedValues
from rlgames.players.player import Agent, Random
from rlgames.policies.ntuple import Ntuple, default_tuples
from rlgames.policies.packed_ntuple import reason_not_packed
from rlgames.rollouts.play import UNLIMITED_GAMES, GamePool, collect_games
from rlgames.sampling import Argmax
from rlgames.training.components import build_components


def filled(game, tuples, marks=16):
    policy = Ntuple(game, 1.0, tuples, marks, 0.0)
    policy.values.copy_(torch.rand(len(policy.values), generator=rng(1)))
    return policy


def boards(rows, columns, most, count=200):
    return torch.randint(0, most, (count, rows, columns), generator=rng(2))


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (2, 4), (4, 4)])
def test_a_board_is_worth_what_its_tuples_hold_wherever_they_lie(rows, columns):
    """Against reading each view of the board apart, where several see the same cells the one from
    which their number is least; cells beyond the marks count as the last."""
    game = Game2048(rows, columns)
    tuples, marks = [[0, 1, 2], [1, 4, 5, 7]], 5
    policy = filled(game, tuples, marks)
    exponents = boards(rows, columns, 7)
    actual = policy.value(game, game.from_exponents(exponents))
    cells = torch.arange(rows * columns).view(rows, columns)
    views = [cells, cells.flip(0), cells.flip(1), cells.flip(0, 1)]
    if rows == columns:
        views += [view.T for view in views]
    for row, board in enumerate(exponents.flatten(1).clamp(max=marks - 1).tolist()):
        total, first = 0.0, 0
        for each in tuples:
            least: dict[Any, Any] = {}
            for view in views:
                seen = view.flatten()[each].tolist()
                number = sum(board[cell] * marks**n for n, cell in enumerate(seen))
                where = frozenset(seen)
                least[where] = min(number, least.get(where, number))
            total += sum(float(policy.values[first + number]) for number in least.values())
            first += marks ** len(each)
        assert float(actual[row]) == pytest.approx(total, rel=1e-5)


def test_boards_have_the_values_of_the_stage_that_their_largest_tile_has_reached():
    game = Game2048(4, 4)
    tuples, marks = [[0, 1, 2], [1, 4, 5, 7]], 8
    policy = Ntuple(game, 1.0, tuples, marks, 0.0, stage_tiles=[8, 64])
    policy.values.copy_(torch.rand(len(policy.values), generator=rng(1)))
    state = game.from_exponents(boards(4, 4, 7) * (torch.rand(200, 4, 4, generator=rng(3)) < 0.1))
    largest = state.tiles.amax(1)
    stage = (largest >= 3).int() + (largest >= 6).int()
    assert stage.unique().tolist() == [0, 1, 2]
    for number, values in enumerate(policy.values.chunk(3)):
        part = Ntuple(game, 1.0, tuples, marks, 0.0)
        part.values.copy_(values)
        members = (stage == number).nonzero()[:, 0]
        assert policy.value(game, state[members]).equal(part.value(game, state[members]))


@pytest.mark.parametrize(
    ("name", "words", "reason"),
    [
        ("2048", "policy.stage_tiles=[8192,4096]", "rising powers of two from 2 to 4096"),
        ("2048", "policy.stage_tiles=[100]", "rising powers of two"),
        ("2048", "policy.stage_tiles=[1024] policy.num_cell_values=10", "from 2 to 512"),
        ("2048", "policy.stage_tiles=[1024] policy.table_size=1000", "policy.table_size=1000"),
        ("tictactoe", "policy.stage_tiles=[4]", "k in a row"),
    ],
)
def test_stages_begin_at_tiles_that_the_network_tells_apart(name, words, reason):
    cfg = load_config(TrainConfig, [f"game={name}", "policy=ntuple", "learner=td", *words.split()])
    with pytest.raises(ConfigError, match=re.escape(reason)):
        build_components(cfg)


def test_five_tuples_lie_on_all_lines_and_squares_and_are_looked_up_once_on_each():
    game = Game2048(4, 4)
    tuples = [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 4, 5], [1, 2, 5, 6], [5, 6, 9, 10]]
    policy = Ntuple(game, 1.0, tuples, 14, 0.0)
    assert policy.feature_indices(game, game.from_exponents(boards(4, 4, 14))).shape == (200, 8 + 9)


def test_symmetric_boards_have_equal_values():
    game = Game2048(4, 4)
    policy = filled(game, None, 8)
    exponents = boards(4, 4, 8)
    value = policy.value(game, game.from_exponents(exponents))
    for turned in (exponents.flip(1), exponents.flip(2), exponents.transpose(1, 2)):
        assert torch.allclose(policy.value(game, game.from_exponents(turned)), value, rtol=1e-5)


def test_places_are_exact_where_floats_of_32_bits_would_not_be():
    game = Game2048(3, 3)
    policy = Ntuple(game, 1.0, [[0, 1, 2, 3, 4, 5, 6, 7]], 9, 0.0)  # 9^8 values
    cells = torch.tensor([7, 8, 7, 6, 5, 4, 3, 2, 0])
    places = policy.feature_indices(game, game.from_exponents(cells.view(1, 3, 3)))[0].tolist()
    assert sum(int(cells[n]) * 9**n for n in range(8)) in places


def least_numbers(exponents):
    """Of each board what its cells say in the base of 11, from the side where that is least."""
    actual = []
    for board in exponents:
        views = [board, board.flip(0), board.flip(1), board.flip(0, 1)]
        sides = [turned for view in views for turned in (view, view.T)]
        actual.append(min(sum(int(c) * 11**n for n, c in enumerate(s.flatten())) for s in sides))
    return actual


def test_the_whole_board_is_looked_up_once_and_has_a_value_of_its_own_once_it_is_met():
    """Beside a tuple that is looked at from all eight sides, and with room for 1000 boards."""
    game = Game2048(3, 3)
    policy = Ntuple(game, 1.0, [[0, 1], list(range(9))], 11, 18.0, table_size=1000)
    exponents = boards(3, 3, 11)
    met, new = game.from_exponents(exponents[:100]), game.from_exponents(exponents[100:])
    indices, new_indices = policy.allocate(game, met)
    assert {*new_indices.tolist()} == {*indices[:, 8].tolist()}
    assert indices.shape == (100, 8 + 1)
    own = dict(zip(least_numbers(exponents[:100]), indices[:, 8].tolist(), strict=True))
    assert len(set(own.values())) == len(own)
    assert policy.feature_indices(game, met).equal(indices)
    again, new_indices = policy.allocate(game, met)
    assert again.equal(indices)
    assert len(new_indices) == 0
    nowhere = 11**2 + 1000
    assert policy.feature_indices(game, new)[:, 8].tolist() == [
        own.get(number, nowhere) for number in least_numbers(exponents[100:])
    ]
    policy.values[indices[:, 8]] = 5.0
    assert policy.value(game, met).tolist() == pytest.approx([16.0 + 5.0] * 100)
    assert policy.values[nowhere] == 2.0
    turned = game.from_exponents(exponents[:100].flip(1).transpose(1, 2))
    assert policy.feature_indices(game, turned)[:, 8].equal(indices[:, 8])


def test_where_there_is_no_room_the_newest_boards_take_the_places_of_others():
    game = Game2048(3, 3)
    policy = Ntuple(game, 1.0, [list(range(9))], 11, 7.0, table_size=40)
    exponents = boards(3, 3, 11)
    policy.values.fill_(1.0)
    first, _ = policy.allocate(game, game.from_exponents(exponents[:150]))
    assert int(first.max()) < 40  # the place after them is for boards that nobody learns
    assert len(first.unique()) >= 35
    for board in exponents[150:]:
        last = game.from_exponents(board[None])
        assert policy.feature_indices(game, last).tolist() == [[40]]
        indices, new_indices = policy.allocate(game, last)
        assert new_indices.tolist() == indices[0].tolist()
        assert policy.feature_indices(game, last).equal(indices)
        assert policy.value(game, last).tolist() == [7.0]


def test_often_updated_values_take_less_of_an_error():
    """Parts of 1 ÷ (1 + times): first halves, then, where one of two moved four times, 1 to 5."""
    policy = Ntuple(Game2048(2, 2), 1.0, [[0, 1]], 4, 0.0)
    values = SharedValues(policy, "counts")
    values.update(torch.tensor([[0, 1]]), torch.tensor([8.0]), 1.0)
    assert policy.values[:2].tolist() == [4.0, 4.0]
    assert values.times[:3].tolist() == [1.0, 1.0, 0.0]
    values.times[0] = 4.0
    values.update(torch.tensor([[0, 2]]), torch.tensor([12.0]), 1.0)
    assert policy.values[:3].tolist() == pytest.approx([4.0 + 2.0, 4.0, 10.0])


def test_the_tuples_of_the_usual_board_are_the_placements_of_the_shapes():
    game = Game2048(4, 4)
    actual = default_tuples(4, 4, game.symmetries())
    assert all(len(each) == 6 for each in actual)
    assert [0, 1, 2, 4, 5, 6] in actual
    assert [0, 1, 2, 3, 4, 5] in actual
    alike = [
        {tuple(sorted(view)) for view in game.symmetries()[:, each].tolist()} for each in actual
    ]
    for one, other in itertools.combinations(alike, 2):
        assert not one & other
    # 2x3 cells lie in 12 places and on their sides, 4+2 in 6 rows of each of four directions.
    assert sum(map(len, alike)) == 12 + 24
    assert default_tuples(2, 3, Game2048(2, 3).symmetries()) == [[0, 1, 2, 3, 4, 5]]
    assert default_tuples(1, 8, Game2048(1, 8).symmetries()) == [list(range(8))]


@pytest.mark.parametrize(
    ("words", "error"),
    one_in(
        3,
        [
            (["policy.tuples=[[0,16]]"], "from 0 to 15"),
            (["policy.tuples=[[0,0]]"], "distinct cells"),
            (["policy.tuples=[[]]"], "distinct cells"),
            (["policy.tuples=[]"], "0 tuples"),
            (["policy.tuples=[[0,1,2,3,4,5,6,7]]"], "need 8.16e"),
            (["learner=reinforce"], "does not train policy=ntuple"),
        ],
    ),
)
def test_invalid_ntuple_configs_are_rejected(words, error):
    cfg = load_config(TrainConfig, ["game=2048", "policy=ntuple", "learner=td", *words])
    with pytest.raises(ConfigError, match=error):
        make_policy(cfg, Game2048(4, 4), 0)


def test_ntuple_rejects_other_games():
    with pytest.raises(ValueError, match="not of salvo"):
        Ntuple(make_game("game=salvo"), 1.0, None, 16, 0.0)


def test_score_deltas_are_scaled_like_the_reward():
    game = Game2048(2, 2)
    state = collect_games(game, [Random(game)], 20, rng())[0].state
    one, _ = Ntuple(game, 1.0, None, 6, 0.0).scores(game, state)
    part, _ = Ntuple(game, 0.01, None, 6, 0.0).scores(game, state)
    assert float(one.max()) > 0
    assert torch.allclose(part, one / 100)


@pytest.mark.parametrize("rates", ["constant", "temporal_coherence"])
def test_value_updates_equal_a_slow_loop(rates):
    """The mean over those who share a value, and how far by how many they are."""
    game = Game2048(2, 2)
    policy = Ntuple(game, 1.0, [[0, 1], [0, 3]], 4, 8.0)
    assert policy.value(game, game.initial(1, rng())).tolist() == [8.0]
    shared, coherent = SharedValues(policy, rates), rates == "temporal_coherence"
    values = policy.values.tolist()
    errors, sizes = [0.0] * len(values), [0.0] * len(values)
    for step in range(20):
        places = torch.randint(0, len(values), (5, 3), generator=rng(step))
        error = torch.randn(5, generator=rng(100 + step))
        shared.update(places, error, 0.3)
        asked: dict[Any, Any] = {}
        for row, each in zip(error.tolist(), places.tolist(), strict=True):
            for place in each:
                asked.setdefault(place, []).append(row / 3)
        for place, each in asked.items():
            mean, rate = sum(each) / len(each), 0.3
            if coherent:
                rate *= abs(errors[place]) / sizes[place] if sizes[place] else 1
                errors[place] += mean
                sizes[place] += abs(mean)
            values[place] += (1 - (1 - rate) ** len(each)) * mean
    assert policy.values.tolist() == pytest.approx(values, abs=1e-5)
    assert set(shared.state_dict()) == ({"errors", "sizes"} if coherent else set())


def test_windows_with_optimistic_init_play_2x2_optimally():
    """The exact mean score is 66.964."""
    game = Game2048(2, 2)
    words = ["game=2048", "board=2", "experiment=null", "reward=score", "reward.discount=1"]
    words += ["policy=ntuple", "policy.init_value=70", "sampling=argmax"]
    words += ["learner=td", "learner.step_size=temporal_coherence", "lr=0.5"]
    policy, learner = make_learner(game, *words, seeds=(0, 0))
    agent = Agent(game, policy, Argmax())
    opened = GamePool(game, [agent], UNLIMITED_GAMES, rng(), batch=64)
    for _ in range(40):
        learner.update(*opened.collect(8), 0.0)
    results = GamePool(game, [agent], 4000, rng(1)).run()
    score = results.score[:, 0].double()
    assert float(score.mean()) > 66.964 - 3 * float(score.std()) / 4000**0.5


def expecting(game, *words, backup="expected", policy=None):
    """A network of the whole board, whose learner takes exact means over the dice; or another
    learner for one that there is."""
    overrides = ["game=2048", "experiment=null", "reward=score", "policy=ntuple", *words]
    overrides += ["learner=td", f"learner.backup={backup}", "lr=1"]
    cfg = load_config(TrainConfig, overrides)
    policy = make_policy(cfg, game, 0) if policy is None else policy
    return policy, learner_of(cfg, game, policy)


def mean_of_best(game, policy, after):
    """What an afterstate should be worth, each tile and each move by itself."""
    wanted = 0.0
    empty = (after.tiles[0] == 0).nonzero()[:, 0].tolist()
    for cell, (tile, share) in itertools.product(empty, [(1, 0.9), (2, 0.1)]):
        tiles = after.tiles.clone()
        tiles[0, cell] = tile
        state = game.from_exponents(tiles.view(1, 2, 3))
        action_values = [0.0]
        for action in (game.legal_action_mask(state)[0] & ~state.done).nonzero()[:, 0]:
            then = game.apply_action(state, action[None])
            action_values.append(float(then.score) + float(policy.value(game, then)))
        wanted += share / len(empty) * max(action_values)
    return wanted


def test_an_expected_target_is_the_mean_of_the_best_moves_over_all_new_tiles():
    """In games that are open after one random ply."""
    game = Game2048(2, 3)
    words = ["board=2", "columns=3", "reward.discount=0.9"]
    policy, learner = expecting(game, *words)
    policy.values.copy_(torch.rand(len(policy.values), generator=rng(1)) * 10)
    old = policy.values.clone()
    opened = GamePool(game, [Random(game)], UNLIMITED_GAMES, rng(2), batch=1)
    for _ in range(40):
        policy.values.copy_(old)
        moves, results = opened.collect(1)
        after = game.apply_action(moves.state, moves.action)
        wanted = 0.9 * mean_of_best(game, policy, after)
        learner.update(moves, results, 0.0)
        assert float(policy.value(game, after)) == pytest.approx(wanted, rel=1e-5)
        assert int((policy.values != old).sum()) <= 1


def test_one_sweep_over_all_boards_gives_their_exact_values():
    """The exact mean score on 2x2 is 66.964. Boards that play seldom reaches are left out."""
    game = Game2048(2, 2)
    words = ["board=2", "reward.discount=1", "sampling=epsilon_greedy"]
    games = collect_games(game, [Random(game)], 1, rng())
    boards, means = [], []
    for limit in ("1e-30", "0.02"):
        policy, learner = expecting(
            game, *words, f"learner.min_probability={limit}", backup="reachable"
        )
        boards.append(learner.update(*games, 0.0)["boards"])
        openings, probability = game.openings(100)
        means.append(float((probability * policy.best(game, openings)).sum()))
    assert means[0] == pytest.approx(66.964, abs=0.001)
    assert 0 < boards[1] < boards[0]
    assert 0 < means[1] < means[0]


def test_other_tuples_correct_all_of_an_error():
    """A row and the whole board: what was learnt is worth its target, and no row was moved."""
    game = Game2048(2, 3)
    words = ["board=2", "columns=3", "reward.discount=1"]
    words += ["policy.tuples=[[0,1,2],[0,1,2,3,4,5]]"]
    policy, learner = expecting(game, *words, "learner.frozen_tuples=[0]")
    policy.values.copy_(torch.rand(len(policy.values), generator=rng(1)) * 10)
    old = policy.values.clone()
    moves, results = GamePool(game, [Random(game)], UNLIMITED_GAMES, rng(2), batch=1).collect(1)
    after = game.apply_action(moves.state, moves.action)
    wanted = mean_of_best(game, policy, after)
    learner.update(moves, results, 0.0)
    assert float(policy.value(game, after)) == pytest.approx(wanted, rel=1e-5)
    moved = (policy.values != old).nonzero()[:, 0].tolist()
    places = policy.feature_indices(game, after)[0]
    assert moved == places[policy.tuple_of == 1].tolist()


CROWDED = ["board=3", "policy.tuples=[[0,1],[0,1,2,3,4,5,6,7,8]]", "policy.table_size=200"]


def crowded(*words):
    """A learner of whole boards that have 200 places, after 50 games of 3×3, and its policy."""
    game = Game2048(3, 3)
    policy, learner = expecting(game, *CROWDED, *words, backup="sampled")
    learner.update(*collect_games(game, [Random(game)], 50, rng(3)), 0.0)
    return game, policy, learner


def test_frozen_tuples_keep_their_slots_in_a_full_table():
    game, policy, _ = crowded()
    _, learner = expecting(
        game, *CROWDED, "learner.frozen_tuples=[1]", backup="sampled", policy=policy
    )
    keys, values = policy.met["1"].keys.clone(), policy.values.clone()
    learner.update(*collect_games(game, [Random(game)], 50, rng(4)), 0.0)
    assert policy.met["1"].keys.equal(keys)
    assert policy.values[121:].equal(values[121:])
    assert not policy.values[:121].equal(values[:121])


@pytest.mark.parametrize("rates", ["temporal_coherence", "counts"])
def test_a_replaced_slot_resets_its_statistics(rates):
    game, policy, learner = crowded(f"learner.step_size={rates}")
    statistics = [getattr(learner.values, name) for name in SharedValues.STATISTICS[rates]]
    assert all((each[121:-1] != 0).all() for each in statistics)
    moves, _ = collect_games(game, [Random(game)], 50, rng(4))
    _, new_indices = policy.allocate(game, game.apply_action(moves.state, moves.action))
    learner.values.reset(new_indices)
    assert len(new_indices) > 100
    assert all((each[new_indices] == 0).all() for each in statistics)


def test_tuples_with_too_many_contents_are_rejected():
    words = ["game=2048", "experiment=null", "reward=score", "policy=ntuple", "learner=td"]
    words += ["policy.table_size=100000", f"policy.tuples=[{list(range(14))}]"]
    with pytest.raises(ConfigError, match="at most 13 cells"):
        build_components(load_config(TrainConfig, words))


@pytest.mark.parametrize(
    ("frozen", "error"),
    [("[2]", "the tuples are 0 to 1"), ("[0,1]", "leaves nothing to learn")],
)
def test_invalid_frozen_tuples_are_rejected(frozen, error):
    words = ["game=2048", "board=2", "experiment=null", "reward=score", "policy=ntuple"]
    words += ["policy.tuples=[[0,1],[0,1,2,3]]", "learner=td", f"learner.frozen_tuples={frozen}"]
    with pytest.raises(ConfigError, match=error):
        build_components(load_config(TrainConfig, words))


def test_expected_backup_reaches_the_exact_optimum():
    """2×2, from above: what was never met is worth 70, the best play's mean score is 66.964."""
    game = Game2048(2, 2)
    policy, learner = expecting(game, "board=2", "reward.discount=1", "policy.init_value=70")
    opened = GamePool(game, [Agent(game, policy, Argmax())], UNLIMITED_GAMES, rng(), batch=64)
    for _ in range(40):
        learner.update(*opened.collect(8), 0.0)
    states, probability = game.openings(1000)
    assert 66.963 < float((probability * policy.best(game, states)).sum()) < 67.1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["reward=grid_sum", "learner.backup=expected"], "backup=expected"),
        (["reward=grid_sum", "learner.backup=reachable"], "backup=reachable"),
        (["reward=score", "learner.backup=reachable", "board=5"], "more than 16 cells"),
        (["reward=score", "learner.backup=reachable"], "needs a small board, such as board=3"),
        (["board=2", "reward=score", "learner.backup=reachable", "policy=table"], "policy=ntuple"),
        (
            ["board=3", "reward=score", "learner.backup=reachable", "learner.threads=2"],
            "reachable;",
        ),
    ],
)
def test_exact_backups_reject_what_they_cannot_learn(words, error):
    words = ["game=2048", "experiment=null", "learner=td", *words]
    if "policy=table" not in words:
        words += ["policy=ntuple", "policy.num_cell_values=4"]
    with pytest.raises(ConfigError, match=error):
        build_components(load_config(TrainConfig, words))


def test_kernels_do_not_play_games_derived_from_2048():
    class Derived(Game2048):
        """Whose rules no kernel knows."""

    for make, reason in ((Game2048, ""), (Derived, "it knows the rules of 2048, not of")):
        game = make(3, 3)
        assert reason_not_packed(game, Ntuple(game, 1.0, [[0, 1]], 6, 0.0)).startswith(reason)
        assert bool(reason_not_packed(game, Ntuple(game, 1.0, [[0, 1]], 6, 0.0))) == bool(reason)
