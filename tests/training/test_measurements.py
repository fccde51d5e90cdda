"""Mistakes against perfect play and Elo ratings, measured while a run trains."""

import json
import math
from dataclasses import replace

import pytest
import torch
from helpers import make_game
from processes import final_state, flat, metrics_without_times, same

import rlgames as package
from rlgames.commands.analyze import analyze_command
from rlgames.commands.arena import arena_command
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.core.errors import ConfigError
from rlgames.core.signals import Interrupted
from rlgames.evaluation.elo import rate
from rlgames.players.player import Random
from rlgames.runs.checkpoint import BadCheckpoint, Checkpoint
from rlgames.runs.files import read_metrics, read_run
from rlgames.sampling import Stochastic
from rlgames.training.components import build_components
from rlgames.training.evaluator import Evaluator
from rlgames.training.loop import TrainingLoop
from rlgames.training.measurements import FIRST_RATED, MAX_RATED, Ladder
from rlgames.training.run import resume, train
from rlgames.training.state import TrainingState

SMALL = ["experiment=null", "policy=mlp", "policy.layers=[8]", "batch=8", "games=48"]
SMALL += ["eval_games=8", "eval_every=16", "save_every=8", "log_every=16", "solve_seconds=0"]
LINES = [*SMALL, "game=connect4", "rows=3", "columns=4", "line=3", "reward=outcome"]
MEASURED = ["elo_every=8", "analyze_every=16"]


def cfg(words, path):
    return load_config(TrainConfig, [*words, f"out={path}"])


def resume_run(directory, words=()):
    from rlgames.commands.resume import load_resumable

    return resume(directory, *load_resumable(directory, list(words)))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The result of a run with both measurements."""
    return train(cfg([*LINES, *MEASURED], tmp_path_factory.mktemp("runs") / "run"))


def test_measurements_change_nothing_in_a_training(measured, tmp_path):
    plain = train(cfg(LINES, tmp_path / "plain"))
    with_both, without = (
        Checkpoint.read(run.directory / "checkpoints" / "latest.safetensors")
        for run in (measured, plain)
    )
    assert {*with_both.state["measurements"]} == {"elo", "regret"}
    assert without.state["measurements"] == {}
    same(with_both.policy, without.policy)
    same(flat(with_both.state["processes"]), flat(without.state["processes"]))
    lines = [
        [line for line in metrics_without_times(run.directory) if not is_measured(json.loads(line))]
        for run in (measured, plain)
    ]
    assert lines[0] == lines[1]


def is_measured(line):
    return bool({"eval/elo", "eval/regret"} & {*line})


def test_they_are_logged_and_belong_to_the_results_of_the_final_network(measured):
    lines = read_metrics(measured.directory / "metrics.jsonl")
    ratings = [line for line in lines if "eval/elo" in line]
    assert [line["games"] for line in ratings] == [8, 16, 24, 32, 40, 48]
    assert all(
        line["eval/elo_low"] <= line["eval/elo"] <= line["eval/elo_high"] for line in ratings
    )
    assert [line["games"] for line in lines if "eval/regret" in line] == [16, 32, 48]
    results = read_run(measured.directory)["final_results"]
    last = {name: lines[-1].get(f"eval/{name}") for name in ("elo", "regret")}
    assert results["elo"] == ratings[-1]["eval/elo"]
    assert results["regret"] > 0
    assert last["regret"] in (None, results["regret"])


def test_a_curve_and_a_live_view_show_them(measured, tmp_path):
    pytest.importorskip("matplotlib")
    from rlgames.cli.live_view import RenderedView
    from rlgames.cli.progress import PlainProgress, Progress
    from rlgames.commands.report import report_command

    file = tmp_path / "curves.svg"
    words = ["metric=[eval/elo,eval/regret]", f"curves={file}"]
    report_command([str(measured.directory)], words)
    assert "Elo (random play: 0)" in file.read_text()
    view, plain = Progress(48), PlainProgress(48)
    view.on_references("points", None, None)
    for line in read_metrics(measured.directory / "metrics.jsonl"):
        view.on_metrics(int(line["games"]), line)
        plain._latest.update(line)
    from rich.console import Console

    console = Console(width=120)
    with console.capture() as capture:
        console.print(RenderedView(view))
    text = capture.get()
    assert "regret 0" in text
    assert f"elo {view.latest['eval/elo']:.4g} (" in text
    assert "elo " in plain._line()


@pytest.mark.parametrize("batches", [2, 5])
def test_a_run_that_is_interrupted_rates_the_same_checkpoints(
    measured, batches, tmp_path, monkeypatch
):
    directory, real, count = tmp_path / "run", TrainingLoop.measure, 0

    def interrupted(self, measurement):
        nonlocal count
        count += 1
        if count > batches:  # in the middle: the games are played, and nothing is noted
            measurement.measure(self.state.progress.games_played)
            raise Interrupted(15)
        real(self, measurement)

    with monkeypatch.context() as patched:
        patched.setattr(TrainingLoop, "measure", interrupted)
        with pytest.raises(Interrupted):
            train(cfg([*LINES, *MEASURED], directory))
    resume_run(directory)
    same(final_state(measured.directory), final_state(directory))
    assert metrics_without_times(measured.directory) == metrics_without_times(directory)


def test_a_run_whose_ratings_are_negative_resumes(tmp_path):
    words = ["game=tictactoe", "policy=mlp", "policy.layers=[8]", "learner=ppo", "solve_seconds=0"]
    words += ["games=40", "batch=20", "eval_games=20", "eval_every=20", "elo_every=20"]
    run = train(cfg(words, tmp_path / "run"))
    assert run.directory is not None
    lines = read_metrics(run.directory / "metrics.jsonl")
    assert min(line.get("eval/elo_low", 0) for line in lines) < 0
    resume_run(run.directory, ["games=60"])
    assert read_run(run.directory)["games"] == 60


def test_a_run_may_begin_to_measure_when_it_resumes(tmp_path, monkeypatch):
    directory = tmp_path / "run"
    train(cfg(LINES, directory))
    resume_run(directory, ["games=64", *MEASURED])
    rated = [
        line["games"] for line in read_metrics(directory / "metrics.jsonl") if is_measured(line)
    ]
    assert rated[0] == 48  # at once, as no checkpoint has been rated
    assert rated[-1] == 64


def test_the_regret_is_what_analyze_finds(tmp_path):
    words = [*SMALL, "game=salvo", "board=3", "ships=[2]", "shots=1", "analyze_every=48"]
    run = package.train([*words, f"out={tmp_path}/run"])
    logged = read_metrics(run / "metrics.jsonl")
    regret = next(line["eval/regret"] for line in logged if "eval/regret" in line)
    report = analyze_command(run, ["checkpoint=final", "games=all"])
    assert regret == report["losses"]["all"]["loss"]["mean"]


def test_a_checkpoint_plays_a_few_earlier_ones(monkeypatch):
    """As many as the logarithm of their number, and older results are forgotten."""
    game = make_game("game=tictactoe")
    evaluator = Evaluator(game, Random(game), None, Stochastic(), None, 0)
    words = [*SMALL, "game=tictactoe", "reward=outcome"]
    evaluator.greedy = build_components(load_config(TrainConfig, words)).evaluator.greedy
    ladder, played = Ladder(evaluator, 1), []
    result = torch.tensor([[6.0, 1, 3], [5, 2, 3]]).numpy()

    def play(self, first, a, second, b):
        played.append((first, second))
        return first, second, result, False

    monkeypatch.setattr(Ladder, "_play", play)
    monkeypatch.setattr("rlgames.training.measurements.rate", lambda *a, **k: ([0] * 99, None))
    for count in range(1, 60):
        played.clear()
        _, ladder.state = ladder.measure(count)
        others = [second - FIRST_RATED + 1 for first, second in played if second >= FIRST_RATED]
        assert others[-1:] == ([count - 1] if count > 1 else [])
        assert len(others) <= math.log2(count) + 1
        assert (count + 1, 0) in played
        ages = [count - number for number in others]
        assert max(ages, default=0) >= min(count - 1, MAX_RATED) // 4
        assert len(ladder.state.tables) <= MAX_RATED * 7
    rated = {first for first, *_ in ladder.state.tables}
    assert min(rated) == 59 + FIRST_RATED - MAX_RATED


def test_ratings_may_count_from_one_player():
    tables = [(0, 1, torch.tensor([[40.0, 5, 5], [30, 5, 15]]).numpy(), False)]
    tables.append((1, 2, torch.tensor([[30.0, 5, 15], [25, 0, 25]]).numpy(), False))
    elo, (low, high) = rate(tables, 3, anchor=2)
    mean, _ = rate(tables, 3)
    assert elo == pytest.approx(mean - mean[2])
    assert elo[2] == low[2] == high[2] == 0
    assert (low <= elo).all()
    assert (elo <= high).all()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["game=salvo", "elo_every=8"], "salvo is a one-player game"),
        (["game=salvo_duel", "analyze_every=8"], "no exact solver fits"),
        (["game=salvo", "board=10", "ships=[5,4,3,3,2]", "analyze_every=8"], "no exact solver"),
        (["game=tictactoe", "elo_every=0"], "elo_every=0"),
    ],
)
def test_what_does_not_fit_a_game_is_an_error(words, error):
    with pytest.raises(ConfigError, match=error):
        build_components(load_config(TrainConfig, words))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", -1),
        ("measured_at", 10**9),
        ("tables", torch.zeros(2, 9)),
        ("tables", torch.zeros(2, 9, dtype=torch.int64)),
        ("tables", torch.full((1, 9), 99)),
        ("tables", 3),
        ("copies", {"x": {}}),
        ("copies", {"2": {"weight": torch.zeros(3)}}),
        ("copies", {"99": None}),
        ("latest", {"elo": "high"}),
        ("latest", [1]),
    ],
)
def test_an_impossible_state_is_named(name, value, measured):
    checkpoint = Checkpoint.read(measured.directory / "checkpoints" / "latest.safetensors")
    ladder = checkpoint.state["measurements"]["elo"]
    if name == "copies" and value == {"99": None}:
        value = {"99": next(iter(ladder["copies"].values()))}
    changed = {**checkpoint.state["measurements"], "elo": ladder | {name: value}}
    bad = replace(checkpoint, state={**checkpoint.state, "measurements": changed})
    words = load_config(TrainConfig, [*LINES, *MEASURED])
    with pytest.raises(BadCheckpoint, match="cannot resume"):
        TrainingState(words, build_components(words, bad)).load(bad)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_final_rating_agrees_with_an_arena(seed, tmp_path):
    """Over 1,000 games a pair among kept checkpoints, random play and the opponent: within the
    intervals of both."""
    words = ["experiment=tictactoe_mlp", "games=20000", "eval_opponent=win_or_block"]
    words += ["solve_seconds=0"]
    words += ["elo_every=4000", "keep_every=4000", f"seed={seed}", f"out={tmp_path}/run"]
    run = package.train(words)
    kept = sorted(map(str, (run / "checkpoints").glob("games_*")))
    assert len(kept) >= 4
    report = arena_command(
        [str(run / "checkpoints" / "latest.safetensors"), *kept[:-1], "random", "win_or_block"],
        ["games=1000"],
    )
    players = {player["name"]: player for player in report["players"]}
    final, random = report["players"][0], players["random"]
    expected = final["elo"] - random["elo"]
    half = sum((each["ci95"][1] - each["ci95"][0]) / 2 for each in (final, random))
    rated = [line for line in read_metrics(run / "metrics.jsonl") if "eval/elo" in line][-1]
    assert rated["eval/elo_low"] - half <= expected <= rated["eval/elo_high"] + half
