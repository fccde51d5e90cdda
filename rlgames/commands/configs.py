"""The configs of the commands besides `train`.

A config inherits the keys that several commands share from config/training.py.
"""

from __future__ import annotations

from rlgames.config.schema import MAX_BATCH, POSITIVE, Config, OptionConfig, group, key, schema
from rlgames.config.training import (
    MAX_SEED,
    CheckpointConfig,
    DeviceConfig,
    FormatConfig,
    PluginConfig,
    RunConfig,
)

CHOOSE_HELP = "conditions on the runs in a folder, or in outputs/ with latest"


@schema
class PlayerConfig(CheckpointConfig):
    """A run or a player, and the game."""

    game: OptionConfig = group(None, "game to play")
    player: OptionConfig | None = group(None, "player to use instead of a run")
    sampling: OptionConfig = group("argmax", "rule that picks an action from the scores")
    search: OptionConfig | None = group(None, "search before each move")


@schema
class PageConfig(Config):
    """How a page is served."""

    port: int | None = key(None, 1, 65535, help="port of the page; null: 8765, or any free one")
    host: str = key("127.0.0.1", help="address to listen on; 0.0.0.0: every network")
    hosts: list[str] = key(
        [], takes_word=True, help="names by which others open the page, as in [mybox.local]"
    )
    open: bool = key(True, help="open the page in the browser")


@schema
class InterfaceConfig(PageConfig):
    """Where a command shows what it does."""

    interface: str = key(
        "terminal", of=("terminal", "web"), help="web: a page in the browser, to play on"
    )


@schema
class MatchConfig(FormatConfig, PlayerConfig, RunConfig):
    opponent: OptionConfig | None = group(None, "player in the other seat; null: random", "player")
    opponent_search: OptionConfig | None = group(
        None, "search before each move of the opponent", "search"
    )


@schema
class EvalConfig(MatchConfig):
    games: str | int = key(
        "auto",
        1,
        of=("auto", "all"),
        help="number of games; all: every layout; auto: all if at most 5000",
    )
    batch: int = key(4096, 1, MAX_BATCH, help="games played in parallel")
    where: str | None = key(None, is_text=True, help=CHOOSE_HELP)
    record: str | None = key(None, is_path=True, help="file to append the games to")
    solve_seconds: float = key(
        20.0, 0, 1e6, help="time limit of the optimum or best response; 0: skip it"
    )


@schema
class AnalyzeConfig(MatchConfig):
    games: str | int = key(
        "auto",
        1,
        of=("auto", "all"),
        help="number of games; all: every layout; auto: all up to 5000, else 200",
    )
    positions: str | None = key(
        None, is_path=True, help="file of positions instead of games, labeled or as show's state="
    )
    solve_positions: int = key(
        200_000, 1, 10**12, help="positions searched for each exact value, at most"
    )
    solve_seconds: float = key(60.0, POSITIVE, 1e6, help="time limit of all exact values")
    worst: int = key(10, 0, 1000, help="worst positions to list")
    boards: str | None = key(None, is_path=True, help="folder for pictures of the worst positions")
    picture: str | None = key(
        None, is_path=True, help="PNG, SVG or PDF file for the mistakes by turn"
    )


@schema
class GamesConfig(FormatConfig):
    game: OptionConfig | None = group(None, "game to show; null: list all")


@schema
class SolveConfig(FormatConfig):
    game: OptionConfig = group(None, "game to play")
    seconds: float = key(60.0, 0, 1e6, help="time limit")
    memory_gb: float = key(4.0, POSITIVE, 1e4, help="memory limit in GiB")


@schema
class PlayConfig(CheckpointConfig, DeviceConfig, InterfaceConfig):
    game: OptionConfig = group(None, "game to play")
    opponent: OptionConfig | None = group(None, "player in the other seat", "player")
    sampling: OptionConfig = group("argmax", "rule that picks an action from the scores")
    search: OptionConfig | None = group(None, "search before each move")
    seat: int = key(1, 1, 2, help="your seat; 1 moves first")
    games: int = key(1, 1, 10**6, help="games to play")
    hints: bool = key(False, help="show the agent's probabilities before each move")
    fleet: str | None = key(
        None, is_text=True, help="salvo_duel: random, hand, or ships as in 'A1-A3 C2-C3'"
    )
    record: str | None = key(None, is_path=True, help="file to append finished games to")
    seed: int | None = key(
        None, 0, MAX_SEED, help="the same seed gives the same games; null: random"
    )


@schema
class WatchConfig(PlayerConfig, RunConfig, InterfaceConfig):
    opponent: OptionConfig | None = group(None, "player in the other seat", "player")
    opponent_search: OptionConfig | None = group(
        None, "search before each move of the opponent", "search"
    )
    games: int = key(1, 1, 10**6, help="games to show")
    delay: float = key(0.5, 0, 3600, help="seconds between moves; 0: print all boards")
    picture: str | None = key(None, is_path=True, help="GIF or SVG file, instead of the terminal")


@schema
class ShowConfig(FormatConfig, PlayerConfig, DeviceConfig, InterfaceConfig):
    sampling: OptionConfig = group("stochastic", "rule that picks an action from the scores")
    state: str | None = key(
        None, is_text=True, help="a board, @FILE or - (standard input); null: the start"
    )
    solve_seconds: float | None = key(
        None,
        0,
        1e6,
        help="time limit of the exact values; null: 20, or 3 on large boards; 0: skip them",
    )
    picture: str | None = key(None, is_path=True, help="SVG or PNG file for the position")


@schema
class ServeConfig(CheckpointConfig, DeviceConfig, PageConfig):
    game: OptionConfig | None = group(None, "game to offer; null: the games of the runs, or all")
    sampling: OptionConfig = group("argmax", "rule that picks an action from the scores")
    search: OptionConfig | None = group(None, "search to offer first, with its settings")
    seed: int | None = key(
        None, 0, MAX_SEED, help="the same seed gives the same games; null: random"
    )


@schema
class ArenaConfig(FormatConfig, RunConfig):
    game: OptionConfig = group(None, "game to play")
    search: OptionConfig | None = group(None, "search before each move")
    games: int = key(1000, 1, 10**9, help="games per pair; in a one-player game, per player")
    where: str | None = key(None, is_text=True, help=CHOOSE_HELP)


@schema
class ReportConfig(FormatConfig):
    by: str = key(
        "config", of=("config", "run"), help="one row per config (seeds pooled) or per run"
    )
    where: str | None = key(
        None, is_text=True, help="conditions on runs, as in 'game=salvo,lr<0.01,status=done'"
    )
    sort: str = key("best", help="best, or a column; sort=-turns: descending")
    top: int | None = key(None, 1, 10**6, help="first rows of each game; null: all")
    columns: list[str] = key(
        [], takes_word=True, help="columns to show, or all; []: the most important"
    )
    curves: str | None = key(
        None, is_path=True, help="PNG, SVG or PDF file for the learning curves"
    )
    metric: list[str] = key(
        [], takes_word=True, help="metrics of curves=, one panel each; []: the best_by metric"
    )
    window: int | None = key(
        None, 1, 10**9, help="draw means over this many games; null: as logged"
    )
    x: str = key("games", of=("games", "moves", "updates", "seconds"), help="x axis of curves=")
    aggregate: str = key(
        "mean", of=("mean", "iqm"), help="statistic over seeds that each curve shows"
    )
    band: str = key(
        "ci",
        of=("ci", "sd", "minmax", "bootstrap", "none"),
        help="band around curves of several seeds",
    )
    references: bool = key(True, help="random play and the optimum as dashed lines in curves=")
    width: str | float = key(
        "page", 1, 40, of=("column", "page"), help="inches, column (3.25) or page (6.75)"
    )
    style: str = key("color", of=("color", "gray"), help="colors of a figure")
    compare: str | None = key(
        None, help="statistics of agents; the setting that distinguishes them"
    )
    follow: bool = key(False, help="refresh the table until no run is running")
    format: str = key(
        "table",
        of=("table", "markdown", "latex", "csv", "json"),
        help="table, markdown, latex, csv or json",
    )


@schema
class StudyConfig(PluginConfig):
    seeds: int | list[int] | None = key(None, help="number of seeds, or a list; null: the file's")
    only: list[str] = key([], takes_word=True, help="runs or parts to run; []: all")
    dry_run: bool = key(False, help="print the jobs and their times; run nothing")
    run: bool = key(True, help="false: make the tables from finished jobs")
    out: str | None = key(None, is_path=True, help="directory; null: outputs/studies/<study>")
    merge: list[str] = key([], takes_word=True, help="directories of the study to copy runs from")
    records: str | None = key(
        None, is_path=True, help="folder of the records of results; null: records in the directory"
    )
    page: str | None = key(
        None, is_path=True, help="Markdown file to update between its comments; null: none"
    )
    format: str = key(
        "table",
        of=("table", "markdown", "latex", "csv", "html", "json"),
        help="table, markdown, latex, csv, html or json",
    )
