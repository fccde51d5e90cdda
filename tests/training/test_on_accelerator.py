"""Runs on an accelerator, where there is one: they train, repeat, resume and search."""

import pytest
import torch
from helpers import (
    command,
    generator,
    interrupt_after,
    made,
    make_game,
    make_small_game,
    resume_run,
    rng,
)
from markers import ACCELERATOR
from run_files import metrics_without_times

import rlgames as package
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.conf import option_names
from rlgames.core.errors import ConfigError
from rlgames.core.signals import Interrupted
from rlgames.games.battleship import Battleship
from rlgames.players.player import Random
from rlgames.rng import Rng
from rlgames.rollouts.conformance import random_positions, visible
from rlgames.rollouts.play import GamePool
from rlgames.training.train import train

if ACCELERATOR == "cpu":
    pytest.skip("needs an accelerator: torch has neither CUDA nor MPS", allow_module_level=True)

NAMES = option_names("game")
SMALL = ["experiment=null", "games=48", "batch=8", "log_every=16", "eval_every=16", "save_every=8"]
SMALL += ["eval_games=8", "solve_seconds=0", f"device={ACCELERATOR}"]
NETWORK, WON = "policy=mlp policy.layers=[8]", "reward=outcome"
ALPHAZERO = f"learner=alphazero search=mcts search.simulations=4 search.leaf=value {NETWORK} {WON}"
REPLAY = "learner=dqn sampling=epsilon_greedy learner.buffer_size=64 learner.minibatch_size=8"
RUNS = {
    "ppo-othello": f"game=othello board=4 {WON} {NETWORK}",
    "ppo-hex": f"game=hex board=3 {WON} {NETWORK}",
    "ppo-gomoku": f"game=gomoku board=5 line=3 {WON} policy=conv",
    "ppo-breakthrough": f"game=breakthrough rows=4 columns=3 home_rows=1 {WON} {NETWORK}",
    "dqn-tictactoe": f"game=tictactoe {WON} {REPLAY} {NETWORK}",
    "td-tictactoe": f"game=tictactoe {WON} learner=td policy=table sampling=epsilon_greedy",
    "td-2048": "game=2048 board=2 reward=score learner=td policy=table window=4 sampling=argmax",
    "alphazero-othello": f"game=othello board=4 {ALPHAZERO}",
    "gumbel-hex": f"game=hex board=3 {ALPHAZERO} search.rule=gumbel",
}


def config(name, path):
    return load_config(TrainConfig, [*RUNS[name].split(), *SMALL, f"out={path}"])


@pytest.mark.parametrize("name", RUNS)
def test_trains_repeats_and_resumes(name, tmp_path, monkeypatch):
    """On CUDA the same seed gives the same run; on MPS torch promises no such thing."""
    for run in (tmp_path / "first", tmp_path / "second"):
        result = train(config(name, run))
        assert result.best.evaluation.games
        assert result.game.device.type == ACCELERATOR
    with monkeypatch.context() as patched:
        interrupt_after(patched, 3)
        with pytest.raises(Interrupted):
            train(config(name, tmp_path / "resumed"))
    resumed = tmp_path / "resumed"
    assert resume_run(resumed).best.evaluation.games
    if ACCELERATOR == "cuda":
        first = metrics_without_times(tmp_path / "first")
        assert first == metrics_without_times(tmp_path / "second")
        assert first == metrics_without_times(resumed)


def test_kernels_are_refused(tmp_path):
    words = ["game=2048", "board=3", "reward=score", "learner=td_ntuple", "policy=ntuple", *SMALL]
    words += ["sampling=argmax", f"out={tmp_path / 'run'}"]
    with pytest.raises(ConfigError, match="kernels run on the CPU, with device=cpu"):
        train(load_config(TrainConfig, words))


@pytest.mark.parametrize("rule", ["puct", "gumbel"])
@pytest.mark.parametrize("name", ["ppo-othello", "ppo-hex", "ppo-gomoku", "ppo-breakthrough"])
def test_searches(name, rule, tmp_path):
    train(config(name, tmp_path / "run"))
    search = ["search=mcts", "search.simulations=8", f"search.rule={rule}", "games=6"]
    report = package.evaluate(tmp_path / "run", [*search, f"device={ACCELERATOR}"])
    assert report["games"] == 6


def test_a_run_of_the_accelerator_plays_on_the_cpu(tmp_path):
    train(config("ppo-othello", tmp_path / "run"))
    report = package.evaluate(tmp_path / "run", ["games=6", "device=cpu"])
    assert report["games"] == 6


@pytest.mark.parametrize("name", ["connect4", "tictactoe"])
def test_positions_of_a_file_are_analyzed(name, tmp_path):
    lines = {"connect4": "beginning - =+++++= someone", "tictactoe": ". . . / . X . / . . O"}
    file = tmp_path / "positions.txt"
    file.write_text(lines[name])
    words = ["player=win_or_block", f"game={name}", f"device={ACCELERATOR}", f"positions={file}"]
    assert command("analyze", None, words).losses["all"].positions == 1


def test_density_samples_other_layouts_for_each_move():
    game = Battleship(10, 10, [5, 4, 3, 3, 2]).to(ACCELERATOR)
    generator = Rng(0, device=ACCELERATOR)
    state = game.public(game.initial(1, generator))
    first, second = (
        made("player", "density", game, samples=50, steps=0).priority(state, generator)
        for _ in range(2)
    )
    assert not torch.equal(first, second)


@pytest.mark.parametrize("name", NAMES)
def test_random_games_are_played(name):
    game = make_game(f"game={name}").to(ACCELERATOR)
    generator = Rng(0, device=ACCELERATOR)
    results = GamePool(game, [Random(game)], 50, generator).run()
    assert results.state.done.all()
    assert random_positions(game, 5).done.device.type == ACCELERATOR


@pytest.mark.parametrize("name", NAMES)
def test_the_accelerator_plays_by_the_rules_of_the_cpu(name):
    """The same actions and the same chance lead to the same positions."""
    here = make_small_game(name)
    there = make_small_game(name).to(ACCELERATOR)
    state = here.initial(20, rng(1))
    copy = state.to(ACCELERATOR)
    for ply in range(min(here.spec.max_plies, 60)):
        action = here.sample_legal_action(
            here.public(state), torch.rand(20, generator=generator(ply))
        )
        chance = torch.rand(20, here.spec.num_chance_inputs, generator=generator(1000 + ply))
        state = here.apply_action(state, action)
        copy = there.apply_action(copy, action.to(ACCELERATOR))
        if here.spec.num_chance_inputs:
            state = here.apply_chance(state, chance)
            copy = there.apply_chance(copy, chance.to(ACCELERATOR))
        for one, other in zip(visible(here, state), visible(there, copy), strict=True):
            assert torch.equal(one, other.cpu())
        assert torch.equal(state.score, copy.score.cpu())
