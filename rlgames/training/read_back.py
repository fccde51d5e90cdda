"""Refuses, before the first game, what a checkpoint of a user's parts could not be read back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlgames.core.errors import ConfigError
from rlgames.core.own_parts import is_own
from rlgames.core.tensor_checks import load_weights
from rlgames.core.untrusted import sanitized
from rlgames.runs.checkpoint import Checkpoint
from rlgames.training.parts import Training


def check_readable(training: Training, checkpoint: Checkpoint) -> None:
    """Load what a training has just put into its first checkpoint into the parts that it is of.

    Only parts of the user are loaded, whose weights are few: tests load the others. Raises
    ConfigError, with the name of the part, for what cannot be written or loaded.
    """
    cfg, read = training.cfg, checkpoint.as_read()
    policy, learner = training.agent.policy, training.learner
    if any(map(is_own, policy.modules())):
        _load(f"policy={cfg.policy.name}", lambda state: load_weights(policy, state), read.policy)
    if is_own(learner):
        _load(f"learner={cfg.learner.name}", learner.load_state_dict, read.state["learner"])
    for index, player in enumerate(training.source.games.players):
        if is_own(player):
            state = read.state["source"]["players"][str(index)]
            _load(type(player).own_name, player.load_state_dict, state)  # type: ignore[attr-defined]


def _load(name: str, load: Callable[[Any], Any], state: Any) -> None:
    try:
        load(state)
    except Exception as error:  # whatever a user's part raises
        is_plain = isinstance(error, ValueError)
        reason = sanitized(error if is_plain else f"{type(error).__name__}: {error}")
        raise ConfigError(f"{name} cannot be read back from a checkpoint: {reason}") from None
