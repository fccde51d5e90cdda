"""Where new games of a pool start, if not where the game itself would start them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from rlgames.core.tensor_checks import checked_rows
from rlgames.core.untrusted import checked_int
from rlgames.games.game import Game, State
from rlgames.rollouts.play import GamePool, InitialStates, true_rows


def restarting_from_pool(pool: GamePool, restart_fraction: float) -> InitialStates:
    """New games, a fraction of which start one random move away from a game in progress.

    They reach positions that the agent itself rarely reaches. Score and turns continue from those
    of the copied game; a move that would end it is not made.
    """
    initial_states, game = pool.initial_states, pool.game

    def start(first: int, count: int, rng: torch.Generator) -> State:
        initial = initial_states(first, count, rng)
        is_copy = torch.rand(count, generator=rng, device=rng.device) < restart_fraction
        copied = is_copy.nonzero()[:, 0]
        live = (~pool.state.done).nonzero()[:, 0]
        if not len(live):
            return initial
        chosen = torch.randint(len(live), copied.shape, generator=rng, device=rng.device)
        return initial.put(copied, after_random_move(game, pool.state[live[chosen]], rng))

    return start


def after_random_move(game: Game[Any], before: State, rng: torch.Generator) -> State:
    """The positions after a random legal move each; those that it would end are returned as is."""
    u = torch.rand(len(before), generator=rng, device=rng.device)
    after: State = game.step(before, game.sample_legal_action(game.public(before), u), rng)
    finished = after.done.nonzero()[:, 0]
    return after.put(finished, before[finished])


class MidpointRestarts:
    """New games of a pool that plays in windows: a fraction of the games that end are played again
    from the middle between where they started in their row of the pool and where they ended.

    As a game that starts in the middle is itself played again from its own middle, the starts
    approach the end, where the agent fails (Matsuzaki 2017, "Developing a 2048 player with backward
    temporal coherence learning and restart"). Positions are those at the ends of windows; a game
    that ends in the window in which it started is followed by a new one. Score and turns continue.
    Games without chance continue one random move away, as they would repeat themselves otherwise.
    """

    def __init__(self, pool: GamePool, restart_fraction: float) -> None:
        self.pool, self.restart_fraction = pool, restart_fraction
        self._sample = pool.initial_states
        # Where the windows started since the oldest game in progress, and the index among them of
        # each row's start.
        self._positions = [pool.state]
        self._start = torch.zeros_like(pool.game_index)

    def __call__(self, first: int, count: int, rng: torch.Generator) -> State:
        initial = self._sample(first, count, rng)
        rows = true_rows(self.pool.state.done)[:count]
        length = len(self._positions) - self._start[rows]
        is_restart = torch.rand(count, generator=rng, device=rng.device) < self.restart_fraction
        middle = self._start[rows] + length // 2
        middle = torch.where(is_restart & (length > 1), middle, -1)
        for index in middle.unique().tolist():
            if index >= 0:
                new = (middle == index).nonzero()[:, 0]
                initial = initial.put(new, self._continue(self._positions[index][rows[new]], rng))
        self._start[rows] = len(self._positions)
        return initial

    def _continue(self, state: State, rng: torch.Generator) -> State:
        game = self.pool.game
        return state if game.spec.num_chance_inputs else after_random_move(game, state, rng)

    def end_window(self) -> None:
        """Keep the positions where the next window starts."""
        self._positions.append(self.pool.state)
        num_unused = int(self._start.min())
        del self._positions[:num_unused]
        self._start -= num_unused

    def state_dict(self) -> dict[str, Any]:
        columns = {
            name: torch.cat([vars(state)[name] for state in self._positions])
            for name in vars(self.pool.state)
        }
        return {"num_windows": len(self._positions), "start": self._start, "positions": columns}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises LookupError, TypeError or ValueError for state that does not fit the pool, which
        has been loaded, and for positions that violate the rules."""
        game, batch = self.pool.game, len(self.pool.state)
        num_windows = checked_int(state["num_windows"], 1, game.spec.max_plies)
        columns = {
            name: checked_rows(state["positions"][name], column, num_windows * batch)
            for name, column in vars(self.pool.state).items()
        }
        positions = replace(self.pool.state, **columns)
        if bool(positions.done.any()) or not bool(game.is_valid(positions).all()):
            raise ValueError("a game would restart from an invalid position")
        self._start = checked_rows(state["start"], self._start, batch).clone()
        if not bool(((self._start >= 0) & (self._start < num_windows)).all()):
            raise ValueError("a game started in a window that is not kept")
        rows = torch.arange(batch, device=self._start.device)
        self._positions = [positions[rows + batch * number] for number in range(num_windows)]
