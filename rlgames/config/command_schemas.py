"""Every command: the schema of its keys, then its record in COMMANDS.

Help, completion and dispatch are derived from the records; nothing heavy is imported. A schema
inherits the keys that several commands share, which training_schemas.py declares once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from rlgames.config.command import Command, Group, PrimaryConfig
from rlgames.config.report_schema import ReportConfig
from rlgames.config.schema import MAX_BATCH, POSITIVE, key
from rlgames.config.training_schemas import (
    MAX_SEED,
    CheckpointConfig,
    DeviceConfig,
    FormatConfig,
    LaunchConfig,
    PluginConfig,
    ResumeConfig,
    RunConfig,
    SweepConfig,
    TrainConfig,
)


@dataclass
class EvalConfig(FormatConfig, CheckpointConfig, RunConfig):
    games: str | int = key("auto", help="a number, all layouts, or auto: all up to 5000")
    batch: int = key(4096, 1, MAX_BATCH, help="games played in parallel")
    compile: bool = key(False, help="compile the observation function; needs a C++ compiler")
    trace: int = key(0, 0, 1000, help="games to print move by move first")
    record: str | None = key(None, is_text=True, help="file to append the games to")
    solve_seconds: float = key(
        20.0, 0, 1e6, help="time limit of the optimum or best response; 0: skip it"
    )


@dataclass
class SolveConfig(FormatConfig):
    seconds: float = key(60.0, 0, 1e6, help="time limit")
    memory_gb: float = key(4.0, POSITIVE, 1e4, help="memory limit in GiB")


@dataclass
class PlayConfig(CheckpointConfig, DeviceConfig):
    seat: int = key(1, 1, 2, help="your seat; 1 moves first")
    games: int = key(1, 1, 10**6, help="games to play")
    hints: bool = key(False, help="show the agent's probabilities before each move")
    fleet: str | None = key(
        None, is_text=True, help="salvo_duel: random, hand, or ships as in 'A1-A3 C2-C3'"
    )
    interface: str = key(
        "auto", of=("auto", "screen", "line"), help="screen: keys and a cursor; line: typed moves"
    )
    record: str | None = key(None, is_text=True, help="file to append finished games to")
    seed: int | None = key(
        None, 0, MAX_SEED, help="the same seed gives the same games; null: random"
    )


@dataclass
class WatchConfig(CheckpointConfig, RunConfig):
    games: int = key(1, 1, 10**6, help="games to show")
    delay: float = key(0.5, 0, 3600, help="seconds between moves; 0: print all boards")
    picture: str | None = key(
        None, is_text=True, help="GIF, SVG or MP4 file, instead of the terminal"
    )


@dataclass
class ShowConfig(FormatConfig, CheckpointConfig, DeviceConfig):
    state: str | None = key(
        None, is_text=True, help="a board, @FILE or - (standard input); null: the start"
    )
    solve_seconds: float = key(20.0, 0, 1e6, help="time limit of the exact values; 0: skip them")
    picture: str | None = key(None, is_text=True, help="SVG or PNG file for the position")


@dataclass
class EngineConfig(CheckpointConfig, DeviceConfig):
    seed: int | None = key(
        None, 0, MAX_SEED, help="the same seed gives the same games; null: random"
    )


@dataclass
class ArenaConfig(FormatConfig, RunConfig):
    games: int = key(1000, 1, 10**9, help="games per pair; in a one-player game, per player")


@dataclass
class ExportConfig(CheckpointConfig):
    out: str | None = key(
        None,
        is_text=True,
        help="ONNX file; null: policy.onnx in the run; of an agent: NAME.onnx",
    )


@dataclass
class PublishConfig(CheckpointConfig, RunConfig):
    out: str | None = key(None, is_text=True, help="folder to write; null: published in the run")
    repo: str | None = key(
        None, is_text=True, help="Hugging Face repository to upload to, user/name"
    )
    private: bool = key(False, help="make a new repository private")
    license: str | None = key(None, help="license of the agent, such as mit")
    games: str | int = key("auto", help="games of the evaluation: a number, all, or auto")
    solve_seconds: float = key(
        20.0, 0, 1e6, help="time limit of the optimum or best response; 0: skip it"
    )


@dataclass
class EnvConfig(PluginConfig):
    seat: int = key(1, 1, 2, help="seat of the agent; 1 moves first")
    illegal: float = key(-1.0, -1e6, 1e6, help="reward of an illegal action, which changes nothing")


GAME = Group("game", help="game to play")
PLAYER = Group("player", help="player to use in place of a run")
OPPONENT = Group("opponent", help="player in the other seat")
SAMPLING = Group("sampling", "argmax", "rule that picks an action from the scores")
SEARCH = Group("search", help="search before each move")
REWARD = Group("reward", help="reward of a move")

TRAIN = PrimaryConfig(
    "train",
    TrainConfig,
    (
        Group("game", "salvo", GAME.help),
        Group("reward", "turns", REWARD.help),
        Group("policy", "mlp", "model that maps positions to scores or values"),
        Group("sampling", "stochastic", SAMPLING.help),
        Group("learner", "ppo", "learning algorithm"),
        Group("opponent", "self", OPPONENT.help, is_training=True),
        Group("eval_opponent", "random", "player in the other seat in evaluations"),
        Group("teacher", help="player that behavior_cloning and dagger imitate"),
        SEARCH,
        Group("logger", "tensorboard", "where metrics and pictures go, as in [tensorboard,csv]"),
        Group("engine", "local", "where the games of the training are played"),
    ),
    presets=Group("experiment", help="preset; null: the one named after the game, if any"),
)
LAUNCH = PrimaryConfig("launch", LaunchConfig)
"""The keys that say how a training starts; the run does not store them."""

SWEEP = PrimaryConfig(
    "sweep",
    SweepConfig,
    (Group("hparams_search", help="search that proposes the jobs of a sweep"),),
)
ENV = PrimaryConfig("env", EnvConfig, (GAME, REWARD, OPPONENT))
"""The keys of a Gymnasium environment, which no command uses."""

_COMMANDS = (
    Command(
        "train",
        "train a policy",
        "rlgames train game=salvo board=4 shots=2",
        function="rlgames.cli.training:train_command",
        printer=None,
        config=TRAIN,
        launch=LAUNCH,
        sweep=SWEEP,
    ),
    Command(
        "resume",
        "resume a run or a sweep",
        "rlgames resume RUN games=500000",
        function="rlgames.cli.training:resume_command",
        printer=None,
        runs="required",
        config=PrimaryConfig(
            "resume",
            ResumeConfig,
            (Group("engine", help="where the games are played; null: unchanged"),),
        ),
    ),
    Command(
        "eval",
        "evaluate a run or a player",
        "rlgames eval RUN opponent=exact",
        function="rlgames.commands.evaluate:evaluate_command",
        printer="rlgames.cli.display:print_evaluation",
        runs="optional",
        config=PrimaryConfig(
            "eval",
            EvalConfig,
            (
                *(GAME, PLAYER, OPPONENT, SAMPLING, SEARCH),
                Group("opponent_search", help="search before each move of the opponent"),
            ),
        ),
    ),
    Command(
        "play",
        "play against a run or a player",
        "rlgames play connect4 seat=2",
        function="rlgames.cli.play:play_command",
        printer=None,
        runs="optional",
        config=PrimaryConfig("play", PlayConfig, (GAME, OPPONENT, SAMPLING, SEARCH)),
    ),
    Command(
        "watch",
        "watch a run play, move by move",
        "rlgames watch RUN delay=1",
        function="rlgames.commands.watch:watch_command",
        printer="rlgames.cli.positions:print_games",
        runs="optional",
        config=PrimaryConfig("watch", WatchConfig, (GAME, PLAYER, OPPONENT, SAMPLING, SEARCH)),
    ),
    Command(
        "show",
        "evaluate a single position",
        "rlgames show RUN state='. X . / . O . / . . .'",
        function="rlgames.commands.show:show_command",
        printer="rlgames.cli.positions:print_position",
        runs="optional",
        config=PrimaryConfig(
            "show",
            ShowConfig,
            (GAME, PLAYER, Group("sampling", "stochastic", SAMPLING.help), SEARCH),
        ),
    ),
    Command(
        "engine",
        "text protocol for other programs",
        "rlgames engine connect4",
        function="rlgames.cli.engine:engine_command",
        printer=None,
        runs="optional",
        config=PrimaryConfig("engine", EngineConfig, (GAME, PLAYER, SAMPLING, SEARCH)),
    ),
    Command(
        "arena",
        "tournament with Elo ratings",
        "rlgames arena RUN random win_or_block",
        function="rlgames.commands.arena:arena_command",
        printer="rlgames.cli.display:print_arena",
        runs="many",
        takes_players=True,
        config=PrimaryConfig("arena", ArenaConfig, (GAME, SEARCH)),
    ),
    Command(
        "solve",
        "exact optimum of a game",
        "rlgames solve game=2048 board=2 columns=3",
        function="rlgames.commands.solve:solve_command",
        printer="rlgames.commands.solve:print_solution",
        config=PrimaryConfig("solve", SolveConfig, (GAME,)),
    ),
    Command(
        "report",
        "comparison of runs and sweeps",
        "rlgames report outputs curves=curves.png",
        function="rlgames.commands.report:report_command",
        printer="rlgames.cli.report_tables:print_report",
        runs="many",
        config=PrimaryConfig("report", ReportConfig),
    ),
    Command(
        "export",
        "export a run's network to ONNX",
        "rlgames export RUN out=policy.onnx",
        function="rlgames.commands.export:export_command",
        printer="rlgames.commands.export:print_export",
        runs="required",
        config=PrimaryConfig("export", ExportConfig),
    ),
    Command(
        "publish",
        "agent for the Hugging Face Hub",
        "rlgames publish RUN repo=user/name",
        function="rlgames.commands.publish:publish_command",
        runs="required",
        config=PrimaryConfig("publish", PublishConfig, (OPPONENT,)),
    ),
    Command(
        "games",
        "list of games",
        "rlgames games",
        function="rlgames.commands.listing:games_command",
        printer="rlgames.commands.listing:print_listing",
        config=PrimaryConfig("games", FormatConfig),
    ),
    Command(
        "experiments",
        "list of training presets",
        "rlgames experiments format=json",
        function="rlgames.commands.listing:experiments_command",
        printer="rlgames.commands.listing:print_listing",
        config=PrimaryConfig("experiments", FormatConfig),
    ),
    Command(
        "completion",
        "shell completion for bash and zsh",
        'eval "$(rlgames completion bash)"',
        function="rlgames.cli.completion:completion_command",
        printer=None,
    ),
)
COMMANDS: dict[str, Command] = {command.name: command for command in _COMMANDS}
"""Every command, in the order of the help."""

CONFIGS: dict[str, PrimaryConfig] = {
    config.name: config
    for config in (*(command.config for command in _COMMANDS), LAUNCH, SWEEP, ENV)
    if config is not None
}
"""Every primary config, by name."""

TEXT_KEYS = {
    item.name
    for config in CONFIGS.values()
    for item in fields(config.schema)
    if item.metadata["is_text"]
}
"""Keys that hold a path or another text, which may have any characters in it."""

LAUNCHERS = {
    "basic": "",
    "joblib": "joblib",
    "ray": "ray",
    "submitit_local": "submitit",
    "submitit_slurm": "submitit",
}
"""Hydra's launchers, with the extra that installs each of them."""
