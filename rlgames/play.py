"""The one loop in which games are played: seats × batch → moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.players.player import Player


@dataclass(frozen=True)
class Moves:
    """M moves of G whole games, flat, ordered by ply.

    state: public positions before the move [M]. legal: bool [M, A]. action: int64 [M].
    game: int64 [M], the row of the batch, 0 to G-1. seat: int64 [M]. turn: int64 [M], turns
    finished before the move. gain: float32 [M], what the mover's score grew by. ends_turn:
    bool [M]. plies: how many of the M moves were made at each ply. games: G.
    """

    state: State
    legal: Tensor
    action: Tensor
    game: Tensor
    seat: Tensor
    turn: Tensor
    gain: Tensor
    ends_turn: Tensor
    plies: list[int]
    games: int

    def __len__(self) -> int:
        return len(self.action)


@dataclass(frozen=True)
class Results:
    """How G games ended. score: float32 [G, P]. turns: int64 [G]."""

    score: Tensor
    turns: Tensor


def play(
    game: Game[Any],
    players: Sequence[Player],
    state: State,
    rng: torch.Generator,
    record: bool = True,
) -> tuple[Moves | None, Results]:
    """Play every row of state to its end, players[seat] choosing for each seat.

    Finished rows are dropped whenever fewer than half of the rows are live, so that no player
    works on them for long. Raises RuntimeError when a game outlasts the longest it declares.
    """
    total = len(state)
    # Asking a GPU how many games are live stalls it: there, look less often.
    look_every = 1 if state.done.device.type == "cpu" else 8
    final_score = torch.zeros_like(state.score)
    final_turns = torch.zeros_like(state.turn)
    row_game = torch.arange(total, device=state.done.device)
    history: list[tuple[Tensor, ...]] = []
    positions: list[State] = []
    for ply in range(game.spec.longest + 1):
        if ply % look_every == 0 or ply == game.spec.longest:
            live = int((~state.done).sum())
            if 2 * live <= len(state) or live == 0:
                final_score[row_game] = state.score
                final_turns[row_game] = state.turn
                rows = (~state.done).nonzero()[:, 0]
                state, row_game = state[rows], row_game[rows]
            if live == 0:
                break
            if ply == game.spec.longest:
                raise RuntimeError(f"{live} games of {game.spec.name} did not end in {ply} plies")
        legal = game.legal(state)
        seen = game.public(state)
        action = choose(players, seen, legal, rng)
        after = game.act(state, action)
        if record:
            positions.append(seen)
            history.append((legal, action, row_game, after.score, after.turn))
        state = after
    results = Results(final_score, final_turns)
    return (_collect(positions, history, total) if record else None), results


def choose(players: Sequence[Player], state: State, legal: Tensor, rng: torch.Generator) -> Tensor:
    """Int64 [B]: each row's action, chosen by whoever sits at the seat to act."""
    if all(player is players[0] for player in players):
        return players[0].choose(state, legal, rng)
    action = torch.zeros(len(state), dtype=torch.int64, device=legal.device)
    for player in dict.fromkeys(players):
        seats = [seat for seat, sitting in enumerate(players) if sitting is player]
        rows = torch.isin(state.mover, torch.tensor(seats, device=legal.device)).nonzero()[:, 0]
        if len(rows):
            action[rows] = player.choose(state[rows], legal[rows], rng)
    return action


def _collect(positions: list[State], history: list[tuple[Tensor, ...]], total: int) -> Moves:
    sizes = [len(position) for position in positions]
    state = type(positions[0]).cat(positions)
    legal, action, game, score, turn = (torch.cat(column) for column in zip(*history, strict=True))
    ply = torch.repeat_interleave(torch.tensor(sizes)).to(game.device)
    rows = (~state.done).nonzero()[:, 0]  # finished rows rode along; they made no move
    if len(rows) < len(ply):
        state = state[rows]
        legal, action, game, score, turn, ply = (
            column[rows] for column in (legal, action, game, score, turn, ply)
        )
    seat = state.mover
    gain = (score - state.score).gather(1, seat[:, None])[:, 0]
    return Moves(
        state=state,
        legal=legal,
        action=action,
        game=game,
        seat=seat,
        turn=state.turn,
        gain=gain,
        ends_turn=turn > state.turn,
        plies=torch.bincount(ply, minlength=len(sizes)).tolist(),
        games=total,
    )
