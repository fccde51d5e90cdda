"""The commands, and their schemas: the keys that conf/COMMAND.yaml gives values.

Nothing heavy is imported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from rlgames.config.options.rewards import RewardConfig
from rlgames.config.schema import (
    MAX_BATCH,
    POSITIVE,
    OptionConfig,
    Schema,
    group,
    key,
    key_fields,
    kind_of,
    make_schema,
)
from rlgames.core.metrics import HEADLINES

MAX_SEED = 2**64 - 1
"""The largest seed of torch."""
MAX_JOBS = 1024
"""The most jobs that run at the same time."""
CHOOSE_HELP = "conditions on the runs in a folder, or in outputs/ with latest"
WHERE_HELP = "conditions on runs, as in 'game=salvo,lr<0.01,status=done'"


class PluginConfig(Schema):
    plugins: list[str] = key(help="your own modules: plugins=[mine] imports mine.py")


class DeviceConfig(PluginConfig):
    device: str = key(help="cpu, cuda, mps, or auto: CUDA, else MPS, else CPU")
    threads: int = key(1, 1024, help="CPU threads of torch")


class RunConfig(DeviceConfig):
    """The keys of every command that plays games."""

    seed: int = key(0, MAX_SEED, help="the same seed gives the same games")


class CheckpointConfig(PluginConfig):
    checkpoint: str | None = key(of=("best", "final", "latest"), help="checkpoint; null: best")


class FormatConfig(PluginConfig):
    format: str = key(of=("table", "json"), help="table or json")


class TrainConfig(RunConfig):
    game: OptionConfig = group("game to play")
    reward: RewardConfig = group("reward of a move")
    policy: OptionConfig = group("model that maps positions to scores or values")
    sampling: OptionConfig = group("rule that picks an action from the scores")
    learner: OptionConfig = group("learning algorithm")
    opponent: OptionConfig = group("player in the other seat", "player", is_training=True)
    eval_opponent: OptionConfig = group("player in the other seat in evaluations", "player")
    teacher: OptionConfig | None = group("player that behavior_cloning imitates", "player")
    search: OptionConfig | None = group("search before each move")
    logger: dict[str, OptionConfig] = group("where metrics and pictures go: [tensorboard,wandb]")
    engine: OptionConfig = group("where the games of the training are played")
    games: int = key(1, 10**12, help="games in the run; lr_end= and other schedules span them")
    schedule_games: int | None = key(1, 10**12, help="games that schedules span; null: all games")
    batch: int = key(1, MAX_BATCH, help="games played in parallel between two updates")
    window: int | None = key(1, 10**9, help="moves per game between two updates; null: whole games")
    restart_fraction: float = key(0, 1, help="fraction of new games that branch off a running one")
    lr: float = key(POSITIVE, 100, help="learning rate")
    log_every: int | None = key(1, 10**12, help="games between two log lines; null: 100 per run")
    eval_every: int | None = key(1, 10**12, help="games between evaluations; null: 20 per run")
    eval_games: int = key(
        1, 10**8, help="games per evaluation, unless all layouts are played; 4x in the final one"
    )
    analyze_every: int | None = key(1, 10**12, help="games between counts of mistakes; null: none")
    save_every: int | None = key(1, 10**12, help="games between saves; null: at each evaluation")
    keep_every: int | None = key(1, 10**12, help="games between checkpoints that are never deleted")
    best_by: str | None = key(of=HEADLINES, help="metric of the best checkpoint; null: the game's")
    solve_seconds: float = key(0, 1e6, help="time limit of the exact optimum; 0: skip it")
    join_seconds: float = key(1, 1e6, help="time limit for Ray and its first actor to join")
    init_from: str | None = key(is_path=True, help="run whose weights initialize the policy")
    demonstrations: str | None = key(is_path=True, help="recorded games to learn from")
    demonstrator: str | None = key(help="player in the record to imitate; null: all")
    demos_per_batch: int = key(0, MAX_BATCH, help="recorded games added to every batch")
    holdout: float = key(0, 1, help="fraction of hidden layouts held out of training")
    out: str | None = key(is_path=True, help="directory; null: outputs/<game>/<date>_<time>_<n>")

    def schedule_progress(self, games: int) -> float:
        """How far the schedules are after this many games, from 0 to 1."""
        return min(1.0, games / (self.schedule_games or self.games))


class EnvConfig(PluginConfig):
    """The keys of a Gymnasium environment."""

    game: OptionConfig | None = group("game to play")
    reward: RewardConfig = group("reward of a move")
    opponent: OptionConfig | None = group("player in the other seat", "player")
    seat: int = key(1, 2, help="seat of the agent; 1 moves first")
    illegal: float = key(-1e6, 1e6, help="reward of an illegal action, which changes nothing")


MOVABLE_PLAYERS = ("opponent", "eval_opponent", "teacher")
"""Players of a training that may be named again when it resumes, if they are runs that moved."""
RESUMABLE_KEYS = (
    *("games", "schedule_games", "log_every", "eval_every", "eval_games", "save_every"),
    "analyze_every",
    *("keep_every", "solve_seconds", "join_seconds", "device", "threads", "plugins"),
    "demonstrations",
)
"""The keys of a training that may change when it resumes."""


def _resume_schema() -> type:
    """The schema of these keys, where null is the value of the run."""
    engine = group("where the games are played; null: unchanged")
    about = "new path of this player, if its run has moved; null: unchanged"
    run = key(is_word=True, help="run or sweep to resume: the first word")
    items: dict[str, tuple[Any, Any]] = {"run": (str | None, run)}
    items |= {"engine": (OptionConfig | None, engine)}
    items |= {name: (OptionConfig | None, group(about, "player")) for name in MOVABLE_PLAYERS}
    for name in RESUMABLE_KEYS:
        metadata = dict(key_fields(TrainConfig)[name].metadata)
        metadata["help"] = f"{metadata['help'].partition('; null')[0]}; null: unchanged"
        items[name] = (kind_of(TrainConfig, name) | None, field(metadata=metadata))
    jobs = key(1, MAX_JOBS, help="jobs of a sweep that run at the same time; null: unchanged")
    return make_schema("ResumeConfig", Schema, items | {"jobs": (int | None, jobs)})


ResumeConfig = _resume_schema()


class PlayerConfig(CheckpointConfig):
    """A run or a player, and the game."""

    run: str | None = key(is_word=True, help="run or checkpoint: the first word")
    game: OptionConfig | None = group("game to play")
    player: OptionConfig | None = group("player to use instead of a run")
    sampling: OptionConfig = group("rule that picks an action from the scores")
    search: OptionConfig | None = group("search before each move")


class ReportedConfig(FormatConfig):
    """Where the report of a command is kept."""

    name: str | None = key(help="name of the report in RUN/reports/; null: what is asked")
    out: str | None = key(is_path=True, help="directory to keep the report in; null: the run")


class MatchConfig(ReportedConfig, PlayerConfig, RunConfig):
    opponent: OptionConfig | None = group("player in the other seat; null: random", "player")
    opponent_search: OptionConfig | None = group("search before the opponent's moves", "search")


class EvalConfig(MatchConfig):
    games: str | int = key(1, of=("auto", "all"), help="all: every layout; auto: all if up to 5000")
    batch: int = key(1, MAX_BATCH, help="games played in parallel")
    opening_turns: int = key(0, 10_000, help="random turns at the start of each game")
    where: str | None = key(help=CHOOSE_HELP)
    record: str | None = key(is_path=True, help="file to append the games to")
    solve_seconds: float = key(0, 1e6, help="time limit of the optimum or best response; 0: skip")


class AnalyzeConfig(MatchConfig):
    games: str | int = key(
        1, of=("auto", "all"), help="all: every layout; auto: all up to 5000, else 200"
    )
    positions: str | None = key(
        is_path=True, help="file of positions instead of games, labeled or as show's state="
    )
    solve_positions: int = key(1, 10**12, help="positions searched for each exact value, at most")
    worst: int = key(0, 1000, help="worst positions to list")
    picture: str | None = key(is_path=True, help="PNG, SVG or PDF file for the mistakes by turn")


class GamesConfig(FormatConfig):
    game: OptionConfig | None = group("game to show: the first word; null: list all", is_word=True)


class SolveConfig(ReportedConfig):
    run: str | None = key(is_word=True, help="run whose game is solved: the first word")
    game: OptionConfig | None = group("game to play")
    seconds: float = key(0, 1e6, help="time limit")
    memory_gb: float = key(POSITIVE, 1e4, help="memory limit in GiB")


class PlayConfig(CheckpointConfig, DeviceConfig):
    run: str | None = key(is_word=True, help="run or checkpoint: the first word")
    game: OptionConfig | None = group("game to play")
    opponent: OptionConfig | None = group("player in the other seat", "player")
    sampling: OptionConfig = group("rule that picks an action from the scores")
    search: OptionConfig | None = group("search before each move")
    seat: int = key(1, 2, help="your seat; 1 moves first")
    games: int = key(1, 10**6, help="games to play")
    hints: bool = key(help="show the agent's probabilities before each move")
    fleet: str | None = key(help="salvo_duel: random, hand, or ships as in 'A1-A3 C2-C3'")
    record: str | None = key(is_path=True, help="file to append finished games to")
    seed: int | None = key(0, MAX_SEED, help="the same seed gives the same games; null: random")


class WatchConfig(PlayerConfig, RunConfig):
    opponent: OptionConfig | None = group("player in the other seat", "player")
    opponent_search: OptionConfig | None = group("search before the opponent's moves", "search")
    games: int = key(1, 10**6, help="games to show")
    delay: float = key(0, 3600, help="seconds between moves; 0: print all boards")
    picture: str | None = key(is_path=True, help="GIF or SVG file, instead of the terminal")


class ShowConfig(FormatConfig, PlayerConfig, DeviceConfig):
    state: str | None = key(help="a board, @FILE or - (standard input); null: the start")
    solve_seconds: float | None = key(
        0, 1e6, help="time limit of the exact values; null: a number of positions; 0: skip them"
    )
    picture: str | None = key(is_path=True, help="SVG or PNG file for the position")


class ServeConfig(CheckpointConfig, DeviceConfig):
    runs: list[str] = key(is_word=True, help="runs to play against: the words without =")
    game: OptionConfig | None = group("game to offer; null: the games of the runs, or all")
    sampling: OptionConfig = group("rule that picks an action from the scores")
    search: OptionConfig | None = group("search to offer first, with its settings")
    seed: int | None = key(0, MAX_SEED, help="the same seed gives the same games; null: random")
    port: int | None = key(1, 65535, help="port of the page; null: 8765, or any free one")
    host: str = key(help="address to listen on; 0.0.0.0: every network")
    hosts: list[str] = key(help="names that others open the page by, as in ['*.hf.space']")
    open: bool = key(help="open the page in the browser")


class ExportConfig(CheckpointConfig, FormatConfig):
    run: str | None = key(is_word=True, help="run, checkpoint or agent to export: the first word")
    sampling: OptionConfig = group("rule that picks an action from the scores")
    search: OptionConfig | None = group("search before each move")
    seat: int = key(1, 2, help="your seat; 1 moves first")
    moves: str | None = key(help="moves at the start of the first game, as in 'd1 d2'")
    out: str | None = key(is_path=True, help="HTML file; null: GAME.html in this folder")


class ArenaConfig(ReportedConfig, RunConfig):
    players: list[str] = key(is_word=True, help="runs and players, as in RUN+mcts: words without =")
    game: OptionConfig | None = group("game to play")
    player: OptionConfig | None = group("one more player, as in player=program, with its keys")
    search: OptionConfig | None = group("search before each move")
    games: int = key(1, 10**9, help="games per pair; in a one-player game, per player")
    opening_turns: int | None = key(
        0, 10_000, help="random turns at the start; null: if two players use no chance"
    )
    format: str = key(of=("table", "markdown", "latex", "csv", "json"), help="format of the table")
    where: str | None = key(help=CHOOSE_HELP)


class ReportConfig(FormatConfig):
    runs: list[str] = key(is_word=True, help="runs, sweeps, folders of them: the words without =")
    by: str = key(help="row for each config (seeds pooled), run, or value of this setting")
    where: str | None = key(help=WHERE_HELP)
    sort: str = key(help="best, or a column; sort=-turns: descending")
    top: int | None = key(1, 10**6, help="first rows of each game; null: all")
    columns: list[str] = key(help="columns to show, or all; []: the most important")
    curves: str | None = key(is_path=True, help="PNG, SVG or PDF file for the learning curves")
    effects: str | None = key(is_path=True, help="figure of what each varied setting changes")
    metric: list[str] = key(help="metrics of curves=, one panel each; []: the best_by metric")
    window: int | None = key(1, 10**9, help="draw means over this many games; null: as logged")
    x: str = key(of=("games", "moves", "updates", "seconds"), help="x axis of curves=")
    aggregate: str = key(of=("mean", "iqm"), help="statistic over seeds that each curve shows")
    width: str | float = key(1, 40, of=("column", "page"), help="inches; column: 3.25, page: 6.75")
    style: str = key(of=("color", "gray"), help="colors of a figure")
    compare: str | None = key(help="setting to compare, such as learner")
    format: str = key(of=("table", "markdown", "latex", "csv", "json"), help="format of the table")


def _doctor_schema() -> type:
    """The schema of doctor, one of whose keys is a word of Python."""
    runs = key(is_word=True, help="runs, and folders of them: the words without =")
    seconds = key(0, 1e6, help="seconds to try changes; true: as long as the run took, at most 300")
    jobs = key(1, MAX_JOBS, help="trainings at the same time; null: one per core")
    items = {"runs": (list[str], runs), "try": (bool | float, seconds), "jobs": (int | None, jobs)}
    return make_schema("DoctorConfig", FormatConfig, items)


DoctorConfig = _doctor_schema()


class StudyConfig(PluginConfig):
    file: str | None = key(is_word=True, help="name or file of the study: the first word")
    seeds: int | list[int] | None = key(help="number of seeds, or a list; null: the file's")
    jobs: int = key(1, MAX_JOBS, help="jobs that run at the same time")
    only: str | None = key(help="runs to train and evaluate, as in ppo or [ppo*,td]; null: all")
    dry_run: bool = key(help="print the jobs; run nothing")
    run: bool = key(help="false: make the tables from finished jobs")
    out: str | None = key(is_path=True, help="directory; null: outputs/studies/<study>")
    records: str | None = key(is_path=True, help="folder of result records; null: in the directory")
    page: str | None = key(is_path=True, help="Markdown file with tables to update; null: none")
    format: str = key(of=("table", "markdown", "latex", "json"), help="format of the tables")


@dataclass(frozen=True)
class Command:
    """A command.

    Args:
        schema: its keys, which conf/COMMAND.yaml gives values.
        help: of at most ten words.
        example: what to type.
        slow: whether it may compute for long without printing a line.
        module: of rlgames.commands, if it has another name than the command. Its run(config)
            returns a result, which show(result) prints, or as_dict() with format=json; or it prints
            everything itself and returns None.
    """

    schema: type[Any]
    help: str
    example: str
    slow: bool = False
    module: str = ""


COMMANDS = {
    "train": Command(TrainConfig, "train a policy", "train game=salvo board=4 shots=2"),
    "resume": Command(ResumeConfig, "resume a run or a sweep", "resume RUN games=500000"),
    "eval": Command(
        EvalConfig,
        "evaluate a run or a player",
        "eval RUN opponent=exact",
        module="evaluate",
        slow=True,
    ),
    "analyze": Command(
        AnalyzeConfig,
        "mistakes against perfect play",
        "analyze RUN opponent=win_or_block",
        slow=True,
    ),
    "play": Command(PlayConfig, "play against a run or a player", "play connect4 seat=2"),
    "watch": Command(WatchConfig, "watch a run play, move by move", "watch RUN delay=1"),
    "show": Command(
        ShowConfig, "evaluate a single position", "show RUN state='. X . / . O . / . . .'"
    ),
    "serve": Command(ServeConfig, "games on a page in the browser", "serve connect4 hex"),
    "export": Command(
        ExportConfig, "an agent as a page that needs no server", "export hex out=hex.html"
    ),
    "arena": Command(
        ArenaConfig, "tournament with Elo ratings", "arena RUN random win_or_block", slow=True
    ),
    "solve": Command(SolveConfig, "exact optimum of a game", "solve game=2048 board=2 columns=3"),
    "report": Command(
        ReportConfig, "comparison of runs and sweeps", "report outputs curves=curves.png"
    ),
    "doctor": Command(DoctorConfig, "why a run does not learn", "doctor RUN try=60"),
    "study": Command(StudyConfig, "runs and tables from one file", "study mine.yaml seeds=5"),
    "games": Command(GamesConfig, "games with their presets and agents", "games hex"),
}
"""Every command, in the order of the help."""


def load_command(name: str) -> Any:
    """The module of a command."""
    return import_module(f"rlgames.commands.{COMMANDS[name].module or name}")


COMMAND_SCHEMAS = {name: command.schema for name, command in COMMANDS.items()} | {"env": EnvConfig}
"""By the names of the primary configs; env: of rlgames.envs."""
