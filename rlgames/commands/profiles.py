"""Performance profiles as a figure: `rlgames report compare= profile=`."""

from __future__ import annotations

from pathlib import Path

from rlgames.commands.comparison import PROFILE_LEVELS, Comparison
from rlgames.core.errors import ConfigError
from rlgames.drawing import figures
from rlgames.drawing.figures import Line, Panel

LABELS = ("normalized score (0: random play, 1: optimum)", "fraction of runs\nat least as good")
"""Of the x and y axes."""


def write_profiles(comparison: Comparison, path: Path, width: str | float, style: str) -> None:
    """Write the performance profiles as a figure.

    width: see figures.width_in_inches. style: a key of figures.COLORS. Raises ConfigError, OSError.
    """
    figures.check_figure("profile", path)
    if not comparison.profiles:
        raise ConfigError(
            "profile= needs results between random play and the optimum",
            "choose a game whose optimum is known; see rlgames games",
        )
    lines = [Line(name, PROFILE_LEVELS, values) for name, values in comparison.profiles.items()]
    panel = Panel("", *LABELS, lines, y_range=(-0.03, 1.03))
    figure = figures.draw_panels([[panel]], figures.width_in_inches(width), style)
    figures.save_figure(figure, path)
