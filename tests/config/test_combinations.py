"""Every combination of options that validates trains; every other one is refused in one line."""

import contextlib
import dataclasses
import itertools
import math
from functools import cache
from typing import Any

import pytest
from helpers import check_message, next_games

from rlgames.build.policies import check_policy_fits, make_reward
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import REGISTRY, make
from rlgames.config.typed import make_option
from rlgames.core.errors import ConfigError
from rlgames.training.checks import Plan, check_fits
from rlgames.training.parts import build_training

GROUPS = ("game", "learner", "policy", "reward", "sampling", "search")
Combination = tuple[str, ...]
"""An option of each of GROUPS; the search may be "none"."""

TINY_RULES = {
    "battleship": ["board=3", "ships=[2]"],
    "salvo": ["board=3", "ships=[2]", "shots=2"],
    "salvo_duel": ["board=3", "ships=[2]"],
    "tictactoe": ["board=2", "line=2"],
    "connect4": ["rows=2", "columns=2", "line=2"],
    "gomoku": ["board=2", "line=2"],
    "othello": ["board=4"],
    "hex": ["board=3"],
    "breakthrough": ["rows=3", "columns=2", "home_rows=1"],
    "2048": ["board=2", "columns=2"],
}
TINY_VALUES: dict[str, Any] = {
    **{"layers": [4], "channels": [2, 2], "units": 2, "simulations": 2, "plies": 1, "rollout": 1},
    **{"buffer_size": 8, "minibatch_size": 4, "updates_per_batch": 2, "epochs": 1},
}
TRAINING = ["experiment=null", "games=8", "batch=4", "eval_games=2", "solve_seconds=0"]

MIN_COMBINATIONS = 950
"""That train, of about 2,500 whose learner fits."""


@cache
def base(game: str) -> TrainConfig:
    return load_config(TrainConfig, [f"game={game}", *TINY_RULES.get(game, []), *TRAINING])


@cache
def option(group: str, name: str) -> Any:
    """An option with small sizes."""
    config = make_option(group, name)
    sizes = {key: value for key, value in TINY_VALUES.items() if hasattr(config, key)}
    return dataclasses.replace(config, **sizes)


def config(combination: Combination) -> TrainConfig:
    game, *names = combination
    groups = dict(zip(GROUPS[1:], names, strict=True))
    nodes = {group: option(group, name) for group, name in groups.items() if name != "none"}
    if groups["learner"] == "behavior_cloning":
        nodes["teacher"] = option("player", "random")
    return dataclasses.replace(base(game), **nodes)


@cache
def candidates() -> list[Combination]:
    """The combinations that pass the checks of what fits together; building their components may
    still refuse them."""
    passed: list[Combination] = []
    pairs = list(filter(is_trained, itertools.product(REGISTRY["learner"], REGISTRY["policy"])))
    searches = ("none", *REGISTRY["search"])
    for name, reward_name in itertools.product(REGISTRY["game"], REGISTRY["reward"]):
        game = make("game", base(name).game)
        with contextlib.suppress(ConfigError):
            reward = make_reward(option("reward", reward_name), game)
            for (learner, policy), *others in itertools.product(
                pairs, REGISTRY["sampling"], searches
            ):
                combination = (name, learner, policy, reward_name, *others)
                with contextlib.suppress(ConfigError):
                    check_fits(Plan(config(combination), game, reward, False))
                    passed.append(combination)
    return passed


def is_trained(pair: tuple[str, str]) -> bool:
    learner, policy = pair
    with contextlib.suppress(ConfigError):
        check_policy_fits(policy, learner)
        return True
    return False


def trains(combination: Combination) -> bool:
    """Whether the components can be built; then two updates are made, with finite metrics."""
    cfg = config(combination)
    try:
        training = build_training(cfg)
    except ConfigError as error:
        check_message(error)
        return False
    for games in (0, cfg.batch):
        _, metrics = training.learn(next_games(training, games), games / cfg.games)
        assert metrics, combination
        assert all(math.isfinite(value) for value in metrics.values()), (combination, metrics)
    return True


def number_that_train(combinations: list[Combination]) -> int:
    count = 0
    for combination in combinations:
        try:
            count += trains(combination)
        except Exception as error:
            error.add_note(" ".join(map("=".join, zip(GROUPS, combination, strict=True))))
            raise
    return count


@pytest.mark.slow
def test_a_sample_of_all_combinations_trains_or_is_refused():
    assert number_that_train(candidates()[::11]) >= MIN_COMBINATIONS / 22


@pytest.mark.long
def test_every_combination_trains_or_is_refused():
    assert number_that_train(candidates()) >= MIN_COMBINATIONS
