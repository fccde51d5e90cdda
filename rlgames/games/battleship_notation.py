"""Positions of battleship and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from rlgames.games import board as games_board
from rlgames.games.fleets import FleetGame
from rlgames.games.game import HIDDEN, State
from rlgames.games.salvos import Salvos
from rlgames.games.sinkings import SinkingSlots


@dataclass(frozen=True)
class BattleshipState(State):
    """N cells in row-major order. score counts the ship cells hit, by the end of each turn.

    ships: uint8 [B, N], hidden: 0 for sea, otherwise the number of the ship, from 1. shot, hit:
    bool [B, N], the cells whose result has been shown. aimed: bool [B, N], the cells chosen so
    far in an unfinished turn. hit_turn: int16 [B, N], the turn, from 1, in which each cell was hit,
    0 for none; [B, 0] where no rule refers to it. sunk_turn: int16 [B, ships], the announced
    sinkings, as in SinkingSlots; [B, 0] where none are announced.
    """

    ships: Tensor
    shot: Tensor
    hit: Tensor
    aimed: Tensor
    hit_turn: Tensor
    sunk_turn: Tensor


class BattleshipNotation(FleetGame[BattleshipState]):
    """The boards, the history and the names of actions of a game of battleship."""

    rows: int
    columns: int
    num_cells: int
    ship_cells: int
    shots: int
    sequential: bool
    show: tuple[str, ...]
    salvos: Salvos
    slots: SinkingSlots

    @property
    def how_to_play(self) -> str:
        ships = ", ".join(map(str, sorted(self.fleet.ships, reverse=True)))
        count = "one cell" if self.shots == 1 else f"{self.shots} cells"
        return f"sink the hidden fleet, ships of {ships}, in few turns; each turn shoots at {count}"

    def boards(
        self, state: BattleshipState, row: int, reveal: bool = False
    ) -> list[games_board.Board]:
        shot, hit, aimed = (field[row].tolist() for field in (state.shot, state.hit, state.aimed))
        ships = (state.ships[row] > 0).tolist() if reveal else [False] * self.num_cells
        marks = [
            "x" if h else "o" if s else "+" if a else "#" if ship else "."
            for s, h, a, ship in zip(shot, hit, aimed, ships, strict=True)
        ]
        return [games_board.split(marks, self.columns)]

    def action_cells(self, state: BattleshipState, row: int) -> Tensor:
        return self.salvos.cells & ~state.shot[row]

    @cached_property
    def board_format(self) -> games_board.BoardFormat:
        return games_board.BoardFormat(1, self.columns) if self.rows == 1 else super().board_format

    def history(self, state: BattleshipState, row: int) -> str:
        timelines = []
        if self._keeps_hit_turns:
            hits = self.fleet.list_hits(state.hit_turn[row], self.board_format.cell_name)
            timelines.append(games_board.draw_timeline("hits", hits))
        if "sunk" in self.show:
            sunk = self.slots.list_sinkings(state.sunk_turn[row])
            timelines.append(games_board.draw_timeline("sunk", sunk))
        return "\n".join(timelines)

    def parse_all(self, texts: Sequence[str]) -> BattleshipState:
        names = ["hits"] * self._keeps_hit_turns + ["sunk"] * ("sunk" in self.show)
        histories, boards = zip(
            *(games_board.split_timelines(t, names) for t in texts), strict=True
        )
        cells = torch.tensor(
            [[".ox+".index(mark) for mark in self._parse_marks(board)] for board in boards]
        )
        hit = cells == 2
        shot = hit | (cells == 1)
        sea = torch.zeros(len(texts), self.num_cells, dtype=torch.uint8)
        state = replace(
            self._start(sea),
            ships=HIDDEN,
            shot=shot,
            hit=hit,
            aimed=cells == 3,
            done=hit.sum(1) == self.ship_cells,
            turn=(shot.sum(1) + self.shots - 1) // self.shots,
            score=hit.sum(1, keepdim=True).float(),
        )
        return self._with_histories(state, histories) if names else state

    def _with_histories(
        self, state: BattleshipState, histories: Sequence[games_board.Timelines]
    ) -> BattleshipState:
        """Raises ValueError for a history that cannot have led to its board."""
        hit_turn = [
            self.fleet.parse_hits(each["hits"], self.board_format.cell_name) for each in histories
        ]
        state = replace(state, hit_turn=torch.stack(hit_turn))
        if "sunk" in self.show:
            sunk_turn = [self.slots.parse(each["sunk"]) for each in histories]
            state = replace(state, sunk_turn=torch.stack(sunk_turn))
        if not bool(self.is_valid(state).all()):
            raise ValueError("the hits and sinkings listed above a board do not fit it")
        return state

    def _parse_marks(self, text: str) -> list[str]:
        """The marks of the cells. Raises ValueError if no game can have as many of each."""
        (marks,) = games_board.read(text, self.board_format, ".ox+")
        hits, aimed = marks.count("x"), marks.count("+")
        shots = hits + marks.count("o")
        if hits > self.ship_cells:
            raise ValueError(f"{hits} hits; the fleet has {self.ship_cells} cells")
        if aimed >= max(self.shots, 1) or (aimed and not self.sequential):
            raise ValueError("more cells are aimed at than an unfinished turn can have")
        if shots != self.num_cells and shots % self.shots:
            raise ValueError(f"{shots} shots are not a whole number of turns")
        return marks

    def action_to_string(self, state: BattleshipState, row: int, action: int) -> str:
        cells = (self.salvos.cells[action] & ~state.shot[row]).nonzero()[:, 0].tolist()
        return " ".join(map(self.board_format.cell_name, cells))

    @property
    def _keeps_hit_turns(self) -> bool:
        return "sunk" in self.show or "first_hit" in self.show

    def _start(self, ships: Tensor) -> BattleshipState:
        no_cells = torch.zeros_like(ships, dtype=torch.bool)
        no_turns = torch.zeros(len(ships), 1, dtype=torch.int16, device=ships.device)
        return BattleshipState.start(
            len(ships),
            1,
            ships.device,
            ships=ships,
            shot=no_cells,
            hit=no_cells,
            aimed=no_cells,
            hit_turn=no_turns.expand(-1, self.num_cells * self._keeps_hit_turns),
            sunk_turn=no_turns.expand(-1, len(self.fleet) * ("sunk" in self.show)),
        )
