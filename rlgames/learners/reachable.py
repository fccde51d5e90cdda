"""The boards of 2048 that play reaches, and what may follow them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import torch
from torch import Tensor

from rlgames.games.game_2048 import Game2048, Game2048State
from rlgames.policies.policy import AfterstateValues
from rlgames.sampling import Sampling
from rlgames.solvers.graph import MAX_OPENINGS


def reachable_afterstates(
    game: Game2048,
    policy: AfterstateValues,
    sampling: Sampling,
    progress: float,
    min_probability: float,
) -> list[Game2048State]:
    """The afterstates of all legal moves from the boards that play reaches.

    Boards are followed from the openings on, in order of the sum of their tiles; symmetric boards
    count as one. Returns the afterstates of each sum, each once, the smallest sum first.
    sampling, progress: the rule of play, as in Sampling.probabilities.
    min_probability: boards that play reaches less often are left out.
    """
    openings = game.openings(MAX_OPENINGS)
    assert openings is not None  # there are few on boards of at most MAX_POSITIONS positions
    waiting: dict[int, list[tuple[Tensor, Tensor]]] = defaultdict(list)
    layers = []

    def add(state: Game2048State, probability: Tensor) -> None:
        keys, depth = _lowest_keys(game, state), game.depth(state)
        for value in depth.unique().tolist():
            rows = (depth == value).nonzero()[:, 0]
            waiting[value].append((keys[rows], probability[rows]))

    add(*openings)
    while waiting:
        parts = waiting.pop(min(waiting))
        keys, row = torch.cat([keys for keys, _ in parts]).unique(return_inverse=True)
        added = torch.cat([probability for _, probability in parts])
        probability = torch.zeros(len(keys), dtype=added.dtype).index_add_(0, row, added)
        is_kept = probability >= min_probability
        state = game.state_from_key(keys[is_kept])
        live = (~state.done).nonzero()[:, 0]
        if len(live):
            state, probability = state[live], probability[is_kept][live]
            legal = game.legal_action_mask(state)
            row, action = legal.nonzero().unbind(1)
            after = game.apply_action(state[row], action)
            layers.append(game.state_from_key(_lowest_keys(game, after).unique()))
            scores = policy.scores(game, state)[0]
            chosen = sampling.probabilities(scores, legal, progress)[legal] * probability[row]
            made = (chosen >= min_probability).nonzero()[:, 0]
            chance, outcomes = game.chance_outcomes(after[made])
            chance = (chance * chosen[made, None]).flatten()
            possible = chance.nonzero()[:, 0]
            add(outcomes[possible], chance[possible])
    return layers


def _lowest_keys(game: Game2048, state: Game2048State) -> Tensor:
    """Int64 [B]: the lowest key of each board and its symmetric ones."""
    symmetries = game.symmetries()
    turned = replace(state, tiles=state.tiles[:, symmetries].flatten(0, 1))
    return game.key(turned).view(-1, len(symmetries)).amin(1)
