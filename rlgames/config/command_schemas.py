"""The keys of every command, with their types, ranges and choices; the defaults stand in conf/."""

from __future__ import annotations

from dataclasses import dataclass, fields

from rlgames.config.schema import MAX_BATCH, POSITIVE, key

SEED_END = 2**64


@dataclass
class CommandConfig:
    """The keys that every command has."""

    plugins: list[str] = key([])


@dataclass
class RunConfig(CommandConfig):
    """The keys that whatever plays games has."""

    seed: int = key(0, 0, SEED_END - 1)
    device: str = "cpu"
    threads: int = key(1, 1, 1024)


@dataclass
class TrainConfig(RunConfig):
    games: int = key(10_000, 1, 10**12)
    batch: int = key(256, 1, MAX_BATCH)
    window: int | None = key(None, 1, 10**9)
    restart_fraction: float = key(0.0, 0, 1)
    lr: float = key(0.001, POSITIVE, 100)
    log_every: int = key(500, 1, 10**12)
    eval_every: int | None = key(None, 1, 10**12)
    eval_games: int = key(500, 1, 10**8)
    save_every: int | None = key(None, 1, 10**12)
    keep_every: int | None = key(None, 1, 10**12)
    best_by: str | None = key(None, of=("turns", "score", "points", "exploitability"))
    solve_seconds: float = key(20.0, 0, 1e6)
    init_from: str | None = None
    demonstrations: str | None = None
    demonstrator: str | None = None
    demos_per_batch: int = key(0, 0, MAX_BATCH)
    clone_epochs: int = key(0, 0, 10**6)
    holdout: float = key(0.0, 0, 1)
    out: str | None = None


@dataclass
class SweepConfig(CommandConfig):
    """The keys of a sweep, beside those of its jobs."""

    objective: str | None = None
    dry_run: bool = False


@dataclass
class ResumeConfig:
    games: int | None = key(None, 1, 10**12)
    log_every: int | None = key(None, 1, 10**12)
    eval_every: int | None = key(None, 1, 10**12)
    eval_games: int | None = key(None, 1, 10**8)
    save_every: int | None = key(None, 1, 10**12)
    keep_every: int | None = key(None, 1, 10**12)
    solve_seconds: float | None = key(None, 0, 1e6)
    device: str | None = None
    threads: int | None = key(None, 1, 1024)
    plugins: list[str] | None = key(None)


@dataclass
class EvalConfig(RunConfig):
    games: str | int = "auto"
    batch: int = key(4096, 1, MAX_BATCH)
    compile: bool = False
    trace: int = key(0, 0, 1000)
    record: str | None = None
    solve_seconds: float = key(20.0, 0, 1e6)
    format: str = key("table", of=("table", "json"))


@dataclass
class SolveConfig(CommandConfig):
    seconds: float = key(60.0, 0, 1e6)
    memory_gb: float = key(4.0, POSITIVE, 1e4)
    format: str = key("table", of=("table", "json"))


@dataclass
class PlayConfig(RunConfig):
    seed: int | None = key(None, 0, SEED_END - 1)  # type: ignore[assignment]
    seat: int = key(1, 1, 2)
    games: int = key(1, 1, 10**6)
    record: str | None = None


@dataclass
class WatchConfig(RunConfig):
    games: int = key(1, 1, 10**6)
    delay: float = key(0.5, 0, 3600)


@dataclass
class ShowConfig(CommandConfig):
    state: str | None = None
    solve_seconds: float = key(20.0, 0, 1e6)
    format: str = key("table", of=("table", "json"))
    device: str = "cpu"
    threads: int = key(1, 1, 1024)


@dataclass
class ArenaConfig(RunConfig):
    games: int = key(1000, 1, 10**9)
    format: str = key("table", of=("table", "json"))


@dataclass
class ReportConfig(CommandConfig):
    by: str = key("config", of=("config", "run"))
    sort: str = "best"
    metric: str | None = None
    curves: str | None = None
    format: str = key("table", of=("table", "markdown", "csv", "json"))


@dataclass
class ListingConfig(CommandConfig):
    """The keys of what lists games and experiments."""

    format: str = key("table", of=("table", "json"))


@dataclass
class ExportConfig(CommandConfig):
    out: str | None = None


@dataclass
class EnvConfig(CommandConfig):
    """The keys of an environment, which no command makes but Python."""

    seat: int = key(1, 1, 2)
    illegal: float = key(-1.0, -1e6, 1e6)


COMMANDS: dict[str, type] = {
    "train": TrainConfig,
    "sweep": SweepConfig,
    "resume": ResumeConfig,
    "eval": EvalConfig,
    "play": PlayConfig,
    "watch": WatchConfig,
    "show": ShowConfig,
    "arena": ArenaConfig,
    "report": ReportConfig,
    "solve": SolveConfig,
    "games": ListingConfig,
    "experiments": ListingConfig,
    "export": ExportConfig,
    "env": EnvConfig,
}
GROUPS: dict[str, tuple[str, ...]] = {
    "train": (
        "game",
        "reward",
        "policy",
        "sampling",
        "learner",
        "opponent",
        "eval_opponent",
        "teacher",
        "search",
    ),
    "sweep": ("hparams_search",),
    "resume": (),
    "eval": ("game", "player", "opponent", "sampling", "search", "opponent_search"),
    "play": ("game", "opponent", "sampling", "search"),
    "watch": ("game", "player", "opponent", "sampling", "search"),
    "show": ("game", "player", "sampling", "search"),
    "arena": ("game", "search"),
    "report": (),
    "solve": ("game",),
    "games": (),
    "experiments": (),
    "export": (),
    "env": ("game", "reward", "opponent"),
}

LAUNCHERS = {
    "basic": "",
    "joblib": "joblib",
    "ray": "ray",
    "submitit_local": "submitit",
    "submitit_slurm": "submitit",
}
"""The launchers of Hydra, and the extra that each of them comes with."""


def known_keys(command: str) -> set[str]:
    """The groups and the keys at the top of a command's config."""
    return {*GROUPS[command], *(item.name for item in fields(COMMANDS[command]))}
