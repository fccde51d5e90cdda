"""Checkpoints of earlier formats, step by step to the present one.

A migration is a function that changes the config and the state of a checkpoint in place, from one
format to the next. Both are untrusted: a migration renames what it knows and leaves the rest to the
checks that follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from rlgames.config.registry import group_of, options_of
from rlgames.config.renamed import RENAMED_KEYS, RENAMED_OPTIONS, RENAMED_VALUES

Tree = dict[str, Any]
"""Maps names without slashes to trees, tensors, numbers, text, None, and lists of these."""

LEARNER_STATE = {
    "memory": "buffer",
    "memory/begun": "num_added",
    "taken": "num_steps",
    "lowest": "lowest_loss",
    "since": "num_evals_since_lowest",
}
"""By the path in a learner's state: the present name of its last part."""

POOL_STATE = {
    "begun": "num_started",
    "step": "ply",
    "last_step": "last_ply",
    "number": "game_index",
    "state/mover": "current_seat",
}
"""The same in the state of open games."""

STATE_NAMES_3 = {
    "marks": "progress",
    "marks/played": "games_played",
    "marks/updates": "num_updates",
    "marks/logged": "logged_at",
    "marks/evaluated": "evaluated_at",
    "marks/saved": "saved_at",
    "marks/kept": "kept_at",
    "marks/converged": "has_converged",
    "lines": "num_log_lines",
    "tally": "metrics",
    "tally/sums/clipped": "clip_fraction",
    "tally/weights/clipped": "clip_fraction",
    "tally/sums/memory": "buffer_size",
    "tally/weights/memory": "buffer_size",
    "tally/games": "num_games",
    "tally/moves": "num_moves",
    "processes/*/lessons": "collector",
    "processes/*/lessons/cloned": "clone_epochs_done",
    "processes/*/lessons/taught": "pretraining",
    "processes/*/lessons/opened": "pool",
    **{f"processes/*/learner/{path}": name for path, name in LEARNER_STATE.items()},
    **{f"processes/*/lessons/taught/{path}": name for path, name in LEARNER_STATE.items()},
    **{f"processes/*/lessons/opened/{path}": name for path, name in POOL_STATE.items()},
}
"""By the path in a state of format 3, with * for any name: the present name of its last part."""


def migrate(format_version: int, config: Tree, state: Tree) -> tuple[Tree, Tree]:
    """The config and the state of a checkpoint of this format in the present one."""
    for step in sorted(MIGRATIONS):
        if step >= format_version:
            config, state = MIGRATIONS[step](config, state)
    return config, state


def _from_3(config: Tree, state: Tree) -> tuple[Tree, Tree]:
    """Format 4 renames options, keys and values of configs, and the parts of the state."""
    return _renamed_config(config), _renamed_tree(state, STATE_NAMES_3)


def _from_4(config: Tree, state: Tree) -> tuple[Tree, Tree]:
    """Format 5 records when cells were hit, and networks on cells see them from the seat to move.

    Raises ValueError for a network that learned from cells seen from the first seat.
    """
    names = [
        part.get("name") for part in map(config.get, ("policy", "game")) if isinstance(part, dict)
    ]
    if names in (["embedding", "tictactoe"], ["embedding", "connect4"]):
        raise ValueError("its policy=embedding saw the board from the first seat; train again")
    return config, _with_hit_turns(state)


def _with_hit_turns(tree: Tree) -> Tree:
    """Positions of battleship with the fields of format 5.

    Of earlier turns only the first hits were recorded; later ones count as hits of the next turn.
    Where sinkings were announced, the network has another shape now and does not load.
    """
    tree = {k: _with_hit_turns(v) if isinstance(v, dict) else v for k, v in tree.items()}
    first, hit = tree.get("first"), tree.get("hit")
    if isinstance(first, Tensor) and isinstance(hit, Tensor) and "sunk" in tree:
        del tree["first"], tree["sunk"]
        turns = torch.where(first, 1, 2 * hit[:, : first.shape[1]].long())
        tree["hit_turn"] = turns.to(torch.int16)
        tree["sunk_turn"] = turns.new_zeros(len(hit), 0).to(torch.int16)
    return tree


MIGRATIONS: dict[int, Callable[[Tree, Tree], tuple[Tree, Tree]]] = {3: _from_3, 4: _from_4}
"""By format: what leads to the next one."""


def _renamed_config(config: Tree) -> Tree:
    names = RENAMED_KEYS["train"]
    renamed = {names.get(str(key), str(key)): value for key, value in config.items()}
    for key, node in renamed.items():
        if isinstance(node, dict):
            renamed[key] = _renamed_option(group_of(key), node)
    return renamed


def _renamed_option(group: str, node: Tree) -> Tree:
    """An option's keys and values by their present names; a plugin's own keys stay."""
    name = RENAMED_OPTIONS.get(group, {}).get(str(node.get("name")), node.get("name"))
    part = options_of(group).get(str(name))
    own = set() if part is None else {item.name for item in fields(part.schema)}
    names = {old: new for old, new in RENAMED_KEYS.get(group, {}).items() if old not in own}
    renamed = {names.get(str(key), str(key)): value for key, value in node.items()}
    renamed |= {"name": name} if "name" in node else {}
    for key, values in RENAMED_VALUES.get(group, {}).items():
        if isinstance(renamed.get(key), str):
            renamed[key] = values.get(renamed[key], renamed[key])
    return renamed


def _renamed_tree(tree: Tree, names: dict[str, str], path: tuple[str, ...] = ()) -> Tree:
    """The tree with every part that names knows by its present name."""
    renamed: Tree = {}
    for key, value in tree.items():
        here = (*path, key)
        name = next((new for old, new in names.items() if _matches(old, here)), key)
        renamed[name] = _renamed_tree(value, names, here) if isinstance(value, dict) else value
    return renamed


def _matches(pattern: str, path: tuple[str, ...]) -> bool:
    parts = pattern.split("/")
    return len(parts) == len(path) and all(
        part in ("*", name) for part, name in zip(parts, path, strict=True)
    )
