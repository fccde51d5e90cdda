"""Opens runs and checkpoints, and makes their agents."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlgames.build.policies import greedy_rule, new_policy
from rlgames.config.commands import TrainConfig
from rlgames.config.options.sampling import ArgmaxConfig
from rlgames.config.registry import make
from rlgames.config.schema import OptionConfig
from rlgames.config.typed import from_plain, sanitize_errors
from rlgames.core.devices import find_device_or_cpu
from rlgames.core.errors import ConfigError
from rlgames.games.game import PRESENTATION_KEYS
from rlgames.players.player import Agent
from rlgames.policies.policy import Policy
from rlgames.rng import Rng
from rlgames.runs import storage
from rlgames.runs.checkpoint import Checkpoint, read_identity, restore_weights
from rlgames.runs.files import BEST, BEST_IN_WORDS, FINAL_IN_WORDS, LATEST
from rlgames.runs.find import newest_run, run_name, shipped_agent

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
        policy = new_policy(trained, game, Rng(0, "init").generator())
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
    check_same(opened, "game", cfg.game, RULES_OUTSIDE_POLICIES, hint)
    check_same(opened, "policy", cfg.policy, ("init",), hint)
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


def check_same(
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
