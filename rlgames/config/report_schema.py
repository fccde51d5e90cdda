"""The keys of `rlgames report`."""

from __future__ import annotations

from dataclasses import dataclass

from rlgames.config.schema import POSITIVE, key
from rlgames.config.training_schemas import FormatConfig


@dataclass
class ReportConfig(FormatConfig):
    by: str = key(
        "config", of=("config", "run"), help="one row per config (seeds pooled) or per run"
    )
    sort: str = key("best", help="best, or a column; sort=-turns: descending")
    curves: str | None = key(
        None, is_text=True, help="PNG, SVG or PDF file for the learning curves"
    )
    metric: list[str] = key(
        [], takes_word=True, help="metrics of curves=, a panel each; []: that of best_by"
    )
    window: int | None = key(
        None, 1, 10**9, help="draw means over this many games; null: as logged"
    )
    x: str | None = key(
        None, of=("games", "moves", "updates", "seconds"), help="x axis of curves=; null: games"
    )
    aggregate: str | None = key(
        None, of=("mean", "median", "iqm"), help="curve of several seeds; null: mean"
    )
    band: str | None = key(
        None,
        of=("ci", "sd", "minmax", "bootstrap", "none"),
        help="band around curves of several seeds; null: ci",
    )
    references: bool | None = key(
        None, help="random play and the optimum as dashed lines in curves=; null: true"
    )
    width: str | int | float | None = key(
        None, 1, 40, help="inches, column (3.25) or page (6.75); null: page"
    )
    style: str | None = key(None, of=("color", "gray"), help="colors of a figure; null: color")
    compare: str | None = key(
        None, help="statistics of agents; the setting that distinguishes them, or config"
    )
    profile: str | None = key(
        None, is_text=True, help="PNG, SVG, PDF, CSV or JSON file for performance profiles"
    )
    power: float | None = key(
        None, 0.05, 0.999, help="power of the test that compare= plans; null: 0.8"
    )
    difference: float | None = key(
        None, POSITIVE, 1e9, help="difference that this test detects; null: the observed one"
    )
    follow: bool = key(False, help="refresh the table until no run is running")
    format: str = key(
        "table", of=("table", "markdown", "latex", "csv", "json"), help="output format"
    )
