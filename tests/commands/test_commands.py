"""The commands as a person types them, in processes of their own."""

import json
from typing import Any

import pytest
import safetensors.torch
import torch
from helpers import SMALL_TRAINING
from markers import DEVICES, one_in, slow
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import rlgames as package
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.files import Files
from rlgames.config.schema import groups_of
from rlgames.core.errors import ConfigError

SMALL = [
    "game=battleship",
    "board=5",
    "ships=[2]",
    "games=400",
    "batch=50",
    "log_every=100",
    "policy.layers=[16]",
]


def numbers(run):
    """The lines of metrics.jsonl, times aside."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if not k.startswith("time/")} for line in lines]


def test_train_then_eval(rlgames, tmp_path):
    done = rlgames("train", *SMALL, "out=a run=1 (é)")
    assert done.returncode == 0, done.stderr
    assert "exact optimum" in done.stdout
    run = tmp_path / "a run=1 (é)"
    facts = json.loads((run / "run.json").read_text())
    assert facts["status"] == "done"
    assert facts["seed"] == 0
    assert facts["end"] >= facts["start"]
    done = rlgames("eval", "a run=1 (é)", "format=json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert json.loads((run / "eval.json").read_text()) == report
    assert report["games"] == 4
    assert report["moves"]["mean"] in [2 + i / 4 for i in range(13)]
    assert report["reference"]["random"] == 4.0
    assert report["moves"]["mean"] >= report["reference"]["optimal"]
    for words, hint in ((["board=6"], "board"), (["lr=0.5"], "lr")):
        done = rlgames("eval", "a run=1 (é)", *words)
        assert done.returncode == 2
        assert hint in done.stderr
    assert "turn 1:" in rlgames("watch", "a run=1 (é)", "delay=0").stdout
    agent = package.load(run)
    state = agent.game.initial(3, torch.Generator().manual_seed(0))
    assert agent.choose(agent.game.public(state)).shape == (3,)
    assert package.evaluate(run)["moves"] == report["moves"]


def test_the_same_seed_gives_the_same_run(tmp_path):
    small = [*SMALL, "games=100"]
    first = package.train([*small, f"out={tmp_path}/1", "seed=7"])
    second = package.train([*small, f"out={tmp_path}/2", "seed=7"])
    other = package.train([*small, f"out={tmp_path}/3", "seed=8"])
    assert numbers(first) == numbers(second)
    assert numbers(first) != numbers(other)


def test_tensorboard_reads_the_curves_and_the_settings(tmp_path):
    run = package.train([*SMALL, f"out={tmp_path}/run"])
    events = EventAccumulator(str(run)).Reload()
    names = ("turns", "return", "loss", "entropy", "grad_norm")
    for name in [*(f"train/{name}" for name in names), "time/games_per_s"]:
        assert [scalar.step for scalar in events.Scalars(name)] == [100, 200, 300, 400]
    assert "_hparams_/session_start_info" in events.summary_metadata
    # TensorBoard takes every folder with events in it for another run.
    assert [path.parent for path in run.rglob("events.out*")] == [run]


def test_random_player_needs_no_run(rlgames):
    done = rlgames(
        "eval", "player=random", "game=salvo", "board=5", "ships=[4,2]", "shots=1",
        "solve_seconds=0", "format=json",
    )  # fmt: skip
    report = json.loads(done.stdout)
    low, high = report["moves"]["ci95"]
    assert report["games"] == 2000
    assert low - 0.1 < 22.2857 < high + 0.1
    assert report["reference"]["optimal"] is None


def test_solve(rlgames):
    words = ["solve", "game=salvo", "board=4", "ships=[4]", "shots=2"]
    found = json.loads(rlgames(*words, "format=json").stdout)
    assert found["optimal"] == pytest.approx(3.375)
    assert set(found) == {"optimal", "positions", "seconds"}
    assert "3.375" in rlgames(*words).stdout
    assert "not computed" in rlgames("solve", "game=salvo", "board=6", "seconds=0.5").stdout


@pytest.mark.slow
def test_a_sweep_runs_every_job(rlgames, tmp_path):
    done = rlgames("train", "-m", *SMALL, "seed=1,2", "out=my sweep")
    assert done.returncode == 0, done.stderr + done.stdout
    for job, seed in (("0_seed=1", 1), ("1_seed=2", 2)):
        facts = json.loads((tmp_path / "my sweep" / job / "run.json").read_text())
        assert facts["status"] == "done"
        assert facts["seed"] == seed


def test_runs_of_one_second_do_not_share_a_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len({package.train([*SMALL, "games=50"]) for _ in range(3)}) == 3


@pytest.mark.parametrize(
    ("words", "hint"),
    one_in(
        4,
        [
            (["sed=2"], "seed"),
            (["gam=salvo"], "game"),
            (["game=salvi"], "salvo"),
            (["learner=reinforse"], "reinforce"),
            (["policy.layer=[2]"], "layers"),
            *(([f"lr={value}"], "lr") for value in ("abc", "nan", "inf", "-1", "0", '""')),
            *(([f"seed={value}"], "seed") for value in ("-1", str(2**64), "01", "''", "")),
            (["~seed"], "seed"),
            (["+typo=1"], "typo"),
            (["++typo=1"], "typo"),
            (["batch=0"], "batch"),
            (["batch=-1"], "batch"),
            (["game=battleship", "ships=[11]"], "10"),
            (["ships=[]"], "ship"),
            (["board=2", "ships=[2,2,2]"], "cells"),
            (["shots=17"], "16"),
            (["board=10", "ships=[2]", "shots=5", "aim=joint"], "sequential"),
            (["seed=1,2"], "-m"),
            (["device=cuda:7"], "device"),
            (["device=tpu"], "cpu"),
            (["aim=joind"], "joint"),
            (["sampling=stochastic", "sampling.temperature=0"], "temperature"),
            (["policy.canonical=3"], "true or false"),
            (["games=[1"], "games"),
            (["batch=16000000", "games=16000000"], "use batch="),
            (["out=" + 300 * "x"], "out="),
            (["game=battleship", "ships=3"], "[4,2]"),
            (["board=4", "-m", "seed=1,x"], "seed"),
        ],
    ),
)
def test_bad_configs_are_refused_in_one_line(words, hint, typed, tmp_path):
    done = typed("train", *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert hint in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "outputs").exists()


def test_bad_checkpoints_are_refused_in_one_line(rlgames, tmp_path):
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    torch.save({"a": 1}, tmp_path / "pickle")
    safetensors.torch.save_file({"a": torch.ones(1)}, tmp_path / "other")
    for name in ("text", "empty", "folder", "pickle", "other"):
        with pytest.raises(ConfigError) as refused:
            package.evaluate(tmp_path / name)
        assert len(str(refused.value).splitlines()) == 1
    for name in ("pickle", "missing"):
        done = rlgames("eval", name)
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1
    failed = json.loads(rlgames("eval", "text", "format=json").stdout)
    assert set(failed) == {"error", "hint"}


FITTING = {
    "game=2048": ["policy.num_cell_values=6"],  # small tables
    "reward=outcome": ["game=tictactoe"],
    "reward=hickman": ["game=tictactoe", "policy=mlp"],
    "policy=table": ["game=tictactoe", "learner=td"],
    "policy=ntuple": ["game=2048", "board=2", "learner=td_ntuple"],
    "learner=td_lambda": ["game=2048", "board=3", "sampling=argmax"],
    "policy=embedding": ["game=tictactoe"],
    "learner=td": ["game=tictactoe", "policy=table"],
    "learner=td_ntuple": ["game=2048", "board=2", "policy=ntuple"],
    "policy=linear": ["game=2048", "board=2", "sampling=argmax", "learner=adp"],
    "learner=adp": ["game=2048", "board=2", "sampling=argmax", "policy=linear"],
    "learner=dqn": ["sampling=epsilon_greedy"],
    "learner=behavior_cloning": ["game=2048", "board=2", "teacher=corner"],
    "learner=alphazero": ["game=tictactoe", "search=mcts", "search.simulations=8"],
    "search=mcts": ["game=tictactoe", "learner=alphazero", "search.simulations=8"],
    "search=rollout": ["learner=alphazero", "board=3", "ships=[2]", "shots=1"],
    "policy=staged": ["game=2048", "board=2"],
    "policy=belief_propagation": ["shots=1"],
    "learner=occupancy": ["shots=1"],
    "reward=grid_sum": ["game=2048", "board=2", "policy=mlp"],
    "reward=win": ["game=2048", "board=2", "target=16", "policy=mlp"],
}
"""What an option needs beside it."""


def every_file():
    """For every option of every group the words that it needs; two that need each other once."""
    found: dict[Any, Any] = {}
    for group, about in groups_of(TrainConfig).items():
        if about.is_list or about.folder in ("player", "engine"):  # of other tests
            continue
        for option in Files().names(about.folder):
            words = [f"{group}={option}", *FITTING.get(f"{group}={option}", [])]
            if option not in (
                "alphabeta",
                "expectimax",
                "dedieu_amar",
            ):  # they count no visits to learn from
                found.setdefault(frozenset(words), words)
    return found.values()


OF_GAMES = [words for words in every_file() if words[0].startswith("game=")]
"""The experiments of the games train them, too."""

OTHERS = [words for words in every_file() if words not in OF_GAMES]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("words", [*map(slow, OF_GAMES), *one_in(3, OTHERS)], ids=lambda w: w[0])
def test_every_file_of_every_group_trains(words, device, tmp_path):
    small = ["games=20", "batch=10", "eval_games=5", "solve_seconds=0", f"device={device}"]
    run = package.train([*words, *small, f"out={tmp_path}/run"])
    assert json.loads((run / "run.json").read_text())["status"] == "done"
    assert package.evaluate(run, ["games=5", "solve_seconds=0"])["games"] == 5


@pytest.mark.parametrize(
    "name",
    [
        name
        if name in Files().names("game")  # what a game is trained by where nothing is named
        else pytest.param(name, marks=pytest.mark.slow)
        for name in Files().names("experiment")
    ],
)
@pytest.mark.parametrize("device", DEVICES)
def test_every_experiment_runs_two_updates(name, device, tmp_path):
    cfg = load_config(TrainConfig, [f"experiment={name}"])
    batch = min(cfg.batch, 16)
    words = [f"experiment={name}", f"batch={batch}", f"games={2 * batch}"]
    words += ["eval_games=5", "solve_seconds=0", f"device={device}"]
    words += ["teacher=corner"] if cfg.learner.name == "behavior_cloning" else []
    if cfg.policy.name == "ntuple":
        words += ["policy.num_cell_values=6"]  # small tables
    elif cfg.game.name == "2048":
        words += ["board=3"]  # short games
    words += ["learner.updates_per_batch=2"] if hasattr(cfg.learner, "updates_per_batch") else []
    if device != "cpu" and cfg.learner.name == "td_ntuple":
        with pytest.raises(ConfigError, match="device=cpu"):
            package.train(words)
        return
    run = package.train([*words, f"out={tmp_path}/run"])
    assert json.loads((run / "run.json").read_text())["status"] == "done"


PLAYERS = [
    ["player=random", "game=salvo_duel"],
    ["player=corner", "game=2048", "board=2"],
    ["player=hunt_target", "game=battleship", "board=6", "ships=[3,2]"],
    ["player=density", "game=battleship", "board=5", "ships=[3,2]"],
    ["player=density", "game=battleship", "board=5", "ships=[3,2]", "player.steps=0"],
    ["player=density_rollout", "game=salvo", "board=3", "ships=[2,2]", "player.next_cells=1"],
    ["player=exact", "game=salvo", "board=3", "ships=[2]", "shots=1"],
    ["player=exact", "game=2048", "board=2"],
    ["player=exact", "game=connect4", "rows=4", "columns=4", "player.move_positions=1000"],
    ["player=win_or_block", "game=connect4", "opponent=exact", "opponent.move_positions=100"],
    ["player=win_or_block", "game=tictactoe", "opponent=exact"],
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("words", PLAYERS, ids=lambda words: "-".join(words[:2]))
def test_players_play_on_every_device(words, device):
    found = package.evaluate(None, [*words, "games=6", "solve_seconds=0", f"device={device}"])
    assert found["games"] == 6


@pytest.mark.parametrize("device", DEVICES)
def test_searches_play_on_every_device(device, tmp_path):
    tictactoe = package.train([*SMALL_TRAINING, f"out={tmp_path}/tictactoe"])
    found = package.evaluate(
        tictactoe, ["search=mcts", "search.simulations=8", "games=6", f"device={device}"]
    )
    assert found["games"] == 6
    small = ["game=2048", "board=2", "policy=table", "learner=td", "games=8", "batch=4"]
    run = package.train([*small, "eval_games=2", "solve_seconds=0", f"out={tmp_path}/2048"])
    found = package.evaluate(run, ["search=expectimax", "games=6", f"device={device}"])
    assert found["games"] == 6


def test_two_seats_are_reported_apart(rlgames):
    done = rlgames("eval", "player=win_or_block", "game=tictactoe", "games=400", "format=json")
    report = json.loads(done.stdout)
    assert report["opponent"] == "random"
    assert sum(report[name]["count"] for name in ("win", "draw", "loss")) == 400
    assert [sum(share["count"] for share in seat.values()) for seat in report["seats"]] == [200] * 2
    low, high = report["win"]["ci95"]
    assert low < report["win"]["rate"] < high
    assert 0 < report["exploitability"] < 1
    shown = rlgames("eval", "player=exact", "game=tictactoe", "opponent=exact", "games=20").stdout
    assert "0.00% / 100.00% / 0.00%" in shown


@pytest.mark.slow
def test_2048_is_spelt_like_that_everywhere(rlgames, tmp_path, monkeypatch):
    done = rlgames(
        "eval",
        "player=random",
        "game=2048",
        "board=3",
        "games=50",
        "solve_seconds=0",
        "format=json",
    )
    report = json.loads(done.stdout)
    assert report["score"]["mean"] > 0
    assert report["grid_sum"]["min"] > 0
    assert set(report["reach"]["16"]) == {"count", "rate", "ci95"}
    small = ["games=4", "batch=2", "eval_games=2", "solve_seconds=0", "policy=mlp"]
    done = rlgames("train", "-m", "game=2048,tictactoe", *small, "out=sweep")
    assert done.returncode == 0, done.stderr + done.stdout
    for job, name in (("0_game=2048", "2048"), ("1_game=tictactoe", "tictactoe")):
        assert f"name: '{name}'" in (tmp_path / "sweep" / job / "config.yaml").read_text().replace(
            f"name: {name}", f"name: '{name}'"
        )
    found = json.loads(rlgames("solve", "game=2048", "board=2", "format=json").stdout)
    assert found["optimal"] == pytest.approx(66.964, abs=1e-3)
    assert "2048" in rlgames("train", "game=2047").stderr


SMALL_CONNECT4 = ["experiment=connect4_mlp", "games=60", "batch=20", "policy.layers=[8]"]
SMALL_CONNECT4 += ["eval_games=20"]


@pytest.mark.parametrize(
    "words",
    one_in(
        3, [["opponent=random"], ["opponent=past", "opponent.every=20"], ["opponent=win_or_block"]]
    ),
)
@pytest.mark.parametrize("device", DEVICES)
def test_opponents_of_every_kind(words, device, tmp_path):
    run = package.train([*SMALL_CONNECT4, *words, f"device={device}", f"out={tmp_path}/run"])
    assert json.loads((run / "run.json").read_text())["status"] == "done"


@pytest.mark.slow
def test_runs_as_opponents(rlgames, tmp_path):
    package.train([*SMALL_CONNECT4, f"out={tmp_path}/first run"])
    again = rlgames(
        "train", *SMALL_CONNECT4, "opponent=first run", "eval_opponent=win_or_block", "out=next"
    )
    assert again.returncode == 0, again.stderr
    assert "against win_or_block" in again.stdout
    done = rlgames("eval", "next", "opponent=first run", "games=20", "format=json")
    assert json.loads(done.stdout)["opponent"] == "first run"
    done = rlgames("eval", "player=next", "game=connect4", "games=20", "format=json")
    assert json.loads(done.stdout)["player"] == "next"
    done = rlgames("eval", "player=next", "game=connect4", "rows=5", "games=20")
    assert done.returncode == 2
    assert "rows" in done.stderr


def test_an_arena(rlgames):
    words = ["random", "win_or_block", "exact", "game=tictactoe", "games=200"]
    report = json.loads(rlgames("arena", *words, "format=json").stdout)
    elo = {player["name"]: player["elo"] for player in report["players"]}
    assert elo["exact"] > elo["win_or_block"] > elo["random"]
    assert report["players"][0]["points"][0] is None
    for player in report["players"]:
        assert player["ci95"][0] <= player["elo"] <= player["ci95"][1]
    shown = rlgames("arena", *words).stdout
    assert shown.index("1 exact") < shown.index("3 random")
    for words in (["random"], ["random", "exct", "game=tictactoe"], ["random", "exact"]):
        done = rlgames("arena", *words)
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "hint"),
    one_in(
        4,
        [
            (["game=2048", "reward=outcome"], "reward=score"),
            (["game=tictactoe", "reward=hits"], "reward=outcome"),
            (["game=salvo", "opponent=random"], "one-player game"),
            (["game=connect4", "best_by=exploitability"], "best_by=points"),
            (["game=2048", "best_by=points"], "best_by=score"),
            (["game=connect4", "policy=mlp", "opponent=corner"], "2048"),
            (["game=connect4", "opponent=nobody"], "there is"),
            (["game=connect4", "opponent=randon"], "random"),
            (["game=tictactoe", "board=8"], "board"),
            (["game=tictactoe", "line=4"], "line=4"),
            (["game=connect4", "rows=9"], "bits"),
            (["game=2048", "board=1"], "board"),
            (["game=2048", "target=100"], "target"),
            (["game=2048", "shots=2"], "shots"),
            (["game=tictactoe", "policy=table"], "policy=mlp"),
            (["game=salvo", "learner=td"], "policy=table"),
            (["game=tictactoe", "learner=alphazero", "search=expectimax"], "search="),
            (["game=salvo", "policy=embedding"], "embedding"),
            (["game=salvo", "policy=table", "learner=td"], "CellBoard"),
            (["game=connect4", "policy=table", "learner=td"], "entries"),
            (["game=tictactoe", "reward=hickman", "reward.draws=[1]"], "draws"),
            (["game=salvo_duel", "ships=[6]"], "5"),
        ],
    ),
)
def test_what_does_not_fit_the_game_is_refused(words, hint, typed, tmp_path):
    done = typed("train", *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert hint in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "outputs").exists()


@pytest.mark.slow
def test_a_sweep_over_games_starts_each_from_its_own_experiment(typed, tmp_path, monkeypatch):
    small = ["games=4", "batch=2", "eval_games=2", "solve_seconds=0", "policy=mlp"]
    for order in ("2048,tictactoe", "tictactoe,2048"):
        out = order.replace(",", "_")
        done = typed("train", "-m", f"game={order}", *small, f"hydra.sweep.dir={out}")
        assert done.returncode == 0, done.stderr + done.stdout
        for name in order.split(","):
            (config,) = (tmp_path / out).glob(f"*={name}_mlp/config.yaml")  # a job of its preset
            text = config.read_text()
            assert ("scored: outcome" in text) == (name == "tictactoe")


@pytest.mark.parametrize(
    ("words", "hint"),
    one_in(
        2,
        [
            (["eval", "player=random", "game=tictactoe", "opponent=run"], "PATH"),
            (["train", "game=tictactoe", "best_by=score"], "best_by=points"),
            (["train", "device=meta"], "cpu"),
            (["train", "=5"], ""),
            (["arena", "random", "run", "game=tictactoe"], "run"),
            (["play", "game=tictactoe", "record=/dev/null/games"], "folder"),
            (["train", "game=2048", "board=1", "columns=2"], "room"),
        ],
    ),
)
def test_more_bad_words_are_refused_in_one_line(words, hint, typed):
    done = typed(*words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert hint in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_runs_meet_only_in_the_game_they_were_trained_on(rlgames):
    small = ["games=20", "batch=10", "solve_seconds=0"]
    assert rlgames("train", "game=tictactoe", *small, "out=ours").returncode == 0
    done = rlgames("eval", "player=ours", "game=connect4")
    assert done.returncode == 2
    assert "trained with game=tictactoe" in done.stderr
