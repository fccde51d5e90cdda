"""Checks that a batch, a replay buffer and a policy fit in memory, before anything is allocated."""

from __future__ import annotations

import math
import re
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlgames.core.errors import ConfigError
from rlgames.games.game import Game, State


def check_batch_memory(batch: int, window: int | None, game: Game[Any]) -> None:
    """Raises ConfigError if the moves of one batch do not fit in free memory."""
    size = bytes_of_game(game, window)
    check_fits_in_memory(f"batch={batch}", "for its moves", batch, size, "batch={} fits")


def bytes_of_game(game: Game[Any], window: int | None = None) -> int:
    """The memory to learn from a game as long as its rules, or a window of it, allow.

    Counted per move: its position, its observation twice (as played and as trained on), and per
    action a mask and four floats (scores, log-probabilities and their gradients).
    """
    spec = game.spec
    cells = math.prod(spec.observation[1:])
    move_bytes = 4 * cells + 8 * math.prod(spec.observation) + 17 * spec.actions
    # Rules may hardly bound the length of a game; 100 plies per cell exceed any likely one.
    return move_bytes * min(window or spec.max_plies, spec.max_plies, 100 * cells)


def check_evaluation_memory(key: str, games: int, game: Game[Any], factor: int = 1) -> None:
    """Raises ConfigError if what an evaluation of factor * games games keeps does not fit in free
    memory.

    key: the config key that sets `games`. Counted per game: its final position twice (as it ended
    and in order), and 100 bytes for seats, lengths, scores and weights.
    """
    size = factor * (2 * _state_bytes(game.example_state()) + 100)
    check_fits_in_memory(f"{key}={games}", "for final states", games, size, key + "={} fits")


def _state_bytes(state: State) -> int:
    return sum(column.nbytes for column in vars(state).values() if isinstance(column, Tensor))


def check_replay_memory(
    buffer_size: int, minibatch_size: int, has_search: bool, game: Game[Any]
) -> None:
    """Raises ConfigError if buffer_size moves, or a step on minibatch_size of them, do not fit in
    free memory.

    Counted per move: its position, 32 bytes for reward and links, and a search target if any.
    """
    row_bytes = _state_bytes(game.public(game.example_state())) + 32
    target_bytes = 4 * game.spec.actions if has_search else 0
    step_bytes = 8 * math.prod(game.spec.observation) + 17 * game.spec.actions
    for key, count, why, size in (
        ("buffer_size", buffer_size, "for the replay buffer", row_bytes + target_bytes),
        ("minibatch_size", minibatch_size, "for a step", step_bytes),
    ):
        key = f"learner.{key}"
        check_fits_in_memory(f"{key}={count}", why, count, size, key + "={} fits")


COPIES_PER_WEIGHT = 4
"""Of a network: a weight, its gradient and the optimizer's two running means."""

MORE_BYTES = 1 << 28
"""What a training takes besides its weights: kernels, evaluations and pages of files."""

CONTROL_GROUPS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)
"""Versions 2 and 1: the folder of all groups, and a group's files of its limit and its use."""

CACHES = ("inactive_file", "active_file")
"""In a group's memory.stat: pages of files, which count as used and make room when needed."""


def check_weight_memory(
    name: str, weights: int, held: int = 0, copies: int = COPIES_PER_WEIGHT
) -> None:
    """Raises ConfigError if training this many weights does not fit in free memory.

    held: bytes of the weights, if they are there already. copies: floats per weight. What is said
    also counts what the process has taken before, for Python and torch, and if the weights are
    large, MORE_BYTES.
    """
    check_fits_in_memory(
        f"policy={name} with {weights:,} weights",
        "to train",
        weights,
        4 * copies,
        "{:,} would fit",
        held,
        resident_memory() - held,
        MORE_BYTES if 4 * copies * weights > MORE_BYTES else 0,
    )


def check_fits_in_memory(
    what: str,
    why: str,
    count: int,
    size: int,
    hint: str,
    held: int = 0,
    taken: int = 0,
    more: int = 0,
) -> None:
    """Raises ConfigError if count items of size bytes each do not fit in free memory.

    hint: what fits, with {} for the largest count. held: bytes of these items that are no longer
    free because they are there already. taken, more: bytes of the process besides that are taken
    already and that will be, both counted in what is said.
    """
    free = free_memory()
    free = None if free is None else free + held
    if free is not None and more + count * size > free:
        raise ConfigError(
            f"{what} may need {(taken + more + count * size) / 2**30:.1f} GiB {why}, and "
            f"{(taken + free) / 2**30:.1f} GiB are free",
            hint.format(max(1, (free - more) // size)),
        )


def free_memory() -> int | None:
    """Bytes available on the machine, in the control groups of this process and under its ulimit;
    None if unknown."""
    machine = re.findall(r"MemAvailable:\s+(\d+)", _text("/proc/meminfo"))
    free = [int(kibibytes) * 1024 for kibibytes in machine]
    for group in re.findall(r"^\d+:(?:|.*\bmemory\b.*):(/.*)$", _text("/proc/self/cgroup"), re.M):
        # A container sees its group as the root; elsewhere the limits of all parents count.
        for folder in (Path(group), *Path(group).parents):
            for root, limit, usage in CONTROL_GROUPS:
                numbers = [_text(f"{root}{folder}/{name}").strip() for name in (limit, usage)]
                if all(number.isdecimal() for number in numbers):
                    caches = _statistics(_text(f"{root}{folder}/memory.stat"))
                    free.append(int(numbers[0]) - int(numbers[1]) + caches)
    pages = [int(count) for count in _text("/proc/self/statm").split()]
    for kind, field in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
        size = resource.getrlimit(kind)[0]
        if pages and size != resource.RLIM_INFINITY:
            free.append(size - pages[field] * resource.getpagesize())
    return max(0, min(free)) if free else None


def resident_memory() -> int:
    """Bytes of memory that this process takes, with mapped files; 0 if unknown."""
    pages = [int(count) for count in _text("/proc/self/statm").split()]
    return pages[1] * resource.getpagesize() if pages else 0


def _statistics(text: str) -> int:
    """The sum of CACHES; version 1 has totals with the groups below, under other names."""
    lines = [line.split() for line in text.splitlines()]
    numbers = {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdecimal()}
    return sum(numbers.get(f"total_{name}", numbers.get(name, 0)) for name in CACHES)


def _text(path: str) -> str:
    """The text of a file of the system; "" if there is none."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def count_parameters(make: Callable[[], torch.nn.Module]) -> int:
    """The number of weights of a network, made without memory for them; 0 if unknown."""
    try:
        with torch.device("meta"):
            return sum(weight.numel() for weight in make().parameters())
    except (NotImplementedError, RuntimeError):
        return 0
