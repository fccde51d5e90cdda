"""Players by name, and trained agents from checkpoints."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from rlgames.config.commands import TrainConfig
from rlgames.config.options.players import ExactConfig, RunPlayerConfig
from rlgames.config.options.sampling import ArgmaxConfig
from rlgames.config.registry import REGISTRY, load_option
from rlgames.config.schema import OptionConfig, arguments
from rlgames.config.typed import from_plain, make_option, sanitize_errors
from rlgames.core.devices import find_device_or_cpu
from rlgames.core.errors import ConfigError, value_errors
from rlgames.core.rng import make_generator
from rlgames.factory.components import (
    build_game,
    build_greedy,
    build_policy,
    build_reward,
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
from rlgames.runs.checkpoint import BadCheckpoint, Checkpoint, restore_weights
from rlgames.runs.files import BEST, BEST_IN_WORDS, FINAL_IN_WORDS, LATEST
from rlgames.runs.find import find_run, newest_run, run_name, shipped_agent
from rlgames.sampling import Stochastic
from rlgames.search.policy import SearchPolicy
from rlgames.search.search import Search

TRAINING_POSITIONS = 200_000
"""Searched for each move of player=exact in training, if the config sets no limit."""

RULES_OUTSIDE_POLICIES = ("target", "fours")
"""Rules of 2048 that a policy need not share with the run that uses it: the same positions and
actions, with other chances and another goal."""


def checkpoint_path(run: Path, name: str | None = None) -> Path:
    """A checkpoint of a run directory, or the file itself.

    name: "best", which evaluations during training selected; "latest", which a run resumes from;
    or "final", the latest one of a finished training. None: the best, or the latest without it.
    Raises ConfigError where there is none, and as storage.check_plain.
    """
    if not run.is_dir():
        if name is not None:
            raise ConfigError(f"{run_name(run)} is not a run directory", f"omit checkpoint={name}")
        return run.resolve() if run.is_symlink() else run  # a link that was typed is followed
    storage.check_plain(run)
    files = {None: (BEST, LATEST), "best": (BEST,), "final": (LATEST,), "latest": (LATEST,)}[name]
    for file in files:
        path = run / "checkpoints" / file
        if path.exists():
            if name == "final" and not is_final(Checkpoint.read(path)):
                raise ConfigError(
                    f"the training of {run_name(run)} is not finished", "use checkpoint=latest"
                )
            return path
    if name is not None and (run / "checkpoints").is_dir() and any((run / "checkpoints").iterdir()):
        raise ConfigError(f"{run_name(run)} has no {name} checkpoint", f"omit checkpoint={name}")
    newest = newest_run(run)
    suggestion = "" if newest is None else f"; its newest run is {shlex.quote(str(newest))}"
    raise ConfigError(
        f"{run_name(run)} holds no checkpoint",
        f"name a run directory or a checkpoint file{suggestion}",
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
    elif path.name == LATEST and is_final(checkpoint):
        words = FINAL_IN_WORDS
    return {"checkpoint": words, "checkpoint_games": checkpoint.games}


def trained_config(run: Path) -> TrainConfig:
    """The config that a run was trained with, checked like other untrusted text."""
    path = checkpoint_path(run)
    try:
        return from_plain(Checkpoint.read(path).config)
    except BadCheckpoint:
        if path.name != BEST:
            raise
        return from_plain(Checkpoint.read(path.with_name(LATEST)).config)


@sanitize_errors()
def load_agent(
    run: Path,
    sampling: OptionConfig | None = None,
    device: torch.device | None = None,
    checkpoint: str | None = None,
) -> Agent:
    """A run's policy.

    Args:
        sampling: the sampling rule; None: greedy.
        device: None: the device of its training or, if that is missing, the CPU.
        checkpoint: see checkpoint_path.

    Raises:
        ConfigError: for a file that does not hold an agent, also as BadCheckpoint.
    """
    saved = Checkpoint.read(checkpoint_path(run, checkpoint))
    trained = from_plain(saved.config)
    device = device or find_device_or_cpu(trained.device)
    game = build_game(trained.game).to(device)
    policy = build_policy(
        trained.policy,
        trained.learner,
        build_reward(trained.reward, game),
        game,
        make_generator(0, "init"),
    )
    policy = policy_to(policy, trained.policy.name, device)
    restore_weights(policy, saved.policy)
    if sampling is None or (isinstance(sampling, ArgmaxConfig) and sampling.ties is None):
        rule = build_greedy(trained.sampling)
    else:
        rule = build_sampling(sampling)
    return Agent(game, policy.eval(), rule)


def load_shipped_agent(rules: OptionConfig, device: torch.device) -> Agent | None:
    """The agent that comes with rlgames for a game; None if there is none or the rules differ."""
    path = shipped_agent(rules.name)
    if path is None or differing_key(trained_config(path).game, rules, PRESENTATION_KEYS):
        return None
    return load_agent(path, device=device)


@sanitize_errors()
def init_policy_from(run: Path, cfg: TrainConfig, policy: Policy) -> None:
    """Load the weights of a run into the policy of a training.

    N-tuples may have other stages. A value head that only the policy has keeps its initial weights;
    one that only the run has is left out. Raises ConfigError if the run has another game or policy,
    or may have seen layouts that the training holds out.
    """
    if not os.path.exists(run):  # Path.exists raises for names that are too long
        raise ConfigError(f"there is no run at {run}", "init_from= names a run or a checkpoint")
    checkpoint = Checkpoint.read(checkpoint_path(run))
    trained = from_plain(checkpoint.config)
    _check_same(run, "game", trained.game, cfg.game, RULES_OUTSIDE_POLICIES)
    _check_same(run, "policy", trained.policy, cfg.policy, ("init", "stage_tiles"))
    if cfg.holdout and (trained.holdout, trained.seed) != (cfg.holdout, cfg.seed):
        raise ConfigError(
            f"{run_name(run)} may have seen the layouts that holdout={cfg.holdout:g} holds out",
            f"it was trained with holdout={trained.holdout:g} seed={trained.seed}",
        )
    weights, initial = checkpoint.policy, policy.state_dict()
    if isinstance(policy, Ntuple):
        weights = policy.promote(weights, getattr(trained.policy, "stage_tiles", None) or ())
    heads = {name: tensor for name, tensor in initial.items() if _is_in_value_head(name)}
    loaded = {
        name: tensor
        for name, tensor in weights.items()
        if name in initial or not _is_in_value_head(name)
    }
    restore_weights(policy, heads | loaded)


def _check_same(
    run: Path, group: str, old: OptionConfig, new: OptionConfig, ignored: Sequence[str]
) -> None:
    """Raises ConfigError unless the weights of a run fit an option of a training."""
    if name := differing_key(old, new, ignored):
        raise ConfigError(
            f"{run_name(run)} has {group} {name}={getattr(old, name, None)}, "
            f"and this run {name}={getattr(new, name)}",
            "init_from= needs the same game and policy",
        )


def differing_key(old: OptionConfig, new: OptionConfig, ignored: Sequence[str]) -> str:
    """The first key of an option, or its name, whose value another one lacks; empty for none."""
    differ = (name for name, value in vars(new).items() if getattr(old, name, None) != value)
    return next((name for name in differ if name not in ignored), "")


def _is_in_value_head(name: str) -> bool:
    """Whether a tensor belongs to the value head of a network or of one of its stages."""
    return "value" in name.split(".")


def build_player(
    config: OptionConfig,
    game: Game[Any],
    rules: OptionConfig,
    search: OptionConfig | None = None,
    *,
    in_training: bool = False,
) -> Player:
    """The player that a config names, for a game and its rules, with a search around it if given.

    in_training: its moves may not depend on the machine unless the config says so.
    Raises ConfigError for a player that does not play this game.
    """
    run = find_run(config.path) if isinstance(config, RunPlayerConfig) else None
    if run is not None:
        return with_search(_load_opponent(run, game, rules), game, search, run)
    if REGISTRY["player"][config.name].training_only:
        raise ConfigError(f"player={config.name} exists in training only", "name another player")
    keys = arguments(config)
    if isinstance(config, ExactConfig):
        keys["make_stand_in"] = partial(_shipped_search, rules, game)
        if in_training and config.move_positions is None and config.move_seconds is None:
            keys["move_positions"] = TRAINING_POSITIONS
    with value_errors():
        player: Player = load_option("player", config.name)(game, **keys)
    return with_search(player, game, search, None)


def _shipped_search(rules: OptionConfig, game: Game[Any]) -> Player | None:
    """The agent that comes with rlgames for a game of k in a row, with alpha-beta search."""
    agent = load_shipped_agent(rules, game.device)
    search = make_option("search", "alphabeta")
    return None if agent is None else build_search(search, game, agent, None)


def with_search(
    player: Player, game: Game[Any], search: OptionConfig | None, run: Path | None
) -> Player:
    """The player with a search around it, if given; run: where the player was trained, if so."""
    if search is None:
        return player
    reward = None if run is None else trained_config(run).reward
    return build_search(search, game, player, reward)


def make_advisor(player: Player) -> Player:
    """A player with informative probabilities: a greedy agent and a search have only 0 and
    1, so use the policy's own, unless its scores are values, and what the search found instead."""
    if isinstance(player, Search):
        return SearchPolicy(player)
    if isinstance(player, Agent) and player.policy.scores_are_logits:
        return Agent(player.game, player.policy, Stochastic())
    return player


@sanitize_errors()
def _load_opponent(run: Path, game: Game[Any], rules: OptionConfig) -> Agent:
    """The greedy agent of a run, which looks ahead by the rules of the game. Raises ConfigError,
    before it is built, if it was trained on another game."""
    trained = trained_config(run).game
    if trained.name != rules.name:
        raise ConfigError(
            f"{run_name(run)} was trained on {trained.name}, not on {rules.name}",
            "players must play the same game",
        )
    # Each network may encode the board in its own way.
    if name := differing_key(trained, rules, (*PRESENTATION_KEYS, *RULES_OUTSIDE_POLICIES)):
        raise ConfigError(
            f"{run_name(run)} was trained with {name}={getattr(trained, name, None)}, "
            f"not with {name}={getattr(rules, name)}",
            "players must play the same game",
        )
    agent = load_agent(run, device=game.device)
    followed = {name: vars(rules)[name] for name in RULES_OUTSIDE_POLICIES if name in vars(rules)}
    own_rules = dataclasses.replace(trained, **followed)
    return Agent(build_game(own_rules).to(game.device), agent.policy, agent.sampling)
