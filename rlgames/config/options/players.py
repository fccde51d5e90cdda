"""The players: scripted, exact, human, and trained ones."""

from __future__ import annotations

from rlgames.config.schema import POSITIVE, Option, OptionConfig, key


class RandomConfig(OptionConfig):
    observe: bool = key(help="compute observations too, for speed measurements")


class CountingConfig(OptionConfig):
    """Keys of players that count layouts."""

    samples: int = key(1, 1_000_000, help="layouts sampled per board, if too many to list or count")
    steps: int = key(0, 10**12, help="count layouts exactly up to this many steps, else sample")


class DensityConfig(CountingConfig):
    miss_weight: float = key(0, 1, help="several shots: weight of P(ship | earlier cells miss)")


class DensityRolloutConfig(CountingConfig):
    miss_weight: float | None = key(0, 1, help="as of density; null: 0.4 for several shots, else 0")
    layouts: int = key(1, 1_000_000, help="looks ahead with at most this many layouts left")
    next_cells: int = key(1, 100, help="number of next-best cells to try as replacements")


class ExactConfig(OptionConfig):
    seconds: float = key(POSITIVE, 1e6, help="time limit for solving before the first move")
    memory_gb: float = key(POSITIVE, 1e4, help="memory limit for solving, in GiB")
    move_positions: int | None = key(
        1, 10**12, help="positions per Connect 4 move; null: no limit, 200,000 without move_seconds"
    )
    move_seconds: float | None = key(POSITIVE, 1e6, help="seconds per Connect 4 move")


class RunPlayerConfig(OptionConfig):
    path: str = key(help="run directory or checkpoint file", is_path=True)


class ProgramConfig(OptionConfig):
    command: str = key(help="what starts the program, as in 'python mine.py'")
    protocol: str = key(
        of=("lines", "gtp"), help="lines: JSON in, a move out; gtp: Go Text Protocol"
    )
    setup: list[str] = key(help="gtp: commands before each game, as in [set_game Othello]")
    processes: int = key(1, 1024, help="copies of the program that think at the same time")
    move_seconds: float = key(POSITIVE, 1e6, help="time limit for a move, the first one included")
    on_error: str = key(
        of=("raise", "forfeit"),
        help="a late, illegal or missing move: raise: stop; forfeit: a loss",
    )


class PastConfig(OptionConfig):
    every: int = key(1, 10**12, help="games between snapshots")
    keep: int = key(1, 1000, help="number of latest snapshots to play against")


PLAYERS = {
    "random": Option(RandomConfig, "rlgames.players.player:random_player", is_quick=True),
    "win_or_block": Option(OptionConfig, "rlgames.players.scripted:WinOrBlock", is_quick=True),
    "corner": Option(OptionConfig, "rlgames.players.scripted:Corner"),
    "hunt_target": Option(OptionConfig, "rlgames.players.fleets:HuntTarget"),
    "density": Option(DensityConfig, "rlgames.players.fleets:Density"),
    "density_rollout": Option(DensityRolloutConfig, "rlgames.players.fleets:DensityRollout"),
    "exact": Option(ExactConfig, "rlgames.players.exact:exact_player"),
    "human": Option(OptionConfig, "rlgames.terminal.human:Human"),
    "program": Option(ProgramConfig, "rlgames.players.program:Program", runs_code=True),
    "run": Option(RunPlayerConfig),
    "self": Option(OptionConfig, training_only=True),
    "past": Option(PastConfig, training_only=True),
}
