"""The one loop in which games are played: seats × batch → moves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.core.tensor_checks import checked_rows
from rlgames.core.untrusted import checked_int
from rlgames.games.game import Game, State
from rlgames.players.player import Player
from rlgames.rollouts.trajectories import FinalStates, PlyRecord, Trajectories, collect_trajectories

InitialStates = Callable[[int, int], State]
"""start(first, count): the opening positions of games first to first + count - 1."""


UNLIMITED_GAMES = 1 << 62
"""As a number of games: a new one begins wherever one ends."""


def play(
    game: Game[Any],
    players: Sequence[Player],
    games: int,
    rng: torch.Generator,
    *,
    batch: int | None = None,
    start: InitialStates | None = None,
    seating: Tensor | None = None,
    record: bool = True,
) -> tuple[Trajectories | None, FinalStates]:
    """Play so many games to their ends; the rest as in OpenGames."""
    opened = GamePool(game, players, games, rng, batch=batch, start=start, seating=seating)
    return opened.play(record=record)


class GamePool:
    """Games under way, at most batch of them side by side, until so many are over.

    seating: int64 [games, P], which player sits in each seat; by default players[seat]. start:
    the openings, drawn with rng by default. Finished rows are dropped, and new games put in their
    place while there are any, whenever enough have gathered that it pays.
    """

    def __init__(
        self,
        game: Game[Any],
        players: Sequence[Player],
        games: int,
        rng: torch.Generator,
        *,
        batch: int | None = None,
        start: InitialStates | None = None,
        seating: Tensor | None = None,
    ) -> None:
        if start is None:
            start = lambda first, count: game.initial(count, rng)  # noqa: E731
        if seating is None and len(set(players)) > 1:
            seating = torch.arange(game.spec.seats, device=rng.device).expand(games, -1)
        self.game, self.players, self.rng, self.games = game, players, rng, games
        self.start, self.seating = start, seating
        self.batch = games if batch is None else min(batch, games)
        self.state, self.begun = start(0, self.batch), self.batch
        self.number = torch.arange(self.batch, device=rng.device)
        self._step, self._last_step = 0, game.spec.max_plies

    def state_dict(self) -> dict[str, Any]:
        """Where the games stand; nothing in it is changed by playing on."""
        state = {each.name: getattr(self.state, each.name) for each in fields(self.state)}
        counts = {"batch": self.batch, "begun": self.begun}
        steps = {"step": self._step, "last_step": self._last_step}
        return {"state": state, "number": self.number, **counts, **steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises LookupError, TypeError or ValueError for what does not fit, and for positions that
        cannot be."""
        self.batch = checked_int(state["batch"], self.batch, self.batch)
        self.begun = checked_int(state["begun"], self.batch, self.games)
        self._step, self._last_step = (
            checked_int(state["step"], 0),
            checked_int(state["last_step"], 0),
        )
        found = {
            name: checked_rows(state["state"][name], column, self.batch)
            for name, column in vars(self.state).items()
        }
        self.state = replace(self.state, **found)
        self.number = checked_rows(state["number"], self.number, self.batch)
        number = self.number.sort().values
        distinct = bool((number.diff() > 0).all())
        if not distinct or int(number[0]) < 0 or int(number[-1]) >= self.begun:
            raise ValueError("open games do not have numbers of their own")
        if bool(self.state.done.any()) or not bool(self.game.is_valid(self.state).all()):
            raise ValueError("an open game is at a position that cannot be")

    def play(
        self, plies: int | None = None, record: bool = True
    ) -> tuple[Trajectories | None, FinalStates]:
        """Play on to the end of all games, or for a window of so many plies.

        What is returned numbers the games of the window from 0, those open longest first. All
        rows that are over at its end make room.
        Raises RuntimeError when games outlast the longest that they declare.
        """
        # Asking a GPU how many games are live stalls it: there, look less often.
        look_every = 1 if self.rng.device.type == "cpu" else 8
        ended: list[tuple[Tensor, State]] = []
        record_of: list[PlyRecord] = []
        made = torch.zeros((), dtype=torch.int64, device=self.rng.device)
        stop = math.inf if plies is None else self._step + plies
        while self._step < stop:
            live = torch.count_nonzero(~self.state.done)
            if self._step % look_every == 0 or self._step >= self._last_step:
                count, waiting = int(live), self.games - self.begun
                if 4 * count <= (3 if waiting else 2) * len(self.state):
                    ended.append(self._replace())
                    if not len(self.state):
                        break
                    live = torch.count_nonzero(~self.state.done)
                if self._step >= self._last_step and not waiting:
                    name = self.game.spec.name
                    raise RuntimeError(f"{count} games of {name} did not end in time")
            made += live
            moved = self._ply()
            if record:
                record_of.append(moved)
            self._step += 1
        ended.append((self.number, self.state))
        self._replace()
        number, order = self._in_order(torch.cat([rows for rows, _ in ended]))
        final = type(self.state).cat([part for _, part in ended])[order]
        results = FinalStates(final, int(made))
        return (collect_trajectories(record_of, number, final.score) if record else None), results

    def _ply(self) -> PlyRecord:
        """One ply of every row."""
        game, rng = self.game, self.rng
        seen = game.public(self.state)
        who = None
        if self.seating is not None:
            who = self.seating[self.number].gather(1, self.state.current_seat[:, None])[:, 0]
        action, target = choose_actions(self.players, who, seen, rng)
        after = self.state = game.step(self.state, action, rng)
        return PlyRecord(seen, action, target, self.number, who, after)

    def _in_order(self, number: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers of games, int64 [N], rising, and where each of them was."""
        if len(number) != self.games:
            return number.sort()
        every = torch.arange(self.games, device=number.device)  # no need to sort when all are there
        return every, torch.empty_like(number).index_copy_(0, number, every)

    def _replace(self) -> tuple[Tensor, State]:
        """Drop the rows that are over and begin new games in their place; what was dropped."""
        over = true_rows(self.state.done)
        dropped = self.number.index_select(0, over), self.state[over]
        fresh = min(self.games - self.begun, len(over))
        if fresh:
            place, self.begun = over[:fresh], self.begun + fresh
            new = torch.arange(self.begun - fresh, self.begun, device=over.device)
            self.state = self.state.put(place, self.start(self.begun - fresh, fresh))
            self.number = self.number.index_copy(0, place, new)
            self._last_step = self._step + self.game.spec.max_plies
        if fresh < len(over):
            gone = torch.zeros_like(self.state.done).index_fill_(0, over[fresh:], True)
            rows = (~gone).nonzero()[:, 0]
            self.state, self.number = self.state[rows], self.number[rows]
        return dropped


def true_rows(mask: Tensor) -> Tensor:
    """Int64 [N]: the rows of a mask, bool [B], that are true, rising."""
    if mask.device.type == "cpu":  # numpy takes a third of the time, as it does not branch
        return torch.from_numpy(np.flatnonzero(mask.numpy()))
    return mask.nonzero()[:, 0]


def choose_actions(
    players: Sequence[Player], who: Tensor | None, state: State, rng: torch.Generator
) -> tuple[Tensor, Tensor | None]:
    """Int64 [B], each row's action, and what Player.decide says besides, if anybody does.

    who: int64 [B], the player to ask, None for the only one.
    """
    if who is None:
        return players[0].act_with_target(state, rng)
    action, target = torch.zeros_like(who), None
    for index, player in enumerate(players):
        rows = (who == index).nonzero()[:, 0]
        if len(rows) == len(who):
            return player.act_with_target(state, rng)
        if len(rows):
            action[rows], told = player.act_with_target(state[rows], rng)
            if told is not None:
                target = told.new_zeros(len(who), told.shape[1]) if target is None else target
                target[rows] = told
    return action, target
