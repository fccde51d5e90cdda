"""Every combination of options that validates trains; every other one is refused in one line."""

import contextlib
import itertools
import math
from functools import cache
from typing import Any

import pytest
from helpers import check_message, rng
from omegaconf import DictConfig, OmegaConf

from rlgames.config.catalogue import option_values
from rlgames.config.checks import check_config, to_plain
from rlgames.config.compose import load_config
from rlgames.config.registry import REGISTRY, schema_of
from rlgames.config.schema import defaults
from rlgames.core.errors import ConfigError
from rlgames.factory.components import build_game, check_learner_fits, check_learner_trains
from rlgames.training.components import build_components

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
    **{"buffer_size": 8, "minibatch": 4, "updates_per_batch": 2, "epochs": 1},
}
TRAINING = ["experiment=null", "games=8", "batch=4", "eval_games=2", "solve_seconds=0"]

MIN_COMBINATIONS = 950
"""That train, of about 2,500 whose learner fits."""


@cache
def base(game: str) -> dict[str, Any]:
    return to_plain(load_config("train", [f"game={game}", *TINY_RULES[game], *TRAINING]))


@cache
def option(group: str, name: str) -> dict[str, Any]:
    """The values of an option, with small sizes."""
    values = defaults(schema_of(group, name)) | option_values(group, name)
    return values | {key: value for key, value in TINY_VALUES.items() if key in values}


def config(combination: Combination) -> DictConfig:
    """A training's config, checked as one that was typed."""
    game, *names = combination
    groups = dict(zip(GROUPS[1:], names, strict=True))
    nodes = {group: option(group, name) for group, name in groups.items() if name != "none"}
    if groups["learner"] == "behavior_cloning":
        nodes["teacher"] = option("player", "random")
    return check_config("train", OmegaConf.create(base(game) | nodes))


@cache
def candidates() -> list[Combination]:
    """The combinations that pass the checks of what fits together; building their components may
    still refuse them."""
    learners: dict[str, list[str]] = {name: [] for name in REGISTRY["learner"]}
    for learner, policy in itertools.product(learners, REGISTRY["policy"]):
        cfg = OmegaConf.create({"learner": {"name": learner}, "policy": {"name": policy}})
        with contextlib.suppress(ConfigError):
            check_learner_trains(cfg)
            learners[learner].append(policy)
    passed: list[Combination] = []
    for name in REGISTRY["game"]:
        game = build_game(OmegaConf.create(base(name)))
        rest = [REGISTRY["reward"], REGISTRY["sampling"], ("none", *REGISTRY["search"])]
        for learner, *others in itertools.product(learners, *rest):
            nodes = dict(zip(("learner", *GROUPS[3:]), (learner, *others), strict=True))
            cfg = OmegaConf.create({g: option(g, n) for g, n in nodes.items() if n != "none"})
            with contextlib.suppress(ConfigError):
                check_learner_fits(cfg, game, rng().device)
                passed += [(name, learner, policy, *others) for policy in learners[learner]]
    return passed


def trains(combination: Combination) -> bool:
    """Whether the components can be built; then two updates are made, with finite metrics."""
    cfg = config(combination)
    try:
        components = build_components(cfg)
    except ConfigError as error:
        check_message(error)
        return False
    generator = rng(5)
    for games in (0, cfg.batch):
        components.agent.progress = games / cfg.games
        moves, final = components.collector.collect(cfg.batch, games, generator)
        examples = components.collector.with_demonstrations(moves.by_player(0), final)
        metrics = components.learner.update(*examples, components.agent.progress)
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
