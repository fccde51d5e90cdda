"""The small trained agents that come with rlgames, one for each game; imports nothing heavy."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[1] / "agents"


def shipped_agent(game: str) -> Path | None:
    """The checkpoint of the agent that comes with rlgames for a game of this name, if any."""
    return shipped_agents().get(game)


def shipped_agents() -> dict[str, Path]:
    """All of them, by the names of their games."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.safetensors"))}
