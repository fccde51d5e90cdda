"""Performance profiles in files: `rlgames report compare= profile=`."""

from __future__ import annotations

import csv
from pathlib import Path

from rlgames.commands.comparison import NORMALIZED, PROFILE_LEVELS, Comparison
from rlgames.core.errors import ConfigError
from rlgames.core.text import json_text
from rlgames.drawing import figures
from rlgames.drawing.figures import Line, Panel

TABLES = (".csv", ".json")

LABELS = ("normalized score (0: random play, 1: optimum)", "fraction of runs\nat least as good")
"""Of the x and y axes."""


def write_profiles(
    comparison: Comparison, path: Path, width: str | float = "page", style: str = "color"
) -> None:
    """Write the performance profiles as a figure or, to a .csv or .json file, as numbers.

    width: see figures.width_in_inches. style: a key of figures.COLORS. Raises ConfigError, OSError.
    """
    suffix = path.suffix.lower()
    if suffix not in TABLES:
        figures.check_figure("profile", path, (*figures.FORMATS, *TABLES))
    if not comparison.profiles:
        raise ConfigError(
            "profile= needs results between random play and the optimum",
            "choose a game whose optimum is known; see rlgames games",
        )
    if suffix == ".json":
        path.write_text(json_text(comparison.as_dict()["profiles"]) + "\n", encoding="utf-8")
        return
    if suffix == ".csv":
        _write_csv(comparison, path)
        return
    lines = [Line(name, PROFILE_LEVELS, values) for name, values in comparison.profiles.items()]
    panel = Panel("", *LABELS, lines, y_range=(-0.03, 1.03))
    figure = figures.draw_panels([[panel]], figures.width_in_inches(width), style)
    figures.save_figure(figure, path)


def _write_csv(comparison: Comparison, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([NORMALIZED, *comparison.profiles])
        writer.writerows(
            [f"{level:.2f}", *(values[row] for values in comparison.profiles.values())]
            for row, level in enumerate(PROFILE_LEVELS)
        )
