"""Builds a search around a player, from its class and its keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlgames.core.errors import value_errors
from rlgames.core.memory import check_memory
from rlgames.games.game import Game
from rlgames.players.player import Player
from rlgames.search.endgame import EndgameSolver, ExactEndgame, ExactEndgameSearch
from rlgames.search.mcts import Mcts
from rlgames.search.search import Search


def build_search(
    make: Callable[..., Player], keys: dict[str, Any], game: Game[Any], player: Player
) -> Player:
    """The player with a search around it, made of these keys, and with exact endgames if the keys
    solve positions.

    Raises ConfigError if search, player and game cannot be combined.
    """
    settings = {name: value for name, value in keys.items() if name != "solve_positions"}
    solve_positions = keys.get("solve_positions", 0)
    with value_errors():
        search = make(game, player, **settings)
    if isinstance(search, Mcts):
        count, size = settings["simulations"], search.bytes_per_simulation
        check_memory("search.simulations", count, size, "for a tree")
    if not solve_positions:
        return search
    key = "search.solve_positions"
    with value_errors(f"{key}={solve_positions}: ", f"use {key}=0"):
        value, goal = settings.get("value"), game.spec.goal
        if value not in (None, goal):
            raise ValueError(f"exact moves are best for {goal}, and search.value={value} is not")
        solver = EndgameSolver(game, solve_positions)
    if isinstance(search, Search):
        return ExactEndgameSearch(search, solver)
    return ExactEndgame(search, solver)
