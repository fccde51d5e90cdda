"""A value that is linear in a few features of a 2048 board."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.games.game_2048 import Game2048
from rlgames.policies.policy import ValueFunction


class Boards:
    """B boards, and the parts of them that features are made of.

    cells: uint8 [rows, columns, B], exponents with 0 for an empty cell, the batch last so that
    cells are compared in long rows. lines: uint8 [length, 4, B] three times, the edge down, the
    edge across and the diagonal that start at each corner; the diagonal of a board that is not
    square ends where it meets the other side. crowned: bool [4, B], whether a corner holds the
    largest tile.
    """

    def __init__(self, tiles: Tensor, rows: int, columns: int) -> None:
        """tiles: uint8 [B, rows * columns]."""
        self.cells = tiles.T.contiguous().view(rows, columns, -1)
        turned = [self.cells.flip(axes) for axes in ((), (0,), (1,), (0, 1))]
        self.lines = (
            torch.stack([cells[:, 0] for cells in turned], 1),
            torch.stack([cells[0] for cells in turned], 1),
            torch.stack([cells.diagonal().T for cells in turned], 1),
        )
        self.crowned: Tensor = self.lines[0][0] == self.cells.amax((0, 1))

    def neighbours(self) -> Tensor:
        """Uint8 [2, pairs, B]: all pairs of cells that touch."""
        cells = self.cells
        above, left = cells[:-1].flatten(0, 1), cells[:, :-1].flatten(0, 1)
        below, right = cells[1:].flatten(0, 1), cells[:, 1:].flatten(0, 1)
        return torch.stack([torch.cat([above, left]), torch.cat([below, right])])


def _descending(line: int) -> Callable[[Boards], Tensor]:
    """Whether, from some corner with the largest tile, a line of cells never rises."""

    def feature(boards: Boards) -> Tensor:
        falls = boards.crowned
        for near, far in itertools.pairwise(boards.lines[line]):
            falls = falls & (near >= far)
        return _any(falls)

    return feature


def _any(corners: Tensor) -> Tensor:
    """Bool [B] from bool [4, B]; any() is ten times as slow."""
    return corners.view(torch.uint8).amax(0)


def _ordered(boards: Boards) -> Tensor:
    """The share of rows and columns that never rise in one direction or never in the other."""
    found = []
    for lines in (boards.cells, boards.cells.transpose(0, 1)):
        falls = rises = torch.ones_like(lines[0], dtype=torch.bool)
        for one, other in itertools.pairwise(lines):
            falls, rises = falls & (one >= other), rises & (one <= other)
        found.append(falls | rises)
    return torch.cat(found).float().mean(0)


def _pairs(boards: Boards) -> Tensor:
    one, other = boards.neighbours()
    equal: Tensor = (one == other) & (one != 0)
    return equal.float().mean(0)


def _rough(boards: Boards) -> Tensor:
    one, other = boards.neighbours()
    difference: Tensor = torch.maximum(one, other) - torch.minimum(one, other)
    return difference.float().mean(0)


FEATURES: dict[str, Callable[[Boards], Tensor]] = {
    "corner": lambda boards: _any(boards.crowned),
    "vertical": _descending(0),
    "horizontal": _descending(1),
    "diagonal": _descending(2),
    "one": lambda boards: torch.ones_like(boards.cells[0, 0]),
    "empty": lambda boards: (boards.cells == 0).float().mean((0, 1)),
    "pairs": _pairs,
    "ordered": _ordered,
    "rough": _rough,
}
"""Each gives [B]. The first four are Dedieu and Amar's, 0 or 1:

corner: some corner holds the largest tile, or one of several that are largest.
vertical, horizontal, diagonal: from some such corner the edge column, the edge row, the diagonal
    never rises; equal tiles may follow each other, and an empty cell counts as 0. Where several
    corners hold the largest tile, each feature looks for its own, so that a mirrored board has
    the same features.

one: always 1. empty: the share of empty cells. pairs: the share of touching cells that hold equal
tiles. ordered: the share of rows and columns that are in order. rough: the mean difference
between the exponents of touching cells, an empty cell counting as 0.
"""


class LinearValue(ValueFunction):
    """λ·φ(x): the weights times the features of a full position, after chance has added to it.

    features: names of FEATURES. start: what every weight begins with.
    Where gains are learnt from, a position that is over is worth 0, there being none left.
    Raises ValueError for other games than 2048.
    """

    def __init__(
        self, game: Game[Any], score_scale: float, features: list[str], init_value: float
    ) -> None:
        super().__init__(score_scale)
        if not isinstance(game, Game2048):
            raise ValueError(f"the features of policy=linear are of 2048, not of {game.spec.name}")
        if not features or len(set(features)) < len(features):
            raise ValueError(f"policy.features={features} should name features, each of them once")
        self.names = features
        self.weights: Tensor
        self.register_buffer("weights", torch.full((len(features),), init_value))

    def features(self, game: Game[Any], state: Any) -> Tensor:
        """Float32 [B, K]: φ, in the order of their names."""
        _, rows, columns = game.spec.observation
        boards = Boards(state.tiles, rows, columns)
        return torch.stack([FEATURES[name](boards).float() for name in self.names], 1)

    def value(self, game: Game[Any], state: State) -> Tensor:
        value = self.features(game, state) @ self.weights
        return value * ~state.done if self.score_scale else value
