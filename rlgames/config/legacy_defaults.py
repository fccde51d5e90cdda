"""Values that keys had before there was a choice, for checkpoints whose configs lack them."""

from __future__ import annotations

from typing import Any

LEGACY_DEFAULTS: dict[tuple[str, str], dict[str, Any]] = {
    ("learner", "reinforce"): {"entropy_coef": 0.0, "entropy_coef_end": None},
    ("learner", "ppo"): {"entropy_coef": 0.0, "entropy_coef_end": None, "epochs": 1},
    ("learner", "td"): {"backend": "torch"},
    ("learner", "td_lambda"): {"minibatches": 1, "max_grad_norm": 1.0},
    ("learner", "dqn"): {"max_grad_norm": 1.0},
    **{
        (group, "exact"): {"move_positions": None, "move_seconds": 0.1}
        for group in ("opponent", "eval_opponent", "teacher")
    },
}
"""By group and option; any other key that a config lacks has its schema's default."""

LEGACY_TRAIN_DEFAULTS: dict[str, Any] = {
    "games": 10_000,
    "batch": 256,
    "lr": 0.001,
    "log_every": 500,
    "logger": {"tensorboard": {"name": "tensorboard"}},
    "engine": {"name": "local"},
}
"""The same for keys at the top of a training's config."""


def with_legacy_defaults(values: dict[str, Any]) -> dict[str, Any]:
    """A training's config with the keys that it lacks and that this table knows."""
    completed = LEGACY_TRAIN_DEFAULTS | values
    for (group, option), keys in LEGACY_DEFAULTS.items():
        node = completed.get(group)
        if isinstance(node, dict) and node.get("name") == option:
            completed[group] = keys | node
    return completed
