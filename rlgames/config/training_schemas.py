"""The keys of a training, and those that several commands share; nothing heavy is imported."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any

from rlgames.config.schema import MAX_BATCH, POSITIVE, key
from rlgames.core.metrics import HEADLINES

MAX_SEED = 2**64 - 1


@dataclass
class PluginConfig:
    plugins: list[str] = key([], help="your own modules: plugins=[mine] imports mine.py")


@dataclass
class DeviceConfig(PluginConfig):
    device: str = key("cpu", help="cpu, cuda, mps or auto, the best one there is")
    threads: int = key(1, 1, 1024, help="CPU threads of torch")


@dataclass
class RunConfig(DeviceConfig):
    """The keys of every command that plays games."""

    seed: int = key(0, 0, MAX_SEED, help="the same seed gives the same games")


@dataclass
class CheckpointConfig(PluginConfig):
    checkpoint: str | None = key(
        None, of=("best", "final", "latest"), help="checkpoint of the run; null: best (selected)"
    )


@dataclass
class FormatConfig(PluginConfig):
    format: str = key("table", of=("table", "json"), help="output format")


@dataclass
class TrainConfig(RunConfig):
    games: int = key(150_000, 1, 10**12, help="games in the whole run")
    batch: int = key(512, 1, MAX_BATCH, help="games played in parallel between two updates")
    window: int | None = key(
        None, 1, 10**9, help="moves per game between two updates; null: whole games"
    )
    restart_fraction: float = key(
        0.0, 0, 1, help="fraction of games started near a game in progress"
    )
    lr: float = key(0.002, POSITIVE, 100, help="learning rate")
    log_every: int | None = key(
        None, 1, 10**12, help="games between two log lines; null: 100 per run"
    )
    eval_every: int | None = key(
        None, 1, 10**12, help="games between two greedy evaluations; null: 20 per run"
    )
    eval_games: int = key(
        500, 1, 10**8, help="games per sampled evaluation; the final one plays 4x"
    )
    save_every: int | None = key(
        None, 1, 10**12, help="games between two checkpoints; null: at each evaluation"
    )
    keep_every: int | None = key(
        None, 1, 10**12, help="games between two checkpoints that are never deleted"
    )
    best_by: str | None = key(
        None,
        of=HEADLINES,
        help="metric that selects the best checkpoint; null: the game's own",
    )
    solve_seconds: float = key(20.0, 0, 1e6, help="time limit of the exact optimum; 0: skip it")
    join_seconds: float = key(
        300.0, 1, 1e6, help="time limit for processes of torchrun or Ray to join"
    )
    init_from: str | None = key(None, is_text=True, help="run whose weights initialize the policy")
    demonstrations: str | None = key(None, is_text=True, help="recorded games to learn from")
    demonstrator: str | None = key(
        None, is_text=True, help="player in the record to imitate; null: all"
    )
    demos_per_batch: int = key(0, 0, MAX_BATCH, help="recorded games added to every batch")
    clone_epochs: int = key(
        0, 0, 10**6, help="epochs of behavior cloning on the record before training"
    )
    holdout: float = key(0.0, 0, 1, help="fraction of hidden layouts held out of training")
    out: str | None = key(
        None, is_text=True, help="run directory; null: outputs/<game>/<date>_<time>_<counter>"
    )


@dataclass
class LaunchConfig:
    config: str | None = key(
        None, is_text=True, help="config to start from, such as a run's config.yaml"
    )
    dry_run: bool = key(False, help="show the config, or the jobs; run nothing")
    exist_ok: bool = key(False, help="number the directory if out= holds a run")


@dataclass
class SweepConfig(PluginConfig):
    objective: str | None = key(
        None, help="figure that hparams_search= optimizes: best/NAME, final/NAME; null: best_by"
    )


RESUMABLE_KEYS = (
    *("games", "log_every", "eval_every", "eval_games", "save_every", "keep_every"),
    *("solve_seconds", "join_seconds", "device", "threads", "plugins"),
)
"""The keys of a training that may change when it resumes."""


def _resume_schema() -> type:
    """The schema of these keys, whose default is null: the value of the run."""
    trained = {item.name: item for item in fields(TrainConfig)}
    keys: list[tuple[str, Any, Any]] = []
    for name in RESUMABLE_KEYS:
        kind = f"{str(trained[name].type).removesuffix(' | None')} | None"
        about = trained[name].metadata["help"].partition("; null")[0]
        metadata = {**trained[name].metadata, "help": f"{about}; null: unchanged"}
        keys.append((name, kind, field(default=None, metadata=metadata)))
    return make_dataclass("ResumeConfig", keys)


ResumeConfig = _resume_schema()
