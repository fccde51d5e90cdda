"""A network on embeddings of rows and columns, or of all runs of a few cells."""

from __future__ import annotations

import itertools
import math
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from rlgames.games.capabilities import CellBoard, MoverCells, find, require
from rlgames.games.game import Game, State
from rlgames.games.symmetry import cell_symmetries
from rlgames.kernels.mlp import CompiledPolicy
from rlgames.policies.mlp import apply_heads, heads, hidden_layers, pack_layers
from rlgames.policies.policy import ACTIVATION_GAINS, ACTIVATIONS, Network, make_linear

MAX_TABLE_SIZE = 20_000_000


class Embedding(Network):
    """Looks up one learned vector per line of cells and feeds all of them to linear layers.

    The index of a line's vector has the line's cell values as digits: there is a vector for every
    content of the line.

    line_length: None: the lines are all rows and columns, and the first layer reads their vectors
        side by side; lines that a symmetry of the game maps to each other share their vectors.
        Otherwise the lines are all runs of that many cells across, down and diagonally, and the
        first layer is the sum of their vectors, like an mlp's that reads the contents.
    Raises ValueError for games that give no values of cells, for a board without a run of this
    length, and where the table would be too large.
    """

    reads_observation = False

    def __init__(
        self,
        game: Game[Any],
        units: int,
        num_cell_values: int,
        open_cells: bool,
        line_length: int | None,
        layers: list[int],
        activation: str,
        init: str,
        value: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self._set_cell_values(game, num_cell_values, open_cells)
        self.adds, self.activation = line_length is not None, activation
        with torch.device("cpu"):  # the lines are needed, also where only weights are counted
            lines, shared_with = (
                board_lines(game) if line_length is None else board_runs(game, line_length)
            )
        self._add_table(game, lines, shared_with, units, generator)
        modules: list[nn.Module] = [ACTIVATIONS[activation]()] if self.adds else []
        width = units if self.adds else len(lines) * units
        for outputs in layers:
            layer = make_linear(width, outputs, init, ACTIVATION_GAINS[activation], generator)
            modules += [layer, ACTIVATIONS[activation]()]
            width = outputs
        self.torso = nn.Sequential(*modules)
        self.logits = make_linear(width, game.spec.actions, init, 0.01, generator)
        self.has_value = value
        if value:
            self.value = make_linear(width, 1, init, 0.01, generator)

    def _set_cell_values(self, game: Game[Any], num_cell_values: int, open_cells: bool) -> None:
        board = require(game, CellBoard, "policy=embedding")
        self._has_mover_cells = find(game, MoverCells) is not None
        if open_cells and not game.spec.has_cell_actions:
            require(game, MoverCells, "policy.open_cells=true")
        self.open_value = board.num_cell_values if open_cells else 0
        self.num_cell_values = min(num_cell_values, board.num_cell_values + open_cells)
        if self.open_value >= self.num_cell_values:
            raise ValueError(
                f"policy.num_cell_values={num_cell_values} leaves none for policy.open_cells=true; "
                f"use {self.open_value + 1} or more"
            )

    def _add_table(
        self,
        game: Game[Any],
        lines: list[list[int]],
        shared_with: list[int],
        units: int,
        generator: torch.Generator,
    ) -> None:
        """The vectors of all lines, and what turns cells into their indices."""
        offsets, entries = [0] * len(lines), 0  # each line's first vector, and how many there are
        for number, shared in enumerate(shared_with):
            if shared == number:
                offsets[number] = entries
                entries += self.num_cell_values ** len(lines[number])
            offsets[number] = offsets[shared]
        if entries * units > MAX_TABLE_SIZE:
            raise ValueError(
                f"policy.units={units} for {entries:,} contents of lines needs "
                f"{entries * units:.3g} numbers, more than the limit of {MAX_TABLE_SIZE:,}"
            )
        # The factor of each cell's value in the index of each line's content.
        strides = torch.zeros(math.prod(game.spec.observation[1:]), len(lines))
        for number, line in enumerate(lines):
            strides[line, number] = self.num_cell_values ** torch.arange(len(line)).float()
        self._strides = nn.Buffer(strides.double(), persistent=False)
        self._offsets = nn.Buffer(torch.tensor(offsets), persistent=False)
        self.vectors = nn.Embedding(entries, units)
        deviation = 0.5 / math.sqrt(len(lines)) if self.adds else 0.5
        nn.init.normal_(self.vectors.weight, 0, deviation, generator=generator)
        if self.adds:
            self.bias = nn.Parameter(torch.zeros(units))
            self._lines = nn.Buffer(torch.tensor(lines), persistent=False)

    def inputs(self, game: Game[Any], state: State) -> Tensor:
        """Float32 [B, 1, H, W]: the cell values, seen from the seat to move."""
        seen = cast(MoverCells, game) if self._has_mover_cells else None
        cells = seen.relative_cells(state) if seen else cast(CellBoard, game).cells(state)
        if self.open_value:
            is_open = seen.open_cells(state) if seen else _open_cells(game, state)
            cells = cells + self.open_value * (is_open & (cells == 0))
        return cells.clamp(max=self.num_cell_values - 1)[:, None].float()

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        index = (inputs.flatten(1).double() @ self._strides).long() + self._offsets
        if self.adds:
            vectors = embedding_bag(index, self.vectors.weight, mode="sum") + self.bias
        else:
            vectors = self.vectors(index).flatten(1)
        return apply_heads(self, self.torso(vectors))

    def compiled(self, game: Game[Any]) -> CompiledPolicy | None:
        """Where the vectors are added, and all values of cells are distinct."""
        values = self.open_value + 1 if self.open_value else getattr(game, "num_cell_values", 0)
        is_known = type(self) is Embedding and self.adds and self.num_cell_values == values
        if not is_known:
            return None
        first = self.vectors.weight, self.bias
        weights = pack_layers(self.activation, first, *hidden_layers(self.torso), heads(self))
        lines = self._lines.cpu().numpy()
        weights = weights._replace(lines=lines, num_cell_values=self.num_cell_values)
        cells = math.prod(game.spec.observation[1:])
        return CompiledPolicy(weights, self.open_value, cells, self.has_value)


def _open_cells(game: Game[Any], state: State) -> Tensor:
    """As MoverCells.open_cells, where each action takes a cell."""
    _, rows, columns = game.spec.observation
    legal = game.legal_action_mask(state)[:, : rows * columns] & ~state.done[:, None]
    return legal.view(-1, rows, columns)


def board_lines(game: Game[Any]) -> tuple[list[list[int]], list[int]]:
    """The cells of all rows and columns; and for each, the first line that shares its vectors.

    The cells of a line are ordered like the images of the shared line's cells under a symmetry.
    """
    _, rows, columns = game.spec.observation
    grid = torch.arange(rows * columns).view(rows, columns)
    lines = [line for line in [*grid.tolist(), *grid.T.tolist()] if len(line) > 1]
    shared_with, symmetries = list(range(len(lines))), cell_symmetries(game)
    for number, line in enumerate(lines):
        for earlier, symmetry in itertools.product(range(number), symmetries):
            image = symmetry[lines[earlier]].tolist()
            if shared_with[earlier] == earlier and set(image) == set(line):
                lines[number], shared_with[number] = image, earlier
                break
    return lines, shared_with


def board_runs(game: Game[Any], length: int) -> tuple[list[list[int]], list[int]]:
    """The cells of all runs of `length` neighboring cells across, down and diagonally; and for each
    its own number, as none shares its vectors: their sum would be the same on symmetric boards.

    Raises ValueError if there is none.
    """
    _, rows, columns = game.spec.observation
    runs = []
    for row, column in itertools.product(range(rows), range(columns)):
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            last_row, last_column = row + (length - 1) * down, column + (length - 1) * right
            if last_row < rows and 0 <= last_column < columns:
                step = down * columns + right
                first = row * columns + column
                runs.append([first + step * place for place in range(length)])
    if not runs:
        raise ValueError(f"policy.line_length={length} is longer than a board of {rows}x{columns}")
    return runs, list(range(len(runs)))
