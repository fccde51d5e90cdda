"""A game of the page, with the players that can take its seats and advise in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from rlgames.build.agents import OpenRun
from rlgames.build.players import build_player, with_search
from rlgames.config.registry import REGISTRY, make
from rlgames.config.schema import OptionConfig
from rlgames.config.typed import make_option
from rlgames.core.errors import ConfigError, nearest
from rlgames.drawing.mark_styles import FLEET_LEGEND
from rlgames.drawing.svg import board_look
from rlgames.games.fleets.game import FleetGame
from rlgames.games.game import Game
from rlgames.games.notation import takes_columns
from rlgames.players.player import Player
from rlgames.runs.find import agent_strengths, shipped_agent
from rlgames.solvers.optimum import solver_of

STATIC = Path(__file__).parent / "static"
"""The files of the page."""

YOU = "you"
"""Who sits in a seat that a person plays."""


TITLES = {"connect4": "Connect 4", "tictactoe": "Tic-tac-toe"}
"""What people call a game, if that is not its name with spaces."""


@dataclass
class Table:
    """A game, and who can play and advise in it; all is built when it is first needed.

    rules: the option of the game. runs: agents by name. players, searches: options by name, besides
    those that support the rules anyhow. sampling: of the agents.
    """

    rules: OptionConfig
    device: torch.device
    sampling: OptionConfig
    runs: dict[str, OpenRun] = field(default_factory=dict)
    extra_searches: dict[str, OptionConfig] = field(default_factory=dict)
    _idle: dict[tuple[str, str | None], list[Player]] = field(
        default_factory=lambda: defaultdict(list)
    )

    @cached_property
    def game(self) -> Game[Any]:
        game: Game[Any] = make("game", self.rules).to(self.device)
        return game

    @property
    def title(self) -> str:
        """What people call the game."""
        return TITLES.get(self.rules.name, self.rules.name.replace("_", " ").capitalize())

    @cached_property
    def _players(self) -> dict[str, OptionConfig]:
        return _options("player", "human", "program", "run")

    @cached_property
    def _searches(self) -> dict[str, OptionConfig]:
        return self.extra_searches | _options("search") | self.extra_searches

    @cached_property
    def players(self) -> list[str]:
        """Who can take a seat, agents first."""
        names = dict.fromkeys([*self.runs, *self._players])
        return [name for name in names if self._fits(name, None)]

    @cached_property
    def searches(self) -> list[str]:
        """The searches that the first player supports."""
        return [name for name in self._searches if self._fits(self.players[0], name)]

    @property
    def strengths(self) -> dict[str, str]:
        """How strong the bundled agents are, by the names of the players."""
        known, paths = agent_strengths(), {name: run.path for name, run in self.runs.items()}
        return {n: known[p.stem] for n, p in paths.items() if p == shipped_agent(p.stem)}

    def _fits(self, name: str, search: str | None) -> bool:
        if name == "exact":  # it is solved when it first plays
            solver = solver_of(self.game)
            return solver is not None and solver.has_player
        try:
            self.check(name, search)
        except ConfigError:
            return False
        return True

    def check(self, name: str, search: str | None) -> None:
        """Raises ConfigError unless there is a player of this name that supports the search."""
        with self.player(name, search):
            pass

    @contextmanager
    def player(self, name: str, search: str | None = None) -> Iterator[Player]:
        """A block with the player of this name, with a search around it, which thinks for no other
        game meanwhile. Raises ConfigError."""
        idle = self._idle[name, search]
        try:
            player = idle.pop()
        except IndexError:
            player = self._build(name, search)
        try:
            yield player
        finally:
            idle.append(player)

    def _build(self, name: str, search: str | None) -> Player:
        around = self.search(search)
        if name in self.runs:
            run = self.runs[name]
            agent = run.agent(self.sampling, self.device)
            return with_search(agent, self.game, around, run.config.reward)
        if name not in self._players:
            raise ConfigError(f"no player is called {name!r}", nearest(name, self.players))
        return build_player(self._players[name], self.game, self.rules, around)

    def search(self, name: str | None) -> OptionConfig | None:
        """The option of a search. Raises ConfigError unless there is one of this name, or None."""
        if name is not None and name not in self._searches:
            raise ConfigError(f"no search is called {name!r}", nearest(name, self.searches))
        return None if name is None else self._searches[name]

    def about(self, name: str, players: list[str], searches: list[str]) -> dict[str, Any]:
        """What the page has to know about the game once. name: of the table. players, searches:
        those that a person can choose."""
        game = self.game
        return {
            "game": name,
            "title": self.title,
            "players": [YOU, *players],
            "strengths": self.strengths,
            "searches": searches,
            "goal": game.spec.goal,
            "marks": game.seat_marks,
            "columns": game.board_format.columns,
            "look": board_look(game.board_format),
            "by_column": takes_columns(game, game.example_state()),
            "meanings": {".": "empty", **(FLEET_LEGEND if game.spec.hidden else {})},
            "rules": game.how_to_play,
            "is_hidden": game.spec.hidden,
        }

    def advisor(self, seats: Sequence[str]) -> str | None:
        """Who is asked about positions: an agent in one of the seats, any agent of the game, or
        another player."""
        seated = [name for name in seats if name != YOU]
        agents = [name for name in seated if name in self.runs]
        return next(iter([*agents, *self.runs, *seated]), None)

    def hints(self, seats: Sequence[str], search: str | None) -> dict[str, str]:
        """The kinds of hints, and what each is called."""
        has_advisor = self.advisor(seats) is not None
        is_there = {
            "policy": has_advisor,
            "search": has_advisor and search is not None,
            "exact": solver_of(self.game) is not None,
            "ships": isinstance(self.game, FleetGame),
        }
        return {kind: kind.capitalize() for kind, is_offered in is_there.items() if is_offered}


def _options(group: str, *without: str) -> dict[str, OptionConfig]:
    """The options of a group with the values of their files."""
    return {
        name: make_option(group, name)
        for name, option in REGISTRY[group].items()
        if name not in without and not option.training_only
    }
