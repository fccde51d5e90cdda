"""`rlgames play`: in place on a terminal, line by line elsewhere."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from rlgames.core.errors import ConfigError


def play_command(run: Path | None, overrides: list[str]) -> int:
    """Play; the exit code."""
    from rlgames.commands.play import play
    from rlgames.players.human import LineInterface

    def make_interface(kind: str) -> LineInterface:
        reason = None if kind == "line" else _reason_for_lines()
        if kind == "screen" and reason is not None:
            raise ConfigError(f"interface=screen needs {reason[0]}", reason[1])
        if kind == "line" or reason is not None:
            return LineInterface()
        from rlgames.cli.play_screen import ScreenInterface

        return ScreenInterface()

    return play(run, overrides, make_interface)


def _reason_for_lines() -> tuple[str, str] | None:
    """What a game in place lacks here, and how to get it."""
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if not is_terminal or os.environ.get("TERM", "dumb") == "dumb":
        return "a terminal", "use interface=line"
    if importlib.util.find_spec("prompt_toolkit") is None:
        return "prompt_toolkit", "pip install 'rlgames[play]'"
    return None
