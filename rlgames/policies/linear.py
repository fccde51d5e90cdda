"""A value that is linear in a few features of a 2048 board."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from rlgames.games.game import Game, State
from rlgames.games.game_2048 import Game2048
from rlgames.policies.policy import ValueFunction


class BoardFeatures:
    """B boards in a layout that features are computed from.

    cells: uint8 [rows, columns, B], exponents with 0 for an empty cell. The batch is the last
        dimension, so that comparisons run over contiguous memory.
    lines: three times uint8 [length, 4, B], from each corner: the edge down, the edge across and
        the diagonal, which ends at the opposite side where the board is not square.
    corner_has_max: bool [4, B], whether a corner has a largest tile.
    """

    def __init__(self, tiles: Tensor, rows: int, columns: int) -> None:
        """tiles: uint8 [B, rows * columns]."""
        self.cells = tiles.T.contiguous().view(rows, columns, -1)
        from_corners = [self.cells.flip(axes) for axes in ((), (0,), (1,), (0, 1))]
        self.lines = (
            torch.stack([cells[:, 0] for cells in from_corners], 1),
            torch.stack([cells[0] for cells in from_corners], 1),
            torch.stack([cells.diagonal().T for cells in from_corners], 1),
        )
        self.corner_has_max: Tensor = self.lines[0][0] == self.cells.amax((0, 1))

    def neighbors(self) -> Tensor:
        """Uint8 [2, pairs, B]: all pairs of adjacent cells."""
        cells = self.cells
        above, left = cells[:-1].flatten(0, 1), cells[:, :-1].flatten(0, 1)
        below, right = cells[1:].flatten(0, 1), cells[:, 1:].flatten(0, 1)
        return torch.stack([torch.cat([above, left]), torch.cat([below, right])])


def _descending(line: int) -> Callable[[BoardFeatures], Tensor]:
    """Whether a line never rises from some corner with the largest tile."""

    def feature(boards: BoardFeatures) -> Tensor:
        never_rises = boards.corner_has_max
        for near, far in itertools.pairwise(boards.lines[line]):
            never_rises = never_rises & (near >= far)
        return _any(never_rises)

    return feature


def _any(corners: Tensor) -> Tensor:
    """Uint8 [B] from bool [4, B]: whether any is true. Ten times as fast as any()."""
    return corners.view(torch.uint8).amax(0)


def _ordered(boards: BoardFeatures) -> Tensor:
    """The fraction of rows and columns that are monotonic."""
    is_monotonic = []
    for lines in (boards.cells, boards.cells.transpose(0, 1)):
        never_rises = never_falls = torch.ones_like(lines[0], dtype=torch.bool)
        for first, second in itertools.pairwise(lines):
            never_rises = never_rises & (first >= second)
            never_falls = never_falls & (first <= second)
        is_monotonic.append(never_rises | never_falls)
    return torch.cat(is_monotonic).float().mean(0)


def _pairs(boards: BoardFeatures) -> Tensor:
    first, second = boards.neighbors()
    is_pair: Tensor = (first == second) & (first != 0)
    return is_pair.float().mean(0)


def _rough(boards: BoardFeatures) -> Tensor:
    first, second = boards.neighbors()
    difference: Tensor = torch.maximum(first, second) - torch.minimum(first, second)
    return difference.float().mean(0)


FEATURES: dict[str, Callable[[BoardFeatures], Tensor]] = {
    "corner": lambda boards: _any(boards.corner_has_max),
    "vertical": _descending(0),
    "horizontal": _descending(1),
    "diagonal": _descending(2),
    "one": lambda boards: torch.ones_like(boards.cells[0, 0]),
    "empty": lambda boards: (boards.cells == 0).float().mean((0, 1)),
    "pairs": _pairs,
    "ordered": _ordered,
    "rough": _rough,
}
"""Functions to [B]. The first four are Dedieu and Amar's, with values 0 and 1:

corner: a corner has a largest tile.
vertical, horizontal, diagonal: the edge column, the edge row or the diagonal never rises from a
    corner with a largest tile; an empty cell counts as 0. Each feature may use another of these
    corners, so that mirrored boards have equal features.

one: always 1. empty: the fraction of empty cells. pairs: the fraction of adjacent cells with equal
tiles. ordered: the fraction of monotonic rows and columns. rough: the mean difference between the
exponents of adjacent cells, with 0 for an empty cell.
"""


class LinearValue(ValueFunction):
    """V(x) = λ·φ(x), with weights λ and the features φ of a state after chance.

    If the reward is the change in score, the value of a finished game is 0.
    Raises ValueError for other games than 2048.
    """

    def __init__(
        self, game: Game[Any], score_scale: float, features: list[str], init_value: float
    ) -> None:
        super().__init__(score_scale)
        if not isinstance(game, Game2048):
            raise ValueError(f"policy=linear has features of 2048, not of {game.spec.name}")
        if not features or len(set(features)) < len(features):
            raise ValueError(f"policy.features={features} needs distinct names, each of them once")
        self.names = features
        self.weights = nn.Buffer(torch.full((len(features),), init_value))

    def features(self, game: Game[Any], state: Any) -> Tensor:
        """Float32 [B, K]: φ, in the order of names."""
        _, rows, columns = game.spec.observation
        assert isinstance(game, Game2048)
        boards = BoardFeatures(game.tiles(state).to(torch.uint8), rows, columns)
        return torch.stack([FEATURES[name](boards).float() for name in self.names], 1)

    def value(self, game: Game[Any], afterstate: State) -> Tensor:
        """Float32 [B]: the exact mean of V over the outcomes of chance."""
        probability, outcomes = game.chance_outcomes(afterstate)
        is_possible = probability > 0
        state = outcomes[is_possible.flatten()]
        after_chance = self.features(game, state) @ self.weights
        if self.score_scale:
            after_chance = after_chance * ~state.done
        value = torch.zeros_like(probability)
        value[is_possible] = after_chance.to(value.dtype)
        return (probability * value).sum(1).float()
