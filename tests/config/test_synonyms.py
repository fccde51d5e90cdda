"""Names of other libraries: each leads to a key or an option that there is, in one line."""

import re

import pytest
from helpers import check_refused

from rlgames.cli.table import COMMANDS
from rlgames.config import suggestions
from rlgames.config.files import Files
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import key_fields, names_of


def test_every_synonym_leads_to_a_key_or_an_option():
    top = {name for each in COMMANDS.values() for name in names_of(each.config)}
    for line in suggestions._lines(suggestions.KEY_SYNONYMS):
        key = re.match(r"[\w.]+", line)[0]
        group, _, name = key.rpartition(".")
        schemas = [option.schema for option in REGISTRY.get(group or "game", {}).values()]
        assert key in top or any(name in key_fields(schema) for schema in schemas), line
    for line in suggestions._lines(suggestions.OPTION_SYNONYMS):
        option, _, names = line.partition(": ")
        folder, _, name = option.partition("=")
        known = Files().names(folder)
        assert name in known, line
        assert not {*names.split()} & {*known} - {"alphabeta"}


@pytest.mark.parametrize("name", ["gamma", "discount_factor", "Gamma", "learner.gamma"])
def test_case_underscores_and_groups_do_not_matter(name):
    assert suggestions.unknown_key(name, ["reward.discount"]).hint == "use reward.discount="


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["gamma=0.9"], "no key is called 'gamma' here; use reward.discount="),
        (["episodes=1000"], "no key is called 'episodes' here; use games=\n"),
        (["total_timesteps=1000"], "use games=; it counts games, not moves"),
        (["iterations=1000"], "use games=; it counts games, not batches"),
        (["n_steps=8"], "use window="),
        (["batch_size=64"], "learner.minibatch_size or learner.num_minibatches divides them"),
        (["minibatch_size=64"], "use learner.num_minibatches=; it is the number of minibatches"),
        (["learner=dqn", "minibatch_size=64"], "here; use learner.minibatch_size=\n"),
        (["learner=td_lambda", "lambda=0.5"], "use learner.td_lambda="),
        (["lambda=0.5"], "use learner.gae_lambda="),
        (["search=mcts", "dirichlet_alpha=1"], "it is alpha times the number of legal actions"),
        (["resume_from=run"], "rlgames resume RUN resumes a run"),
        (["entropy_coef=0.1"], "use learner.entropy_coef="),
        (["learner.ent_coef=0.1"], "use learner.entropy_coef="),
        (
            ["learner=dqn", "ent_coef=1"],
            "is a key of learner=reinforce or learner=ppo",
        ),
        (["buffer_size=5"], "learner.buffer_size is a key of learner=dqn or learner=alphazero"),
        (["algo=ppo"], "use learner="),
        (["learner.lr=0.1"], "no key is called 'learner.lr' here; use lr=\n"),
        (["exploration_fraction=0.1"], "use schedule_games=; sampling.epsilon decays over these"),
        (["track=true"], "use logger=; as in logger=wandb"),
        (["game=2048", "width=3"], "use columns=\n"),
        (["env=connect4"], "use game="),
        (["learner=PPO"], "use learner=ppo"),
        (["learner=appo"], "use learner=ppo"),
        (["game=tic_tac_toe"], "use game=tictactoe"),
        (
            ["game=tictactoe", "opponent=minimax"],
            "no run there; use exact",
        ),
        (["sampling=greedy"], "use sampling=argmax"),
        (["--help", "gamma"], "use reward.discount="),
        (["lerning_rate=3"], "here; did you mean learning_rate? use lr=\n"),
        (["gama=0.9"], "did you mean gamma? use reward.discount="),
        (["total_timestep=9"], "did you mean total_timesteps? use games=; it counts games"),
        (["learner.clip_coeff=2"], "did you mean clip_coef? use learner.clip_range="),
        (["learner=td", "clip_rng=2"], "clip_range? learner.clip_range is a key of learner=ppo"),
        (["gam=connect4"], "did you mean game?"),
        (["learner.clip_rnge=2"], "did you mean learner.clip_range?"),
    ],
)
def test_the_names_of_other_libraries_are_answered_with_those_here(words, hint, typed):
    check_refused(typed("train", *words), hint)


def test_normalized_advantages_are_no_baseline(typed):
    for name in ("norm_adv", "normalize_advantage"):
        assert "baseline" not in typed("train", f"{name}=true").stderr
