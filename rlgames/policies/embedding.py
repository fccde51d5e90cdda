"""A network on embeddings of whole rows and columns."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor, nn

from rlgames.games.game import Game, State
from rlgames.policies.policy import (
    ACTIVATION_GAINS,
    ACTIVATIONS,
    Network,
    init_weights,
    make_linear,
)

MAX_TABLE_SIZE = 20_000_000


class Embedding(Network):
    """Looks up one learned vector per row and per column and feeds all of them to linear layers.

    The index of a line's vector has the line's cell values as digits: there is a vector for every
    content of the line. Lines that a symmetry of the game maps to each other share their vectors.

    units: the length of a vector. num_cell_values: distinct values of a cell; larger ones count as
        the last. layers: the width of each hidden layer.
    Raises ValueError for games with hidden cells, and where the table would be too large.
    """

    def __init__(
        self,
        game: Game[Any],
        units: int,
        num_cell_values: int,
        layers: list[int],
        activation: str,
        init: str,
        value: bool,
        rng: torch.Generator,
    ) -> None:
        super().__init__()
        if not game.spec.num_cell_values:
            raise ValueError(
                f"policy=embedding needs boards without hidden cells, which {game.spec.name} has"
            )
        self.num_cell_values = min(num_cell_values, game.spec.num_cell_values)
        lines, shared_with = board_lines(game)
        offsets, entries = self._table_offsets(lines, shared_with)
        if entries * units > MAX_TABLE_SIZE:
            raise ValueError(
                f"policy.units={units} for {entries:,} contents of lines needs "
                f"{entries * units:.3g} numbers, more than the limit of {MAX_TABLE_SIZE:,}"
            )
        # The factor of each cell's value in the index of each line's content.
        strides = torch.zeros(game.spec.observation[1] * game.spec.observation[2], len(lines))
        for number, line in enumerate(lines):
            strides[line, number] = self.num_cell_values ** torch.arange(len(line)).float()
        self._strides: Tensor
        self._offsets: Tensor
        self.register_buffer("_strides", strides.double(), persistent=False)
        self.register_buffer("_offsets", torch.tensor(offsets), persistent=False)
        self.vectors = nn.Embedding(entries, units)
        nn.init.normal_(self.vectors.weight, 0, 0.5, generator=rng)
        modules: list[nn.Module] = []
        width = len(lines) * units
        for outputs in layers:
            layer = nn.Linear(width, outputs)
            init_weights(layer, init, ACTIVATION_GAINS[activation], rng)
            modules += [layer, ACTIVATIONS[activation]()]
            width = outputs
        self.torso = nn.Sequential(*modules)
        self.logits = make_linear(width, game.spec.actions, init, 0.01, rng)
        self.has_value = value
        if value:
            self.value = make_linear(width, 1, init, 0.01, rng)

    def _table_offsets(
        self, lines: list[list[int]], shared_with: list[int]
    ) -> tuple[list[int], int]:
        """The index of each line's first vector, and the number of vectors."""
        offsets, entries = [0] * len(lines), 0
        for number, shared in enumerate(shared_with):
            if shared == number:
                offsets[number] = entries
                entries += self.num_cell_values ** len(lines[number])
            offsets[number] = offsets[shared]
        return offsets, entries

    def inputs(self, game: Game[Any], state: State) -> Tensor:
        """Float32 [B, 1, H, W]: the cell values, seen from the seat to move."""
        return game.relative_cells(state).clamp(max=self.num_cell_values - 1)[:, None].float()

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        index = (inputs.flatten(1).double() @ self._strides).long() + self._offsets
        features = self.torso(self.vectors(index).flatten(1))
        value = self.value(features)[:, 0] if self.has_value else None
        return self.logits(features), value


def board_lines(game: Game[Any]) -> tuple[list[list[int]], list[int]]:
    """The cells of all rows and columns; and for each, the first line that shares its vectors.

    The cells of a line are ordered like the images of the shared line's cells under a symmetry.
    """
    _, rows, columns = game.spec.observation
    grid = torch.arange(rows * columns).view(rows, columns)
    lines = [line for line in [*grid.tolist(), *grid.T.tolist()] if len(line) > 1]
    shared_with = list(range(len(lines)))
    for number, line in enumerate(lines):
        for earlier, symmetry in itertools.product(range(number), game.symmetries()):
            image = symmetry[lines[earlier]].tolist()
            if shared_with[earlier] == earlier and set(image) == set(line):
                lines[number], shared_with[number] = image, earlier
                break
    return lines, shared_with
