"""The exact player of Connect 4: how much of its play is proven, and what it depends on."""

import json
import time

import pytest
import torch
from helpers import make_game, rng

from rlgames.cli import display
from rlgames.commands.arena import arena_command
from rlgames.commands.evaluate import evaluate_command
from rlgames.config.compose import load_config
from rlgames.config.training import TrainConfig
from rlgames.core.errors import ConfigError
from rlgames.players.exact import exact_player
from rlgames.players.player import Random
from rlgames.rollouts.play import collect_games
from rlgames.solvers.alphabeta import AlphaBeta
from rlgames.training.run import train

QUICK = "opponent.move_positions=200"


@pytest.mark.parametrize("max_positions", [0, 1, 100, 5000])
def test_a_search_visits_no_more_positions_than_it_may(max_positions):
    search = AlphaBeta(6, 7, 4)
    search.search(0, 0, max_positions=max_positions)
    assert search.positions == max_positions


def play(clock_speed, monkeypatch):
    """The moves of some games against random play on a machine with this speed."""
    with monkeypatch.context() as patched:
        start, real = time.perf_counter(), time.perf_counter
        patched.setattr(time, "perf_counter", lambda: start + (real() - start) * clock_speed)
        game = make_game("game=connect4")
        player = exact_player(game, 60, 1.0, move_positions=300)
        players = [Random(game), player]
        trajectories, _ = collect_games(game, players, 4, rng(1))
        return trajectories.action.tolist(), player.statistics()


def test_the_same_seed_gives_the_same_games_on_every_machine(monkeypatch):
    expected = play(1, monkeypatch)
    assert 0 < expected[1]["proven_moves"] < 1
    assert play(1e6, monkeypatch) == expected


def test_a_move_depends_on_the_position_alone():
    game = make_game("game=connect4")
    players = [exact_player(game, 60, 1.0, move_positions=500) for _ in range(2)]
    trajectories, _ = collect_games(game, [Random(game)], 3, rng(2))
    state = trajectories.state
    every = torch.arange(len(state))
    in_order = [players[0].choose(state[row : row + 1], rng()) for row in every]
    backwards = [players[1].choose(state[row : row + 1], rng()) for row in every.flip(0)]
    assert torch.equal(torch.cat(in_order), torch.cat(backwards).flip(0))


def test_a_report_says_how_much_of_the_opponents_play_is_proven(capsys):
    words = ["player=random", "game=connect4", "opponent=exact", QUICK, "games=4"]
    report = evaluate_command(None, words)
    assert "proven_moves" not in report
    assert 0 < report["opponent_proven_moves"] < 1
    display.print_evaluation(report)
    share = f"{report['opponent_proven_moves']:.1%}"
    printed = " ".join(capsys.readouterr().out.split())
    assert f"opponent's moves proven optimal │ {share}" in printed
    both = evaluate_command(None, ["player=exact", "player.move_positions=200", *words[1:]])
    assert 0 < both["proven_moves"] < 1
    assert 0 < both["opponent_proven_moves"] < 1
    solved = ["player=random", "game=tictactoe", "opponent=exact", "games=4"]
    assert "opponent_proven_moves" not in evaluate_command(None, solved)


def test_an_arena_says_it_too(capsys):
    report = arena_command(["random", "exact"], ["game=connect4", "games=2"])
    first, second = report["players"]
    assert "proven_moves" not in first
    assert 0 < second["proven_moves"] <= 1
    display.print_arena(report)
    assert f"exact: {second['proven_moves']:.1%} of its moves" in capsys.readouterr().out


def test_a_run_says_it_too(tmp_path, capsys):
    words = ["experiment=connect4_mlp", "eval_opponent=exact", "eval_opponent.move_positions=100"]
    words += ["games=20", "batch=10", "eval_games=1", "policy.layers=[4]", f"out={tmp_path}/run"]
    result = train(load_config(TrainConfig, words))
    facts = json.loads((tmp_path / "run/run.json").read_text())
    share = facts["opponent_statistics"]["proven_moves"]
    assert 0 < share < 1
    assert share == result.best.opponent_statistics["proven_moves"]
    display.print_result(result)
    assert f"{share:.1%}" in capsys.readouterr().out


def test_a_search_needs_a_limit():
    words = ["player=random", "game=connect4", "opponent=exact", "opponent.move_positions=null"]
    with pytest.raises(ConfigError, match="limit of time"):
        evaluate_command(None, words)
    timed = evaluate_command(None, [*words, "opponent.move_seconds=0.001", "games=2"])
    assert 0 < timed["opponent_proven_moves"] < 1
