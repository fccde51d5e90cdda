"""The contract that every registered game must follow; no game is named here."""

import json
from dataclasses import fields, replace
from functools import cache
from typing import get_args, get_origin, get_type_hints

import helpers
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from markers import slow

from rlgames.config import registry
from rlgames.config.commands import SolveConfig, TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.conf import option_names
from rlgames.config.schema import arguments
from rlgames.core.errors import ConfigError
from rlgames.games.game import HIDDEN, Game
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.notation import parse, render
from rlgames.rng import Rng
from rlgames.rollouts.conformance import (
    CHECKS,
    check,
    every_ply_follows_the_contract,
    hidden_hits_never_change,
)

NAMES = option_names("game")


make_game, make_small_game = cache(helpers.make_game), cache(helpers.make_small_game)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_batch_has_no_legal_actions(name):
    game = make_small_game(name)
    legal = game.legal_action_mask(game.example_state()[:0])
    assert legal.shape == (0, game.spec.actions)


def rules_of_experiments():
    """The words of every game as experiments have it, the same rules once, and none as its own
    file has them."""
    seen = [load_config(SolveConfig, [f"game={name}"]).game for name in NAMES]
    for name in option_names("experiment"):
        game = load_config(TrainConfig, [f"experiment={name}"]).game
        if game not in seen:
            seen.append(game)
            rules = arguments(game).items()
            yield [f"game={game.name}", *(f"{key}={json.dumps(v)}" for key, v in rules)]


@st.composite
def some_rules(draw, name):
    """Rules of a game drawn from its schema: small numbers, any choice."""
    words = [f"game={name}"]
    for item in fields(registry.REGISTRY["game"][name].schema):
        if item.name == "name":
            continue
        kind = get_type_hints(registry.REGISTRY["game"][name].schema)[item.name]
        low, choices = item.metadata["low"], item.metadata["of"]
        if get_origin(kind) is list:
            inner = st.sampled_from(choices) if choices else st.integers(int(low), int(low) + 3)
            value = draw(
                st.lists(inner, min_size=0 if choices else 1, max_size=3, unique=bool(choices))
            )
            text = "[" + ",".join(map(str, value)) + "]"
        elif choices:
            text = draw(st.sampled_from(choices))
        elif kind is bool:
            text = draw(st.sampled_from(["true", "false"]))
        elif kind is float:
            text = draw(st.sampled_from(["0.0", "0.1", "0.5", "1.0"]))
        else:
            assert int in (kind, *get_args(kind))
            high = int(item.metadata["high"])
            value = draw(st.integers(int(low), min(int(low) + 5, high)))
            text = str(value if high < 1 << 20 else 1 << value)
            text = draw(st.sampled_from([text, "null"])) if kind is not int else text
        words.append(f"{item.name}={text}")
    return words


@pytest.mark.parametrize("name", NAMES)
def test_games_follow_their_contract(name):
    every_ply_follows_the_contract(make_game(f"game={name}"))


@pytest.mark.slow
def test_games_of_experiments_follow_their_contract():
    for words in rules_of_experiments():
        game = make_game(*words)
        every_ply_follows_the_contract(game)
        hidden_hits_never_change(game)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_rules_follow_the_contract_or_are_refused(name, data):
    words = data.draw(some_rules(name))
    try:
        make_game(*words)
    except ConfigError:
        assume(False)
    every_ply_follows_the_contract(make_game(*words), batch=6, seed=data.draw(st.integers(0, 1000)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("one", CHECKS[2:], ids=lambda one: one.__name__)
@pytest.mark.parametrize("rules", ["small", slow("default")])
def test_games_conform(one, name, rules):
    one(make_small_game(name) if rules == "small" else make_game(f"game={name}"))


@pytest.mark.parametrize("name", NAMES)
@given(text=st.text(alphabet=" .oxXOab+#|123ABC,:\n-", max_size=80))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_invalid_boards_are_refused(name, text):
    game = make_game(f"game={name}")
    try:
        found = parse(game, text)
    except ValueError:
        found = None
    if found is not None:
        assert render(game, parse(game, render(game, found, 0)), 0) == render(game, found, 0)


@pytest.mark.parametrize("name", NAMES)
def test_hidden_fields_cannot_be_read(name):
    game = make_game(f"game={name}")
    public = game.public(game.initial(2, Rng()))
    for hidden in [f.name for f in fields(type(public)) if getattr(public, f.name) is HIDDEN]:
        with pytest.raises(PermissionError):
            getattr(public, hidden) + 1
        with pytest.raises(PermissionError):
            torch.zeros(2) + getattr(public, hidden)


class Peeking(KInARow):
    """A row depends on other rows."""

    def observe(self, state):
        return super().observe(state) * (state.turn.sum() % 2)


class Endless(KInARow):
    step = Game.step

    def apply_action(self, state, action):
        after = super().apply_action(state, action)
        return replace(after, done=torch.zeros_like(after.done))


class FinishedAtStart(KInARow):
    def initial(self, batch, rng):
        state = super().initial(batch, rng)
        return replace(state, done=rng.uniform(batch) < 0.3)


class UnequalScores(KInARow):
    step = Game.step

    def apply_action(self, state, action):
        return replace(super().apply_action(state, action), score=state.score + 1)


class Misread(KInARow):
    def parse_all(self, texts):
        return replace(super().parse_all(texts), done=torch.ones(len(texts), dtype=torch.bool))


class Lopsided(KInARow):
    def action_symmetries(self):
        return super().action_symmetries().flip(0)


class MoreCellValues(KInARow):
    def cells(self, state):
        return super().cells(state) + 1


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (MoreCellValues, "cells has values outside of 0 to 2 after the illegal action"),
        (Lopsided, "a transformed game is another one"),
        (FinishedAtStart, "before its first move"),
        (Endless, "exceeds"),
        (UnequalScores, "do not sum to zero"),
        (Misread, "is read from"),
        (Peeking, "rows"),
    ],
)
def test_games_that_break_the_contract_fail(kind, message):
    with pytest.raises(AssertionError, match=message) as error:
        check(kind(3, 3, 3, False))
    assert any(one.__name__ in error.value.__notes__[0] for one in CHECKS)


def test_a_game_of_one_move_follows_the_contract():
    check(KInARow(1, 1, 1, False))
