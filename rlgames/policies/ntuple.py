"""N-tuple networks: values of boards as sums of table entries, and the same for kernels."""

from __future__ import annotations

from functools import reduce
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from rlgames.games.board_game import BoardGame
from rlgames.games.capabilities import Symmetric, find
from rlgames.games.game import Game, State
from rlgames.games.game_2048 import Game2048
from rlgames.kernels.ntuple import make_memory
from rlgames.kernels.ntuple_board import BoardNetwork
from rlgames.kernels.value_search import CompiledNtuples, score_positions
from rlgames.policies import ntuple_2048
from rlgames.policies.policy import Policy, ValueFunction
from rlgames.policies.tuples import blocks, check_tuples, lines, random_walks, walks

MAX_VALUE = 0.999
"""Of a game of two seats in progress, as a part of a win. So no move is preferred to a win."""

OPEN = 3
"""The value of an empty cell where a stone can fall."""


class Ntuple(ValueFunction):
    """V(board) = Σ over tuples and symmetries of table[tuple][contents of the tuple's cells]

    (Szubert and Jaskowski 2014): each tuple of cells has a table with one value for every content
    of its cells, and it is looked up on the board and on all symmetric boards. If several
    symmetries put a tuple on the same cells, one of these lookups counts: the one with the lowest
    index of the content.

    On a board of two seats every symmetry that reads other cells, or the same ones in another
    order, is a lookup. A cell is 0 empty, 1 and 2 with a stone of the first or the second seat, or
    3 empty where a stone can fall. The values after moves of the second seat have separate tables
    (Thill, Koch and Konen 2012), or the board is read as the seat that moved sees it, whose stones
    are 1. Wins and draws have the value of their reward; other values count as at most MAX_VALUE of
    a win, and no less than of a loss.

    tuples: the cells of each tuple, numbered from 0 in rows from the top. line_length: all straight
        lines of this many cells are tuples too. num_tuples: and as many random walks. None of them:
        blocks in 2048, and with two seats random walks, or the whole board if it has few cells.
    num_cell_values: larger tiles count as the last.
    per_seat: each of two seats has its own tables. stages: and each part of the game, by the number
        of stones on the board.
    values: float32 [W], the trained values. tuple_of: int64 [K], the tuple of each lookup.
    Raises ValueError for other games, cells off the board, tables that are too large and a key that
    has no effect.
    """

    values: Tensor
    trained_buffers = ("values",)

    def __init__(
        self,
        game: Game[Any],
        score_scale: float,
        tuples: list[list[int]] | None,
        num_cell_values: int,
        init_value: float,
        num_tuples: int | None,
        line_length: int | None,
        per_seat: bool,
        stages: int,
    ) -> None:
        super().__init__(score_scale)
        if not isinstance(game, BoardGame) or (
            game.spec.seats == 1 and not isinstance(game, Game2048)
        ):
            raise ValueError(
                f"policy=ntuple plays 2048 and board games of two seats, not {game.spec.name}"
            )
        self.has_stones = game.spec.seats == 2
        self.num_cell_values = min(num_cell_values, game.num_cell_values)
        if self.has_stones:
            self.num_cell_values = _cell_values(game, num_cell_values)
        _, rows, columns = game.spec.observation
        symmetric, num_cells = find(game, Symmetric), rows * columns
        symmetries = symmetric.symmetries() if symmetric else torch.arange(num_cells)[None]
        board = rows, columns, symmetries
        if not self.has_stones and (num_tuples, line_length, stages) != (None, None, 1):
            raise ValueError(
                "policy.num_tuples, line_length and stages are for two seats; leave them out"
            )
        default = walks if self.has_stones else blocks
        chosen = [*(tuples or []), *lines(*board, line_length or 0)]
        chosen += random_walks(*board, num_tuples or 0)
        chosen = chosen if chosen or tuples is not None else default(*board)
        self.tuples = chosen
        self.per_seat, self.num_stages = self.has_stones and per_seat, stages
        num_parts = stages * (1 + self.per_seat)
        check_tuples(chosen, self.num_cell_values, num_cells, num_parts)
        sizes = [self.num_cell_values ** len(cells) for cells in chosen]
        self._make_lookups([symmetries[:, cells] for cells in chosen], num_cells)
        offsets = torch.tensor(sizes).cumsum(0) - torch.tensor(sizes)
        self._offsets = nn.Buffer(offsets[self.tuple_of].int(), persistent=False)
        self.part_size: int = sum(sizes)  # the values of a seat in a stage
        self.initial_value = init_value / len(self.tuple_of)
        initial = torch.full((num_parts * self.part_size,), self.initial_value)
        self.register_buffer("values", initial)
        self._network: tuple[Any, Any] | None = None

    def _make_lookups(self, placements: list[Tensor], num_cells: int) -> None:
        """Set the K lookups of a board: tuple_of, and the strides of their cells.

        A lookup is a tuple on a set of cells. Its orientations are the symmetries that put the
        tuple on these cells, of which some come twice so that all lookups have as many; with two
        seats each has one. placements: for each tuple int64 [G, n], its cells under each symmetry.
        """
        lookups = [
            (number, strides)
            for number, cells in enumerate(placements)
            for strides in _lookup_strides(cells, self.num_cell_values, num_cells, self.has_stones)
        ]
        lookups.sort(key=lambda lookup: len(lookup[1]))
        orientation = torch.arange(len(lookups[-1][1]))
        all_strides = [strides[orientation % len(strides)] for _, strides in lookups]
        self.tuple_of = torch.tensor([number for number, _ in lookups])
        # Float products are many times as fast as integer ones, and exact up to these sizes.
        max_size = self.num_cell_values ** max(cells.shape[1] for cells in placements)
        dtype = torch.float32 if max_size <= 1 << 24 else torch.float64
        strides = torch.stack(all_strides, 1).flatten(0, 1).T.to(dtype)
        self._strides = nn.Buffer(strides, persistent=False)

    def feature_indices(self, game: Game[Any], afterstate: Any) -> Tensor:
        """Int32 [B, K]: the index of the value of each lookup."""
        offsets = self._offsets
        if self.has_stones:
            assert isinstance(game, BoardGame)
            cells, seat = game.cells(afterstate).flatten(1), 1 - afterstate.current_seat
            part = self.stage((cells > 0).sum(1), cells.shape[1])
            if self.per_seat:
                part = part + self.num_stages * seat
            else:
                cells = game.from_seats(seat, cells)
            if self.num_cell_values > OPEN:
                cells = cells + OPEN * cast(Any, game).open_cells(afterstate).flatten(1)
            offsets = offsets + self.part_size * part[:, None].int()
        else:
            assert isinstance(game, Game2048)
            cells = game.tiles(afterstate)
        cells = cells.clamp(max=self.num_cell_values - 1).to(self._strides.dtype)
        by_orientation = (cells @ self._strides).split(len(self.tuple_of), 1)
        # A minimum of columns is ten times as fast as amin.
        return reduce(torch.minimum, by_orientation).int() + offsets

    def stage(self, stones: Any, num_cells: int) -> Any:
        """The stage of a board with this many stones, from 0."""
        return stones * self.num_stages // (num_cells + 1)

    def value(self, game: Game[Any], afterstate: State) -> Tensor:
        indices = self.feature_indices(game, afterstate)
        # Twice as fast as indexing with a matrix.
        value = self.values.index_select(0, indices.reshape(-1)).view(indices.shape).sum(1)
        if not self.has_stones:
            return value
        win, draw = self.payoffs
        seat = 1 - afterstate.current_seat
        score = afterstate.score.gather(1, seat[:, None])[:, 0]
        final = torch.where(score == 0, torch.where(seat == 0, draw, -draw), win * score.sign())
        return torch.where(afterstate.done, final, value.clamp(-self.max_value, self.max_value))

    def scores(self, game: Game[Any], state: Any) -> tuple[Tensor, Tensor | None]:
        policy = self.compiled(game) if self.has_stones else None
        if policy is None:
            return super().scores(game, state)
        scores, live = torch.zeros(len(state), game.spec.actions), ~state.done
        positions, seats = state.words[live].numpy(), state.current_seat[live].numpy()
        found = np.zeros((len(seats), game.spec.actions), np.float32)
        score_positions(positions, seats, policy, cast(Any, game).rules, found)
        scores[live] = torch.from_numpy(found)
        return scores, None

    def compiled(self, game: Game[Any]) -> CompiledNtuples | None:
        """The table has the numbers from the first value to the last, which may have others between
        them. The network is of one of the classes that implement kernels/ntuple.py."""
        if reason_not_compiled(game, self):
            return None
        stride = self.values.stride(0)
        key = game, self.payoffs, stride
        if self._network is None or self._network[0] != key:
            self._network = key, _pack_network(game, self, stride)
        network = self._network[1]
        table = self.values.as_strided(((len(self.values) - 1) * stride + 1,), (1,)).numpy()
        scale = np.float32(0 if self.has_stones else self.score_scale)
        return CompiledNtuples(network, table, scale, make_memory(network, game.spec.actions))

    @property
    def max_value(self) -> float:
        """The largest value of a game in progress, less than the value of a win."""
        return MAX_VALUE * self.payoffs[0]

    def lookups(self) -> list[tuple[list[int], int]]:
        """With two seats the cells of each of the K lookups, and where its values begin."""
        lengths = [len(self.tuples[number]) for number in self.tuple_of.tolist()]
        rows = zip(self._strides.T.argsort(), lengths, self._offsets.tolist(), strict=True)
        return [(cells[-length:].tolist(), offset) for cells, length, offset in rows]


def _cell_values(game: BoardGame, num_cell_values: int) -> int:
    """With two seats. Raises ValueError for too few to tell stones apart."""
    if num_cell_values < OPEN:
        raise ValueError(
            f"policy.num_cell_values={num_cell_values} does not tell empty cells and the stones of "
            f"two seats apart; use {OPEN} or more"
        )
    return OPEN if game.opened_by is None else min(num_cell_values, OPEN + 1)


def _lookup_strides(
    placements: Tensor, num_cell_values: int, num_cells: int, by_order: bool
) -> list[Tensor]:
    """For each set of cells that a tuple is placed on, float64 [orientations, num_cells]: the
    factor of each cell's value in the index of the contents. placements: int64 [G, n]. by_order:
    each order of the same cells counts as a separate set."""
    if by_order:
        placements = placements.unique(dim=0)
    powers = num_cell_values ** torch.arange(placements.shape[1], dtype=torch.float64)
    strides = torch.zeros(len(placements), num_cells, dtype=torch.float64)
    strides.scatter_(1, placements, powers.expand(placements.shape))
    if by_order:
        return list(strides.split(1))
    _, cell_set = placements.sort(1)[0].unique(dim=0, return_inverse=True)
    return [strides[cell_set == number] for number in range(int(cell_set.max()) + 1)]


def reason_not_compiled(game: Game[Any], policy: Policy) -> str:
    """Why kernels do not take this policy, as part of a sentence; "" if they do."""
    if not isinstance(policy, Ntuple):
        return "it needs policy=ntuple"
    if isinstance(game, Game2048):
        if type(game) is not Game2048:
            return f"it knows the rules of 2048, not of {game.spec.name}"
        if len(game.rules.start) > 1:
            return f"a board of {game.rows}x{game.columns} is larger than 4x4"
    if policy.values.device.type != "cpu":
        return "kernels run on the CPU, with device=cpu"
    return ""


def _pack_network(game: Game[Any], policy: Ntuple, stride: int) -> Any:
    """stride: numbers of the table per value."""
    if isinstance(game, Game2048):
        return ntuple_2048.make_network(game, policy.tuples, policy.num_cell_values, stride)
    assert isinstance(game, BoardGame)
    return _board_network(game, policy, stride)


def _board_network(game: BoardGame, policy: Ntuple, stride: int) -> BoardNetwork:
    radix, lookups = policy.num_cell_values, policy.lookups()
    _, rows, columns = game.spec.observation
    num_cells = rows * columns
    cells_of = np.tile(np.arange(num_cells), (2, 1))
    if game.second_view is not None:
        cells_of[1] = game.second_view
    opens, opened_by = radix > OPEN, [-1] * num_cells
    if opens:
        assert game.opened_by is not None
        opened_by = game.opened_by.tolist()
    starts, changes = [0], []
    for view in range(1 if policy.per_seat else 2):
        for seen in cells_of[view].tolist():
            above = opened_by[seen]
            for number, (cells, _) in enumerate(lookups):
                own = radix ** cells.index(seen) if seen in cells else 0
                opened = OPEN * radix ** cells.index(above) if above in cells else 0
                if own or opened:
                    digits = (2, 1) if view else (1, 2)
                    stones = (own * (digit - OPEN * opens) + opened for digit in digits)
                    changes.append((number, 0, *stones))
            starts.append(len(changes))
    open_cells = {*range(num_cells)} - {*opened_by} if opens else set()
    empty = [
        offset + sum(OPEN * radix**n for n, cell in enumerate(cells) if cell in open_cells)
        for cells, offset in lookups
    ]
    stages = policy.stage(np.arange(num_cells + 1), num_cells)
    parts = np.stack([stages, stages + policy.num_stages * policy.per_seat])
    table = np.array(changes, np.int64).reshape(-1, 4)
    win, draw = policy.payoffs
    return BoardNetwork(
        starts=np.array(starts, np.uint64),
        lookups=table[:, 0].astype(np.uint64),
        deltas=(stride * table[:, 1:].T).reshape(-1).astype(np.uint64),
        empty=np.array(empty, np.uint64) * np.uint64(stride),
        offsets=(stride * policy.part_size * parts).astype(np.uint64),
        cells=cells_of,
        win=np.float32(win),
        draws=np.array([draw, -draw], np.float32),
        largest=np.float32(policy.max_value),
    )
