"""The loop that plays games side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import reduce
from operator import or_
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from rlgames.core.tensor_checks import checked_rows
from rlgames.core.untrusted import checked_int
from rlgames.games.board_game import BoardState
from rlgames.games.game import NOTHING, RESIGNS, Game, State, endless
from rlgames.games.state import Wants
from rlgames.players.player import Decision, Player, RandomOpening, ask
from rlgames.rng import Rng
from rlgames.rollouts.compiled import MAX_KEPT, CompiledPlay
from rlgames.rollouts.trajectories import (
    FinalStates,
    PlyRecord,
    Trajectories,
    build_trajectories,
    cat_optional,
)

InitialStates = Callable[[int, int, Rng], State]
"""initial_states(first, count, rng): the positions where games first to first + count - 1 start;
rng: of these games."""

START = -1
"""In place of a ply, for the random numbers of a game's first position."""

UNLIMITED_GAMES = 1 << 62
"""As a number of games: a new game starts wherever one ends."""


def collect_games(
    *game_pool: Any, progress: float = 0.0, **options: Any
) -> tuple[Trajectories, FinalStates]:
    """Play the games of a GamePool, by its arguments, to their ends and record every move."""
    return GamePool(*game_pool, **options).collect(progress=progress)


class Openings(NamedTuple):
    """Random moves in the first turns of games, the same in all seats: of P seats, games n · P to
    n · P + P - 1 begin alike. rng: of the streams of games."""

    rng: Rng
    turns: int


class GamePool:
    """Plays a number of games, at most `batch` of them side by side.

    seating: int64 [games, P], the index of the player in each seat; by default players[seat].
    rng: the stream of the games, whose numbers go from first_game on. They do not depend on the
        batch.
    initial_states: the positions where games start; by default the game samples them.
    The pool drops finished rows, and starts the remaining games in their place, once enough rows
    have finished to make it worthwhile.
    """

    def __init__(
        self,
        game: Game[Any],
        players: Sequence[Player],
        games: int,
        rng: Rng,
        *,
        batch: int | None = None,
        initial_states: InitialStates | None = None,
        seating: Tensor | None = None,
        openings: Openings | None = None,
        first_game: int = 0,
    ) -> None:
        if seating is None and len(set(players)) > 1:
            seating = torch.arange(game.spec.seats, device=rng.device).expand(games, -1)
        self.game, self.players, self.rng, self.games = game, players, rng, games
        self.initial_states = initial_states or sampled_by_game(game)
        self.seating, self.openings, self.first_game = seating, openings, first_game
        self.wants = reduce(or_, (player.wants for player in players))
        self.batch = games if batch is None else min(batch, games)
        self.num_started = self.batch
        self.game_index = torch.arange(self.batch, device=rng.device)
        self.state = self._start(0, self.batch)
        self.ply, self.last_ply = 0, game.spec.max_plies

    def _start(self, first: int, count: int) -> State:
        """The first positions of so many games from this one on."""
        first += self.first_game
        return self.initial_states(first, count, first_places(self.rng, first, count))

    def state_dict(self) -> dict[str, Any]:
        """The games in progress; playing does not change the tensors in it."""
        return {
            "state": {each.name: getattr(self.state, each.name) for each in fields(self.state)},
            "game_index": self.game_index,
            "batch": self.batch,
            "num_started": self.num_started,
            "ply": self.ply,
            "last_ply": self.last_ply,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises LookupError, TypeError or ValueError for state that does not match this pool, and
        for positions that violate the rules."""
        self.batch = checked_int(state["batch"], self.batch, self.batch)
        self.num_started = checked_int(state["num_started"], self.batch, self.games)
        self.ply, self.last_ply = checked_int(state["ply"], 0), checked_int(state["last_ply"], 0)
        columns = {
            name: checked_rows(state["state"][name], column, self.batch)
            for name, column in vars(self.state).items()
        }
        self.state = replace(self.state, **columns)
        self.game_index = checked_rows(state["game_index"], self.game_index, self.batch)
        index = self.game_index.sort().values
        is_unique = bool((index.diff() > 0).all())
        if not is_unique or int(index[0]) < 0 or int(index[-1]) >= self.num_started:
            raise ValueError("the indices of the games in progress are invalid or not unique")
        if bool(self.state.done.any()) or not bool(self.game.is_valid(self.state).all()):
            raise ValueError("a game in progress is at an invalid position")

    def run(
        self, plies: int | None = None, on_ply: Callable[[PlyRecord], None] | None = None
    ) -> FinalStates:
        """Play all games to their ends, or for a window of this many plies.

        on_ply: called with the moves of each ply, or of several. The result numbers the games of
        the window from 0, those that started first come first.
        Raises ConfigError if a game exceeds spec.max_plies.
        """
        return self._advance(plies, on_ply or (lambda record: None), 0.0, self._compiled())[1]

    def collect(
        self, plies: int | None = None, progress: float = 0.0
    ) -> tuple[Trajectories, FinalStates]:
        """Like run, and record every move. progress: see Player.act."""
        records: list[PlyRecord] = []
        game_index, final = self._advance(plies, records.append, progress, self._compiled())
        return build_trajectories(records, game_index, final.score), final

    def _compiled(self) -> CompiledPlay | None:
        return None if self.openings else CompiledPlay.find(self.game, self.players)

    def _advance(
        self,
        plies: int | None,
        on_ply: Callable[[PlyRecord], None],
        progress: float,
        compiled: CompiledPlay | None,
    ) -> tuple[Tensor, FinalStates]:
        """Play a window; the indices of its games, int64 [G], ascending, and how they ended.

        compiled: plays several plies at once; on_ply gets one record of them.
        """
        finished: list[tuple[Tensor, State]] = []
        num_moves = room = 0
        if compiled is not None:
            most = self.games * self.game.spec.max_plies if plies is None else self.batch * plies
            room = min(MAX_KEPT, most)
            compiled.begin(room + self.batch)
        stop = math.inf if plies is None else self.ply + plies
        while self.ply < stop:
            num_live = self._num_live()
            # A quarter of the rows has to finish if new games can start there, else half.
            max_live_quarters = 3 if self.num_started < self.games else 2
            if 4 * num_live <= max_live_quarters * len(self.state):
                finished.append(self._replace_finished())
                if not len(self.state):
                    break
                num_live = self._num_live()
            is_last = self.num_started == self.games
            if self.ply >= self.last_ply and is_last:
                raise endless(self.game.spec, num_live)
            if compiled is not None:
                min_live = max_live_quarters * len(self.state) // 4 + 1
                limit = min(stop, self.last_ply if is_last else math.inf) - self.ply
                self._play_plies(compiled, min_live, limit)
                if compiled.num_moves >= room:
                    num_moves += compiled.num_moves
                    on_ply(compiled.record(self.seating))
                    compiled.begin(room + self.batch)
                continue
            num_moves += num_live
            player = None
            if self.seating is not None:
                seats = self.seating[self.game_index]
                player = seats.gather(1, self.state.current_seat[:, None])[:, 0]
            asked = (self.players, player)
            if self.openings is not None:
                asked = self._with_openings(self.openings, player)
            rng = self.rng.plies(self.game_index, self.game.ply(self.state), self.first_game)
            public, decision, self.state = play_ply(
                self.game, *asked, self.state, rng, self.wants, progress
            )
            before, after = public.without_views(), self.state.without_views()
            on_ply(PlyRecord(before, decision, self.game_index, player, after))
            self.ply += 1
        if compiled is not None and compiled.num_moves:
            num_moves += compiled.num_moves
            on_ply(compiled.record(self.seating))
        return self._end_window(finished, num_moves)

    def _play_plies(self, compiled: CompiledPlay, min_live: int, limit: float) -> None:
        """Plies until fewer than min_live games are left, or as many as the limit."""
        seating = None if self.seating is None else self.seating[self.game_index]
        given = self.game_index, seating, self.rng, self.first_game, min_live
        plies = int(min(limit, self.game.spec.max_plies))
        played, self.state = compiled.play(cast(BoardState, self.state), *given, plies)
        self.ply += played

    def _with_openings(
        self, openings: Openings, player: Tensor | None
    ) -> tuple[Sequence[Player], Tensor | None]:
        """The players, with one for the games that are in their first turns, and whom to ask."""
        turn = self.state.turn
        rows = true_rows((turn < openings.turns) & ~self.state.done)
        if not len(rows):
            return self.players, player
        pair = (self.first_game + self.game_index[rows]) // self.game.spec.seats
        ply = self.game.ply(self.state[rows])
        u = openings.rng.plies(pair, ply).uniform(len(rows))
        player = torch.zeros_like(self.game_index) if player is None else player
        opening = RandomOpening(self.game, u)
        return [*self.players, opening], player.index_fill(0, rows, len(self.players))

    def play_window(
        self, play: Callable[[State, Rng], tuple[State, int]], plies: int | None
    ) -> FinalStates:
        """Like run, by a function that moves up to `plies` times in every row, to the end if None.

        It maps the positions, and the random numbers of their games, to the last positions and to
        the number of all moves.
        """
        self.state, num_moves = play(self.state, self.rng[self.first_game + self.game_index])
        self.ply += plies or 0
        return self._end_window([], num_moves)[1]

    def _end_window(
        self, finished: list[tuple[Tensor, State]], num_moves: int
    ) -> tuple[Tensor, FinalStates]:
        """As _advance; finished: rows that were dropped during the window."""
        finished.append((self.game_index, self.state))
        self._replace_finished()
        game_index = torch.cat([index for index, _ in finished])
        if len(game_index) == self.games:  # all are there: no sorting
            everyone = torch.arange(self.games, device=game_index.device)
            order = torch.empty_like(game_index).index_copy_(0, game_index, everyone)
            game_index = everyone
        else:
            game_index, order = game_index.sort()
        state = type(self.state).cat([part for _, part in finished])[order]
        return game_index, FinalStates(state, num_moves)

    def _num_live(self) -> int:
        return len(self.state) - int(np.count_nonzero(self.state.done.cpu().numpy()))

    def _replace_finished(self) -> tuple[Tensor, State]:
        """Drop the finished rows and start new games in their place; returns the dropped rows."""
        finished = true_rows(self.state.done)
        dropped = self.game_index.index_select(0, finished), self.state[finished]
        num_new = min(self.games - self.num_started, len(finished))
        if num_new:
            rows, first = finished[:num_new], self.num_started
            self.num_started += num_new
            new_index = torch.arange(first, self.num_started, device=finished.device)
            self.state = self.state.put(rows, self._start(first, num_new))
            self.game_index = self.game_index.index_copy(0, rows, new_index)
            self.last_ply = self.ply + self.game.spec.max_plies
        if num_new < len(finished):
            is_empty = torch.zeros_like(self.state.done).index_fill_(0, finished[num_new:], True)
            rows = (~is_empty).nonzero()[:, 0]
            self.state, self.game_index = self.state[rows], self.game_index[rows]
        return dropped


def first_places(rng: Rng, first: int, count: int) -> Rng:
    """Of a stream, the random numbers of the first positions of games from this one on."""
    return rng.plies(torch.arange(count), torch.full((count,), START), first)


def sampled_by_game(game: Game[Any]) -> InitialStates:
    """The initial states that the game itself samples."""
    return lambda first, count, rng: game.initial(count, rng)


def true_rows(mask: Tensor) -> Tensor:
    """Int64 [N]: the rows of a mask, bool [B], that are true, ascending."""
    # Numpy takes a third of torch's time.
    return torch.from_numpy(np.flatnonzero(mask.cpu().numpy())).to(mask.device)


def play_ply(
    game: Game[Any],
    players: Sequence[Player],
    player: Tensor | None,
    state: State,
    rng: Rng,
    wants: Wants = NOTHING,
    progress: float = 0.0,
) -> tuple[State, Decision, State]:
    """One ply of B games: the public positions before it, the decisions, and the positions after.

    rng: of the ply of each game. player: as in choose_actions. wants: as in Game.step. progress:
    see Player.act.
    """
    public = game.public(state)
    decision = choose_actions(players, player, public, rng, progress)
    action = decision.action
    gives_up = (action == RESIGNS) & ~state.done if _any(players, "can_resign") else None
    if gives_up is not None:
        action = action.where(~gives_up, game.legal_action_mask(state).byte().argmax(1))
    after = game.step(state, action, rng, wants)
    if gives_up is not None and len(rows := true_rows(gives_up)):
        after = after.put(rows, _resigned(after[rows], state.current_seat[rows]))
    if _any(players, "follows_games"):
        seen = game.public(after)
        for each in dict.fromkeys(players):
            if each.follows_games:
                each.follow(public, decision.action, seen)
    return public, decision, after


def _any(players: Sequence[Player], name: str) -> bool:
    return any(getattr(player, name) for player in players)


def _resigned(state: State, seat: Tensor) -> State:
    """The positions as lost by a seat, int64 [B]."""
    score = torch.ones_like(state.score).scatter(1, seat[:, None], -1.0)
    return replace(state, done=torch.ones_like(state.done), score=score)


def choose_actions(
    players: Sequence[Player],
    player: Tensor | None,
    state: State,
    rng: Rng,
    progress: float = 0.0,
) -> Decision:
    """The decisions of the players for B positions.

    player: int64 [B], the index of the player to ask; None if there is only one.
    """
    if player is None:
        return ask(players[0], state, rng, progress)
    parts = []
    for index, each in enumerate(players):
        rows = (player == index).nonzero()[:, 0]
        if len(rows) == len(player):
            return ask(each, state, rng, progress)
        if len(rows):
            parts.append((rows, ask(each, state[rows], rng[rows], progress)))
    order = torch.cat([rows for rows, _ in parts]).argsort()
    action = torch.cat([decision.action for _, decision in parts])
    optional = cat_optional([decision for _, decision in parts], [len(rows) for rows, _ in parts])
    return Decision(action[order], **{name: each[order] for name, each in optional.items()})
