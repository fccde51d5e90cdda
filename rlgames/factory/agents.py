"""Players by name, and trained agents from checkpoints."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from rlgames.config.checks import from_plain, sanitize_errors
from rlgames.config.registry import REGISTRY, load_part
from rlgames.core.devices import find_device_or_cpu
from rlgames.core.errors import ConfigError
from rlgames.core.rng import make_generator
from rlgames.factory.components import (
    arguments,
    build_device,
    build_game,
    build_greedy,
    build_policy,
    build_sampling,
    build_search,
    policy_to,
)
from rlgames.games.game import Game
from rlgames.players.player import Agent, Player
from rlgames.policies.ntuple import Ntuple
from rlgames.policies.policy import Policy
from rlgames.rollouts.records import PRESENTATION_KEYS
from rlgames.runs import storage
from rlgames.runs.checkpoint import BEST, LATEST, Checkpoint, restore_weights
from rlgames.runs.files import BEST_IN_WORDS, FINAL_IN_WORDS
from rlgames.runs.hub import MODEL, published_model
from rlgames.runs.index import newest_run
from rlgames.runs.shipped import shipped_agent
from rlgames.sampling import Stochastic
from rlgames.search.policy import SearchPolicy
from rlgames.search.search import Search

RULES_OUTSIDE_POLICIES = ("target", "fours")
"""Rules of 2048 that a policy need not share with the run that uses it: the same positions and
actions, with other chances and another goal."""


def checkpoint_path(run: Path, name: str | None = None) -> Path:
    """A checkpoint of a run directory, or the file itself.

    name: "best", which evaluations during training selected; "latest", which a run resumes from;
    or "final", the latest one of a finished training. None: the best, or the latest without it.
    The folder `checkpoints` of a run stands for the run, and that of a published agent holds one
    checkpoint. Raises ConfigError where there is none.
    """
    if run.name == "checkpoints" and os.path.lexists(run.parent / "run.json"):
        run = run.parent
    if not run.is_dir():
        if name is not None:
            raise ConfigError(f"{run} is no run directory", f"omit checkpoint={name}")
        return run.resolve() if run.is_symlink() else run  # a link that was typed is followed
    if published_model(run) is not None:
        if name is not None:
            raise ConfigError(f"{run} is a published agent", f"omit checkpoint={name}")
        storage.check_file(run, MODEL)
        return run / MODEL
    files = {None: (BEST, LATEST), "best": (BEST,), "final": (LATEST,), "latest": (LATEST,)}[name]
    if os.path.lexists(run / "checkpoints"):
        storage.check_folder(run, "checkpoints")
    for file in files:
        path = run / "checkpoints" / file
        if os.path.lexists(path):
            storage.check_file(run, f"checkpoints/{file}")
            if name == "final" and not is_final(Checkpoint.read(path)):
                raise ConfigError(f"the training of {run} is not finished", "use checkpoint=latest")
            return path
    newest = newest_run(run)
    suggestion = "" if newest is None else f"; its newest run is {shlex.quote(str(newest))}"
    raise ConfigError(
        f"{run} holds no checkpoint", f"name a run directory or a checkpoint file{suggestion}"
    )


def is_final(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint was saved when its training was over."""
    progress = checkpoint.state.get("progress")
    has_converged = isinstance(progress, dict) and progress.get("has_converged") is True
    return has_converged or checkpoint.games >= from_plain(checkpoint.config).games


def checkpoint_fields(run: Path, name: str | None) -> dict[str, Any]:
    """What a report says of the checkpoint that checkpoint_path finds: its name in words, and the
    games played before it was saved."""
    path = checkpoint_path(run, name)
    checkpoint, words = Checkpoint.read(path), path.stem
    if path.name == BEST:
        words = BEST_IN_WORDS
    elif path.name == MODEL:
        words = "published"
    elif path.name == LATEST and is_final(checkpoint):
        words = FINAL_IN_WORDS
    return {"checkpoint": words, "checkpoint_games": checkpoint.games}


def trained_config(run: Path) -> DictConfig:
    """The config that a run was trained with, checked like other untrusted text."""
    return from_plain(Checkpoint.read(checkpoint_path(run)).config)


@sanitize_errors()
def load_agent(run: Path, cfg: DictConfig | None = None, checkpoint: str | None = None) -> Agent:
    """A run's policy, with the sampling rule and on the device of cfg; without cfg greedy, and on
    the device of its training or, where that is missing, the CPU. checkpoint: see checkpoint_path.

    Raises ConfigError or BadCheckpoint for a file that does not hold an agent.
    """
    saved = Checkpoint.read(checkpoint_path(run, checkpoint))
    trained = from_plain(saved.config)
    device = find_device_or_cpu(trained.device) if cfg is None else build_device(cfg)
    game = build_game(trained).to(device)
    rng = make_generator(0, "init")
    policy = build_policy(trained, game, rng, saved.num_parameters)
    policy = policy_to(policy, trained.policy.name, device)
    restore_weights(policy, saved.policy)
    if cfg is None or (cfg.sampling.name == "argmax" and cfg.sampling.ties is None):
        sampling = build_greedy(trained)
    else:
        sampling = build_sampling(cfg)
    return Agent(game, policy.eval(), sampling)


def load_shipped_agent(cfg: DictConfig) -> Agent | None:
    """The agent that comes with rlgames for the game of cfg; None where there is none or the rules
    differ."""
    path = shipped_agent(str(cfg.game.name))
    if path is None:
        return None
    trained, rules = arguments(trained_config(path).game), arguments(cfg.game)
    if any(trained.get(k) != v for k, v in rules.items() if k not in PRESENTATION_KEYS):
        return None
    agent = load_agent(path)
    return Agent(agent.game.to(cfg.device), agent.policy.to(cfg.device), agent.sampling)


@sanitize_errors()
def init_policy_from(run: Path, cfg: DictConfig, policy: Policy) -> None:
    """Load the weights of a run into the policy that cfg describes.

    N-tuples may have other stages. A value head that only the policy has keeps its initial weights;
    one that only the run has is left out. Raises ConfigError if the run has another game or policy,
    or may have seen layouts that cfg holds out.
    """
    if not os.path.exists(run):  # Path.exists raises for names that are too long
        raise ConfigError(f"there is no run at {run}", "init_from= names a run or a checkpoint")
    checkpoint = Checkpoint.read(checkpoint_path(run))
    trained = from_plain(checkpoint.config)
    _check_same_parts(run, trained, cfg)
    weights, initial = checkpoint.policy, policy.state_dict()
    if isinstance(policy, Ntuple):
        weights = policy.promote(weights, trained.policy.get("stage_tiles") or ())
    loaded = {
        name: tensor
        for name, tensor in weights.items()
        if name in initial or not _is_in_value_head(name)
    }
    added = {
        name: tensor
        for name, tensor in initial.items()
        if name not in weights and _is_in_value_head(name)
    }
    restore_weights(policy, loaded | added)


def _check_same_parts(run: Path, trained: DictConfig, cfg: DictConfig) -> None:
    """Raises ConfigError unless the weights of a run fit cfg."""
    for group, ignored in (("game", RULES_OUTSIDE_POLICIES), ("policy", ("init", "stage_tiles"))):
        old, new = dict(trained[group]), dict(cfg[group])
        for name in new:
            if name not in ignored and old.get(name) != new[name]:
                raise ConfigError(
                    f"{run} has {group} {name}={old.get(name)}, and this run {name}={new[name]}",
                    "init_from= needs the same game and policy",
                )
    holdout = trained.get("holdout", 0.0)
    if cfg.holdout and (holdout, trained.seed) != (cfg.holdout, cfg.seed):
        raise ConfigError(
            f"{run} may have seen the layouts that holdout={cfg.holdout:g} holds out",
            f"it was trained with holdout={holdout:g} seed={trained.seed}",
        )


def _is_in_value_head(name: str) -> bool:
    """Whether a tensor belongs to the value head of a network or of one of its stages."""
    return "value" in name.split(".")


def build_player(
    node: DictConfig, cfg: DictConfig, game: Game[Any], search: DictConfig | None = None
) -> Player:
    """The player that a node of cfg names, for cfg's game, with a search around it if given.

    Raises ConfigError for a player that does not play this game.
    """
    player = _build_bare_player(node, cfg, game)
    return with_search(player, game, search, Path(node.path) if node.name == "run" else None)


def with_search(
    player: Player, game: Game[Any], search: DictConfig | None, run: Path | None
) -> Player:
    """The player with a search around it, if given; run: where the player was trained, if so."""
    if search is None:
        return player
    reward = None if run is None else trained_config(run).reward
    return build_search(search, game, player, reward)


def make_advisor(player: Player) -> Player:
    """A player with informative probabilities: those of a greedy agent and of a search are 0 and
    1, so use the policy's own and what the search found instead."""
    if isinstance(player, Search):
        return SearchPolicy(player)
    if isinstance(player, Agent):
        return Agent(player.game, player.policy, Stochastic())
    return player


def _build_bare_player(node: DictConfig, cfg: DictConfig, game: Game[Any]) -> Player:
    """The player without a search."""
    if node.name == "run":
        return _load_opponent(Path(node.path), cfg)
    if REGISTRY["player"][node.name].training_only:
        raise ConfigError(f"player={node.name} exists in training only", "name another player")
    try:
        player: Player = load_part("player", node.name)(game, **arguments(node))
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return player


@sanitize_errors()
def _load_opponent(run: Path, cfg: DictConfig) -> Agent:
    """The greedy agent of a run, which looks ahead by the rules of cfg. Raises ConfigError, before
    it is built, if it was trained on another game than cfg's."""
    trained = trained_config(run)
    if trained.game.name != cfg.game.name:
        raise ConfigError(
            f"{run} was trained on {trained.game.name}, not on {cfg.game.name}",
            "players must play the same game",
        )
    old, new = arguments(trained.game), arguments(cfg.game)
    for name in new:
        # Each network may encode the board in its own way.
        may_differ = name in PRESENTATION_KEYS or name in RULES_OUTSIDE_POLICIES
        if not may_differ and old.get(name) != new[name]:
            raise ConfigError(
                f"{run} was trained with {name}={old.get(name)}, not with {name}={new[name]}",
                "players must play the same game",
            )
    agent = load_agent(run)
    for name in RULES_OUTSIDE_POLICIES:
        if name in new:
            trained.game[name] = new[name]
    return Agent(build_game(trained).to(cfg.device), agent.policy.to(cfg.device), agent.sampling)
