"""The kinds of run that scripts/checks/storm.py kills: small ones, each of a few seconds."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from pathlib import Path

from rlgames.runs.checkpoint import Checkpoint
from rlgames.runs.files import LATEST

SMALL = ("experiment=null", "solve_seconds=0", "eval_games=20")
NETWORK = ("policy=mlp", "policy.layers=[8]")
SALVO = ("game=salvo", "board=3", "ships=[2]", "shots=1", *NETWORK, "batch=20", *SMALL)
CONNECT4 = ("game=connect4", "rows=4", "columns=4", "line=3", "reward=outcome", *SMALL)
SAVES = ("log_every=40", "eval_every=200", "save_every=60")


@dataclass(frozen=True)
class Kind:
    """A kind of run.

    words: the command that starts it. jobs: trainings in it. setup: a training that it needs.
    extra: the module without which it is skipped. weight: its part of all kills. is_forked: whether
    most of its processes are forks. has_own_codes: whether another program decides how the command
    ends: Ray has its own exit codes and prints tracebacks when one of its processes is killed.
    exit_seconds: how much longer than those of other kinds its processes may take to exit.
    """

    words: tuple[str, ...]
    jobs: int = 1
    setup: tuple[str, ...] = ()
    extra: str = ""
    weight: float = 1.0
    is_forked: bool = True
    has_own_codes: bool = False
    exit_seconds: float = 0.0

    def start_words(self, folder: Path) -> list[str]:
        """The command that starts it or, if it has begun, resumes it."""
        if self.words[0] == "eval":
            return [*self.words]
        run = folder / "run"
        if (run / "multirun.yaml").exists() or (run / "checkpoints" / LATEST).exists():
            launcher = [word for word in self.words if word.startswith("hydra/launcher=")]
            return ["resume", "run", *launcher]
        return [*self.words, "out=run"]

    @property
    def processes_in_turn(self) -> int:
        """How many of its processes start one after another."""
        return 1 + (self.jobs > 1) * self.jobs

    def progress(self, folder: Path) -> float:
        """The fraction of its games that is saved."""
        if self.words[0] == "eval":
            return 0.0
        saved = [Checkpoint.read(path) for path in folder.rglob(LATEST)]
        return sum(float(each.games / each.config["games"]) for each in saved) / self.jobs

    def is_available(self) -> bool:
        try:
            return not self.extra or importlib.util.find_spec(self.extra) is not None
        except ModuleNotFoundError:
            return False


def _train(*words: str, weight: float = 1.0) -> Kind:
    return Kind(("train", *words), weight=weight)


SWEEP = ("train", "-m", *SALVO, "games=200", "log_every=40", "eval_every=100", "save_every=40")


def _sweep(*words: str, extra: str, weight: float, is_forked: bool = True) -> Kind:
    return Kind((*SWEEP, *words), 2, extra=extra, weight=weight, is_forked=is_forked)


def _launcher(name: str, extra: str) -> Kind:
    words = ("seed=0,1", f"hydra/launcher={name}")
    return _sweep(*words, extra=f"hydra_plugins.{extra}", weight=0.1, is_forked=False)


RAY = replace(_launcher("ray", "hydra_ray_launcher"), has_own_codes=True, exit_seconds=60.0)
"""Its agents look for its other processes now and then, but not while they start."""


EVAL = ("eval", "run", "games=20000", "batch=125", "threads=2", "solve_seconds=0")
KINDS = {
    "ppo": _train(*SALVO, "games=600", *SAVES),
    "dqn": _train(
        *("game=tictactoe", "reward=outcome", "learner=dqn", "sampling=epsilon_greedy", *NETWORK),
        *(*SMALL, "learner.buffer_size=200", "learner.minibatch_size=16", "batch=20", "games=400"),
        *SAVES,
    ),
    "td_ntuple": _train(
        *("game=2048", "board=2", "learner=td_ntuple", "policy=ntuple", "batch=20"),
        "sampling=argmax",
        *("restart_fraction=0.5", "window=4", *SMALL, "games=600", *SAVES),
    ),
    "alphazero": _train(
        *("game=tictactoe", "reward=outcome", "learner=alphazero", "search=mcts", *NETWORK),
        *("search.simulations=4", "search.leaf=value", "learner.buffer_size=500", *SMALL),
        *("learner.updates_per_batch=4", "learner.minibatch_size=32", "batch=20", "games=400"),
        *SAVES,
    ),
    "adp": _train(
        *("game=2048", "board=2", "columns=2", "target=32", "learner=adp", "policy=linear"),
        *("reward=score", "sampling=epsilon_greedy", "batch=20", *SMALL, "games=600", *SAVES),
    ),
    "behavior_cloning": _train(
        *(*CONNECT4, "learner=behavior_cloning", "teacher=win_or_block", *NETWORK, "batch=20"),
        *("games=600", *SAVES),
    ),
    "past_selves": _train(
        *(*CONNECT4, *NETWORK, "opponent=past", "opponent.every=100", "batch=20", "games=400"),
        *("keep_every=100", *SAVES),
    ),
    "sweep": _sweep("seed=0,1", extra="", weight=1.2),
    "sweep_joblib": _launcher("joblib", "hydra_joblib_launcher"),
    "sweep_submitit": _launcher("submitit_local", "hydra_submitit_launcher"),
    "sweep_ray": RAY,
    "eval": Kind(EVAL, setup=("train", *SALVO, "games=40", "log_every=40"), weight=1.2),
}
