"""What a reward can score, and what it can subtract. To add a term, add a function and a line.

Shapes: trajectories have M moves of G games with P seats. Importing this module does not import
torch, so that the choices and descriptions of the options are cheap to read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from torch import Tensor

    from rlgames.games.capabilities import KnownRandomPlay, Measured
    from rlgames.games.game import Game, State
    from rlgames.rollouts.trajectories import FinalStates, Trajectories


class RewardSettings(Protocol):
    """What a final term may ask of the reward. draws: float32 [P], by seat."""

    game: Game[Any]
    win: float
    loss: float
    draws: Tensor


@dataclass(frozen=True)
class MoveTerm:
    """A term paid with every move. compute: float32 [M]. constant: what it pays for each turn,
    whatever the move; None if moves differ in it."""

    description: str
    compute: Callable[[Trajectories], Tensor]
    constant: float | None = None


@dataclass(frozen=True)
class FinalTerm:
    """A term paid once, with each seat's last move of a finished game.

    compute: float32 [G, P]. fits: whether a game has it, by the game and one initial state.
    """

    description: str
    compute: Callable[[RewardSettings, FinalStates], Tensor]
    fits: Callable[[Game[Any], State], bool] = lambda game, start: True


@dataclass(frozen=True)
class SubtractedTerm:
    """A term subtracted at the end of every turn.

    compute: float32 [B], or one number, for the states before the moves. needs_known_play: only
        games with KnownRandomPlay have it.
    """

    description: str
    compute: Callable[[Game[Any], State], Tensor | float]
    needs_known_play: bool = True


def score_delta(trajectories: Trajectories) -> Tensor:
    return trajectories.score_delta


def log_score_delta(trajectories: Trajectories) -> Tensor:
    """sign(Δ) · log2(1 + |Δ|): large changes do not drown small ones."""
    delta = trajectories.score_delta
    return delta.sign() * delta.abs().log1p() / math.log(2)


def turns(trajectories: Trajectories) -> Tensor:
    return -trajectories.ends_turn.float()


def outcome(reward: RewardSettings, final_states: FinalStates) -> Tensor:
    """reward.win, draws or loss, as the seat's score compares with the mean of the others'."""
    score = final_states.score
    others = (score.sum(1, keepdim=True) - score) / (score.shape[1] - 1)
    lead = score - others
    draws = reward.draws.to(score.device).expand_as(score)
    return draws.masked_fill(lead < 0, reward.loss).masked_fill(lead > 0, reward.win)


def final_score(reward: RewardSettings, final_states: FinalStates) -> Tensor:
    return final_states.score


def measure(name: str, description: str = "") -> FinalTerm:
    """The measure of the final position that Measured.measures returns under this name."""

    def compute(reward: RewardSettings, final_states: FinalStates) -> Tensor:
        value = cast("Measured", reward.game).measures(final_states.state)[name]
        return value[:, None].expand_as(final_states.score)

    def fits(game: Game[Any], start: State) -> bool:
        from rlgames.games.capabilities import measures

        return name in measures(game, start)

    return FinalTerm(description, compute, fits)


def nothing(game: Game[Any], state: State) -> float:
    return 0.0


def random_shot(game: Game[Any], state: State) -> Tensor:
    """In battleship: ship cells left ÷ cells left, as in both battleship documents."""
    return cast("KnownRandomPlay", game).expected_random_score_delta(state, plies=True)


def random_turn(game: Game[Any], state: State) -> Tensor:
    return cast("KnownRandomPlay", game).expected_random_score_delta(state, plies=False)


SCORED: dict[str, MoveTerm | FinalTerm] = {
    "score_delta": MoveTerm("change in score until the seat's next move", score_delta),
    "log_score_delta": MoveTerm("log2(1 + change in score), negative for a loss", log_score_delta),
    "turns": MoveTerm("-1 per turn", turns, constant=-1.0),
    "outcome": FinalTerm("win, draw or loss", outcome, lambda game, start: game.spec.seats > 1),
    "score": FinalTerm("final score", final_score),
    "grid_sum": measure("grid_sum", "sum of the final tiles"),
    "max_tile": measure("max_tile", "largest final tile"),
    "win": measure("win", "1 if the target tile is reached, else 0"),
}
"""The choices of reward.scored."""

SUBTRACTED: dict[str, SubtractedTerm] = {
    "nothing": SubtractedTerm("no baseline", nothing, needs_known_play=False),
    "random_shot": SubtractedTerm("expected score of one random shot", random_shot),
    "random_turn": SubtractedTerm("expected score of one random turn", random_turn),
}
"""The choices of reward.minus."""
