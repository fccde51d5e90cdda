"""The moves of a batch of games, flat, and the states where the games ended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Self

import torch
from torch import Tensor

from rlgames.core.rows import Rows
from rlgames.games.game import Game, State
from rlgames.players.player import Decision
from rlgames.rollouts.returns import find_score_deltas


@dataclass(frozen=True)
class Trajectories(Rows):
    """M moves of G games, flat; each game's moves are in the order they were made.

    The games are complete, or those parts of them that lie within a window of plies.

    state: public positions before the move [M]. action: int64 [M]. game: int64 [M], 0 to G-1.
    seat: int64 [M]. player: int64 [M], the index of the player who moved. score_delta: float32
    [M], the growth of the mover's score until its next move, or until the end of the game.
    ends_turn: bool [M]. ply_sizes: how many of the M moves were made side by side at each ply.
    num_games: G. target: float32 [M, A], the search's policy, 0 for moves without a
    search; None if there are none. log_prob: float32 [M], log μ(a) of the behavior policy μ that
    chose the action, NaN where it is unknown, as in recorded games; None if nothing recorded it.
    value, state_value: as in Decision.
    """

    state: State
    action: Tensor
    game: Tensor
    seat: Tensor
    player: Tensor
    score_delta: Tensor
    ends_turn: Tensor
    ply_sizes: list[int]
    num_games: int
    target: Tensor | None = None
    log_prob: Tensor | None = None
    value: Tensor | None = None
    state_value: Tensor | None = None

    def __len__(self) -> int:
        return len(self.action)

    def by_player(self, player: int) -> Trajectories:
        """Only the moves of one player."""
        is_own = self.player == player
        if bool(is_own.all()):
            return self
        rows = is_own.nonzero()[:, 0]
        return self._rows(rows, self.game[rows], self.num_games).ordered(self._ply()[rows])

    def select_games(self, chosen: Tensor) -> Trajectories:
        """The games with these indices, int64 [H], repeats included; renumbered 0 to H-1."""
        count = torch.bincount(self.game, minlength=self.num_games)
        begin = count.cumsum(0) - count
        length = count[chosen]
        game = torch.arange(len(chosen), device=length.device).repeat_interleave(length)
        within = torch.arange(len(game), device=length.device) - (length.cumsum(0) - length)[game]
        rows = self._rows_by_game[begin[chosen][game] + within]
        return self._rows(rows, game, len(chosen)).ordered(self._ply()[rows])

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        """The games of all parts, one part after the other, as if played side by side."""
        *first, num_games = accumulate((part.num_games for part in parts), initial=0)
        joined = cls(
            state=type(parts[0].state).cat([part.state for part in parts]),
            game=torch.cat([part.game + game for part, game in zip(parts, first, strict=True)]),
            ply_sizes=[sum(map(len, parts))],
            num_games=num_games,
            **{name: torch.cat([getattr(part, name) for part in parts]) for name in MOVE_COLUMNS},
            **cat_optional(parts, [*map(len, parts)]),
        )
        return joined.ordered(torch.cat([part._ply() for part in parts]))

    def ordered(self, ply: Tensor) -> Self:
        """The moves sorted by ply, int64 [M]; within a ply their order stays."""
        order = ply.argsort(stable=True)
        sizes = torch.bincount(ply).tolist()
        rows = self._rows(order, self.game[order], self.num_games)
        return replace(rows, ply_sizes=sizes)

    def _rows(self, rows: Tensor, game: Tensor, num_games: int) -> Self:
        return replace(self[rows], game=game, num_games=num_games)

    @cached_property
    def _rows_by_game(self) -> Tensor:
        """Int64 [M]: the rows of the first game's moves, then the second's, each in order."""
        return self.game.argsort(stable=True)

    def _ply(self) -> Tensor:
        """Int64 [M]: the ply of the pool when each move was made."""
        return torch.repeat_interleave(torch.tensor(self.ply_sizes, device=self.game.device))


MISSING = {"target": 0.0, "log_prob": math.nan, "value": math.nan, "state_value": math.nan}
"""The columns that not all players give, and what stands where one did not."""

MOVE_COLUMNS = ("action", "seat", "player", "score_delta", "ends_turn")


@dataclass(frozen=True)
class FinalStates:
    """How G games ended. state: the final positions [G]; for a game that its window cut off, the
    last one. num_moves: of all games together."""

    state: State
    num_moves: int

    @classmethod
    def cat(cls, parts: Sequence[FinalStates]) -> FinalStates:
        """The games of all parts, one part after the other."""
        state = type(parts[0].state).cat([part.state for part in parts])
        return cls(state, sum(part.num_moves for part in parts))

    @property
    def score(self) -> Tensor:
        """Float32 [G, P]."""
        return self.state.score

    @property
    def turns(self) -> Tensor:
        """Int64 [G]."""
        return self.state.turn


@dataclass(frozen=True)
class PlyRecord:
    """Moves made side by side: the positions before and after them, the players' decisions, and
    game and player as in Trajectories; no player if there is only one. sizes: how many of them each
    of several plies has; None: they are of one ply."""

    before: State
    decision: Decision
    game: Tensor
    player: Tensor | None
    after: State
    sizes: list[int] | None = None


def build_trajectories(
    records: list[PlyRecord], game_index: Tensor, final_score: Tensor
) -> Trajectories:
    """Join the plies; game_index: int64 [G], ascending; final_score: float32 [G, P]."""
    sizes = [len(record.decision.action) for record in records]
    every = [record.sizes or [size] for record, size in zip(records, sizes, strict=True)]
    ply_sizes = [size for of_record in every for size in of_record]
    state = type(records[0].before).cat([record.before for record in records])
    action = torch.cat([record.decision.action for record in records])
    players = [record.player for record in records if record.player is not None]
    game = torch.searchsorted(game_index, torch.cat([record.game for record in records]))
    ends_turn = torch.cat([record.after.turn for record in records]) > state.turn
    if final_score.shape[1] == 1:
        score_after = torch.cat([record.after.score for record in records])
        score_delta = (score_after - state.score)[:, 0]
    else:
        # The mover's score at its next move, or at the end, minus its score at this move.
        slot = game * final_score.shape[1] + state.current_seat
        if not 0 <= int(slot.min()) <= int(slot.max()) < final_score.numel():
            raise ValueError("the seat to move does not exist")
        score = state.score.gather(1, state.current_seat[:, None])[:, 0]
        score_delta = torch.empty_like(score, device="cpu")
        columns = (slot, score, ~state.done, final_score.flatten().clone(), score_delta)
        find_score_deltas(*(column.cpu().numpy() for column in columns))
        score_delta = score_delta.to(game.device)
    trajectories = Trajectories(
        state=state,
        action=action,
        game=game,
        seat=state.current_seat,
        player=torch.cat(players) if players else torch.zeros_like(action),
        score_delta=score_delta,
        ends_turn=ends_turn,
        ply_sizes=ply_sizes,
        num_games=len(final_score),
        **cat_optional([record.decision for record in records], sizes),
    )
    live = (~state.done).nonzero()[:, 0]  # finished rows of the pool made no move
    if len(live) == len(action):
        return trajectories
    ply = torch.repeat_interleave(torch.tensor(ply_sizes, device=game.device))
    live_sizes = torch.bincount(ply[live], minlength=len(ply_sizes)).tolist()
    rows = trajectories._rows(live, game[live], len(final_score))
    return replace(rows, ply_sizes=live_sizes)


def cat_optional(
    parts: Sequence[Decision] | Sequence[Trajectories], sizes: list[int]
) -> dict[str, Tensor]:
    """The columns that not all players give, of parts of these sizes, with MISSING for parts
    without; not those that no player gave."""
    joined = {}
    for name, missing in MISSING.items():
        columns = [getattr(part, name) for part in parts]
        example = next((column for column in columns if column is not None), None)
        if example is not None:
            filled = [
                example.new_full((size, *example.shape[1:]), missing) if column is None else column
                for column, size in zip(columns, sizes, strict=True)
            ]
            joined[name] = torch.cat(filled)
    return joined


def bytes_per_game(game: Game[Any], window: int | None = None) -> int:
    """The memory that the moves of a game, or of a window of it, may take while they are learned
    from.

    Counted per move: its position, its observation twice (as played and as trained on), and per
    action a mask and four floats (scores, log-probabilities and their gradients).
    """
    spec = game.spec
    cells = math.prod(spec.observation[1:])
    move = 4 * cells + 8 * math.prod(spec.observation) + 17 * spec.actions
    # Rules may hardly bound the length of a game; 100 plies per cell exceed any likely one.
    return move * min(window or spec.max_plies, spec.max_plies, 100 * cells)


def bytes_per_result(game: Game[Any]) -> int:
    """The memory that an evaluation keeps of a game: its final position twice (as it ended and in
    order), and 100 bytes for seats, lengths, scores and weights."""
    return 2 * bytes_per_position(game.example_state()) + 100


def bytes_per_position(state: State) -> int:
    """The memory of a batch of one position."""
    return sum(column.nbytes for column in vars(state).values() if isinstance(column, Tensor))
