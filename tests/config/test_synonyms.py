"""Names of other libraries: each leads to a key or an option that there is, in one line."""

import pytest
from helpers import check_refused

from rlgames.config import catalogue
from rlgames.config.command_schemas import COMMANDS
from rlgames.config.registry import group_of
from rlgames.config.synonyms import KEY_SYNONYMS, OPTION_SYNONYMS, key_synonyms, options_with


def test_every_synonym_leads_to_a_key_or_an_option():
    top = {name for command in COMMANDS.values() if command.config for name in
           command.config.key_names}  # fmt: skip
    for key in {synonym.key for synonyms in KEY_SYNONYMS.values() for synonym in synonyms}:
        assert options_with(key) if "." in key else key in top
    for group, names in OPTION_SYNONYMS.items():
        assert {*names.values()} <= {*catalogue.options(group_of(group))}
        assert not {*names} & {*catalogue.options(group)}


@pytest.mark.parametrize("name", ["gamma", "discount_factor", "Gamma", "learner.gamma"])
def test_case_underscores_and_groups_do_not_matter(name):
    assert [(each.key, each.note) for each in key_synonyms(name)] == [("reward.discount", "")]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["gamma=0.9"], "no key is called 'gamma' here; write reward.discount="),
        (["episodes=1000"], "no key is called 'episodes' here; write games=\n"),
        (["total_timesteps=1000"], "write games=; it counts games, not moves"),
        (["iterations=1000"], "write games=; it counts games, not batches"),
        (["n_steps=8"], "write window="),
        (["batch_size=64"], "learner.minibatch or learner.minibatches divides them"),
        (["minibatch_size=64"], "write learner.minibatches=; it is the number of minibatches"),
        (["learner=dqn", "minibatch_size=64"], "here; write learner.minibatch=\n"),
        (["learner=td_lambda", "lambda=0.5"], "write learner.td_lambda="),
        (["lambda=0.5"], "write learner.gae_lambda="),
        (["search=mcts", "dirichlet_alpha=1"], "it is alpha times the number of legal actions"),
        (["resume_from=run"], "rlgames resume RUN resumes a run"),
        (["entropy_coef=0.1"], "write learner.entropy_coef="),
        (["learner.ent_coef=0.1"], "write learner.entropy_coef="),
        (["learner=dqn", "ent_coef=1"], "is a key of learner=reinforce or ppo"),
        (["buffer_size=5"], "learner.buffer_size is a key of learner=dqn or alphazero"),
        (["algo=ppo"], "write learner="),
        (["env=connect4"], "write game="),
        (["learner=PPO"], "write learner=ppo"),
        (["learner=appo"], "write learner=ppo"),
        (["game=tic_tac_toe"], "write game=tictactoe"),
        (["opponent=minimax"], "write opponent=exact"),
        (["sampling=greedy"], "write sampling=argmax"),
        (["--help", "gamma"], "write reward.discount="),
    ],
)
def test_the_names_of_other_libraries_are_answered_with_those_here(words, hint, typed):
    check_refused(typed("train", *words), hint)


def test_normalized_advantages_are_no_baseline(typed):
    for name in ("norm_adv", "normalize_advantage"):
        assert "baseline" not in typed("train", f"{name}=true").stderr
