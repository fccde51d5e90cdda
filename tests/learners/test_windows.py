"""Windows of games: what is played on, what is begun anew, what is learnt from an open game."""

import json
from typing import Any

import pytest
import torch
from helpers import game_2048, generator, learner_of, make_policy, rng

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.games.battleship import Battleship
from rlgames.players.player import Agent, Random
from rlgames.policies.table import Table
from rlgames.rewards import Reward, is_last
from rlgames.rollouts.play import UNLIMITED_GAMES, GamePool, collect_games
from rlgames.sampling import Argmax
from rlgames.training.sources import restarting_from_pool
from rlgames.training.train import train


def windows(opened, plies, games):
    """Windows until so many games are over: each game's moves as rows of (board, action, gain)."""
    played: list[Any] = []
    under_way: list[Any] = []
    scores = []
    while len(played) < games:
        moves, results = opened.collect(plies)
        assert moves.num_games == len(results.state)
        assert len(moves) == results.num_moves == sum(moves.ply_sizes)
        assert max(moves.ply_sizes) <= opened.batch
        assert len(moves.ply_sizes) == plies
        under_way += [[] for _ in range(moves.num_games - len(under_way))]
        rows = zip(moves.game.tolist(), told(moves), strict=True)
        for number, row in rows:
            under_way[number].append(row)
        done = results.state.done.tolist()
        played += [each for each, over in zip(under_way, done, strict=True) if over]
        scores += results.score[results.state.done][:, 0].tolist()
        under_way = [each for each, over in zip(under_way, done, strict=True) if not over]
    return played, scores


def told(moves):
    board = [getattr(moves.state, name) for name in ("words", "shot") if hasattr(moves.state, name)]
    columns = (board[0].tolist(), moves.action.tolist(), moves.score_delta.tolist())
    return list(zip(*columns, strict=True))


def whole(game, player, games, **more):
    moves, results = collect_games(game, [player], games, rng(), **more)
    played: list[list[Any]] = [[] for _ in range(games)]
    for number, row in zip(moves.game.tolist(), told(moves), strict=True):
        played[number].append(row)
    return played, results.score[:, 0].tolist()


@pytest.mark.parametrize("plies", [1, 7, 1000])
def test_windows_of_one_game_are_the_whole_games(plies):
    """One after the other, on the same dice."""
    game = game_2048(2, 2)
    expected, scores = whole(game, Random(game), 20, batch=1)
    opened = GamePool(game, [Random(game)], UNLIMITED_GAMES, rng(), batch=1)
    actual, reached = windows(opened, plies, 20)
    assert actual[:20] == expected
    assert reached[:20] == scores
    assert [sum(gain for *_, gain in each) for each in actual[:20]] == scores


@pytest.mark.parametrize("plies", [1, 5, 64])
def test_windows_of_many_games_are_the_whole_games(plies):
    """Without chance, side by side: 60 games on 8 layouts, 8 of them open."""
    game = Battleship(1, 10, [3])
    layouts = game.openings(1000)[0]

    def initial_states(first, count, rng):
        return layouts[torch.arange(first, first + count) % 8]

    policy = make_policy(load_config(TrainConfig, ["game=battleship"]), game, 0)
    agent = Agent(game, policy, Argmax("first"))
    expected, _ = whole(game, agent, 8, initial_states=initial_states)
    actual, _ = windows(
        GamePool(game, [agent], UNLIMITED_GAMES, rng(), batch=8, initial_states=initial_states),
        plies,
        60,
    )
    assert all(each in expected for each in actual)
    assert all(each in actual for each in expected)


def test_new_games_take_the_place_of_those_that_end():
    game = game_2048(2, 2)
    opened = GamePool(game, [Random(game)], UNLIMITED_GAMES, rng(), batch=64)
    for _ in range(10):
        moves, results = opened.collect(4)
        assert moves.ply_sizes[0] == 64  # no finished row is carried over
        assert min(moves.ply_sizes) >= 32
        assert int((~results.state.done).sum()) <= 64
        assert (results.score[:, 0] >= moves.state.score.amax(0)).any()
    assert opened.num_started > 64


def test_rewards_at_the_end_are_paid_only_where_a_game_is_over():
    game = game_2048(2, 2)
    moves, results = GamePool(game, [Random(game)], UNLIMITED_GAMES, rng(), batch=50).collect(12)
    assert 0 < int(results.state.done.sum()) < len(results.state)
    paid = Reward(game, "score").rewards(moves, results)
    expected = is_last(moves) & results.state.done[moves.game]
    assert torch.equal(paid, expected * results.score[moves.game, 0])


@pytest.mark.parametrize("reward", ["score", "grid_sum", "turns"])
def test_the_last_move_of_a_window_asks_for_the_best_action_where_it_ends(reward):
    """A table on 2×2, a window of one ply, so that every move is a last one."""
    game = game_2048(2, 2)
    words = ["game=2048", "board=2", "policy=table", "learner=td", "experiment=null"]
    words += [f"reward={reward}", "reward.discount=0.9", "lr=1"]
    cfg = load_config(TrainConfig, [*words, "reward.scale=1"])
    policy = make_policy(cfg, game, 0)
    assert isinstance(policy, Table)
    policy.values.copy_(torch.rand(len(policy.values), generator=generator(1)) * 10)
    old = policy.values.clone()
    learner = learner_of(cfg, game, policy)
    opened = GamePool(game, [Random(game)], UNLIMITED_GAMES, rng(2), batch=1)
    for _ in range(60):
        policy.values.copy_(old)
        moves, results = opened.collect(1)
        after = game.apply_action(moves.state, moves.action)
        end = results.state
        if bool(end.done[0]):
            expected = float(game.measures(end)["grid_sum"]) if reward == "grid_sum" else 0.0
        else:
            action_values = []
            for action in game.legal_action_mask(end)[0].nonzero()[:, 0]:
                next_ = game.apply_action(end, action[None])
                gain = float(next_.score - end.score) if reward == "score" else 0.0
                gain -= reward == "turns"
                action_values.append(gain + float(policy.value(game, next_)))
            expected = max(action_values)
        learner.update(moves, results, 0.0)
        assert float(policy.value(game, after)) == pytest.approx(0.9 * expected, rel=1e-5)


def test_restarts_are_one_move_from_an_unfinished_game():
    """Without chance, so that every such move can be looked up."""
    game = Battleship(1, 10, [3])
    opened = GamePool(game, [Random(game)], UNLIMITED_GAMES, rng(), batch=200)
    opened.run(3)
    state = opened.state
    near = set()
    for action in range(10):
        able = game.legal_action_mask(state)[:, action] & ~state.done
        after = game.apply_action(state[able], torch.full((int(able.sum()),), action))
        # A move that would end the game is not made.
        near |= set(positions(after[~after.done])) | set(positions(state[able][after.done]))
    new = restarting_from_pool(opened, 1.0)(0, 500, opened.rng)
    assert not new.done.any()
    assert set(positions(new)) <= near
    assert len(set(positions(new))) > 100
    some = restarting_from_pool(opened, 0.3)(0, 2000, opened.rng)
    assert 0.25 < float((some.turn > 0).float().mean()) < 0.35


def test_a_restart_does_not_end_at_once():
    """In 2048 on 2x2 a random move often is the last; then the position itself is begun with."""
    game = game_2048(2, 2)
    opened: Any = GamePool(game, [Random(game)], UNLIMITED_GAMES, rng(), batch=400)
    opened.run(12)
    before = set(map(tuple, opened.state.words[~opened.state.done].tolist()))
    new: Any = restarting_from_pool(opened, 1.0)(0, 2000, opened.rng)
    assert not new.done.any()
    assert game.is_valid(new).all()
    stayed = [tuple(words) in before for words in new.words.tolist()]
    assert 0 < sum(stayed) < 2000


def test_games_start_normally_where_all_are_finished():
    game = game_2048(2, 2)
    opened = GamePool(game, [Random(game)], 1, rng(), batch=1)
    opened.run()
    assert (restarting_from_pool(opened, 1.0)(0, 50, opened.rng).turn == 0).all()


def positions(state):
    columns = (state.shot, state.ships, state.turn)
    return [str(row) for row in zip(*(each.tolist() for each in columns), strict=True)]


def test_training_by_windows_counts_the_games_that_end_and_repeats_itself(tmp_path):
    words = ["game=2048", "board=2", "experiment=null", "policy=table", "learner=td", "lr=0.2"]
    words += ["reward=score", "sampling=argmax", "window=6", "games=400", "batch=32"]
    words += ["log_every=100", "eval_every=200", "eval_games=20", "solve_seconds=0"]
    actual = []
    for name in ("one", "other"):
        cfg = load_config(TrainConfig, [*words, f"out={tmp_path / name}"])
        train(cfg)
        lines = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        actual.append([json.loads(line) for line in lines])
    for one, other in zip(*actual, strict=True):
        assert {k: v for k, v in one.items() if not k.startswith("time/")} == {
            k: v for k, v in other.items() if not k.startswith("time/")
        }
    last_line = actual[0][-1]
    assert 400 <= last_line["games"] < 432
    assert all(10 < line["train/score"] < 90 for line in actual[0] if "train/score" in line)
