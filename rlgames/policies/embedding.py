"""A network that looks up what it has learnt of whole rows and columns."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rlgames.games.game import Game, State
from rlgames.policies.policy import ACTIVATIONS, GAINS, Network, init_weights, make_linear

MAX_TABLE_SIZE = 20_000_000


class Embedding(Network):
    """Each row and each column has a learnt vector for all that its cells can hold; layers read
    the vectors side by side. Lines that a symmetry of the game turns into each other share theirs.

    units: the length of a vector. num_cell_values: how many num_cell_values of a cell are told
        apart; those beyond count as the last. layers: the width of each hidden layer. Raises
        ValueError for games whose board is more than its cells, and for vectors that are too many.
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
            raise ValueError(f"policy=embedding looks at cells; {game.spec.name} hides some")
        self.num_cell_values = min(num_cell_values, game.spec.num_cell_values)
        lines, table = lines_of(game)
        sizes = [self.num_cell_values ** len(line) for line in lines]
        first, entries = [0] * len(lines), 0
        for number, shared in enumerate(table):
            if shared == number:
                first[number], entries = entries, entries + sizes[number]
            first[number] = first[shared]
        if entries * units > MAX_TABLE_SIZE:
            raise ValueError(
                f"policy.units={units} for {entries:,} contents of lines make "
                f"{entries * units:.3g} numbers, and {MAX_TABLE_SIZE:,} is the most"
            )
        # What each cell's mark is multiplied by in the number of each line's content.
        steps = torch.zeros(game.spec.observation[1] * game.spec.observation[2], len(lines))
        for number, line in enumerate(lines):
            steps[line, number] = self.num_cell_values ** torch.arange(len(line)).float()
        self._steps: Tensor
        self._first: Tensor
        self.register_buffer("_steps", steps.double(), persistent=False)
        self.register_buffer("_first", torch.tensor(first), persistent=False)
        self.vectors = nn.Embedding(entries, units)
        nn.init.normal_(self.vectors.weight, 0, 0.5, generator=rng)
        parts: list[nn.Module] = []
        width = len(lines) * units
        for outputs in layers:
            layer = nn.Linear(width, outputs)
            init_weights(layer, init, GAINS[activation], rng)
            parts += [layer, ACTIVATIONS[activation]()]
            width = outputs
        self.torso = nn.Sequential(*parts)
        self.logits = make_linear(width, game.spec.actions, init, 0.01, rng)
        self.has_value = value
        if value:
            self.value = make_linear(width, 1, init, 0.01, rng)

    def inputs(self, game: Game[Any], state: State) -> Tensor:
        """Float32 [B, 1, H, W]: the num_cell_values of the cells."""
        return game.cells(state).clamp(max=self.num_cell_values - 1)[:, None].float()

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        content = (inputs.flatten(1).double() @ self._steps).long() + self._first
        features = self.torso(self.vectors(content).flatten(1))
        value = self.value(features)[:, 0] if self.has_value else None
        return self.logits(features), value


def lines_of(game: Game[Any]) -> tuple[list[list[int]], list[int]]:
    """The cells of all rows and columns, and for each of them the first that shares its table.

    A line's cells stand in the order in which a symmetry puts them in the place of that one's.
    """
    _, rows, columns = game.spec.observation
    grid = torch.arange(rows * columns).view(rows, columns)
    plain = [line for line in [*grid.tolist(), *grid.T.tolist()] if len(line) > 1]
    lines: list[list[int]] = []
    table: list[int] = []
    for number, line in enumerate(plain):
        lines.append(line)
        table.append(number)
        for earlier, turned in ((e, t) for e in range(number) for t in game.symmetries()):
            moved = turned[lines[earlier]].tolist()
            if table[earlier] == earlier and set(moved) == set(line):
                lines[number], table[number] = moved, earlier
                break
    return lines, table
