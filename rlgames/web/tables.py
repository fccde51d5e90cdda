"""The games of a page, and who can play and advise in each of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch

from rlgames.config.registry import REGISTRY, make
from rlgames.config.schema import OptionConfig
from rlgames.config.typed import make_option
from rlgames.core.errors import ConfigError, nearest
from rlgames.games.fleets.game import FleetGame
from rlgames.games.game import Game
from rlgames.players.player import Player
from rlgames.runs.agents import OpenRun, build_player, with_search
from rlgames.runs.find import agent_strengths, shipped_agent
from rlgames.solvers.optimum import solver_of

YOU = "you"
"""Who sits in a seat that a person plays."""

OTHERS = ("human", "run", "exact")
"""Players that are offered otherwise: a person, trained agents, and the solver if it is quick."""


class Table:
    """A game with the players that can take its seats, built when they are first needed.

    rules: the option of the game. sampling: of the agents. runs: agents by name. given_players,
    given_searches: options by name, with other settings than the default.
    """

    def __init__(
        self, name: str, rules: OptionConfig, sampling: OptionConfig, device: torch.device
    ) -> None:
        self.name, self.rules, self.sampling, self.device = name, rules, sampling, device
        self.runs: dict[str, OpenRun] = {}
        self.given_players: dict[str, OptionConfig] = {}
        self.given_searches: dict[str, OptionConfig] = {}
        self._built: dict[tuple[str, str | None], Player] = {}
        self._lock = threading.RLock()

    @cached_property
    def game(self) -> Game[Any]:
        with self._lock:
            game: Game[Any] = make("game", self.rules).to(self.device)
            return game

    def player(self, name: str, search: str | None = None) -> Player:
        """The player of this name, with a search around it. Raises ConfigError."""
        with self._lock:
            if (name, search) not in self._built:
                self._built[name, search] = self._build(name, search)
            return self._built[name, search]

    def check_search(self, name: str | None) -> None:
        """Raises ConfigError unless there is a search of this name, or None."""
        if name is not None and name not in self._all_searches:
            raise ConfigError(f"no search is called {name!r}", nearest(name, self.searches))

    def _build(self, name: str, search: str | None) -> Player:
        self.check_search(search)
        around = None if search is None else self._all_searches[search]
        if name in self.runs:
            run = self.runs[name]
            agent = run.agent(self.sampling, self.device)
            return with_search(agent, self.game, around, run.config.reward)
        if name not in self._all_players:
            raise ConfigError(f"no player is called {name!r}", nearest(name, self.players))
        return build_player(self._all_players[name], self.game, self.rules, around)

    @property
    def _all_players(self) -> dict[str, OptionConfig]:
        return _options("player", OTHERS[:2]) | self.given_players

    @property
    def _all_searches(self) -> dict[str, OptionConfig]:
        return _options("search") | self.given_searches

    @cached_property
    def players(self) -> list[str]:
        """Who can take a seat, agents first."""
        names = [*self.runs, *self.given_players, *_options("player", OTHERS)]
        solver = solver_of(self.game)
        if solver is not None and solver.has_player:
            names.append("exact")
        return [name for name in dict.fromkeys(names) if self._fits(name, None)]

    @cached_property
    def strengths(self) -> dict[str, str]:
        """How strong the agents that come with rlgames are, by the names of the players."""
        known = agent_strengths()
        paths = {name: run.path for name, run in self.runs.items()}
        shipped = {name: path.stem for name, path in paths.items()}
        return {n: known[stem] for n, stem in shipped.items() if paths[n] == shipped_agent(stem)}

    @cached_property
    def searches(self) -> list[str]:
        """The searches that fit the first player."""
        names = dict.fromkeys([*self.given_searches, *_options("search")])
        return [name for name in names if self._fits(self.players[0], name)]

    def _fits(self, name: str, search: str | None) -> bool:
        if name == "exact" and name not in self.given_players:  # it is solved when it first plays
            return True
        try:
            self.player(name, search)
        except ConfigError:
            return False
        return True

    def advisor(self, seats: Sequence[str]) -> str | None:
        """Who is asked about positions: an agent in one of the seats, any agent of the game, or
        another player."""
        seated = [name for name in seats if name != YOU]
        agents = [name for name in seated if name in self.runs]
        return next(iter([*agents, *self.runs, *seated]), None)

    def hints(self, seats: Sequence[str], search: str | None) -> dict[str, str]:
        """The kinds of hints, and what each is called."""
        kinds = {}
        if self.advisor(seats) is not None:
            kinds["policy"] = "Policy"
            if search is not None:
                kinds["search"] = "Search"
        if solver_of(self.game) is not None:
            kinds["exact"] = "Exact"
        if isinstance(self.game, FleetGame):
            kinds["ships"] = "Ships"
        return kinds


def _options(group: str, without: Sequence[str] = ()) -> dict[str, OptionConfig]:
    """The options of a group with the values of their files."""
    return {
        name: make_option(group, name)
        for name, option in REGISTRY[group].items()
        if name not in without and not option.training_only
    }
