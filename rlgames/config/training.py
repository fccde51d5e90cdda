"""The configs of a training, and the keys that several commands share."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from rlgames.config.options.rewards import RewardConfig
from rlgames.config.schema import (
    MAX_BATCH,
    POSITIVE,
    Config,
    OptionConfig,
    group,
    key,
    key_fields,
    kind_of,
    make_schema,
    schema,
)
from rlgames.core.metrics import HEADLINES

MAX_SEED = 2**64 - 1


@schema
class PluginConfig(Config):
    plugins: list[str] = key(
        [], takes_word=True, help="your own modules: plugins=[mine] imports mine.py"
    )


@schema
class DeviceConfig(PluginConfig):
    device: str = key("cpu", help="cpu, cuda, mps, or auto: CUDA, else MPS, else CPU")
    threads: int = key(1, 1, 1024, help="CPU threads of torch")


@schema
class RunConfig(DeviceConfig):
    """The keys of every command that plays games."""

    seed: int = key(0, 0, MAX_SEED, help="the same seed gives the same games")


@schema
class CheckpointConfig(PluginConfig):
    checkpoint: str | None = key(
        None, of=("best", "final", "latest"), help="checkpoint of the run; null: best (selected)"
    )


@schema
class FormatConfig(PluginConfig):
    format: str = key("table", of=("table", "json"), help="table or json")


@schema
class TrainConfig(RunConfig):
    game: OptionConfig = group("salvo", "game to play")
    reward: RewardConfig = group("turns", "reward of a move")
    policy: OptionConfig = group("mlp", "model that maps positions to scores or values")
    sampling: OptionConfig = group("stochastic", "rule that picks an action from the scores")
    learner: OptionConfig = group("ppo", "learning algorithm")
    opponent: OptionConfig = group("self", "player in the other seat", "player", is_training=True)
    eval_opponent: OptionConfig = group(
        "random", "player in the other seat in evaluations", "player"
    )
    teacher: OptionConfig | None = group(None, "player that behavior_cloning imitates", "player")
    search: OptionConfig | None = group(None, "search before each move")
    logger: dict[str, OptionConfig] = group(
        "tensorboard", "where metrics and pictures go, as in [tensorboard,wandb]", is_list=True
    )
    engine: OptionConfig = group("local", "where the games of the training are played")
    games: int = key(
        150_000, 1, 10**12, help="games in the whole run; lr_end= and other schedules span them"
    )
    schedule_games: int | None = key(
        None, 1, 10**12, help="games that lr_end= and other schedules span; null: all games"
    )
    batch: int = key(512, 1, MAX_BATCH, help="games played in parallel between two updates")
    window: int | None = key(
        None, 1, 10**9, help="moves per game between two updates; null: whole games"
    )
    restart_fraction: float = key(
        0.0, 0, 1, help="fraction of new games that branch off a running one by a random move"
    )
    lr: float = key(0.002, POSITIVE, 100, help="learning rate")
    precision: str = key(
        "float32",
        of=("float32", "bf16"),
        help="networks in training; bf16: bfloat16, if the device is fast at it",
    )
    log_every: int | None = key(
        None, 1, 10**12, help="games between two log lines; null: 100 per run"
    )
    eval_every: int | None = key(
        None, 1, 10**12, help="games between two greedy evaluations; null: 20 per run"
    )
    eval_games: int = key(
        500,
        1,
        10**8,
        help="games per evaluation, unless all layouts are played; 4x in the final one",
    )
    analyze_every: int | None = key(
        None, 1, 10**12, help="games between two counts of mistakes (eval/regret); null: none"
    )
    save_every: int | None = key(
        None, 1, 10**12, help="games between two checkpoints; null: at each evaluation"
    )
    keep_every: int | None = key(
        None, 1, 10**12, help="games between two checkpoints that are never deleted"
    )
    keep_resume_state: bool | None = key(
        None, help="keep what a finished run needs to be extended; null: up to 64 MiB"
    )
    best_by: str | None = key(
        None, of=HEADLINES, help="metric that selects the best checkpoint; null: the game's own"
    )
    solve_seconds: float = key(20.0, 0, 1e6, help="time limit of the exact optimum; 0: skip it")
    join_seconds: float = key(300.0, 1, 1e6, help="time limit for Ray and its first actor to join")
    init_from: str | None = key(None, is_path=True, help="run whose weights initialize the policy")
    demonstrations: str | None = key(None, is_path=True, help="recorded games to learn from")
    demonstrator: str | None = key(
        None, is_text=True, help="player in the record to imitate; null: all"
    )
    demos_per_batch: int = key(0, 0, MAX_BATCH, help="recorded games added to every batch")
    clone_epochs: int = key(
        0, 0, 10**6, help="epochs of behavior cloning on the record before training"
    )
    holdout: float = key(0.0, 0, 1, help="fraction of hidden layouts held out of training")
    out: str | None = key(
        None, is_path=True, help="run directory; null: outputs/<game>/<date>_<time>_<counter>"
    )

    def schedule_progress(self, games: int) -> float:
        """How far the schedules are after this many games, from 0 to 1."""
        return min(1.0, games / (self.schedule_games or self.games))


@schema
class LaunchConfig(Config):
    """How a training starts; the run does not store these keys."""

    config: str | None = key(
        None, is_path=True, help="config to start from, such as a run's config.yaml"
    )
    dry_run: bool = key(False, help="show the config, or the jobs; run nothing")
    exist_ok: bool = key(False, help="number the directory if out= holds a run")


@schema
class SweepConfig(PluginConfig):
    """The keys that -m adds."""

    hparams_search: Any = group(None, "search that proposes the jobs of a sweep")
    objective: str | None = key(
        None, help="metric that hparams_search= optimizes: best/NAME, final/NAME; null: best_by"
    )


@schema
class EnvConfig(PluginConfig):
    """The keys of a Gymnasium environment."""

    game: OptionConfig = group(None, "game to play")
    reward: RewardConfig | None = group(None, "reward of a move")
    opponent: OptionConfig | None = group(None, "player in the other seat", "player")
    seat: int = key(1, 1, 2, help="seat of the agent; 1 moves first")
    illegal: float = key(-1.0, -1e6, 1e6, help="reward of an illegal action, which changes nothing")


MOVABLE_PLAYERS = ("opponent", "eval_opponent", "teacher")
"""Players of a training that may be named again when it resumes, if they are runs that moved."""

RESUMABLE_KEYS = (
    *("games", "schedule_games", "log_every", "eval_every", "eval_games", "save_every"),
    *("analyze_every", "keep_every", "solve_seconds", "join_seconds", "device", "threads"),
    *("plugins", "demonstrations", "keep_resume_state"),
)
"""The keys of a training that may change when it resumes."""


def _resume_schema() -> type:
    """The schema of these keys, whose default is null: the value of the run."""
    keys: list[tuple[str, Any, Any]] = []
    for name in RESUMABLE_KEYS:
        metadata = dict(key_fields(TrainConfig)[name].metadata)
        about = metadata["help"].partition("; null")[0]
        metadata["help"] = f"{about}; null: unchanged"
        keys.append(
            (name, kind_of(TrainConfig, name) | None, field(default=None, metadata=metadata))
        )
    engine = group(None, "where the games are played; null: unchanged")
    about = "new path of this player, if its run has moved; null: unchanged"
    moved = [(name, Any, group(None, about, "player")) for name in MOVABLE_PLAYERS]
    return make_schema("ResumeConfig", [("engine", Any, engine), *moved, *keys], Config)


ResumeConfig = _resume_schema()
