"""The one loop in which games are played: seats × batch → moves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlgames.games.game import Game, State
from rlgames.limits import rows_like
from rlgames.players.player import Player
from rlgames.untrusted import whole

Start = Callable[[int, int], State]
"""start(first, count): the opening positions of games first to first + count - 1."""


@dataclass(frozen=True)
class Moves:
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
    gain: Tensor
    ends_turn: Tensor
    steps: list[int]
    games: int
    target: Tensor | None = None

    def __len__(self) -> int:
        return len(self.action)

    def of(self, player: int) -> Moves:
        """Only the moves that one player made."""
        mine = self.player == player
        if bool(mine.all()):
            return self
        rows = mine.nonzero()[:, 0]
        return self._rows(rows, self.game[rows], self.games).ordered(self._step()[rows])

    def of_games(self, chosen: Tensor) -> Moves:
        """Whole games by number, int64 [H], each as often as it is chosen; numbered 0 to H-1."""
        count = torch.bincount(self.game, minlength=self.games)
        begin = count.cumsum(0) - count
        length = count[chosen]
        game = torch.arange(len(chosen), device=length.device).repeat_interleave(length)
        within = torch.arange(len(game), device=length.device) - (length.cumsum(0) - length)[game]
        rows = self._by_game[begin[chosen][game] + within]
        return self._rows(rows, game, len(chosen)).ordered(self._step()[rows])

    def every(self, legal: Tensor) -> Moves:
        """Each of the legal actions, bool [M, A], in the place of the one that was made; what was
        gained by that one stays."""
        row, action = legal.nonzero().unbind(1)
        steps = torch.bincount(self._step()[row], minlength=len(self.steps)).tolist()
        return replace(self._rows(row, self.game[row], self.games), action=action, steps=steps)

    def join(self, other: Moves) -> Moves:
        """These games and the other's, which are numbered on, as if played side by side."""
        theirs = other._columns()
        columns = {name: torch.cat([mine, theirs[name]]) for name, mine in self._columns().items()}
        both = Moves(
            state=type(self.state).cat([self.state, other.state]),
            game=torch.cat([self.game, other.game + self.games]),
            steps=[len(self) + len(other)],
            games=self.games + other.games,
            **columns,
        )
        return both.ordered(torch.cat([self._step(), other._step()]))

    def ordered(self, step: Tensor) -> Moves:
        """The moves in order of step, int64 [M], and within a step as they were."""
        order = step.argsort(stable=True)
        steps = torch.bincount(step).tolist()
        return replace(self._rows(order, self.game[order], self.games), steps=steps)

    def to(self, device: torch.device | str) -> Moves:
        columns: dict[str, Any] = {
            name: column.to(device) for name, column in self._columns().items()
        }
        return replace(self, state=self.state.to(device), game=self.game.to(device), **columns)

    def _rows(self, rows: Tensor, game: Tensor, games: int) -> Moves:
        columns: dict[str, Any] = {
            name: column.index_select(0, rows) for name, column in self._columns().items()
        }
        return replace(self, state=self.state[rows], game=game, games=games, **columns)

    def _columns(self) -> dict[str, Tensor]:
        """The tensors that have a value for each move, but for the number of its game."""
        target = {} if self.target is None else {"target": self.target}
        return {name: getattr(self, name) for name in COLUMNS} | target

    @cached_property
    def _by_game(self) -> Tensor:
        """Int64 [M]: the rows of the first game's moves, then the second's, each in order."""
        return self.game.argsort(stable=True)

    def _step(self) -> Tensor:
        """Int64 [M]: at which step of the loop each move was made."""
        return torch.repeat_interleave(torch.tensor(self.steps, device=self.game.device))


COLUMNS = ("action", "seat", "player", "gain", "ends_turn")


@dataclass(frozen=True)
class Results:
    """How G games ended. state: the final positions [G], or where a game is not done the one that
    its window reached. moves: how many were made in all."""

    state: State
    moves: int

    def join(self, other: Results) -> Results:
        state = type(self.state).cat([self.state, other.state])
        return Results(state, self.moves + other.moves)

    @property
    def score(self) -> Tensor:
        """Float32 [G, P]."""
        return self.state.score

    @property
    def turns(self) -> Tensor:
        """Int64 [G]."""
        return self.state.turn


ENDLESS = 1 << 62
"""As a number of games: a new one begins wherever one ends."""


def play(
    game: Game[Any],
    players: Sequence[Player],
    games: int,
    rng: torch.Generator,
    *,
    batch: int | None = None,
    start: Start | None = None,
    seating: Tensor | None = None,
    record: bool = True,
) -> tuple[Moves | None, Results]:
    """Play so many games to their ends; the rest as in OpenGames."""
    opened = OpenGames(game, players, games, rng, batch=batch, start=start, seating=seating)
    return opened.play(record=record)


class OpenGames:
    """Games under way, at most batch of them side by side, until so many are over.

    seating: int64 [games, P], which player sits in each seat; by default players[seat]. start:
    the openings, drawn with rng by default. Finished rows are dropped, and new games put in their
    place while there are any, whenever enough have gathered that it pays.
    """

    def __init__(
        self,
        game: Game[Any],
        players: Sequence[Player],
        games: int,
        rng: torch.Generator,
        *,
        batch: int | None = None,
        start: Start | None = None,
        seating: Tensor | None = None,
    ) -> None:
        if start is None:
            start = lambda first, count: game.initial(count, rng)  # noqa: E731
        if seating is None and len(set(players)) > 1:
            seating = torch.arange(game.spec.seats, device=rng.device).expand(games, -1)
        self.game, self.players, self.rng, self.games = game, players, rng, games
        self.start, self.seating = start, seating
        self.batch = games if batch is None else min(batch, games)
        self.state, self.begun = start(0, self.batch), self.batch
        self.number = torch.arange(self.batch, device=rng.device)
        self._step, self._last_step = 0, game.spec.longest

    def state_dict(self) -> dict[str, Any]:
        """Where the games stand; nothing in it is changed by playing on."""
        state = {each.name: getattr(self.state, each.name) for each in fields(self.state)}
        counts = {"batch": self.batch, "begun": self.begun}
        steps = {"step": self._step, "last_step": self._last_step}
        return {"state": state, "number": self.number, **counts, **steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises LookupError, TypeError or ValueError for what does not fit, and for positions that
        cannot be."""
        self.batch = whole(state["batch"], self.batch, self.batch)
        self.begun = whole(state["begun"], self.batch, self.games)
        self._step, self._last_step = whole(state["step"], 0), whole(state["last_step"], 0)
        found = {
            name: rows_like(state["state"][name], column, self.batch)
            for name, column in vars(self.state).items()
        }
        self.state = replace(self.state, **found)
        self.number = rows_like(state["number"], self.number, self.batch)
        number = self.number.sort().values
        distinct = bool((number.diff() > 0).all())
        if not distinct or int(number[0]) < 0 or int(number[-1]) >= self.begun:
            raise ValueError("open games do not have numbers of their own")
        if bool(self.state.done.any()) or not bool(self.game.possible(self.state).all()):
            raise ValueError("an open game is at a position that cannot be")

    def play(self, plies: int | None = None, record: bool = True) -> tuple[Moves | None, Results]:
        """Play on to the end of all games, or for a window of so many plies.

        What is returned numbers the games of the window from 0, those open longest first. All
        rows that are over at its end make room.
        Raises RuntimeError when games outlast the longest that they declare.
        """
        # Asking a GPU how many games are live stalls it: there, look less often.
        look_every = 1 if self.rng.device.type == "cpu" else 8
        ended: list[tuple[Tensor, State]] = []
        record_of: list[Step] = []
        made = torch.zeros((), dtype=torch.int64, device=self.rng.device)
        stop = math.inf if plies is None else self._step + plies
        while self._step < stop:
            live = torch.count_nonzero(~self.state.done)
            if self._step % look_every == 0 or self._step >= self._last_step:
                count, waiting = int(live), self.games - self.begun
                if 4 * count <= (3 if waiting else 2) * len(self.state):
                    ended.append(self._replace())
                    if not len(self.state):
                        break
                    live = torch.count_nonzero(~self.state.done)
                if self._step >= self._last_step and not waiting:
                    name = self.game.spec.name
                    raise RuntimeError(f"{count} games of {name} did not end in time")
            made += live
            moved = self._ply()
            if record:
                record_of.append(moved)
            self._step += 1
        ended.append((self.number, self.state))
        self._replace()
        number, order = self._in_order(torch.cat([rows for rows, _ in ended]))
        final = type(self.state).cat([part for _, part in ended])[order]
        results = Results(final, int(made))
        return (_collect(record_of, number, final.score) if record else None), results

    def _ply(self) -> Step:
        """One ply of every row."""
        game, rng = self.game, self.rng
        seen = game.public(self.state)
        who = None
        if self.seating is not None:
            who = self.seating[self.number].gather(1, self.state.mover[:, None])[:, 0]
        action, target = decide(self.players, who, seen, rng)
        after = self.state = game.move(self.state, action, rng)
        return Step(seen, action, target, self.number, who, after)

    def _in_order(self, number: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers of games, int64 [N], rising, and where each of them was."""
        if len(number) != self.games:
            return number.sort()
        every = torch.arange(self.games, device=number.device)  # no need to sort when all are there
        return every, torch.empty_like(number).index_copy_(0, number, every)

    def _replace(self) -> tuple[Tensor, State]:
        """Drop the rows that are over and begin new games in their place; what was dropped."""
        over = true_rows(self.state.done)
        dropped = self.number.index_select(0, over), self.state[over]
        fresh = min(self.games - self.begun, len(over))
        if fresh:
            place, self.begun = over[:fresh], self.begun + fresh
            new = torch.arange(self.begun - fresh, self.begun, device=over.device)
            self.state = self.state.put(place, self.start(self.begun - fresh, fresh))
            self.number = self.number.index_copy(0, place, new)
            self._last_step = self._step + self.game.spec.longest
        if fresh < len(over):
            gone = torch.zeros_like(self.state.done).index_fill_(0, over[fresh:], True)
            rows = (~gone).nonzero()[:, 0]
            self.state, self.number = self.state[rows], self.number[rows]
        return dropped


def true_rows(mask: Tensor) -> Tensor:
    """Int64 [N]: the rows of a mask, bool [B], that are true, rising."""
    if mask.device.type == "cpu":  # numpy takes a third of the time, as it does not branch
        return torch.from_numpy(np.flatnonzero(mask.numpy()))
    return mask.nonzero()[:, 0]


def decide(
    players: Sequence[Player], who: Tensor | None, state: State, rng: torch.Generator
) -> tuple[Tensor, Tensor | None]:
    """Int64 [B], each row's action, and what Player.decide says besides, if anybody does.

    who: int64 [B], the player to ask, None for the only one.
    """
    if who is None:
        return players[0].decide(state, rng)
    action, target = torch.zeros_like(who), None
    for index, player in enumerate(players):
        rows = (who == index).nonzero()[:, 0]
        if len(rows) == len(who):
            return player.decide(state, rng)
        if len(rows):
            action[rows], told = player.decide(state[rows], rng)
            if told is not None:
                target = told.new_zeros(len(who), told.shape[1]) if target is None else target
                target[rows] = told
    return action, target


@dataclass(frozen=True)
class Step:
    """Moves made side by side: before and after them, and game, player and target as in Moves; no
    player where there is only one."""

    before: State
    action: Tensor
    target: Tensor | None
    game: Tensor
    player: Tensor | None
    after: State


def _collect(record: list[Step], number: Tensor, final: Tensor) -> Moves:
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
        gain = _gains(state, game, steps, final)
    target = _targets(record)
    moves = Moves(
        state, action, game, state.mover, player, gain, ends_turn, steps, len(final), target
    )
    keep = (~state.done).nonzero()[:, 0]  # finished rows rode along; they made no move
    if len(keep) == len(action):
        return moves
    step = torch.repeat_interleave(torch.tensor(steps, device=game.device))
    kept = torch.bincount(step[keep], minlength=len(steps)).tolist()
    return replace(moves._rows(keep, game[keep], len(final)), steps=kept)


def _targets(record: list[Step]) -> Tensor | None:
    """Float32 [M, A], 0 for steps in which nobody told one."""
    told = next((step.target for step in record if step.target is not None), None)
    if told is None:
        return None
    nothing = [told.new_zeros(len(step.action), told.shape[1]) for step in record]
    pairs = zip(record, nothing, strict=True)
    return torch.cat([none if step.target is None else step.target for step, none in pairs])


def _gains(state: State, game: Tensor, steps: list[int], final: Tensor) -> Tensor:
    """Float32 [M]: the mover's score at its next move, or the final one, less that at this move."""
    gain = torch.empty(len(game), device=game.device)
    seats = final.shape[1]
    later = final.clone().view(-1)
    stop = len(game)
    for size in reversed(steps):
        now = slice(stop - size, stop)
        stop -= size
        live = ~state.done[now]
        mine = game[now] * seats + state.mover[now]
        score = state.score[now].gather(1, state.mover[now, None])[:, 0]
        gain[now] = later[mine] - score
        # A finished row stands for no move, and must not hide what came before it.
        later[mine] = torch.where(live, score, later[mine])
    return gain
