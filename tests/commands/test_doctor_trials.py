"""`rlgames doctor RUN try=SECONDS`: what is tried, and how it is compared with the run."""

import json
import math
import shutil
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import pytest
from helpers import check_refused
from written_runs import write_run

from rlgames.commands.doctor_changes import (
    UNCHANGED,
    Candidates,
    Change,
    candidates,
    differing_parts,
)
from rlgames.commands.doctor_trials import Trials, minimal
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.typed import to_plain
from rlgames.runs.files import flatten
from rlgames.runs.series import Training
from rlgames.runs.table import Run

SMALL = ("game=salvo", "board=3", "ships=[2]", "shots=1", "eval_games=200", "logger=null")


def settings_of(*words):
    return flatten(to_plain(load_config(TrainConfig, [*words])))


def training_of(*words, lines=(), references=()):
    """A run of these words, as if it was trained."""
    config = load_config(TrainConfig, [*words])
    plain = to_plain(config)
    values = {"status": "done", "metric": "turns", "best_by": "turns", "games": config.games}
    run = Run(path=None, settings=flatten(plain), config=plain, **values)
    return Training(run, lines, dict(references))


@pytest.mark.parametrize("needed", [*combinations("abcdefgh", 2), "a", "h", "abcdefgh"])
def test_a_smallest_set_of_changes_is_found(needed):
    tried = []

    def first_that_helps(lists):
        tried.extend(lists)
        return next((each for each in lists if {*needed} <= {*each}), None)

    assert {*minimal("abcdefgh", first_that_helps)} == {*needed}
    assert len(tried) <= 8 * 8


def test_the_settings_that_differ_from_a_preset_are_tried_alone_and_together():
    words = ["game=tictactoe", "policy=mlp", "learner=ppo", "games=90000", "lr=0.5"]
    own = settings_of(*words, "learner.clip_range=0.01", "eval_games=7", "seed=3")
    preset = load_config(TrainConfig, ["experiment=tictactoe_mlp"])
    assert differing_parts(own, preset) == ["learner.clip_range=0.2", "lr=0.002"]


def test_an_option_that_is_replaced_comes_with_its_keys():
    own = settings_of("game=tictactoe", "learner=dqn", "reward=win", "search=mcts")
    preset = load_config(TrainConfig, ["experiment=tictactoe_dqn"])
    assert differing_parts(own, preset) == ["reward=outcome reward.discount=0.95", "search=null"]


def test_the_rules_of_the_game_are_no_change():
    own = settings_of("game=salvo", "board=3", "ships=[2]", "lr=0.1")
    assert differing_parts(own, load_config(TrainConfig, ["experiment=salvo"])) == ["lr=0.002"]


@pytest.mark.parametrize(
    ("games", "batch", "parts"),
    [
        *[(100_000, 1, ["batch=512"]), (100_000, 256, []), (10_000, 2, ["batch=200"])],
        *[(9_000, 80, []), (900, 80, []), (9_000, 4000, ["batch=512"])],
    ],
)
def test_the_batch_of_a_preset_is_tried_if_it_is_far_and_leaves_enough_updates(games, batch, parts):
    own = settings_of("game=salvo", f"games={games}", f"batch={batch}")
    assert differing_parts(own, load_config(TrainConfig, ["experiment=salvo"])) == parts


def test_candidates_begin_with_the_nearest_preset():
    found = candidates(
        training_of("experiment=2048_3x3_ntuple", "fours=0.2", "lr=0.25", "window=7")
    )
    assert found.base == "preset 2048_3x3_ntuple"
    assert [each.parts for each in found.together] == [("window=64", "lr=1.0")]
    assert found.single == [Change(("window=64",)), Change(("lr=1.0",))]
    assert any("learner=ppo" in each.words for each in found.generic)


def test_without_a_preset_the_defaults_of_the_learner_are_tried():
    words = ["game=salvo", "learner=dqn", "learner.target_every=100000"]
    found = candidates(training_of(*words))
    assert found.base == "defaults of learner=dqn"
    assert [each.parts for each in found.together] == [("learner.target_every=1",)]
    assert found.single == []


def test_every_change_has_its_own_folder_with_a_portable_name():
    lists = [("lr=0.1",), ("lr=0.1", "batch=5"), ("lr=0.1_batch=5",), ("policy.layers=[4,4]",)]
    lists += [("policy.layers=[4,4]",) * 40, ('a="b"',), ("a=<b>",)]
    names = {Change(parts).folder for parts in lists}
    assert len(names) == len(lists)
    assert all(len(name) < 70 and not {*name} & {*'<>:"/\\|?*[] '} for name in names)


EVALUATED = {  # the turns of each seed after every 100 games; the run is always at 8
    "better": [[6.0, 5.0], [6.0, 5.5]],
    "the same": [[8.0, 7.99]],
    "worse": [[8.0, 9.0]],
    "not finished": [],
}


@pytest.fixture
def trials(tmp_path):
    path = write_run(tmp_path / "run", turns=(8.0, 8.0, 8.0, 8.0))
    run = Training.read(path)
    run.references["random"] = 8.25
    run.run.settings.update(eval_every=100, schedule_games=None)
    return Trials(run, 60.0, 2, [])


@pytest.mark.parametrize("status", EVALUATED)
def test_a_change_is_compared_with_the_run_after_as_many_games(trials, status):
    change = Change(("lr=0.3",))
    for seed, turns in enumerate(EVALUATED[status]):
        write_run(trials.path(change, seed), turns=turns)
    outcome = trials.outcome(change)
    assert outcome.status == status
    if EVALUATED[status]:
        assert outcome.games == 200
        assert [*outcome.control] == [8.0]
        assert [*outcome.values] == [turns[-1] for turns in EVALUATED[status]]


def test_one_seed_that_is_not_better_is_enough_to_doubt(trials):
    change = Change(("lr=0.3",))
    for seed, turns in enumerate([[5.0, 5.0], [8.5, 8.5]]):
        write_run(trials.path(change, seed), turns=turns)
    assert trials.outcome(change).status == "the same"


@pytest.mark.parametrize("random", [8.25, math.nan])
def test_what_learns_is_better_than_a_run_that_failed_at_its_start(trials, random):
    run = replace(trials.run, lines=[], references={"random": random})
    trials = Trials(run, 60.0, 2, [])
    change = Change(("lr=0.3",))
    write_run(trials.path(change, 0), turns=[5.0])
    assert trials.outcome(change).status == "better"


RANKED = {  # the turns of each seed, the best change first
    "the smallest": {"lr=0.3": [[5.1]], "lr=0.3,batch=8": [[5.0]], "batch=8": [[8.0]]},
    "the most seeds": {"lr=0.4": [[5.5], [5.5]], "lr=0.3": [[5.0, 5.0]]},
}


@pytest.mark.parametrize("first", RANKED)
def test_of_changes_that_help_one_is_first(trials, first):
    for parts, seeds in reversed(RANKED[first].items()):
        change = Change(tuple(parts.split(",")))
        for seed, turns in enumerate(seeds):
            write_run(trials.path(change, seed), turns=turns)
        trials.tried[change] = None
    assert [",".join(each.change.parts) for each in trials.ranked()] == [*RANKED[first]]


@pytest.mark.parametrize("needed", ["a", "ah"])
def test_the_search_ends_with_the_smallest_change_that_helps_and_several_seeds(trials, needed):
    words = [f"{name}=1" for name in "abcdefgh"]

    def train(change, seed, games):
        helps = all(f"{name}=1" in change.parts for name in needed)
        shutil.rmtree(trials.path(change, seed), ignore_errors=True)
        write_run(trials.path(change, seed), "interrupted", [8.0 - helps] * (games // 100))

    trials._task = train
    trials._runner = SimpleNamespace(run=lambda jobs: [job.prepare() for job in jobs])
    single = [Change((word,)) for word in words]
    trials._search(Candidates("", [Change(tuple(words))], single, [], [Change(("z=1",))]))
    best = trials.ranked()[0]
    assert best.change.parts == tuple(f"{name}=1" for name in needed)
    assert (best.status, best.games, len(best.values)) == ("better", 400, 3)
    assert Change(("z=1",)) not in trials.tried


def test_trainings_that_are_there_go_on(trials):
    change = Change(("lr=0.3", "schedule_games=null"))
    games, first = trials._task(change, 0, 200).arguments
    assert games == 200
    assert first[0] == "train"
    assert {"lr=0.3", "seed=0", "schedule_games=null", "eval_every=100"} <= {*first}
    path = write_run(trials.path(change, 0), "interrupted", [7.0, 7.0])
    (path / "checkpoints").mkdir()
    (path / "checkpoints/latest.safetensors").touch()
    assert trials._has_played(change, 0, 200)
    assert not trials._has_played(change, 0, 300)
    assert trials._task(change, 0, 300).arguments == (300, ["resume", str(path)])
    assert trials._has_played(UNCHANGED, 0, 400)
    assert not trials._has_played(UNCHANGED, 1, 100)


@pytest.mark.parametrize(("seconds", "games"), [(60, 400), (17, 300), (10, 100), (5, 0), (1, 0)])
def test_with_more_time_changes_begin_with_more_games(trials, seconds, games):
    trials.seconds = seconds
    trials.run = SimpleNamespace(run=SimpleNamespace(seconds=9.0, games=400))
    assert trials.affordable(2) == games


def test_parts_of_a_change_play_as_many_games_as_it_takes_to_show(trials):
    change = Change(("lr=0.3", "batch=8"))
    write_run(trials.path(change, 0), turns=[8.0, 7.5, 6.0, 5.0])
    assert trials.shows_after(trials.outcome(change)) == 300
    part = Change(("lr=0.3",))
    write_run(trials.path(part, 0), turns=[8.0, 7.0, 6.25])
    trials.tried |= {part: None, change: None}
    assert [each.change for each in trials.ranked(300)] == [part, change]
    assert [each.change for each in trials.ranked()] == [change, part]


def test_try_takes_one_run_that_has_ended(typed, tmp_path):
    write_run(tmp_path / "one")
    write_run(tmp_path / "two")
    check_refused(typed("doctor", ".", "try=5"), "try= takes one run, not 2")
    check_refused(typed("doctor", "one", "try=often"), "try=often is not true or false or a number")


def test_nothing_is_tried_for_a_run_that_has_reached_the_optimum(typed, tmp_path):
    write_run(tmp_path / "run", turns=(5.0, 4.0))
    found = json.loads(typed("doctor", "run", "try=5", "format=json").stdout)
    assert "tried" not in found
    assert "nothing is wrong" in found["no_finding"][0]["verdict"]


@pytest.mark.slow
def test_trying_finds_the_setting_that_broke_a_run(rlgames, tmp_path):
    words = [*SMALL, "games=4000", "batch=256", "lr=1e-7", "policy.activation=tanh", "out=broken"]
    assert rlgames("train", *words).returncode == 0
    said = rlgames("doctor", "broken", "try=200").stdout
    assert ": lr=0.002\n   rlgames train broken lr=0.002" in said
    again = json.loads(rlgames("doctor", "broken", "try=0.1", "format=json").stdout)
    assert again["tried"][0]["try"] == "lr=0.002"
    (tried,) = (tmp_path / "broken/doctor").glob("lr=0.002-*/0")
    assert json.loads((tried / "run.json").read_text())["status"] == "interrupted"
    assert len(json.loads(rlgames("report", ".", "format=json").stdout)["runs"]) == 1
