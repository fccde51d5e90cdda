"""The moves of a batch of games, flat, and the states in which the games ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import State


@dataclass(frozen=True)
class Trajectories:
    """M moves of G games, flat, each game's in the order they were made.

    The games are whole, or what was played of them within a window of so many plies.

    state: public positions before the move [M]. action: int64 [M]. game: int64 [M], 0 to G-1.
    seat: int64 [M]. player: int64 [M], who made it, by place in the list of players.
    gain: float32 [M], what the mover's score grew by until that seat moved again, or the game was
    over. ends_turn: bool [M]. steps: how many of the M moves were made side by side at each step
    of the loop. games: G. target: float32 [M, A], the distribution that a player who searches found
    better than the network's, for moves that told one 0 in all; None where nobody does.
    """

    state: State
    action: Tensor
    game: Tensor
    seat: Tensor
    player: Tensor
    score_delta: Tensor
    ends_turn: Tensor
    ply_sizes: list[int]
    games: int
    target: Tensor | None = None

    def __len__(self) -> int:
        return len(self.action)

    def by_player(self, player: int) -> Trajectories:
        """Only the moves that one player made."""
        mine = self.player == player
        if bool(mine.all()):
            return self
        rows = mine.nonzero()[:, 0]
        return self._rows(rows, self.game[rows], self.games).ordered(self._step()[rows])

    def select_games(self, chosen: Tensor) -> Trajectories:
        """Whole games by number, int64 [H], each as often as it is chosen; numbered 0 to H-1."""
        count = torch.bincount(self.game, minlength=self.games)
        begin = count.cumsum(0) - count
        length = count[chosen]
        game = torch.arange(len(chosen), device=length.device).repeat_interleave(length)
        within = torch.arange(len(game), device=length.device) - (length.cumsum(0) - length)[game]
        rows = self._by_game[begin[chosen][game] + within]
        return self._rows(rows, game, len(chosen)).ordered(self._step()[rows])

    def for_all_actions(self, legal: Tensor) -> Trajectories:
        """Each of the legal actions, bool [M, A], in the place of the one that was made; what was
        gained by that one stays."""
        row, action = legal.nonzero().unbind(1)
        steps = torch.bincount(self._step()[row], minlength=len(self.ply_sizes)).tolist()
        return replace(self._rows(row, self.game[row], self.games), action=action, ply_sizes=steps)

    def join(self, other: Trajectories) -> Trajectories:
        """These games and the other's, which are numbered on, as if played side by side."""
        theirs = other._columns()
        columns = {name: torch.cat([mine, theirs[name]]) for name, mine in self._columns().items()}
        both = Trajectories(
            state=type(self.state).cat([self.state, other.state]),
            game=torch.cat([self.game, other.game + self.games]),
            ply_sizes=[len(self) + len(other)],
            games=self.games + other.games,
            **columns,
        )
        return both.ordered(torch.cat([self._step(), other._step()]))

    def ordered(self, step: Tensor) -> Trajectories:
        """The moves in order of step, int64 [M], and within a step as they were."""
        order = step.argsort(stable=True)
        steps = torch.bincount(step).tolist()
        return replace(self._rows(order, self.game[order], self.games), ply_sizes=steps)

    def to(self, device: torch.device | str) -> Trajectories:
        columns: dict[str, Any] = {
            name: column.to(device) for name, column in self._columns().items()
        }
        return replace(self, state=self.state.to(device), game=self.game.to(device), **columns)

    def _rows(self, rows: Tensor, game: Tensor, games: int) -> Trajectories:
        columns: dict[str, Any] = {
            name: column.index_select(0, rows) for name, column in self._columns().items()
        }
        return replace(self, state=self.state[rows], game=game, games=games, **columns)

    def _columns(self) -> dict[str, Tensor]:
        """The tensors that have a value for each move, but for the number of its game."""
        target = {} if self.target is None else {"target": self.target}
        return {name: getattr(self, name) for name in MOVE_COLUMNS} | target

    @cached_property
    def _by_game(self) -> Tensor:
        """Int64 [M]: the rows of the first game's moves, then the second's, each in order."""
        return self.game.argsort(stable=True)

    def _step(self) -> Tensor:
        """Int64 [M]: at which step of the loop each move was made."""
        return torch.repeat_interleave(torch.tensor(self.ply_sizes, device=self.game.device))


MOVE_COLUMNS = ("action", "seat", "player", "score_delta", "ends_turn")


@dataclass(frozen=True)
class FinalStates:
    """How G games ended. state: the final positions [G], or where a game is not done the one that
    its window reached. moves: how many were made in all."""

    state: State
    moves: int

    def join(self, other: FinalStates) -> FinalStates:
        state = type(self.state).cat([self.state, other.state])
        return FinalStates(state, self.moves + other.moves)

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
    """Moves made side by side: before and after them, and game, player and target as in Moves; no
    player where there is only one."""

    before: State
    action: Tensor
    target: Tensor | None
    game: Tensor
    player: Tensor | None
    after: State


def build_trajectories(record: list[PlyRecord], number: Tensor, final: Tensor) -> Trajectories:
    """Join the steps; number: int64 [G], the games, rising; final: float32 [G, P], their scores."""
    steps = [len(step.action) for step in record]
    state = type(record[0].before).cat([step.before for step in record])
    action = torch.cat([step.action for step in record])
    who = [step.player for step in record if step.player is not None]
    player = torch.cat(who) if who else torch.zeros_like(action)
    game = torch.searchsorted(number, torch.cat([step.game for step in record]))
    ends_turn = torch.cat([step.after.turn for step in record]) > state.turn
    if final.shape[1] == 1:
        gain = (torch.cat([step.after.score for step in record]) - state.score)[:, 0]
    else:
        gain = _score_deltas(state, game, steps, final)
    target = _targets(record)
    moves = Trajectories(
        state, action, game, state.current_seat, player, gain, ends_turn, steps, len(final), target
    )
    keep = (~state.done).nonzero()[:, 0]  # finished rows rode along; they made no move
    if len(keep) == len(action):
        return moves
    step = torch.repeat_interleave(torch.tensor(steps, device=game.device))
    kept = torch.bincount(step[keep], minlength=len(steps)).tolist()
    return replace(moves._rows(keep, game[keep], len(final)), ply_sizes=kept)


def _targets(record: list[PlyRecord]) -> Tensor | None:
    """Float32 [M, A], 0 for steps in which nobody told one."""
    told = next((step.target for step in record if step.target is not None), None)
    if told is None:
        return None
    nothing = [told.new_zeros(len(step.action), told.shape[1]) for step in record]
    pairs = zip(record, nothing, strict=True)
    return torch.cat([none if step.target is None else step.target for step, none in pairs])


def _score_deltas(state: State, game: Tensor, steps: list[int], final: Tensor) -> Tensor:
    """Float32 [M]: the mover's score at its next move, or the final one, less that at this move."""
    gain = torch.empty(len(game), device=game.device)
    seats = final.shape[1]
    later = final.clone().view(-1)
    stop = len(game)
    for size in reversed(steps):
        now = slice(stop - size, stop)
        stop -= size
        live = ~state.done[now]
        mine = game[now] * seats + state.current_seat[now]
        score = state.score[now].gather(1, state.current_seat[now, None])[:, 0]
        gain[now] = later[mine] - score
        # A finished row stands for no move, and must not hide what came before it.
        later[mine] = torch.where(live, score, later[mine])
    return gain
