"""Play from a position to its end."""

from __future__ import annotations

from typing import Any

import torch

from rlgames.games.game import Game, State
from rlgames.players.player import Player


def play_on(
    game: Game[Any], player: Player, state: State, max_plies: float, rng: torch.Generator
) -> State:
    """Positions [S] after at most max_plies further plies, all seats played by the player."""
    row = torch.arange(len(state), device=state.done.device)
    finished: list[tuple[torch.Tensor, State]] = []
    ply = 0
    while True:
        live = (~state.done).nonzero()[:, 0]
        if 4 * len(live) <= 3 * len(state) or ply >= max_plies:
            ended = state.done.nonzero()[:, 0] if ply < max_plies else slice(None)
            finished.append((row[ended], state[ended]))
            if not len(live) or ply >= max_plies:
                break
            row, state = row[live], state[live]
        action = player.choose(game.public(state), rng)
        state = game.step(state, action, rng)
        ply += 1
    return in_row_order(finished)


def in_row_order(parts: list[tuple[torch.Tensor, State]]) -> State:
    """The states of all parts, sorted by the row numbers next to them."""
    states = [state for _, state in parts]
    if len(parts) == 1:
        return states[0]  # in order already
    row = torch.cat([row for row, _ in parts])
    return type(states[0]).cat(states)[row.argsort().to(states[0].done.device)]
