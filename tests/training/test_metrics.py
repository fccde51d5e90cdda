"""docs/metrics.md explains what runs log, all of it, and nothing else."""

import math
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import game_2048, make_game
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import rlgames as package
from rlgames.config.registry import REGISTRY
from rlgames.evaluation.evaluate import EvaluationSettings, evaluate
from rlgames.learners.dqn import spread_metrics
from rlgames.learners.learner import return_metrics
from rlgames.players.player import Random
from rlgames.rng import Rng
from rlgames.rollouts.play import GamePool, collect_games
from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.files import LATEST, read_metrics
from rlgames.training.parts import agent_points
from rlgames.training.progress import game_statistics

PAGE = Path(package.__file__).parent.parent / "docs" / "metrics.md"

TINY = ["experiment=null", "games=16", "batch=8", "eval_games=20", "log_every=8", "eval_every=16"]
NETWORK = "policy=mlp policy.layers=[4]"
SEA = f"game=salvo board=3 ships=[2] shots=1 {NETWORK}"
TILES = "game=2048 board=2 columns=2 reward=score"
GREEDY = "sampling=epsilon_greedy"
LINES = f"game=connect4 rows=3 columns=4 line=3 reward=outcome {NETWORK}"
RUNS = {
    "ppo": f"{SEA} holdout=0.2",
    "reinforce": f"{LINES} opponent=random analyze_every=16",
    "td": f"game=tictactoe reward=outcome policy=table {GREEDY}",
    "td_ntuple": f"{TILES} policy=ntuple sampling=argmax",
    "td_lambda": f"{TILES} {NETWORK} sampling=argmax",
    "adp": f"{TILES} policy=linear {GREEDY}",
    "dqn": f"{SEA} {GREEDY} learner.buffer_size=64 learner.minibatch_size=8",
    "behavior_cloning": f"game=tictactoe {NETWORK} demonstrations={{record}}",
    "occupancy": SEA,
    "alphazero": f"game=tictactoe {NETWORK} search=mcts search.simulations=2 search.leaf=value "
    "learner.buffer_size=50 reward=outcome",
}
"""A run for each learner; together they have games of each kind."""


def logged(run):
    """The names of all that TensorBoard shows of a run, but what plugins keep for themselves."""
    events = EventAccumulator(str(run)).Reload()
    names = {name for part in ("scalars", "images") for name in events.Tags()[part]}
    return names | {"config"}


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """The names that all of the runs log."""
    folder = tmp_path_factory.mktemp("runs")
    record = folder / "record.jsonl"
    package.evaluate(None, ["player=random", "game=tictactoe", "games=4", f"record={record}"])
    found: set[str] = set()
    for learner, words in RUNS.items():
        words = words.format(record=record).split()
        run = package.train([*TINY, *words, f"learner={learner}", f"out={folder}/{learner}"])
        found |= logged(run)
    return found


@pytest.mark.slow
def test_the_page_explains_exactly_what_runs_log(everything):
    rows = re.findall(r"^\| (`.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    explained = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    matches = {name: [own for own in everything if fnmatchcase(own, name)] for name in explained}
    assert set().union(*matches.values()) == everything
    assert all(matches.values()), [name for name, found in matches.items() if not found]


def test_every_learner_has_a_run():
    assert set(RUNS) == set(REGISTRY["learner"])


def test_final_positions_that_repeat_are_counted_once():
    game = game_2048(2, 2)
    final: Any = GamePool(game, [Random(game)], 8, Rng(1)).run().state
    repeated = final[torch.arange(8) // 4]
    assert game_statistics(game, repeated)["distinct_games"] == 2 / 8
    assert "distinct_games" not in game_statistics(game, final[:7])  # too few to tell


def test_the_points_of_the_agent_are_of_the_seat_that_it_had():
    game = make_game("game=tictactoe")
    rng = Rng(0)
    seating = torch.arange(9)[:, None] % 2 == torch.tensor([1, 0])
    players = [Random(game), Random(game)]
    trajectories, final = collect_games(game, players, 9, rng, seating=seating.long())
    score, seat = final.score, torch.arange(9) % 2
    lead = [float(score[row, seat[row]] - score[row, 1 - seat[row]]) for row in range(9)]
    expected = sum(0.5 + 0.5 * np.sign(value) for value in lead) / 9
    assert agent_points(trajectories.by_player(0), final) == {"points": pytest.approx(expected)}


def test_an_evaluation_has_its_standard_error_and_the_points_in_each_seat():
    game = make_game("game=tictactoe")
    settings = EvaluationSettings(games=400)
    rng = Rng(0)
    evaluation = evaluate(game, Random(game), settings, rng, Random(game))
    details = evaluation.details("points")
    variances = []
    for seat, name in enumerate(("first_seat_points", "second_seat_points")):
        won, drawn, lost = evaluation.outcomes[seat]
        points = np.repeat([1.0, 0.5, 0.0], [int(won), int(drawn), int(lost)])
        assert details[name] == pytest.approx(points.mean())
        variances.append(points.var() / len(points))
    assert details["points_std_error"] == pytest.approx(math.sqrt(sum(variances)) / 2)
    half = evaluation.turns.half
    assert evaluation.details("turns") == {"turns_std_error": pytest.approx(half / 1.959964)}


def test_the_spread_of_q_values_is_of_legal_actions():
    values = torch.tensor([[1.0, -4.0, 9.0], [2.0, 2.5, 0.0]])
    legal = torch.tensor([[True, True, False], [True, True, True]])
    assert spread_metrics(values, legal) == {"q_max": 4.0, "q_spread": (5.0 + 2.5) / 2}


@pytest.mark.parametrize("init_value", [0.0, 0.3])
@pytest.mark.parametrize("learner", ["td", "td_ntuple"])
def test_entries_that_were_never_learned_are_counted_at_each_line(learner, init_value, tmp_path):
    words = [*TINY, *RUNS[learner].split(), f"learner={learner}", f"policy.init_value={init_value}"]
    if learner == "td_ntuple":
        words.append("policy.tuples=[[0,1],[0,2]]")
    run = package.train([*words, "logger=null", "solve_seconds=0", f"out={tmp_path}/run"])
    values = Checkpoint.read(run / "checkpoints" / LATEST).policy["values"]
    lines = read_metrics(run / "metrics.jsonl")
    name = "train/unlearned_entries"
    first, last = (line[name] for line in lines if name in line)
    expected = float((values == values.mode()[0]).float().mean())
    assert last <= first < 1
    assert last == pytest.approx(expected, abs=1e-6 if len(values) <= 1 << 14 else 1e-3)


def test_returns_and_games_with_a_reward():
    game = make_game("game=tictactoe")
    rng = Rng(0)
    trajectories, _ = collect_games(game, [Random(game)], 4, rng)
    reward = (trajectories.game == 2).float() - 2.0 * (trajectories.game == 3).float()
    metrics = return_metrics(trajectories, reward, reward)
    values = reward.numpy()
    assert metrics["rewarded_games"] == 0.5
    assert metrics["return"] == pytest.approx(values.mean())
    assert metrics["return_std"] == pytest.approx(values.std())
