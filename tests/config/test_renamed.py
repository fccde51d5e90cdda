"""Former names: each present name exists, no former name does, and errors name the present one."""

from dataclasses import fields

import pytest
from helpers import check_refused

from rlgames.config import catalogue, registry
from rlgames.config.renamed import RENAMED_KEYS, RENAMED_OPTIONS, RENAMED_VALUES
from rlgames.config.training_schemas import TrainConfig


def keys_of_group(group):
    """The fields of every schema of a group, by name."""
    schemas = (
        [TrainConfig]
        if group == "train"
        else [part.schema for part in registry.REGISTRY[group].values()]
    )
    return {item.name: item for schema in schemas for item in fields(schema)}


def test_options_have_only_their_present_names():
    for group, names in RENAMED_OPTIONS.items():
        assert {*names.values()} <= {*catalogue.options(group)}
        assert not {*names} & {*catalogue.options(group)}


def test_keys_have_only_their_present_names():
    for group, names in RENAMED_KEYS.items():
        assert {*names.values()} <= {*keys_of_group(group)}
        assert not {*names} & {*keys_of_group(group)}


def test_values_have_only_their_present_names():
    for group, keys in RENAMED_VALUES.items():
        for key, values in keys.items():
            choices = keys_of_group(group)[key].metadata["of"]
            assert {*values.values()} <= {*choices}
            assert not {*values} & {*choices}


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["learner=actor_critic"], "learner=actor_critic is now learner=ppo"),
        (["learner=clone"], "learner=clone is now learner=behavior_cloning"),
        (["policy=basis"], "policy=basis is now policy=linear"),
        (["experiment=tictactoe_q"], "experiment=tictactoe_q is now experiment=tictactoe_dqn"),
        (["experiment=2048_actor_critic"], "is now experiment=2048_ppo"),
        (["learner.entropy=0.1"], "learner.entropy is now learner.entropy_coef"),
        (["start=run"], "start is now init_from"),
        (["demonstrated=3"], "demonstrated is now demos_per_batch"),
        (["restarts=0.5"], "restarts is now restart_fraction"),
        (["search=mcts", "search.exploration=1"], "search.exploration is now search.c_puct"),
        (
            ["search=mcts", "search.rule=fading"],
            "search.rule=fading is now search.rule=dedieu_amar",
        ),
        (["reward.scored=gain"], "reward.scored=gain is now reward.scored=score_delta"),
        (["policy=table", "policy.start=1"], "policy.start is now policy.init_value"),
        (["learner=td", "learner.step_size=coherence"], "learner.step_size=temporal_coherence"),
        (["-m", "learner=q,ppo"], "learner=q is now learner=dqn"),
        (["--help", "learner=expert"], "learner=expert is now learner=alphazero"),
        (["--help", "learner.clip"], "learner.clip is now learner.clip_range"),
    ],
)
def test_an_error_names_the_present_name(words, error, typed):
    check_refused(typed("train", *words), error)


def test_a_former_name_is_reported_only_where_the_present_one_is_valid(typed):
    assert "is now" not in typed("train", "learner=td", "learner.clip=1").stderr
    assert "is now" not in typed("eval", "player=random", "game=salvo", "start=run").stderr
    done = typed("eval", "player=random", "game=tictactoe", "opponent_search=mcts",
                 "opponent_search.noise=0.1")  # fmt: skip
    assert "opponent_search.noise is now opponent_search.dirichlet_fraction" in done.stderr
