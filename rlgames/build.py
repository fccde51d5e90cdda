"""Checked configs into objects, by the name that each part has in its config group."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from torch import Tensor
from torch.overrides import TorchFunctionMode

from rlgames.config import add_option
from rlgames.errors import ConfigError, nearest
from rlgames.games.battleship import Battleship
from rlgames.games.duel import Duel
from rlgames.games.game import Game
from rlgames.games.lines import Lines
from rlgames.games.slide import Slide
from rlgames.learners.actor_critic import ActorCritic
from rlgames.learners.adp import Adp
from rlgames.learners.clone import Clone
from rlgames.learners.expert import Expert
from rlgames.learners.learner import Learner
from rlgames.learners.occupancy import Occupancy
from rlgames.learners.q import Q
from rlgames.learners.reinforce import Reinforce
from rlgames.learners.td import Td
from rlgames.learners.td_lambda import TdLambda
from rlgames.limits import Limit, TooLarge
from rlgames.players.exact import exact
from rlgames.players.gunners import Density, HuntTarget
from rlgames.players.human import Human
from rlgames.players.player import Agent, Player, Random
from rlgames.players.scripted import Corner, WinOrBlock
from rlgames.policies.afterstates import NetworkOfAfterstates
from rlgames.policies.axial import Axial
from rlgames.policies.basis import Basis
from rlgames.policies.canonical import Canonical
from rlgames.policies.conv import Conv
from rlgames.policies.embedding import Embedding
from rlgames.policies.mlp import Mlp
from rlgames.policies.ntuple import Ntuple
from rlgames.policies.policy import Network, Policy, ValueFunction
from rlgames.policies.staged import Staged
from rlgames.policies.table import Table
from rlgames.rewards import Reward
from rlgames.sampling import Argmax, EpsilonGreedy, Sampling, Stochastic
from rlgames.schemas import SCHEMAS
from rlgames.search.expectimax import Expectimax
from rlgames.search.explorer import Explorer
from rlgames.search.mcts import Mcts

GAMES: dict[str, Callable[..., Game[Any]]] = {
    "battleship": lambda board, **rules: Battleship(1, board, name="battleship", **rules),
    "salvo": lambda board, **rules: Battleship(board, board, name="salvo", **rules),
    "salvo_duel": lambda board, ships: Duel(board, board, ships),
    "tictactoe": lambda board, line: Lines(board, board, line, False, "tictactoe"),
    "connect4": lambda rows, columns, line: Lines(rows, columns, line, True, "connect4"),
    "2048": lambda board, columns, **rules: Slide(board, columns, name="2048", **rules),
}
REWARDS: dict[str, Callable[..., Reward]] = dict.fromkeys(SCHEMAS["reward"], Reward)
POLICIES: dict[str, type[Any]] = {
    "mlp": Mlp,
    "conv": Conv,
    "axial": Axial,
    "embedding": Embedding,
    "staged": Staged,
    "table": Table,
    "ntuple": Ntuple,
    "basis": Basis,
}
SAMPLINGS: dict[str, Callable[..., Sampling]] = {
    "stochastic": Stochastic,
    "epsilon_greedy": EpsilonGreedy,
    "argmax": Argmax,
}
PLAYERS: dict[str, Callable[..., Player]] = {
    "random": Random,
    "win_or_block": WinOrBlock,
    "corner": Corner,
    "hunt_target": HuntTarget,
    "density": Density,
    "exact": exact,
    "human": Human,
}
SEARCHES: dict[str, Callable[..., Player]] = {"mcts": Mcts, "expectimax": Expectimax}
LEARNERS: dict[str, type[Any]] = {
    "reinforce": Reinforce,
    "actor_critic": ActorCritic,
    "td": Td,
    "td_lambda": TdLambda,
    "adp": Adp,
    "q": Q,
    "clone": Clone,
    "occupancy": Occupancy,
    "expert": Expert,
}
PARTS: dict[str, tuple[dict[str, Any], type]] = {
    "game": (GAMES, Game),
    "reward": (REWARDS, Reward),
    "policy": (POLICIES, Policy),
    "sampling": (SAMPLINGS, Sampling),
    "learner": (LEARNERS, Learner),
    "player": (PLAYERS, Player),
    "search": (SEARCHES, Player),
}
"""What makes the parts of each group, by name, and what all of them are."""


def register(group: str, name: str, make: Callable[..., Any], schema: type) -> None:
    """As rlgames.register says."""
    if group not in PARTS:
        raise ValueError(f"no group is called {group!r}; {nearest(group, list(PARTS))}")
    parts, kind = PARTS[group]
    # What policies and learners are for is asked of their classes, before one is made.
    of_kind = issubclass(make, kind) if isinstance(make, type) else kind not in (Policy, Learner)
    if not of_kind:
        raise ValueError(f"{group}={name} is not made by a class derived from {kind.__name__}")
    if name in SCHEMAS[group] and _origin(parts.get(name)) != _origin(make):
        raise ValueError(f"{group}={name} is taken")
    add_option(group, name, schema)
    parts[name] = make


def _origin(make: Any) -> tuple[str, str]:
    return getattr(make, "__module__", ""), getattr(make, "__qualname__", "")


def build_game(config: DictConfig) -> Game[Any]:
    """Raises ConfigError where the rules cannot be."""
    try:
        return GAMES[config.game.name](**arguments(config.game))
    except ValueError as error:
        raise ConfigError(str(error)) from None


def build_sampling(config: DictConfig) -> Sampling:
    return SAMPLINGS[config.sampling.name](**arguments(config.sampling))


def build_reward(config: DictConfig, game: Game[Any]) -> Reward:
    """Raises ConfigError for a reward that the game does not know."""
    try:
        return REWARDS[config.reward.name](game, **arguments(config.reward))
    except ValueError as error:
        fitting = {"turns": "turns", "score": "score", "outcome": "outcome"}[game.spec.goal]
        raise ConfigError(str(error), f"reward={fitting} fits") from None


def build_policy(
    config: DictConfig, game: Game[Any], rng: torch.Generator, numbers: int | None = None
) -> Policy:
    """numbers: how many a file has to fill it with, if it will be.

    Raises ConfigError for a policy that does not fit the game or the learner, and for one that
    would need far more numbers than there are, before they take up memory.
    """
    name, learner = config.policy.name, LEARNERS[config.learner.name]
    make: Any = POLICIES[name]
    made_with = arguments(config.policy)
    if not issubclass(make, learner.teaches):
        fitting = [other for other, kind in POLICIES.items() if issubclass(kind, learner.teaches)]
        raise ConfigError(
            f"learner={config.learner.name} does not teach policy={name}",
            "it teaches " + ", ".join(f"policy={other}" for other in fitting),
        )
    reward = build_reward(config, game)
    gains = reward.scale if reward.scored == "gain" else 0.0
    limit = nullcontext() if numbers is None else Limit(numbers)
    if issubclass(make, ValueFunction):
        try:
            with limit:
                valued: Policy = make(game, gains=gains, **made_with)
            return valued
        except TooLarge as error:
            raise ConfigError(f"policy={name}: {error}") from None
        except ValueError as error:
            raise ConfigError(str(error), "policy=mlp learner=actor_critic fits") from None
    value = learner.has_critic or config.learner.get("baseline") == "value"
    try:
        canonical = made_with.pop("canonical", False)
        make = functools.partial(make, game, value=value, **made_with)
        check_weights(name, weights_of(lambda: make(rng=torch.Generator())))
        with limit:
            network: Network = make(rng=rng)
        network.inputs(game, game.initial(1, torch.Generator()))
        network = Canonical(game, network) if canonical else network
        if learner.of_afterstates:
            return NetworkOfAfterstates(game, network, gains)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return network


def build_learner(
    config: DictConfig, game: Game[Any], policy: Policy, sampling: Sampling, rng: torch.Generator
) -> Learner:
    """Raises ConfigError for moves that would be drawn from values as if these were logits, for a
    reward that does not tell who wins, and for a game that does not tell what is learnt."""
    name = config.learner.name
    from_search = issubclass(LEARNERS[name], Expert)
    if from_search and config.get("search") is None:
        raise ConfigError(
            f"learner={name} learns from a search, and none is named",
            "add search=mcts search.leaf=value",
        )
    if not from_search and config.get("search") is not None:
        raise ConfigError(
            f"learner={name} does not learn from a search", "learner=expert does; or leave it out"
        )
    if name in ("adp", "q", "td_lambda") and config.sampling.get("temperature") == 1:
        raise ConfigError(
            f"learner={name} learns values, and sampling=stochastic takes scores for logits",
            "sampling=epsilon_greedy fits, or a sampling.temperature of the values' size",
        )
    reward = build_reward(config, game)
    counted = LEARNERS[name].learns_from_rewards
    if counted and reward.scored == "turns" and game.spec.goal == "outcome":
        raise ConfigError(
            f"{game.spec.name} is won or lost, and reward={config.reward.name} counts turns only",
            "reward=outcome fits",
        )
    check_weights(config.policy.name, sum(weights.numel() for weights in policy.buffers()))
    if config.learner.get("memory"):
        check_kept_moves(config, game, rng.device)
    try:
        learner: Learner = LEARNERS[name](
            game,
            policy,
            sampling,
            reward,
            rng,
            lr=config.lr,
            **arguments(config.learner),
        )
    except NotImplementedError as error:
        raise ConfigError(
            f"learner={name} does not fit: {error}", "learner=actor_critic fits"
        ) from None
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return learner


def build_search(
    node: DictConfig, game: Game[Any], player: Player, reward: DictConfig | None
) -> Player:
    """The player, looking ahead; reward: what a trained one learnt from.

    Raises ConfigError where search, player and game do not fit together.
    """
    settings = arguments(node)
    if node.get("leaf") == "value" and reward is not None:
        settings |= _learnt_value(node, game, reward)
    if node.name == "expectimax" and reward is not None:
        settings["discount"] = reward.get("discount", 1.0)
    try:
        return SEARCHES[node.name](game, player, **settings)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def build_explorer(config: DictConfig, game: Game[Any], agent: Agent) -> Player:
    """The search that plays a training's games around the agent that learns from it.

    Raises ConfigError for a search that counts no visits, from which it would learn.
    """
    search = build_search(config.search, game, agent, config.reward)
    if not isinstance(search, Mcts):
        raise ConfigError(
            f"learner=expert learns from visits, and search={config.search.name} counts none",
            "search=mcts does",
        )
    return Explorer(agent, search)


def _learnt_value(node: DictConfig, game: Game[Any], reward: DictConfig) -> dict[str, Any]:
    """What a value head counts, and how much of it one unit is."""
    two = game.spec.seats == 2
    unclear = ConfigError(
        f"search.leaf=value cannot tell what reward={reward.name} has taught the value head",
        "search.leaf=rollout fits",
    )
    if REWARDS[reward.name] is not Reward:
        raise unclear
    value = ("outcome" if two else "score") if reward.scored == "gain" else reward.scored
    even = reward.win == -reward.loss and not any(reward.draws)
    if reward.minus != "nothing" or reward.scored == "score" or (two and not even):
        raise unclear
    if node.value not in (None, value):
        raise ConfigError(f"search.value={node.value} is not what the run has learnt: {value}")
    return {"value": value, "unit": 1 / (reward.scale * (reward.win if two else 1))}


def build_device(config: DictConfig) -> torch.device:
    """Set the number of threads too. Raises ConfigError for a device that is not there."""
    torch.set_num_threads(config.threads)
    try:
        device = torch.device(config.device)
        if device.type not in ("cpu", "cuda"):
            raise RuntimeError
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        have = "cuda" if torch.cuda.is_available() else "cpu"
        raise ConfigError(f"device={config.device} is not here", f"use device={have}") from None
    return device


def check_memory(
    batch: int, window: int | None, game: Game[Any], games: int = 0, key: str = "games"
) -> None:
    """Raises ConfigError where the moves of one batch, and how so many games end, cannot fit in
    the memory that is free.

    key: what so many games are named. Counted for each move: its position, its observation twice
    (as played, as learnt from), and for each action a mask and four floats (scores,
    log-probabilities and their gradients).
    """
    spec = game.spec
    cells = math.prod(spec.observation[1:])
    a_move = 4 * cells + 8 * math.prod(spec.observation) + 17 * spec.actions
    # Where the rules hardly bound a game's length, a long one by chance is what has to fit.
    a_game = a_move * min(window or spec.longest, spec.longest, 100 * cells)
    _refuse_beyond_memory(f"batch={batch}", "for its moves", batch, a_game, "batch={} fits")
    _refuse_beyond_memory(
        f"{key}={games}", "for how they end", games, 4 * cells + 64, key + "={} fits"
    )


def check_kept_moves(config: DictConfig, game: Game[Any], device: torch.device) -> None:
    """Raises ConfigError where learner.memory cannot be held in the memory that is free.

    Counted for each move: its position, 32 bytes of what came of it, and what a search found.
    """
    row = game.public(game.initial(1, torch.Generator(device)))
    columns = [value for value in vars(row).values() if isinstance(value, Tensor)]
    target = 4 * game.spec.actions if config.get("search") is not None else 0
    size = sum(column.nbytes for column in columns) + 32 + target
    what, fits = f"learner.memory={config.learner.memory}", "learner.memory={} fits"
    _refuse_beyond_memory(what, "for the moves it keeps", config.learner.memory, size, fits)
    a_try = 8 * math.prod(game.spec.observation) + 17 * game.spec.actions
    what, fits = f"learner.minibatch={config.learner.minibatch}", "learner.minibatch={} fits"
    _refuse_beyond_memory(what, "for a step", config.learner.minibatch, a_try, fits)


COPIES = 4
"""A weight, its gradient, and the two running means that an optimizer keeps."""


def check_weights(name: str, weights: int) -> None:
    """Raises ConfigError where so many weights cannot be learnt in the memory that is free."""
    _refuse_beyond_memory(
        f"policy={name} with {weights:,} weights", "to learn", weights, 4 * COPIES, "{:,} would fit"
    )


def _refuse_beyond_memory(what: str, why: str, count: int, size: int, hint: str) -> None:
    """Raises ConfigError for so many things of so many bytes each, if they cannot be held.

    hint: what would do, {} standing for how many can.
    """
    free = free_memory()
    if free is not None and count * size > free:
        raise ConfigError(
            f"{what} may need {count * size / 2**30:.1f} GiB {why}, and "
            f"{free / 2**30:.1f} GiB are free",
            hint.format(max(1, free // size)),
        )


def free_memory() -> int | None:
    """Bytes that may be taken: of the machine, and of the control group; None if not known."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found = [int(ln.split()[1]) * 1024 for ln in lines if ln.startswith("MemAvailable")]
        group = Path("/sys/fs/cgroup")
        most = group / "memory.max"
        if most.exists() and (limit := most.read_text().strip()) != "max":
            found.append(int(limit) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        return None
    return max(0, min(found)) if found else None


class Weightless(TorchFunctionMode):
    """Within it, weights are made without memory and without values: only their sizes are asked."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.empty:
            return func(*args, **(kwargs or {}) | {"device": "meta"})
        begun = args and isinstance(args[0], Tensor) and args[0].is_meta
        name = getattr(func, "__name__", "")
        if begun and name.endswith("_") and not name.endswith("__"):
            return args[0]  # a beginning of nothing, which would take its time
        return func(*args, **(kwargs or {}))


def weights_of(make: Callable[[], torch.nn.Module]) -> int:
    """How many weights a network will have that is yet to be made; 0 if that is not to be seen."""
    try:
        with Weightless():
            return sum(weight.numel() for weight in make().parameters())
    except (NotImplementedError, RuntimeError):
        return 0


def arguments(node: DictConfig) -> dict[str, Any]:
    """A group's keys without its name: what the part itself is made with."""
    values = OmegaConf.to_container(node)
    assert isinstance(values, dict)
    return {str(name): value for name, value in values.items() if name != "name"}
