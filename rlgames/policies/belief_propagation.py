"""A network whose layers pass messages between the cells and the ships that may lie on them.

Letters in shapes: B positions, N cells, T lengths of ships, P placements of a ship of one length,
F features of a cell.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from rlgames.games.fleets.game import FleetGame
from rlgames.games.fleets.layouts import Fleet
from rlgames.games.game import Game
from rlgames.policies.policy import Network

MAX_TABLE_SIZE = 1_000_000
"""Cells in the lists of all placements."""

MISS_PENALTY = 20.0
"""What a miss subtracts from the log-weight of a placement."""

MAX_LOG_RATIO, MAX_EXACT_LOG_RATIO = 10.0, 8.0
"""Of the messages as they are sent, and as the sum-product rule gives them."""

MIN_LOG_ODDS, MAX_LOG_ODDS, MIN_PROBABILITY = -12.0, 8.0, 1e-5
"""Limits that keep logarithms and their gradients finite."""

INITIAL_STEP_LOGIT = -0.4
"""At first, messages move about 0.4 of the way to the messages of the sum-product rule."""

FEATURE_SCALE = 0.25
"""Log-odds are multiplied by this where they are features."""


class ShipBeliefs(nn.Module):
    """The placements of the ships of each length, and how likely one of them covers each cell.

    counts: float32 [T, 1, 1], the ships of each length.
    """

    def __init__(self, fleet: Fleet) -> None:
        super().__init__()
        count = Counter(fleet.ships)
        sizes = {length: len(fleet.placements[length]) for length in sorted(count)}
        if sum(sizes.values()) * fleet.num_cells > MAX_TABLE_SIZE:
            raise ValueError(
                f"policy=belief_propagation lists {sum(sizes.values()):,} placements on "
                f"{fleet.num_cells:,} cells, and {MAX_TABLE_SIZE:,} numbers are the limit"
            )
        for length in sizes:
            table = fleet.placements[length].float()
            self.register_buffer(f"placements_{length}", table, persistent=False)
        self.lengths = list(sizes)
        counts = torch.tensor([float(count[length]) for length in sizes])
        self.counts = nn.Buffer(counts[:, None, None], persistent=False)

    def forward(self, log_ratio: Tensor, penalty: Tensor) -> Tensor:
        """Float32 [T, B, N]: the probability that a ship of each length covers each cell, if the
        probability of a placement is proportional to the product of its cells' ratios.

        log_ratio: float32 [T, B, N]. penalty: float32 [B, N], subtracted from it for all lengths.
        """
        beliefs = []
        for log_ratios, length in zip(log_ratio, self.lengths, strict=True):
            table = self.get_buffer(f"placements_{length}")
            probability = ((log_ratios - penalty) @ table.T).softmax(1)
            beliefs.append(probability @ table)
        return torch.stack(beliefs).clamp(MIN_PROBABILITY, 1 - MIN_PROBABILITY)


class CellLayers(nn.Module):
    """Two linear layers, shared by all cells, on a cell's features and their means over the board.

    planes: of the input. lengths: of ships. memory: features that a cell hands to the next layer.
    units: the width between both layers. outputs: of a cell.
    """

    def __init__(
        self,
        planes: int,
        lengths: int,
        memory: int,
        units: int,
        outputs: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        inputs = planes + 4 * lengths + memory
        self.cells = nn.Parameter(_normal((units, inputs), 1 / math.sqrt(inputs), generator))
        self.board = nn.Parameter(_normal((units, inputs), 0.3 / math.sqrt(inputs), generator))
        self.bias = nn.Parameter(torch.zeros(units))
        self.outputs = nn.Parameter(_normal((outputs, units), 0.05 / math.sqrt(units), generator))
        self.output_bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, features: Tensor) -> Tensor:
        """Float32 [outputs, B, N] from float32 [F, B, N]."""
        mean = self.board @ features.mean(2) + self.bias[:, None]
        hidden = (self.cells @ features.flatten(1)).view(len(self.cells), *features.shape[1:])
        hidden = relu(hidden + mean[:, :, None])
        outputs = self.outputs @ hidden.flatten(1) + self.output_bias[:, None]
        return outputs.view(len(outputs), *features.shape[1:])


class BeliefPropagation(Network):
    """Belief propagation (the sum-product algorithm) on the fleet, unrolled, with learned steps and
    corrections.

    Ships are variables, whose values are their placements; cells are factors. A hit is covered by
    one ship, a cell not shot at by at most one, a miss by none. A cell's message to ships of a
    length is the ratio of the weights of covering it and not,

        1 ÷ Σ odds of the other ships at a hit, and 1 ÷ (1 + Σ odds of the other ships) elsewhere,

    where a ship's odds to cover a cell come from its placements without the cell's own message.
    Each layer computes these messages, adds a learned function of all that the cell has received
    and of means over the board, and moves a learned part of the way to the sum. The score of a cell
    is the log-odds that some ship covers it, plus a learned function. All cells share the weights,
    so the network is equivariant: a rotated or mirrored board gets the rotated or mirrored scores.
    They depend on what is seen of that fleet, so no shots of an opponent can mislead them; the
    value sees the whole observation.
    Belief propagation with learned weights is known from decoders: Nachmani, Be'ery and Burshtein,
    Learning to Decode Linear Codes Using Deep Learning, 2016.

    For battleship, salvo and salvo_duel with one action per cell. layers: the width of each layer's
    correction. Raises ValueError for other games, and for boards whose placements are too many.
    """

    def __init__(
        self,
        game: Game[Any],
        layers: list[int],
        memory: int,
        value: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        if not isinstance(game, FleetGame) or not game.spec.has_cell_actions:
            raise ValueError(
                "policy=belief_propagation needs battleship, salvo or salvo_duel, "
                "with one action per cell"
            )
        self.beliefs = ShipBeliefs(game.fleet)
        lengths = len(self.beliefs.lengths)
        shown = [0, 1, *(2 + plane for plane in game.target_planes)]
        self.shown = nn.Buffer(torch.tensor(shown), persistent=False)
        planes, all_planes = len(shown), 2 + game.spec.observation[0]
        self.memory = memory
        self.layers = nn.ModuleList(
            CellLayers(planes, lengths, memory, units, lengths + memory, generator)
            for units in layers
        )
        self.steps = nn.Parameter(torch.full((len(layers), lengths, 1, 1), INITIAL_STEP_LOGIT))
        self.gains = nn.Parameter(torch.ones(len(layers), lengths, 1, 1))
        self.logits = CellLayers(planes, lengths, memory, layers[-1], 1, generator)
        self.logit_scale = nn.Parameter(torch.ones(()))
        self.has_value = value
        if value:
            self.value = CellLayers(all_planes, lengths, memory, layers[-1], 1, generator)

    def inputs(self, game: Game[Any], state: Any) -> Tensor:
        """Float32 [B, 2 + C, H, W]: the misses, the hits and the observation."""
        assert isinstance(game, FleetGame)
        seen, observation = game.seen(state), game.observe(state)
        marks = torch.stack([seen.shot & ~seen.hit, seen.hit], 1).float()
        return torch.cat([marks.view(-1, 2, *observation.shape[2:]), observation], 1)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        all_planes = inputs.flatten(2).transpose(0, 1)
        planes = all_planes.index_select(0, self.shown)
        penalty, is_hit = MISS_PENALTY * planes[0], planes[1] > 0
        shape = planes.shape[1:]
        log_ratio = planes.new_zeros(len(self.beliefs.lengths), *shape)
        memory = planes.new_zeros(self.memory, *shape)
        for layer, step, gain in zip(self.layers, self.steps.sigmoid(), self.gains, strict=True):
            belief, exact, received = self._messages(log_ratio, penalty, is_hit)
            correction = layer(torch.cat([planes, received, memory]))
            target = gain * exact + correction[: len(log_ratio)]
            log_ratio = log_ratio + step * (target - log_ratio)
            log_ratio = log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
            memory = memory + correction[len(log_ratio) :]
        belief, _, received = self._messages(log_ratio, penalty, is_hit)
        features = torch.cat([planes, received, memory])
        covered = (self.beliefs.counts * belief).sum(0)
        covered = covered.clamp(MIN_PROBABILITY, 1 - 10 * MIN_PROBABILITY)
        scores = self.logit_scale * torch.logit(covered) + self.logits(features)[0]
        if not self.has_value:
            return scores, None
        return scores, self.value(torch.cat([all_planes, received, memory]))[0].mean(1)

    def _messages(
        self, log_ratio: Tensor, penalty: Tensor, is_hit: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The beliefs; the messages of the cells by the sum-product rule, both float32 [T, B, N];
        and all of it as features, [4 T, B, N]."""
        belief = self.beliefs(log_ratio, penalty)
        log_odds = torch.logit(belief)
        without_own = (log_odds - log_ratio).clamp(MIN_LOG_ODDS, MAX_LOG_ODDS)
        odds = without_own.exp()
        others = (self.beliefs.counts * odds).sum(0) - odds + 1e-6
        exact = -torch.where(is_hit, others, 1 + others).log()
        exact = exact.clamp(-MAX_EXACT_LOG_RATIO, MAX_EXACT_LOG_RATIO)
        scaled = [FEATURE_SCALE * log_odds, FEATURE_SCALE * without_own, 2 * FEATURE_SCALE * exact]
        return belief, exact, torch.cat([belief, *scaled])


def _normal(shape: tuple[int, int], deviation: float, generator: torch.Generator) -> Tensor:
    return deviation * torch.randn(shape, generator=generator)
