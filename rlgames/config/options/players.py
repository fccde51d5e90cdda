"""The players: scripted, exact, human, and trained ones."""

from __future__ import annotations

from rlgames.config.schema import POSITIVE, Option, OptionConfig, key, schema, variant


@schema
class RandomConfig(OptionConfig):
    """uniformly random legal actions"""

    name: str = "random"
    observe: bool = key(False, help="compute observations too, for speed measurements")


@schema
class CountingConfig(OptionConfig):
    """Keys of players that count layouts."""

    samples: int = key(
        60, 1, 1_000_000, help="layouts sampled per board, if too many to list or count"
    )
    steps: int = key(
        5_000_000,
        0,
        10**12,
        help="count layouts exactly up to this many steps, else sample; 0: always sample",
    )


@schema
class DensityConfig(CountingConfig):
    """battleship: shoots the cell most likely to hold a ship"""

    name: str = "density"
    miss_weight: float = key(
        0.0, 0, 1, help="several shots: weight of P(ship | earlier cells of the turn miss)"
    )


@schema
class DensityRolloutConfig(CountingConfig):
    """battleship: density with lookahead once few layouts are left"""

    name: str = "density_rollout"
    miss_weight: float | None = key(
        None, 0, 1, help="as of density; null: 0.4 with several shots per turn, else 0"
    )
    layouts: int = key(10_000, 1, 1_000_000, help="looks ahead with at most this many layouts left")
    next_cells: int = key(3, 1, 100, help="runner-up cells, each tried instead of each chosen cell")


@schema
class ExactConfig(OptionConfig):
    """exact optimal play within time and memory limits"""

    name: str = "exact"
    seconds: float = key(
        60.0, POSITIVE, 1e6, help="time limit for solving before the first move, in seconds"
    )
    memory_gb: float = key(4.0, POSITIVE, 1e4, help="memory limit for solving, in GiB")
    move_positions: int | None = key(
        None, 1, 10**12, help="positions per Connect 4 move, for the same games on every machine"
    )
    move_seconds: float | None = key(
        None, POSITIVE, 1e6, help="seconds per Connect 4 move; null: 0.5, or as move_positions="
    )
    scores: bool = key(False, help="Connect 4: win as soon and lose as late as possible")


@schema
class RunPlayerConfig(OptionConfig):
    """a trained run, given by its path"""

    name: str = "run"
    path: str = key("???", is_path=True, help="run directory or checkpoint file")


@schema
class PastConfig(OptionConfig):
    """training only: past snapshots of the agent"""

    name: str = "past"
    every: int = key(5000, 1, 10**12, help="games between snapshots")
    keep: int = key(10, 1, 1000, help="number of latest snapshots to play against")


PLAYERS = {
    "random": Option(RandomConfig, "rlgames.players.player:Random", is_quick=True),
    "win_or_block": Option(
        variant(OptionConfig, "win_or_block", "wins if possible, else blocks, else plays randomly"),
        "rlgames.players.scripted:WinOrBlock",
        is_quick=True,
    ),
    "corner": Option(
        variant(OptionConfig, "corner", "2048: down, else left, else right, else up"),
        "rlgames.players.scripted:Corner",
    ),
    "hunt_target": Option(
        variant(
            OptionConfig, "hunt_target", "battleship: checkerboard shots, then neighbors of hits"
        ),
        "rlgames.players.fleets:HuntTarget",
    ),
    "density": Option(DensityConfig, "rlgames.players.fleets:Density"),
    "density_rollout": Option(DensityRolloutConfig, "rlgames.players.fleets:DensityRollout"),
    "exact": Option(ExactConfig, "rlgames.players.exact:exact_player"),
    "human": Option(
        variant(OptionConfig, "human", "a person at the keyboard"), "rlgames.players.human:Human"
    ),
    "run": Option(RunPlayerConfig),
    "self": Option(
        variant(OptionConfig, "self", "training only: the agent plays both seats"),
        training_only=True,
    ),
    "past": Option(PastConfig, training_only=True),
}
