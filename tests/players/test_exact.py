"""The exact player of Connect 4: how much of its play is proven, and what it depends on."""

import math
import time

import pytest
import torch
from helpers import command, made, make_game, read_result, rng

from rlgames.build.agents import load_shipped_agent
from rlgames.build.players import build_player
from rlgames.commands import evaluate
from rlgames.commands.train import print_result
from rlgames.config.commands import EvalConfig, TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import make
from rlgames.players.player import Random
from rlgames.rollouts.play import collect_games
from rlgames.search.alphabeta import AlphaBetaSearch
from rlgames.solvers.connect4 import AlphaBeta
from rlgames.training.train import train

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
        player = made("player", "exact", game, move_positions=300)
        players = [Random(game), player]
        trajectories, _ = collect_games(game, players, 4, rng(1))
        return trajectories.action.tolist(), player.statistics()


def test_the_same_seed_gives_the_same_games_on_every_machine(monkeypatch):
    expected = play(1, monkeypatch)
    assert 0 < expected[1]["proven_moves"] < 1
    assert play(1e6, monkeypatch) == expected


def test_a_move_depends_on_the_position_alone():
    game = make_game("game=connect4")
    players = [made("player", "exact", game, move_positions=500) for _ in range(2)]
    trajectories, _ = collect_games(game, [Random(game)], 3, rng(2))
    state = trajectories.state
    every = torch.arange(len(state))
    in_order = [players[0].choose(state[row : row + 1], rng()) for row in every]
    backwards = [players[1].choose(state[row : row + 1], rng()) for row in every.flip(0)]
    assert torch.equal(torch.cat(in_order), torch.cat(backwards).flip(0))


def test_a_report_says_how_much_of_the_opponents_play_is_proven(capsys):
    words = ["player=random", "game=connect4", "opponent=exact", QUICK, "games=4"]
    result = command("eval", None, words)
    report = result.as_dict()
    assert "proven_moves" not in report
    assert 0 < report["opponent_proven_moves"] < 1
    evaluate.show(result)
    share = f"{report['opponent_proven_moves']:.1%}"
    printed = " ".join(capsys.readouterr().out.split())
    assert f"opponent's moves proven optimal {share}" in printed
    words = ["player=exact", "player.move_positions=200", *words[1:]]
    both = command("eval", None, words).as_dict()
    assert 0 < both["proven_moves"] < 1
    assert 0 < both["opponent_proven_moves"] < 1
    solved = ["player=random", "game=tictactoe", "opponent=exact", "games=4"]
    assert "opponent_proven_moves" not in command("eval", None, solved).as_dict()


def test_a_run_says_it_too(tmp_path, capsys):
    words = ["experiment=connect4_mlp", "eval_opponent=exact", "eval_opponent.move_positions=100"]
    words += ["games=20", "batch=10", "eval_games=1", "policy.layers=[4]", f"out={tmp_path}/run"]
    result = train(load_config(TrainConfig, words))
    share = read_result(tmp_path / "run")["opponent_statistics"]["proven_moves"]
    assert 0 < share < 1
    assert share == result.best.opponent_statistics["proven_moves"]
    print_result(result)
    assert f"{share:.1%}" in capsys.readouterr().out


def test_what_a_timed_search_finds_out_serves_later_moves_and_games():
    """A position is searched once, and one that follows from it takes fewer positions."""
    game = make_game("game=connect4")
    kept, fresh = (made("player", "exact", game, move_seconds=60) for _ in range(2))
    first, later = (position(game, moves) for moves in ("44444415265326", "4444441526532622"))
    kept.choose(first, rng())
    visited = kept._alpha_beta.positions
    kept.choose(first, rng())
    assert kept._alpha_beta.positions == visited
    for player in (kept, fresh):
        player.choose(later, rng())
    assert kept.statistics() == {"proven_moves": 1.0}
    assert kept._alpha_beta.positions - visited < 0.8 * fresh._alpha_beta.positions


def position(game, moves):
    state = game.initial(1, rng())
    for column in moves:
        state = game.apply_action(state, torch.tensor([int(column) - 1]))
    return state


def test_unproven_moves_are_those_of_the_agent_that_comes_with_rlgames_with_search():
    """Unless they are known to be worse."""
    cfg = load_config(EvalConfig, ["game=connect4", "player=exact", "player.move_positions=1"])
    game = make("game", cfg.game)
    player = build_player(cfg.player, game, cfg.game)
    agent = load_shipped_agent(cfg.game, torch.device("cpu"))
    search = AlphaBetaSearch(game, agent, 5)
    trajectories, _ = collect_games(game, [Random(game)], 3, rng(2))
    state = trajectories.state[:40]
    bounds = AlphaBeta(game.rows, game.columns, game.line)
    chosen, expected = player.choose(state, rng()).tolist(), search.choose(state, rng()).tolist()
    unproven = 0
    for row, (mine, its) in enumerate(zip(chosen, expected, strict=True)):
        bounds.clear()
        own, occupied = state.words[row].tolist()
        result = bounds.search(own, occupied, max_positions=1)
        assert mine in result.columns
        if result.value is None and its in result.columns:
            unproven += 1
            assert mine == its
    assert unproven > 10
    assert len({*chosen}) > 3


def test_other_boards_have_no_such_agent():
    words = ["game=connect4", "rows=7", "player=exact", "player.move_positions=1"]
    cfg = load_config(EvalConfig, words)
    game = make("game", cfg.game)
    player = build_player(cfg.player, game, cfg.game)
    assert int(player.choose(game.initial(1, rng()), rng())) == 3  # most threats: the center


def test_by_default_its_moves_depend_on_the_position_alone():
    cfg = load_config(EvalConfig, ["game=connect4", "player=exact"])
    game = make("game", cfg.game)
    player = build_player(cfg.player, game, cfg.game)
    assert (player._max_positions, player._seconds) == (200_000, math.inf)
