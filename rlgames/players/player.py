"""The contract of every player, random play, and agents: a policy with a sampling rule."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from rlgames.core.devices import to_float64
from rlgames.games.game import NOTHING, Game, State
from rlgames.games.state import Wants
from rlgames.policies.policy import Policy
from rlgames.rng import Rng
from rlgames.sampling import Sampling

GOLDEN_RATIO = 0.6180339887
"""Its multiples, modulo 1, are far from each other."""


@dataclass(frozen=True)
class Decision:
    """Actions for B positions, and what a learner may want to know about them.

    action: int64 [B]; RESIGNS only from a player that can. target: float32 [B, A], a target for the
    policy, from players that search. log_prob: float32 [B], the log-probability of choosing each
    action, NaN where it is unknown; None where it is for all. value: float32 [B], the expected
    outcome for the seat to move, -1 to 1, where a player that searches moved at random, so that
    what follows does not tell it; NaN elsewhere; None where it is everywhere. state_value: float32
    [B], the policy's value of the position, if log_prob is the policy's as well; NaN or None
    elsewhere.
    """

    action: Tensor
    target: Tensor | None = None
    log_prob: Tensor | None = None
    value: Tensor | None = None
    state_value: Tensor | None = None


class Player(ABC):
    """Chooses actions from public positions only."""

    is_deterministic = False
    """Whether it draws no random number: it always chooses the same action in the same position.
    Evaluations play each game of such players once, and search=rollout relies on it."""

    wants = NOTHING
    """What of its positions it asks the game for."""

    can_resign = False
    """Whether act may give up a game; choose never does."""

    follows_games = False
    """Whether it sees every ply of the games that it plays."""

    def follow(self, before: State, action: Tensor, after: State) -> None:  # noqa: B027
        """See a ply: the public positions before and after it, and the actions, int64 [B]."""

    @abstractmethod
    def choose(self, state: State, rng: Rng) -> Tensor:
        """Int64 [B]: a legal action for each row, any action in finished rows; state is public.

        rng: the random numbers of each row, which depend on nothing but its game and ply.
        """

    def act(self, state: State, rng: Rng, progress: float = 0.0) -> Decision:
        """The actions of choose, with whatever else the player knows about them.

        rng: as in choose. progress: the completed fraction of a training, 0 to 1, which sets the
        exploration.
        """
        return Decision(self.choose(state, rng))

    def state_dict(self) -> dict[str, Any]:
        """What its next moves in training depend on besides the policy in training: nested dicts of
        tensors and plain numbers."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises LookupError, TypeError, ValueError or RuntimeError for other state."""
        if state:
            raise ValueError(f"{type(self).__name__} has no state")

    changes_in_training = False
    """Whether its play depends on how far a training is, though it does not learn itself."""

    def start_batch(self, games_played: int, progress: float, rng: Rng) -> None:  # noqa: B027
        """Prepare for the next batch of a training, after this many games. rng: of this batch."""

    def statistics(self) -> dict[str, float]:
        """Statistics of its play so far, by name."""
        return {}

    def reset_statistics(self) -> None:  # noqa: B027 (most players have none)
        """Begin new statistics."""


@runtime_checkable
class HasProbabilities(Protocol):
    """A player that knows its probabilities; exact results and hints follow from them."""

    def probabilities(self, state: Any) -> Tensor:
        """Float64 [B, A]: the probability of each action in public positions, on any device."""


def ask(player: Player, state: State, rng: Rng, progress: float) -> Decision:
    """What Player.act returns; an error remembers the player."""
    try:
        return player.act(state, rng, progress)
    except Exception as error:
        error.__dict__["player"] = player
        raise


@contextmanager
def leaving_out(players: Sequence[Player], failed: dict[int, Exception]) -> Iterator[None]:
    """A block in which some players play: one that raises an error is added to failed, by its
    index, and no error leaves the block."""
    try:
        yield
    except Exception as error:
        index = [each is error.__dict__.get("player") for each in players]
        if not any(index):
            raise
        failed[index.index(True)] = error


def choose_in_live_rows(state: State, rng: Rng, choose: Callable[[State, Rng], Tensor]) -> Tensor:
    """Int64 [B]: what choose returns for the rows that are not over, int64 [L], from them and their
    random numbers; 0 in the others."""
    action = torch.zeros_like(state.current_seat)
    live = (~state.done).nonzero()[:, 0]
    if len(live):
        action[live] = choose(state[live], rng[live]).to(action.device)
    return action


class Random(Player):
    """Every legal action is equally likely."""

    def __init__(self, game: Game[Any]) -> None:
        self.game = game

    def choose(self, state: State, rng: Rng) -> Tensor:
        return self.game.sample_legal_action(state, rng.uniform(len(state)))

    def probabilities(self, state: State) -> Tensor:
        legal = to_float64(self.game.legal_action_mask(state.to(self.game.device)))
        return legal / legal.sum(1, keepdim=True)


class ObservingRandom(Random):
    """Also computes the observations, because a network waits for them."""

    wants = Wants(planes=True)

    def choose(self, state: State, rng: Rng) -> Tensor:
        self.game.observe(state)
        return super().choose(state, rng)


def random_player(game: Game[Any], observe: bool) -> Random:
    """The player of a config."""
    return ObservingRandom(game) if observe else Random(game)


class Around(Player):
    """A player that does what another one does, until a subclass changes some of it."""

    def __init__(self, player: Player) -> None:
        self.player, self.wants = player, player.wants
        self.can_resign, self.follows_games = player.can_resign, player.follows_games

    def choose(self, state: State, rng: Rng) -> Tensor:
        return self.player.choose(state, rng)

    def act(self, state: State, rng: Rng, progress: float = 0.0) -> Decision:
        return self.player.act(state, rng, progress)

    def follow(self, before: State, action: Tensor, after: State) -> None:
        self.player.follow(before, action, after)

    def statistics(self) -> dict[str, float]:
        return self.player.statistics()

    def reset_statistics(self) -> None:
        self.player.reset_statistics()


class RandomOpening(Random):
    """The random moves of the first turns of games, which are the same whoever sits at them.

    u: float32 [B], a random number of each game and turn. Moves of one turn differ by the number of
    legal actions.
    """

    def __init__(self, game: Game[Any], u: Tensor) -> None:
        super().__init__(game)
        self.u = u

    def choose(self, state: State, rng: Rng) -> Tensor:
        count = self.game.legal_action_mask(state).sum(1)
        return self.game.sample_legal_action(state, (self.u + GOLDEN_RATIO * count) % 1)


class Agent(Player):
    """A policy that scores the actions and a sampling rule that picks one.

    records_log_prob: whether act adds the log-probabilities of the actions, and the policy's values
        of the positions if the actions are sampled from the policy's softmax.
    """

    def __init__(
        self,
        game: Game[Any],
        policy: Policy,
        sampling: Sampling,
        *,
        records_log_prob: bool = False,
    ) -> None:
        self.game, self.policy, self.sampling = game, policy, sampling
        self.is_deterministic = sampling.deterministic
        self.records_log_prob = records_log_prob
        self.wants = Wants(legal=True, planes=policy.reads_observation)

    def __repr__(self) -> str:
        count = sum(tensor.numel() for tensor in self.policy.state_dict().values())
        policy, sampling = type(self.policy).__name__, type(self.sampling).__name__
        return f"<Agent for {self.game!r}: {policy} with {count:,} parameters, {sampling}>"

    @torch.no_grad()
    def choose(self, state: State, rng: Rng | None = None, progress: float = 0.0) -> Tensor:
        """Int64 [B]; without rng, always by the same numbers."""
        legal = self.game.legal_action_mask(state)
        rng = Rng(device=legal.device) if rng is None else rng
        scores, _ = self.policy.scores(self.game, state)
        return self.sampling.choose(scores, legal, rng, progress)

    @torch.no_grad()
    def act(self, state: State, rng: Rng, progress: float = 0.0) -> Decision:
        if not self.records_log_prob:
            return Decision(self.choose(state, rng, progress))
        legal = self.game.legal_action_mask(state)
        scores, value = self.policy.scores(self.game, state)
        action, log_prob = self.sampling.choose_and_tell(scores, legal, rng, progress)
        state_value = value if self.sampling.is_softmax else None
        return Decision(action, log_prob=log_prob, state_value=state_value)

    @torch.no_grad()
    def probabilities(self, state: State) -> Tensor:
        tensor = next(itertools.chain(self.policy.parameters(), self.policy.buffers()))
        state = state.to(tensor.device)
        scores, _ = self.policy.scores(self.game, state)
        return self.sampling.probabilities(scores, self.game.legal_action_mask(state), 0.0)
