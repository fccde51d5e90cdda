"""Players by name, and trained agents from checkpoints."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig

from rlgames.config.compose import from_plain, sanitize_errors
from rlgames.config.registry import REGISTRY, load_part
from rlgames.core.errors import ConfigError
from rlgames.core.rng import make_generator
from rlgames.factory.components import (
    arguments,
    build_device,
    build_game,
    build_policy,
    build_sampling,
    build_search,
)
from rlgames.games.game import Game
from rlgames.players.player import Agent, Player
from rlgames.policies.policy import Policy
from rlgames.runs.checkpoint import BEST, LATEST, Checkpoint, restore_weights
from rlgames.runs.index import newest_run
from rlgames.sampling import Argmax, Stochastic
from rlgames.search.mcts import Mcts, VisitCountPolicy


def checkpoint_path(run: Path) -> Path:
    """The best checkpoint of a run directory, or the file itself."""
    if not run.is_dir():
        return run
    for name in (BEST, LATEST):
        if (run / "checkpoints" / name).is_file():
            return run / "checkpoints" / name
    inside = newest_run(run)
    found = "" if inside is None else f"; the newest run in it is {shlex.quote(str(inside))}"
    raise ConfigError(
        f"{run} holds no checkpoint", f"name a run directory or a checkpoint file{found}"
    )


def trained_config(run: Path) -> DictConfig:
    """The config that a run was trained with, checked; it is text from a stranger."""
    return from_plain(Checkpoint.read(checkpoint_path(run)).config)


@sanitize_errors()
def load_agent(run: Path, cfg: DictConfig | None = None) -> Agent:
    """A run's policy with the sampling of cfg, or greedy.

    Raises ConfigError or BadCheckpoint for a file that no agent can be made from.
    """
    found = Checkpoint.read(checkpoint_path(run))
    own = from_plain(found.config)
    if cfg is None and not torch.cuda.is_available():
        own.device = "cpu"
    device = build_device(cfg if cfg is not None else own)
    game = build_game(own).to(device)
    policy = build_policy(own, game, make_generator(0, "init"), found.num_parameters).to(device)
    restore_weights(policy, found.policy)
    sampling = Argmax() if cfg is None else build_sampling(cfg)
    return Agent(game, policy.eval(), sampling)


@sanitize_errors()
def init_policy_from(run: Path, cfg: DictConfig, policy: Policy) -> None:
    """Give the policy that cfg describes the weights of a run.

    A value head that only one of the two has begins anew, or is left out. Raises ConfigError
    where the run is of another game or policy, or has met layouts that cfg holds out.
    """
    if not os.path.exists(run):  # Path.exists raises for names that are too long
        raise ConfigError(f"there is no run at {run}", "start= names a run or a checkpoint file")
    found = Checkpoint.read(checkpoint_path(run))
    tensors, own = found.policy, from_plain(found.config)
    for group, aside in (("game", "target"), ("policy", "init")):
        theirs, ours = dict(own[group]), dict(cfg[group])
        for name in ours:
            if name != aside and theirs.get(name) != ours[name]:
                has = f"{group} {name}={theirs.get(name)}"
                raise ConfigError(
                    f"{run} has {has}, and this run {name}={ours[name]}",
                    "start= goes on with the same game and policy",
                )
    met = own.get("holdout", 0.0), own.seed
    if cfg.holdout and met != (cfg.holdout, cfg.seed):
        raise ConfigError(
            f"{run} may have met the layouts that holdout={cfg.holdout:g} holds out",
            f"it was trained with holdout={met[0]:g} seed={met[1]}",
        )
    fresh = policy.state_dict()
    kept = {name: value for name, value in tensors.items() if name in fresh or not _in_head(name)}
    new = {name: value for name, value in fresh.items() if name not in tensors and _in_head(name)}
    restore_weights(policy, kept | new)


def _in_head(name: str) -> bool:
    """Whether a tensor belongs to a network's value head, or to that of one of its stages."""
    return "value" in name.split(".")


def build_player(
    node: DictConfig, cfg: DictConfig, game: Game[Any], search: DictConfig | None = None
) -> Player:
    """The player that a node of cfg names, for cfg's game, looking ahead as search says.

    Raises ConfigError for one that does not play it.
    """
    player = _player(node, cfg, game)
    return with_search(player, game, search, Path(node.path) if node.name == "run" else None)


def with_search(
    player: Player, game: Game[Any], search: DictConfig | None, run: Path | None
) -> Player:
    """The player, looking ahead as search says; run: where it was trained, if it was."""
    if search is None:
        return player
    reward = None if run is None else trained_config(run).reward
    return build_search(search, game, player, reward)


def advisor_of(player: Player) -> Player:
    """Who tells the probabilities of a player in the way that is of most use to a person: a greedy
    agent is certain of everything, and so is a search."""
    if isinstance(player, Mcts):
        return VisitCountPolicy(player)
    if isinstance(player, Agent):
        return Agent(player.game, player.policy, Stochastic())
    return player


def _player(node: DictConfig, cfg: DictConfig, game: Game[Any]) -> Player:
    if node.name == "run":
        return _trained(Path(node.path), cfg)
    if REGISTRY["player"][node.name].training_only:
        raise ConfigError(f"player={node.name} exists in training only", "name another player")
    try:
        player: Player = load_part("player", node.name)(game, **arguments(node))
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return player


@sanitize_errors()
def _trained(run: Path, cfg: DictConfig) -> Agent:
    """The agent of a run, greedy. Raises ConfigError where it has learnt another game than cfg's,
    before that is built."""
    trained = trained_config(run)
    if trained.game.name != cfg.game.name:
        raise ConfigError(
            f"{run} was trained on {trained.game.name}, and this is {cfg.game.name}",
            "players can only meet in one game",
        )
    theirs, ours = arguments(trained.game), arguments(cfg.game)
    for name in ours:
        # How the board is encoded for a network is its own affair.
        if name not in ("encoding", "target") and theirs.get(name) != ours[name]:
            raise ConfigError(
                f"{run} was trained with {name}={theirs.get(name)}, "
                f"and this game has {name}={ours[name]}",
                "players can only meet in one game",
            )
    agent = load_agent(run)
    return Agent(agent.game.to(cfg.device), agent.policy.to(cfg.device), agent.sampling)
