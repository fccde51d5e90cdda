"""Makes players from configs, with a search around them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

from rlgames.build.agents import (
    RULES_OUTSIDE_POLICIES,
    OpenRun,
    check_same,
    load_shipped_agent,
    open_run,
)
from rlgames.config.options.players import ExactConfig, ProgramConfig, RunPlayerConfig
from rlgames.config.options.rewards import RewardConfig
from rlgames.config.options.search import ExpectimaxConfig, MctsConfig
from rlgames.config.registry import REGISTRY, load_option, make
from rlgames.config.schema import OptionConfig, arguments
from rlgames.config.typed import make_option, sanitize_errors
from rlgames.core.errors import ConfigError, value_errors
from rlgames.core.memory import check_memory
from rlgames.games.game import PRESENTATION_KEYS, Game
from rlgames.players.player import Agent, Player
from rlgames.rewards import Reward, scored_term
from rlgames.runs.find import find_run
from rlgames.sampling import Stochastic


def build_player(
    config: OptionConfig,
    game: Game[Any],
    rules: OptionConfig,
    search: OptionConfig | None = None,
) -> Player:
    """The player that a config names, for a game and its rules, with a search around it if given.

    Raises ConfigError for a player that does not play this game.
    """
    if isinstance(config, RunPlayerConfig):
        run = open_run(find_run(config.path))
        return with_search(opponent_agent(run, game, rules), game, search, run.config.reward)
    if REGISTRY["player"][config.name].training_only:
        raise ConfigError(f"player={config.name} exists in training only", "name another player")
    more: dict[str, Any] = {}
    if isinstance(config, ProgramConfig):
        if search is not None:
            raise ConfigError("a program moves by itself", f"remove search={search.name}")
        more["rules"] = dataclasses.asdict(rules)
    if isinstance(config, ExactConfig):
        more["make_stand_in"] = partial(_shipped_search, rules, game)
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
    return _around(player, game, load_option("search", search.name), keys)


def _around(
    player: Player, game: Game[Any], search_class: Callable[..., Player], keys: dict[str, Any]
) -> Player:
    """The player with a search of this class and these keys around it, and with exact endgames if
    the keys solve positions. Raises ConfigError."""
    solve_positions = keys.pop("solve_positions", 0)
    with value_errors():
        search = search_class(game, player, **keys)
    from rlgames.search.mcts import Mcts

    if isinstance(search, Mcts):
        count, size = keys["simulations"], search.bytes_per_simulation
        check_memory("search.simulations", count, size, "for a tree")
    if not solve_positions:
        return search
    from rlgames.search.endgame import EndgameSolver, ExactEndgame, ExactEndgameSearch
    from rlgames.search.search import Search

    key = "search.solve_positions"
    with value_errors(f"{key}={solve_positions}: ", f"use {key}=0"):
        value, goal = keys.get("value"), game.spec.goal
        if value not in (None, goal):
            raise ValueError(f"the exact solver maximizes {goal}, not search.value={value}")
        solver = EndgameSolver(game, solve_positions)
    if isinstance(search, Search):
        return ExactEndgameSearch(search, solver)
    return ExactEndgame(search, solver)


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
    check_same(run, "game", rules, ignored, "players must play the same game")
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
