"""The games of a page, and a game in progress as it shows it."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, cast

import numpy as np
import torch
from starlette.exceptions import HTTPException
from torch import Tensor

from rlgames.core.errors import ConfigError, value_errors
from rlgames.core.text import counted
from rlgames.drawing.mark_styles import legend
from rlgames.drawing.svg import mark_looks
from rlgames.evaluation.positions import parse_position, position_line
from rlgames.games import board_text
from rlgames.games.capabilities import HiddenInformation, find
from rlgames.games.fleets.placement import Placement
from rlgames.games.game import State
from rlgames.games.notation import cells_to_choose, legal_names, move_name, parse_action, render
from rlgames.games.salvo_duel import SalvoDuel, SalvoDuelState
from rlgames.players.player import Player
from rlgames.rng import Rng
from rlgames.rollouts.interactive import InteractiveGame
from rlgames.rollouts.play import START
from rlgames.web.hints import HINTS
from rlgames.web.table import YOU, Table

MAX_LISTED = 40
"""Hints that are listed."""


@dataclass
class Person(Player):
    """Plays the action that was clicked."""

    action: Tensor = field(default_factory=lambda: torch.zeros(1, dtype=torch.int64))

    def choose(self, state: State, rng: Rng) -> Tensor:
        return self.action.to(state.done.device)


class Session:
    """A game at a table, with a person or a player in each seat.

    name: of the table. seats: None: a person, then the first player. position: to start from, as
    `rlgames show` reads it; None: a new game. fleet: of the person, where the game has one: random,
    the default, hand, or ships as in "A1-A3 C2-C3"; those that it lacks are placed by hand. lock:
    held while the game changes. Raises ConfigError for a seat, a search, a fleet or a position that
    there is not.
    """

    placement: Placement | None
    """The fleet that the person is placing, if so."""

    def __init__(
        self,
        name: str,
        table: Table,
        seed: int | None = None,
        seats: Sequence[str] | None = None,
        search: str | None = None,
        position: str | None = None,
        fleet: str | None = None,
    ) -> None:
        self.name, self.table, self.game = name, table, table.game
        self.lock = threading.Lock()
        self._person, self.placement = Person(), None
        seed = secrets.randbits(63) if seed is None else seed
        rng = Rng(seed, "play", self.game.device).rows(1)
        first = rng.fold_in(START)
        state = self.game.initial(1, first) if position is None else self._read(position, first)
        self.play = InteractiveGame(self.game, [self._person], [], state, rng)
        if seats is None:
            seats = [YOU, *table.players[:1] * (self.game.spec.seats - 1)]
        self.sit(seats, search)
        if position is None and YOU in self.seats and fleet not in (None, "random"):
            self._start_placement("" if fleet == "hand" else str(fleet))

    def _read(self, text: str, rng: Rng) -> State:
        """A position, whose hidden truth is drawn from all that agrees with it."""
        state = parse_position(self.game, text).to(self.game.device)
        hidden = find(self.game, HiddenInformation)
        try:
            return state if hidden is None else hidden.resample(state, rng)
        except (RuntimeError, ValueError) as error:
            raise ConfigError(f"the position is impossible: {error}") from None

    def _start_placement(self, ships: str) -> None:
        if isinstance(self.game, SalvoDuel):
            self.placement = Placement(self.game.fleet)
            with value_errors():
                for ship in ships.split():
                    self._place(ship)
        elif ships:
            raise ConfigError(f"no fleet is placed in {self.table.rules.name}", "remove fleet=")

    def sit(self, seats: Sequence[str], search: str | None) -> None:
        """Seat a person or a player of the table in each seat, also during a game."""
        count = self.game.spec.seats
        if len(seats) != count:
            raise ConfigError(f"{self.table.rules.name} has {counted(count, 'seat')}")
        if self.placement is not None and YOU not in seats:
            raise ConfigError("you are placing your fleet", "start a new game")
        self.table.search(search)
        for name in seats:
            if name != YOU:
                self.table.check(name, search)
        self._players: list[Player] = [self._person] * (1 + count)  # others sit down to move
        self.play.players = self._players
        self.play.order = [0 if name == YOU else 1 + seat for seat, name in enumerate(seats)]
        self.seats, self.search = [*seats], search

    # What the page does

    def change(self, do: str, body: Mapping[str, Any]) -> None:
        """Do what a person asks for: move, undo or sit. ply and
        present, if given: the number of plies and the position, as text, that the person saw.

        Raises ConfigError, and HTTPException while a player thinks or if the game went on.
        """
        if not self.lock.acquire(blocking=False):
            raise HTTPException(409, "a player is thinking; wait for its move")
        try:
            ply, present = body.get("ply"), body.get("present")
            if ply not in (None, self._progress) or present not in (None, self._present):
                raise HTTPException(409, "the game went on elsewhere; this is where it is now")
            if do == "move":
                self._move(body.get("move") or "")
            elif do == "undo":
                self._undo()
            elif do == "sit":
                self.sit(body.get("seats") or [], body.get("search"))
            else:
                raise ConfigError("do is one of hint, move, reply, sit, undo, view")
        finally:
            self.lock.release()

    def _move(self, name: str) -> None:
        """Play a person's move, or place a ship."""
        with value_errors():
            if self.placement is not None:
                self._place(name)
                return
            self._check_turn(is_person=True)
            action = parse_action(self.game, self.play.state, 0, name, exact=True)
        self._person.action = torch.tensor([action])
        self.play.play_ply()

    def reply(self, ply: int | None = None) -> None:
        """Play the move of the player whose turn it is; not again, if this ply was played since."""
        with self.lock:
            if ply is not None and ply != len(self.play.plies):
                return
            self._check_turn(is_person=False)
            mover = self.play.mover
            with self.table.player(self.seats[mover - 1], self.search) as player:
                self._players[mover] = player
                self.play.play_ply()

    def _undo(self) -> None:
        """Take back the person's last move, or the last ship."""
        if self.placement is not None:
            self.placement.remove_last()
        elif self.game.spec.hidden:
            raise ConfigError("no move can be taken back: the answer has told you something")
        else:
            self.play.take_back()

    def _check_turn(self, is_person: bool) -> None:
        if self.play.is_over:
            raise ConfigError("the game is over")
        if self.placement is not None or (self.play.mover == 0) != is_person:
            raise ConfigError("it is not your turn" if is_person else "it is your turn")

    def _place(self, ship: str) -> None:
        """Place a ship, or the whole fleet at random; the game starts after the last one."""
        assert isinstance(self.game, SalvoDuel)
        if self.placement is None:
            raise ValueError(f"no ship is left to place on {ship}")
        if ship != "random":
            self.placement.place_text(ship)
            if self.placement.next_length is not None:
                return
            start, layout = cast(SalvoDuelState, self.play.state), self.placement.layout()
            self.play.state = self.game.with_layout(start, self.seats.index(YOU), layout)
        self.placement = None

    # What it shows

    @property
    def _progress(self) -> int:
        """The number of plies that were played, or of ships that were placed."""
        return len(self.play.plies if self.placement is None else self.placement.cells)

    @property
    def _present(self) -> str | None:
        """The present position as `show` reads it, unless a fleet is being placed."""
        return None if self.placement else position_line(self.game, self._seen(self.play.state))

    @property
    def _viewer(self) -> int | None:
        """The seat whose view is shown: the person's, if there is one; None: the one to move."""
        return self.seats.index(YOU) if self.seats.count(YOU) == 1 else None

    def _seen(self, state: State) -> State:
        """A position as the page may show it."""
        if self.game.spec.hidden and self._viewer is not None:
            state = self.game.view_from_seat(state, self._viewer)
        return cast(State, self.game.public(state))

    def view(self, ply: int | None = None) -> dict[str, Any]:
        """The position before a ply, or the present one, and what can be done there."""
        if self.placement is not None:
            return self._common() | self._view_placement()
        # A player may be making a move meanwhile, in another thread.
        positions = self.play.positions
        last = min(len(positions) - 1, len(self.play.plies))
        at = last if ply is None else min(ply, last)
        state, boards = positions[at], self._boards(positions, at)
        seen, is_over = self._seen(state), bool(state.done[0])
        is_yours = at == last and not is_over and self.play.mover == 0
        names = legal_names(self.game, seen, 0) if is_yours else {}
        cells = cells_to_choose(self.game, seen, 0) if is_yours else {}
        return self._common() | {
            "ply": at,
            "plies": last,
            "seat": int(state.current_seat[0]),
            "scores": seen.score[0].tolist(),
            "turns": int(seen.turn[0]),
            "turn": "over" if is_over else "you" if is_yours else "player",
            "history": self.game.history(seen, 0),
            "boards": boards,
            "text": "" if boards else render(self.game, seen, 0),
            "moves": [{"move": name, "cells": cells[a]} for a, name in names.items()],
            "undo": any(player == 0 for player, _ in self.play.plies) and not self.game.spec.hidden,
            "position": position_line(self.game, seen),
            "present": position_line(self.game, self._seen(positions[last])),
        }

    def _common(self) -> dict[str, Any]:
        """The seats, the hints and the moves so far."""
        log = []
        for _, record in [*self.play.plies]:
            name = move_name(self.game, record.before, 0, int(record.decision.action[0]))
            log.append({"move": name, "seat": int(record.before.current_seat[0]) + 1})
        hints = self.table.hints(self.seats, self.search)
        return {"seats": self.seats, "search": self.search, "log": log, "hints": hints}

    def _view_placement(self) -> dict[str, Any]:
        placement = self.placement
        assert placement is not None
        marks = ["#" if ship else "." for ship in placement.layout().tolist()]
        board = board_text.split(marks, placement.fleet.columns)
        return {
            "ply": len(placement.cells),
            "plies": len(placement.cells),
            "length": placement.next_length,
            "turn": "place",
            "boards": self._draw([board], [[]], ["your sea"]),
            "moves": [
                {"move": name, "cells": [cells[0], cells[-1]][: len(cells)]}
                for name, cells in placement.open_places().items()
            ],
            "undo": bool(placement.cells),
            **dict.fromkeys(("history", "text", "position", "present")),
        }

    def _boards(
        self,
        positions: Sequence[State],
        at: int,
        overlay: Mapping[int, tuple[float, str]] | None = None,
    ) -> list[dict[str, Any]]:
        """The boards at a ply, with frames around the cells that the last move changed, or that won
        the game."""
        state, before = positions[at], positions[max(0, at - 1)]
        if at and self.game.spec.num_chance_inputs:
            action = self.play.plies[at - 1][1].decision.action
            before = self.game.apply_action(before, action)
        now, then = (self.game.boards(self._seen(each), 0) for each in (state, before))
        pairs = zip(map(np.array, now), map(np.array, then), strict=True)
        changed = [np.flatnonzero(one != two).tolist() for one, two in pairs]
        if bool(state.done[0]):
            if self._viewer is not None:
                state = self.game.view_from_seat(state, self._viewer)
            now = self.game.boards(state, 0, reveal=True)
            if won := self.game.winning_cells(state, 0):
                changed[0] = won
        return self._draw(now, changed, overlay=overlay)

    def _draw(
        self,
        boards: Sequence[board_text.Board],
        changed: Sequence[Sequence[int]],
        titles: Sequence[str] = (),
        overlay: Mapping[int, tuple[float, str]] | None = None,
    ) -> list[dict[str, Any]]:
        """Boards as page.js draws them: the look of each mark, the marks of the cells, the cells
        with a frame and, by cell, how dark a hint is and its label."""
        spec, titles = self.game.spec, titles or self.game.board_titles or [""] * len(boards)
        shown = []
        for number, board in enumerate(boards):
            marks = [*chain(*board)]
            shown.append(
                {
                    "title": titles[number] if len(boards) > 1 else "",
                    "legend": legend(marks, spec.hidden, spec.seats),
                    "looks": mark_looks(self.game.board_format, {*marks}),
                    "marks": marks,
                    "chosen": [*changed[number]],
                    "hints": {} if number or overlay is None else overlay,
                }
            )
        return shown

    # Hints

    def hint(self, kind: str, ply: int | None = None) -> dict[str, Any]:
        """What an agent, a search or a solver says about a position: {boards, summary, value,
        moves}; see Hint. Raises ConfigError.
        """
        if kind not in self.table.hints(self.seats, self.search):
            raise ConfigError(f"there is no hint {kind!r} here")
        positions = self.play.positions[: len(self.play.plies) + 1]
        at = len(positions) - 1 if ply is None else min(ply, len(positions) - 1)
        state = positions[at]
        # Whoever is to move may know what the person may not know.
        is_foreign = self._viewer not in (None, int(state.current_seat[0]))
        if (
            self.placement is not None
            or bool(state.done[0])
            or (self.game.spec.hidden and is_foreign)
        ):
            return {"boards": [], "summary": "", "moves": []}
        found = HINTS[kind](self.table, self.seats, self.search, self._seen(state))
        boards = self._boards(positions, at, found.overlay)
        hint = {"summary": found.summary, "value": found.value, "moves": found.moves[:MAX_LISTED]}
        return {"boards": boards, **hint}
