"""Training beside hand-written loops, and how many moves each learner learns from in a second.

Our figures are those that `rlgames train` logs: playing and learning together.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench_case import OPTIMA
from bench_start import train_until
from bench_tools import PEERS, Rounds, Worker, in_turn, progress, ratio, rows

import rlgames
from rlgames.runs.files import read_metrics

SECONDS = 3.0
"""How long a loop beside ours learns for its speed to be taken."""

NEAR = 1.05
"""Within 5% of the optimum."""

TIMES, LEAST = 25, 30.0
"""How many times as long as ours the plain loop may take to come near the optimum, and for how many
seconds at least; where it does not get there the ratio is a lower bound."""

UNITS = {1: 16, 2: 64}
"""Units of each of the two layers of the loops beside ours, by case."""

CASE1 = [
    "game=salvo",
    "ships=[4]",
    "shots=1",
    "reward.scored=score_delta",
    "reward.discount=0.9",
    "encoding=signed",
    "policy.layers=[16,16]",
    "policy.activation=tanh",
    "learner=reinforce",
    "learner.lr_end=0",
    "learner.entropy_coef=0.02",
    "lr=0.05",
    "batch=4096",
    "threads=2",
    "games=400000",
    "log_every=40000",
]
"""Two layers of 16 units, as the loop written by hand has them; reaches 6.0."""

NEARING = {
    1: {
        "policy gradient": [
            "experiment=ramesh_case1_tuned",
            *("reward.scored=score_delta", "reward.discount=0.9", "policy.layers=[64]"),
            *("learner.gae_lambda=0.6", "learner.num_minibatches=3", "learner.epochs=3"),
            *("batch=192", "lr=0.02", "games=12000", "eval_every=192", "save_every=12000"),
        ]
    },
    2: {
        "occupancy": [
            "experiment=ramesh_case2_occupancy",
            *("games=12000", "eval_every=512", "log_every=2000"),
        ],
    },
}
"""Trainings that come near the optimum soon, by case. `occupancy` is shown the posterior odds of a
ship in each cell, and learns where the ships lay."""

PLAIN = {"policy gradient": ["experiment=ramesh_case2_tuned", "games=140000", "eval_every=4096"]}
"""What comes near it in case 2 while it sees what the loops beside ours see, and takes longer."""

LEARNERS = {
    "ppo, tictactoe": ["experiment=tictactoe_mlp", "games=60000"],
    "ppo, connect4": ["experiment=connect4_mlp", "games=12000"],
    "ppo, salvo case 2": ["experiment=ramesh_case2_tuned", "games=15000"],
    "ppo, 2048": ["experiment=2048_ppo", "games=600"],
    "reinforce, battleship": ["experiment=landy_tuned", "learner=reinforce", "games=20000"],
    "occupancy, salvo case 2": ["experiment=ramesh_case2_occupancy", "games=15000"],
    "dqn, tictactoe": ["experiment=tictactoe_dqn", "games=6000"],
    "td, tictactoe, table": ["experiment=hickman_tuned", "games=20000"],
    "td_lambda, 2048": ["experiment=2048_td_lambda", "games=600"],
    "adp, 2048": ["experiment=dedieu_amar_adp_tuned", "games=200"],
    "alphazero, tictactoe": ["experiment=tictactoe_alphazero", "games=1500"],
    "alphazero, connect4": ["experiment=connect4_alphazero", "games=1024"],
    "alphazero, salvo": ["experiment=ramesh_case1_alphazero", "games=500"],
}
"""Each learner on its usual game, for as many games as take some seconds."""

SELF_PLAY = {
    "tictactoe": ["experiment=tictactoe_mlp", "games=30000"],
    "connect4": ["experiment=connect4_mlp", "games=12000"],
}
LIKE_OURS = {
    "tictactoe": {"units": [128, 128], "n_epochs": 4, "n_steps": 512, "batch_size": 8192},
    "connect4": {"units": [256, 256], "n_epochs": 1, "n_steps": 1024, "batch_size": 8192},
}
"""MaskablePPO with the networks, passes and about the minibatches of these presets."""


def trained(words: list[str], seed: int) -> tuple[list[dict[str, float]], Path]:
    """The lines of metrics.jsonl of one training, whose directory is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        own = [*words, "solve_seconds=0", f"seed={seed}", f"out={folder}/run"]
        run = rlgames.train(own)
        return read_metrics(Path(run) / "metrics.jsonl"), run


def speed(words: list[str], seed: int = 0) -> float:
    """Moves that a training learns from in a second, the median over the lines of its log."""
    results, _ = trained(words, seed)
    return statistics.median(line["time/moves_per_s"] for line in results if "train/turns" in line)


def processor_speed(words: list[str]) -> float:
    """Moves that a training learns from in a second of processor time, start and end included."""
    start = time.process_time()
    results, _ = trained(_brief(words, "cpu"), 0)
    return results[-1]["time/moves"] / (time.process_time() - start)


def seconds_to(words: list[str], turns: float, seed: int) -> float:
    """Seconds until an evaluation needs at most these turns, without the time to load."""

    def near(line: dict[str, float]) -> bool:
        return line.get("eval/turns", math.inf) <= turns

    _, lines = train_until([*words, f"seed={seed}"], 0.2, near)
    return next((line["time/seconds"] for line in lines if near(line)), math.inf)


def beside_hand(rounds: int) -> str:
    with Worker("bench_by_hand.py") as worker:
        return _beside(worker, "by hand", rounds, NEARING)


def beside_sb3(rounds: int) -> str:
    with Worker("bench_peer_sb3.py", PEERS) as worker:
        return _beside(worker, "SB3's A2C", rounds, NEARING | {2: NEARING[2] | PLAIN})


def beside_maskable_ppo(rounds: int) -> str:
    """Moves per second of processor time, as both sides have one thread."""
    body = []
    with Worker("bench_peer_sb3.py", PEERS) as worker:
        for game, words in SELF_PLAY.items():
            peer = partial(worker.speed, game=game, seconds=SECONDS, seed=0)
            sides: dict[str, Callable[[], float]] = {
                "rlgames": partial(processor_speed, words),
                "its defaults": peer,
                "like ours": partial(peer, **LIKE_OURS[game]),
            }
            results = in_turn(sides, rounds)
            mine = results.pop("rlgames")
            for name, other in results.items():
                body.append([f"{game}, {name}", mine.text(), other.text(), ratio(mine, other)])
    return rows(["moves learned per second", "rlgames", "MaskablePPO", "ratio"], body)


Nearing = dict[int, dict[str, list[str]]]


def _beside(worker: Worker, name: str, rounds: int, nearing: Nearing) -> str:
    """Speed on case 1, and time to within 5% of the optimum by case."""
    words = {"case": 1, "seconds": SECONDS, "until": 0.0, "units": UNITS[1]}
    sides: dict[str, Callable[[], float]] = {
        "rlgames": partial(speed, CASE1),
        name: partial(worker.speed, **words, seed=0),
    }
    results = in_turn(sides, rounds)
    mine, other = results["rlgames"], results[name]
    what = "moves learned per second, case 1"
    body = [[what, mine.text(), other.text(), ratio(mine, other)]]
    for case, ways in nearing.items():
        body += _nearing(worker, case, ways, rounds if case == 1 else 1)
    return rows(["", "rlgames", name, "ratio"], body)


def _nearing(worker: Worker, case: int, ways: dict[str, list[str]], rounds: int) -> list[list[str]]:
    """A row for each of our ways, beside the same rounds of the worker."""
    near = NEAR * OPTIMA[case]
    ours = {}
    for how, words in ways.items():
        ours[how] = Rounds(tuple(seconds_to(words, near, seed) for seed in range(rounds)))
        progress(f"case {case}, {how}, within 5%: {ours[how].text()} s")
    limit = max(LEAST, TIMES * min(results.median for results in ours.values()))
    asked = {"case": case, "seconds": limit, "until": near, "units": UNITS[case]}
    peer_results = [worker.ask(**asked, seed=seed) for seed in range(rounds)]
    progress(f"case {case}, beside: {peer_results}")
    other = Rounds(tuple(results["seconds"] for results in peer_results))
    still = [results["turns"] for results in peer_results if not results["reached"]]
    said, least = f"{other.text()} s", ""
    if still:
        said += f", {len(still)} of {rounds} stopped at {statistics.mean(still):.2f} turns"
        least = "at least "
    return [
        [
            f"seconds to {near:.2f} turns, case {case}, {how}",
            f"{results.text()} s",
            said,
            least + ratio(other, results),
        ]
        for how, results in ours.items()
    ]


def learners(rounds: int, device: str = "cpu") -> str:
    sides = {name: partial(speed, _brief(words, device)) for name, words in LEARNERS.items()}
    body = [[name, results.text()] for name, results in in_turn(sides, rounds).items()]
    return rows(["learner and game", "moves learned per second"], body)


def _brief(words: list[str], device: str) -> list[str]:
    """A training of which only the speed matters: hardly any evaluation."""
    games = next(int(word.removeprefix("games=")) for word in words if word.startswith("games="))
    return [*words, "log_every=1", f"eval_every={games}", "eval_games=1", f"device={device}"]
