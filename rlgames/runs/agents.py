"""Players by name, and trained agents from checkpoints."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlgames.config.commands import TrainConfig
from rlgames.config.options.players import ExactConfig, RunPlayerConfig
from rlgames.config.options.rewards import RewardConfig
from rlgames.config.options.sampling import ArgmaxConfig
from rlgames.config.options.search import ExpectimaxConfig, MctsConfig
from rlgames.config.registry import REGISTRY, load_option, make
from rlgames.config.schema import OptionConfig, arguments
from rlgames.config.typed import from_plain, make_option, sanitize_errors
from rlgames.core.devices import find_device_or_cpu
from rlgames.core.errors import ConfigError
from rlgames.core.rng import make_generator
from rlgames.games.game import PRESENTATION_KEYS, Game
from rlgames.players.player import Agent, Player
from rlgames.policies.build import build_policy, policy_to
from rlgames.policies.policy import Policy
from rlgames.rewards import Reward, scored_term
from rlgames.runs import storage
from rlgames.runs.checkpoint import Checkpoint, read_identity, restore_weights
from rlgames.runs.files import BEST, BEST_IN_WORDS, FINAL_IN_WORDS, LATEST
from rlgames.runs.find import find_run, newest_run, run_name, shipped_agent
from rlgames.sampling import Sampling, Stochastic

TRAINING_POSITIONS = 200_000
"""Searched for each move of player=exact in training, if the config sets no limit."""

RULES_OUTSIDE_POLICIES = ("target", "fours")
"""Rules of 2048 that a policy need not share with the run that uses it: the same positions and
actions, with other chances and another goal."""


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A checkpoint of a run, read once.

    path: of the run. config: the one that it was trained with. games: played before the checkpoint
    was saved. checkpoint: its name, for people. digest: its checksum. weights: of the policy, by
    name.
    """

    path: Path
    config: TrainConfig
    games: int
    checkpoint: str
    digest: str | None
    weights: dict[str, Tensor] = field(repr=False)

    @property
    def name(self) -> str:
        """What a person types for the run, and reports call it."""
        return run_name(self.path)

    def fields(self) -> dict[str, Any]:
        """What a report says of the checkpoint."""
        return {"checkpoint": self.checkpoint, "checkpoint_games": self.games}

    @sanitize_errors()
    def agent(
        self, sampling: OptionConfig | None = None, device: torch.device | None = None
    ) -> Agent:
        """The run's policy. Raises ConfigError, also as BadCheckpoint, for another game's.

        sampling: None: greedy. device: None: the one of its training or, if it is missing, the CPU.
        """
        trained = self.config
        device = device or find_device_or_cpu(trained.device)
        game = make("game", trained.game).to(device)
        policy = new_policy(trained, game, make_generator(0, "init"))
        restore_weights(policy, self.weights)
        if sampling is None or (isinstance(sampling, ArgmaxConfig) and sampling.ties is None):
            rule = greedy_rule(trained)
        else:
            rule = make("sampling", sampling)
        return Agent(game, policy.eval(), rule)


@sanitize_errors()
def open_run(run: Path, name: str | None = None) -> OpenRun:
    """Open a checkpoint of a run directory, or the file itself.

    name: "best", which evaluations during training selected; "latest", which a run resumes from;
    or "final", the latest one of a finished training. None: the best, or the latest without it.
    Raises ConfigError where there is none, also as BadCheckpoint and as storage.check_plain.
    """
    path = _checkpoint_path(run, name)
    checkpoint = Checkpoint.read(path)
    config = from_plain(checkpoint.config)
    progress = checkpoint.state.get("progress")
    has_converged = isinstance(progress, dict) and progress.get("has_converged") is True
    is_final = path.name == LATEST and (has_converged or checkpoint.games >= config.games)
    if name == "final" and not is_final:
        raise ConfigError(
            f"the training of {run_name(run)} is not finished", "use checkpoint=latest"
        )
    words = {BEST: BEST_IN_WORDS} | ({LATEST: FINAL_IN_WORDS} if is_final else {})
    shown = words.get(path.name, path.stem)
    digest = read_identity(path)
    return OpenRun(run, config, checkpoint.games, shown, digest, checkpoint.policy)


def checkpoint_digest(run: Path, name: str | None = None) -> str | None:
    """The checksum of the checkpoint that open_run opens; None if there is none."""
    try:
        return read_identity(_checkpoint_path(run, name))
    except ConfigError:
        return None


def _checkpoint_path(run: Path, name: str | None) -> Path:
    if not run.is_dir():
        if name is not None:
            raise ConfigError(f"{run_name(run)} is not a run directory", f"omit checkpoint={name}")
        return run.resolve() if run.is_symlink() else run  # a link that was typed is followed
    storage.check_plain(run)
    files = {None: (BEST, LATEST), "best": (BEST,), "final": (LATEST,), "latest": (LATEST,)}[name]
    folder = run / "checkpoints"
    for file in files:
        if (folder / file).exists():
            return folder / file
    if name is not None and folder.is_dir() and any(folder.iterdir()):
        raise ConfigError(f"{run_name(run)} has no {name} checkpoint", f"omit checkpoint={name}")
    hint = "name a run directory or a checkpoint file"
    if newest := newest_run(run):
        hint += f"; its newest run is {shlex.quote(str(newest))}"
    raise ConfigError(f"{run_name(run)} holds no checkpoint", hint)


def greedy_rule(trained: TrainConfig) -> Sampling:
    """The greedy rule of a run, with ties as in its sampling rule during training."""
    rule: Sampling = make("sampling", trained.sampling)
    return rule.greedy_rule()


def new_policy(cfg: TrainConfig, game: Game[Any], rng: torch.Generator) -> Policy:
    """The policy of a training before its first update, on the game's device.

    rng: draws its weights.
    Raises ConfigError for a policy that the game, learner or memory does not allow.
    """
    check_policy_fits(cfg.policy.name, cfg.learner.name)
    reward, learner = make_reward(cfg.reward, game), load_option("learner", cfg.learner.name)
    policy = build_policy(
        cfg.policy.name,
        load_option("policy", cfg.policy.name),
        arguments(cfg.policy),
        game,
        rng,
        trains_logits=learner.trains_logits,
        trains_afterstates=learner.trains_afterstates,
        has_value=learner.has_value_head(cfg.learner),
        score_scale=reward.scale if reward.scored == "score_delta" else 0.0,
        payoffs=reward.payoffs,
    )
    return policy_to(policy, cfg.policy.name, game.device)


def check_policy_fits(policy: str, learner: str) -> None:
    """Raises ConfigError for a policy that the learner does not train, naming those it does."""
    trained_class = load_option("learner", learner).policy_class
    if issubclass(load_option("policy", policy), trained_class):
        return
    options = REGISTRY["policy"].items()
    trained = [name for name, option in options if issubclass(option.load(), trained_class)]
    raise ConfigError(
        f"learner={learner} does not train policy={policy}",
        "it trains " + ", ".join(f"policy={name}" for name in trained),
    )


def make_reward(config: RewardConfig, game: Game[Any]) -> Reward:
    """Raises ConfigError for a reward that the game does not know."""
    reward: Reward = make("reward", config, game, hint=f"use reward={game.spec.goal}")
    return reward


def load_shipped_agent(rules: OptionConfig, device: torch.device) -> Agent | None:
    """The bundled agent for a game; None if there is none or the rules differ."""
    run = open_shipped_agent(rules)
    return None if run is None else run.agent(device=device)


def open_shipped_agent(rules: OptionConfig) -> OpenRun | None:
    """The same, not built."""
    path = shipped_agent(rules.name)
    run = None if path is None else open_run(path)
    is_other = run is None or differing_key(run.config.game, rules, PRESENTATION_KEYS)
    return None if is_other else run


@sanitize_errors()
def init_policy_from(run: Path, cfg: TrainConfig, policy: Policy) -> None:
    """Load the weights of a run into the policy of a training.

    A value head that only the policy has keeps its initial weights; one that only the run has is
    left out. Raises ConfigError if the run has another game or policy,
    or may have seen layouts that the training holds out.
    """
    opened = open_run(run)
    trained, weights = opened.config, opened.weights
    hint = "init_from= needs the same game and policy"
    _check_same(opened, "game", cfg.game, RULES_OUTSIDE_POLICIES, hint)
    _check_same(opened, "policy", cfg.policy, ("init",), hint)
    if cfg.holdout and (trained.holdout, trained.seed) != (cfg.holdout, cfg.seed):
        raise ConfigError(
            f"{opened.name} may have seen the layouts that holdout={cfg.holdout:g} holds out",
            f"it was trained with holdout={trained.holdout:g} seed={trained.seed}",
        )
    initial = policy.state_dict()
    # A value head, also of one stage of several.
    heads = {name for name in (*initial, *weights) if "value" in name.split(".")}
    kept = {name: initial[name] for name in heads & {*initial}}
    loaded = {name: weights[name] for name in weights if name in initial or name not in heads}
    restore_weights(policy, kept | loaded)


def _check_same(
    run: OpenRun, group: str, new: OptionConfig, ignored: Sequence[str], hint: str
) -> None:
    """Raises ConfigError if a run was trained with another option of a group, or with other values
    of keys that are not ignored."""
    old = getattr(run.config, group)
    name = differing_key(old, new, ignored)
    if name:
        key = group if name == "name" else name
        values = f"{key}={getattr(old, name, None)}, not with {key}={getattr(new, name)}"
        raise ConfigError(f"{run.name} was trained with {values}", hint)


def differing_key(old: OptionConfig, new: OptionConfig, ignored: Sequence[str]) -> str:
    """The first key of an option, or its name, whose value another one lacks; empty for none."""
    differ = (name for name, value in vars(new).items() if getattr(old, name, None) != value)
    return next((name for name in differ if name not in ignored), "")


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
    if isinstance(config, RunPlayerConfig):
        run = open_run(find_run(config.path))
        return with_search(opponent_agent(run, game, rules), game, search, run.config.reward)
    if REGISTRY["player"][config.name].training_only:
        raise ConfigError(f"player={config.name} exists in training only", "name another player")
    more: dict[str, Any] = {}
    if isinstance(config, ExactConfig):
        more["make_stand_in"] = partial(_shipped_search, rules, game)
        if in_training and config.move_positions is None and config.move_seconds is None:
            more["move_positions"] = TRAINING_POSITIONS
    return with_search(make("player", config, game, **more), game, search, None)


def _shipped_search(rules: OptionConfig, game: Game[Any]) -> Player | None:
    """The bundled agent for a game of k in a row, with alpha-beta search."""
    agent = load_shipped_agent(rules, game.device)
    search = make_option("search", "alphabeta")
    return None if agent is None else with_search(agent, game, search, None)


def with_search(
    player: Player, game: Game[Any], search: OptionConfig | None, reward: RewardConfig | None
) -> Player:
    """The player with a search around it, if given; reward: what a trained player learned from.

    Raises ConfigError if search, player and game cannot be combined.
    """
    if search is None:
        return player
    keys = arguments(search)
    if isinstance(search, MctsConfig) and search.leaf == "value" and reward is not None:
        keys |= _value_head_units(search.value, game, reward)
    if isinstance(search, ExpectimaxConfig) and reward is not None:
        keys["discount"] = reward.discount
    from rlgames.search.build import build_search

    return build_search(load_option("search", search.name), keys, game, player)


def make_advisor(player: Player) -> Player:
    """A player with informative probabilities: a greedy agent and a search have only 0 and
    1, so use the policy's own, unless its scores are values, and what the search found instead."""
    from rlgames.search.search import Search, SearchPolicy

    if isinstance(player, Search):
        return SearchPolicy(player)
    if isinstance(player, Agent) and player.policy.scores_are_logits:
        return Agent(player.game, player.policy, Stochastic(1.0))
    return player


@sanitize_errors()
def opponent_agent(run: OpenRun, game: Game[Any], rules: OptionConfig) -> Agent:
    """The greedy agent of a run, which looks ahead by the rules of the game. Raises ConfigError,
    before it is built, if it was trained on another game."""
    # Each network may encode the board in its own way.
    ignored = (*PRESENTATION_KEYS, *RULES_OUTSIDE_POLICIES)
    _check_same(run, "game", rules, ignored, "players must play the same game")
    agent = run.agent(device=game.device)
    followed = {name: vars(rules)[name] for name in RULES_OUTSIDE_POLICIES if name in vars(rules)}
    own_rules = dataclasses.replace(run.config.game, **followed)
    return Agent(make("game", own_rules).to(game.device), agent.policy, agent.sampling)


def _value_head_units(
    searched: str | None, game: Game[Any], reward: RewardConfig
) -> dict[str, Any]:
    """What a value head predicts, how much of it one unit is, and its discount, as arguments of a
    search; searched: search.value."""
    unclear = ConfigError(
        f"search.leaf=value cannot tell what the value head learned from reward={reward.name}",
        "use search.leaf=rollout",
    )
    if load_option("reward", reward.name) is not Reward:
        raise unclear
    has_two_seats = game.spec.seats == 2
    value = scored_term(reward.scored, game)
    if value == "score_delta":
        value = "outcome" if has_two_seats else "score"
    is_symmetric = reward.win == -reward.loss > 0 and not any(reward.draws)
    is_clear = (
        value in ("outcome", "turns", "score", *game.measures(game.example_state()))
        and reward.minus == "nothing"
        and reward.scored != "score"
        and (is_symmetric or not has_two_seats)
    )
    if not is_clear:
        raise unclear
    if searched not in (None, value):
        raise ConfigError(f"search.value={searched} is not what the run learned: {value}")
    return {
        "value": value,
        "value_scale": 1 / (reward.scale * (reward.win if has_two_seats else 1)),
        "discount": reward.discount,
    }
