"""2048 on a board of any size.

A move slides all tiles to one side. Two equal tiles that meet merge into one of twice the value,
the pair nearest the side first and each tile at most once a move; the score grows by the value of
the new tile. Then a 2, or sometimes a 4, appears on a random empty cell. The game is over when no
move changes the board.

    .    .    2    .
    .    .    4    2      actions: up, right, down, left
    2    .    8    4
    2    4   16   32
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.core.devices import to_float64
from rlgames.games import board as games_board
from rlgames.games.capabilities import Compiled, ExactKey
from rlgames.games.compiled import CompiledRules
from rlgames.games.game import Game, Spec, State
from rlgames.games.slide_tables import (
    MAX_TABLED_LENGTH,
    ComputedSlides,
    TabledSlides,
    packed_slides,
)
from rlgames.games.state import count_boards
from rlgames.games.subsets import pick_member
from rlgames.games.symmetry import board_symmetries

MAX_PACKED_LENGTH, MAX_EXPONENT = 4, 15
"""Rows and columns of a board of 2048, and exponents of its tiles, that fit in 64 bits."""


ACTIONS = ("up", "right", "down", "left")

MARKS = [".", *(str(2**exponent) for exponent in range(1, 64))]
"""How a cell is written, by its exponent."""

EXPONENTS = {mark: exponent for exponent, mark in enumerate(MARKS)}

MAX_PLANES = 16
"""The most planes of a one-hot observation; larger tiles share the last."""

ONE_HOT_CHUNK = 2048
"""Positions whose one-hot observations are written at a time, so that they stay in the cache."""


@dataclass(frozen=True)
class Game2048State(State):
    """tiles: uint8 [B, N], exponents in row-major order from the top: 0 empty, e the tile 2^e."""

    tiles: Tensor


class Game2048(Game[Game2048State]):
    """rows × columns cells.

    fours: the probability that a new tile is a 4. target: the tile that counts as a win; play
        continues after it. encoding: "onehot" shows a plane for each value of a cell, "exponents"
        one plane of the tiles' exponents ÷ 10.
    """

    def __init__(
        self,
        rows: int,
        columns: int,
        fours: float = 0.1,
        target: int = 2048,
        encoding: str = "onehot",
        name: str = "2048",
    ) -> None:
        cells = rows * columns
        if cells < 3:
            raise ValueError(f"a board of {rows}x{columns} has no room to slide; use board=2")
        if target < 4 or target & (target - 1):
            raise ValueError(f"target={target} is not a tile; tiles are 4, 8, 16, ... 2048")
        self.rows, self.columns, self.num_cells = rows, columns, cells
        self.fours, self.target, self.encoding = fours, target, encoding
        self.planes = min(MAX_PLANES, cells + 2)
        self._slides: TabledSlides | ComputedSlides = ComputedSlides(rows, columns)
        if max(rows, columns) <= MAX_TABLED_LENGTH:
            self._slides = TabledSlides(rows, columns, cells + 2)
        self._tile_values = torch.tensor([0.0] + [2.0**e for e in range(1, 64)])
        self.num_cell_values = cells + 2
        lacks: dict[type, str] = {}
        if cells > 16:
            lacks[ExactKey] = "boards of more than 16 cells do not fit in 64 bits"
        if max(rows, columns) > MAX_PACKED_LENGTH:
            lacks[Compiled] = "its rows or columns have more than 4 cells"
        self.lacks = lacks
        planes = self.planes if encoding == "onehot" else 1
        self.spec = Spec(
            name=name,
            seats=1,
            actions=4,
            observation=(planes, rows, columns),
            has_cell_actions=False,
            # Each move adds at least 2 to the sum of the tiles, which is at most 2^(cells + 2).
            max_plies=2 ** min(cells + 1, 40),
            max_positions=count_boards(cells + 2, cells),
            goal="score",
            num_chance_inputs=2,
            observation_range=(0.0, 1.0 if encoding == "onehot" else (cells + 1) / 10),
        )

    def initial(self, batch: int, rng: torch.Generator) -> Game2048State:
        device = rng.device
        empty = torch.zeros(batch, self.num_cells, dtype=torch.uint8, device=device)
        state = self._start(empty)
        u = torch.rand(2, batch, 2, generator=rng, device=device)
        return self._mark_done(self._add_tile(self._add_tile(state, u[0]), u[1]))

    def openings(self, limit: int) -> tuple[Game2048State, Tensor] | None:
        count = (2 * self.num_cells) * (2 * self.num_cells)
        if count > 4 * limit:
            return None
        empty = self._start(torch.zeros(1, self.num_cells, dtype=torch.uint8))
        first, one_tile = self._all_new_tiles(empty)
        second, two_tiles = self._all_new_tiles(one_tile)
        probability = (first.reshape(-1, 1) * second).reshape(-1)
        tiles, group = two_tiles.tiles[probability > 0].unique(dim=0, return_inverse=True)
        total = torch.zeros(len(tiles), dtype=torch.float64)
        total.index_add_(0, group, probability[probability > 0])
        return (self._mark_done(self._start(tiles)), total) if len(tiles) <= limit else None

    def legal_action_mask(self, state: Game2048State) -> Tensor:
        return self._slides.legal_actions(state.tiles) | state.done[:, None]

    def apply_action(self, state: Game2048State, action: Tensor) -> Game2048State:
        tiles, score_delta = self._slides.slide(state.tiles, action)
        turn, score = state.turn + ~state.done, state.score + score_delta[:, None]
        return replace(state, turn=turn, score=score, tiles=tiles)

    def apply_chance(self, state: Game2048State, u: Tensor) -> Game2048State:
        return self._mark_done(self._add_tile(state, u))

    def chance_outcomes(self, state: Game2048State) -> tuple[Tensor, Game2048State]:
        probability, after = self._all_new_tiles(state)
        return probability, self._mark_done(after)

    def compiled_rules(self) -> Compiled2048:
        return Compiled2048(self)

    def observe(self, state: Game2048State) -> Tensor:
        if self.encoding == "exponents":
            return (state.tiles.float() / 10).view(-1, *self.spec.observation)
        tiles = state.tiles.clamp(max=self.planes - 1)
        planes = torch.empty(len(state), self.planes, self.num_cells, device=tiles.device)
        # In chunks that stay in the cache until they are filled.
        in_chunks = tiles.device.type == "cpu" and not torch.compiler.is_compiling()
        size = ONE_HOT_CHUNK if in_chunks else max(1, len(tiles))
        for chunk, exponents in zip(planes.split(size), tiles.split(size), strict=True):
            chunk.zero_().scatter_(1, exponents.long()[:, None], 1.0)
        return planes.view(-1, *self.spec.observation)

    def outcome(self, before: Game2048State, action: Tensor, after: Game2048State) -> Tensor:
        new = after.tiles != self.apply_action(before, action).tiles
        cell = new.to(torch.uint8).argmax(1)
        value = after.tiles.gather(1, cell[:, None])[:, 0].long()
        return torch.where(new.any(1), 2 * cell + value, 0)

    def key(self, state: Game2048State) -> Tensor:
        """Four bits per cell; tiles above 32768 wrap around."""
        shifts = 4 * torch.arange(self.num_cells, device=state.tiles.device)
        return ((state.tiles.long() & 15) << shifts).sum(1)

    def state_from_key(self, key: Tensor) -> Game2048State:
        shifts = 4 * torch.arange(self.num_cells, device=key.device)
        return self._mark_done(self._start(((key[:, None] >> shifts) & 15).to(torch.uint8)))

    def depth(self, state: Game2048State) -> Tensor:
        """Half the sum of the tiles: every move adds 1 or 2."""
        return (self._tile_values[state.tiles.long()].sum(1) / 2).long()

    def from_exponents(self, exponents: Tensor) -> Game2048State:
        """Positions from exponents, int64 [B, rows, columns], with a score of 0."""
        return self._mark_done(self._start(exponents.to(torch.uint8).flatten(1)))

    def cells(self, state: Game2048State) -> Tensor:
        """Int64 [B, rows, columns]: the exponents."""
        return state.tiles.long().view(-1, self.rows, self.columns)

    def measures(self, state: Game2048State) -> dict[str, Tensor]:
        max_tile = self._tile_values[state.tiles.amax(1).long()]
        return {
            "grid_sum": self._tile_values[state.tiles.long()].sum(1),
            "max_tile": max_tile,
            "win": (max_tile >= self.target).float(),
        }

    def is_valid(self, state: Game2048State) -> Tensor:
        # The k-th largest tile was made while k - 1 cells held larger ones; a turn adds at most 4.
        largest = self.num_cells + 1 - torch.arange(self.num_cells, device=state.tiles.device)
        tiles = state.tiles.long().sort(1, descending=True)[0]
        total = to_float64(self._tile_values)[tiles.clamp(max=63)].sum(1)
        replayed = self._mark_done(replace(state, done=torch.zeros_like(state.done)))
        return (
            super().is_valid(state)
            & (tiles <= largest.clamp(max=63)).all(1)
            & (total <= 4.0 * (state.turn + 2))
            & (replayed.done == state.done)
            & self.legal_action_mask(state).any(1)
        )

    def symmetries(self) -> Tensor:
        return board_symmetries(self.rows, self.columns)

    def action_symmetries(self) -> Tensor:
        """The direction on the original board of each direction on the transformed one."""
        grid = self.symmetries().view(-1, self.rows, self.columns)
        steps = []
        for length, axis in ((self.rows, 1), (self.columns, 2)):
            first, second = grid.select(axis, 0), grid.select(axis, min(1, length - 1))
            first, second = first[:, 0], second[:, 0]
            down = second // self.columns - first // self.columns
            right = second % self.columns - first % self.columns
            if length == 1:  # without a step: the symmetries keep this axis
                down, right = down + (axis == 1), right + (axis == 2)
            # up, right, down and left are 0 to 3.
            steps.append(torch.where(down != 0, 1 + down, 2 - right))
        down_is, right_is = steps
        return torch.stack([(down_is + 2) % 4, right_is, down_is, (right_is + 2) % 4], 1)

    @property
    def how_to_play(self) -> str:
        return "all tiles slide in a direction; equal tiles that meet merge and score their sum"

    def boards(
        self, state: Game2048State, row: int, reveal: bool = False
    ) -> list[games_board.Board]:
        return [games_board.split([MARKS[e] for e in state.tiles[row].tolist()], self.columns)]

    @cached_property
    def board_format(self) -> games_board.BoardFormat:
        return games_board.BoardFormat(self.rows, self.columns, width=4)

    def parse_all(self, texts: Sequence[str]) -> Game2048State:
        possible = MARKS[: self.num_cells + 2]
        boards = [games_board.read(text, self.board_format, possible)[0] for text in texts]
        exponents = torch.tensor([[EXPONENTS[mark] for mark in marks] for marks in boards])
        return self.from_exponents(exponents.view(-1, self.rows, self.columns))

    def action_to_string(self, state: Game2048State, row: int, action: int) -> str:
        return ACTIONS[action]

    def _start(self, tiles: Tensor) -> Game2048State:
        return Game2048State.start(len(tiles), 1, tiles.device, tiles=tiles)

    def _add_tile(self, state: Game2048State, u: Tensor) -> Game2048State:
        """Put a tile on the empty cell that u chooses, in the live rows."""
        empty = state.tiles.clamp(max=1) ^ 1  # several times as fast as a comparison
        cell = pick_member(empty, u[:, 0])
        value = (1 + (u[:, 1] < self.fours).to(torch.uint8)) * ~state.done
        # Finished rows keep their tile.
        value = torch.maximum(value, state.tiles.gather(1, cell[:, None])[:, 0])
        return replace(state, tiles=state.tiles.scatter(1, cell[:, None], value[:, None]))

    def _all_new_tiles(self, state: Game2048State) -> tuple[Tensor, Game2048State]:
        """Probability float64 [B, 2N] and the B * 2N positions: a 2 on each cell, then a 4."""
        empty = (state.tiles == 0) & ~state.done[:, None]
        cell_probability = to_float64(empty) / empty.sum(1, keepdim=True).clamp(min=1)
        probability = torch.cat(
            [cell_probability * (1 - self.fours), cell_probability * self.fours], 1
        )
        twos = torch.eye(self.num_cells, dtype=torch.uint8, device=empty.device)
        new_tiles = torch.cat([twos, 2 * twos])
        tiles = state.tiles[:, None] + new_tiles * torch.cat([empty, empty], 1)[:, :, None]
        probability[state.done, 0] = 1.0  # a finished row does not change
        row = torch.arange(len(state), device=empty.device).repeat_interleave(2 * self.num_cells)
        return probability, replace(state[row], tiles=tiles.flatten(0, 1))

    def _mark_done(self, state: Game2048State) -> Game2048State:
        """Mark the rows without a legal move as done."""
        # The four bools of a row as one number.
        has_move = self._slides.legal_actions(state.tiles).view(torch.int32)[:, 0] != 0
        return replace(state, done=state.done | ~has_move)


def game_2048(board: int, columns: int, **rules: Any) -> Game2048:
    """game=2048: board rows and as many columns, unless columns= says otherwise."""
    return Game2048(board, columns, name="2048", **rules)


class Compiled2048(CompiledRules[Game2048State]):
    """Words: the board, of up to 4×4 cells. Tiles of 2^15, which random play does not reach, stay
    2^15."""

    has_chance = True
    min_random_games = 3_000

    @cached_property
    def rules(self) -> Any:
        from rlgames.kernels.game_2048 import Rules2048

        game = self.game
        lengths = (game.columns,) if game.rows == game.columns else (game.columns, game.rows)
        rows = torch.cat([packed_slides(length, MAX_EXPONENT) for length in lengths])
        cells, columns = np.arange(game.num_cells, dtype=np.uint64), np.uint64(game.columns)
        shifts = np.uint64(16) * (cells // columns) + np.uint64(4) * (cells % columns)
        return Rules2048(
            start=(0,),
            actions=game.spec.actions,
            rows=rows.numpy().view(np.uint64),
            shifts=shifts,
            cells=np.bitwise_or.reduce(np.uint64(1) << shifts),
            fours=np.uint64(round(game.fours * 2**32)),
            planes=game.spec.observation[0],
        )

    def fits(self, state: Game2048State) -> bool:
        return bool(state.tiles.numpy().max(initial=0) <= MAX_EXPONENT)

    def pack(self, state: Game2048State) -> Tensor:
        exponents = np.minimum(state.tiles.numpy(), MAX_EXPONENT).astype(np.uint64)
        words = (exponents << self.rules.shifts).sum(1, keepdims=True)
        return torch.from_numpy(words.view(np.int64))

    def unpack(self, words: Tensor, fields: dict[str, Tensor]) -> Game2048State:
        shifts = torch.from_numpy(self.rules.shifts.view(np.int64))
        exponents = (words >> shifts) & MAX_EXPONENT
        return Game2048State(**fields, tiles=exponents.to(torch.uint8))
