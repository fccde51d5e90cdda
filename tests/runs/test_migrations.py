"""Checkpoints of earlier formats load, play and resume, although names have changed.

tests/data/format_3_*.safetensors were written by the last version of format 3, after eight games of
four to a batch: PPO against past selves, TD in windows with open games, DQN, behavior cloning.
"""

import shutil
from pathlib import Path

import pytest
import torch
from helpers import rng

from rlgames.config.checks import from_plain, to_plain
from rlgames.factory.agents import load_agent
from rlgames.runs.checkpoint import FORMAT, Checkpoint
from rlgames.runs.files import read_run
from rlgames.runs.migrations import migrate

FILES = sorted((Path(__file__).parents[1] / "data").glob("format_3_*.safetensors"))
LEARNERS = {
    "behavior_cloning": "behavior_cloning",
    "dqn": "dqn",
    "ppo_past": "ppo",
    "td_pool": "td",
}


def learner_of(path):
    return LEARNERS[path.stem.removeprefix("format_3_")]


def test_every_kind_of_file_is_there():
    assert {path.stem.removeprefix("format_3_") for path in FILES} == {*LEARNERS}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_checkpoint_of_format_3_plays(path):
    agent = load_agent(path)
    state = agent.game.public(agent.game.initial(5, rng()))
    action = agent.choose(state)
    assert agent.game.legal_action_mask(state)[torch.arange(5), action].all()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_its_config_has_the_present_names_and_every_key(path):
    config = Checkpoint.read(path).config
    assert config["learner"]["name"] == learner_of(path)
    checked = to_plain(from_plain(config))
    for name, value in config.items():
        if isinstance(value, dict):  # a key that is newer than the file is added
            assert {**checked[name], **value} == checked[name]
        else:
            assert checked[name] == value


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_run_of_format_3_resumes(path, tmp_path, rlgames):
    checkpoints = tmp_path / "run" / "checkpoints"
    checkpoints.mkdir(parents=True)
    for name in ("latest", "best"):
        shutil.copy(path, checkpoints / f"{name}.safetensors")
    (tmp_path / "run" / "run.json").write_text('{"status": "interrupted"}')
    resumed = rlgames("resume", "run", "games=16")
    assert resumed.returncode == 0, resumed.stderr
    assert read_run(tmp_path / "run")["status"] == "done"
    again = Checkpoint.read(checkpoints / "latest.safetensors")
    assert again.games >= 16
    assert (
        again.state["progress"]["num_updates"]
        > Checkpoint.read(path).state["progress"]["num_updates"]
    )


def test_the_present_format_is_not_migrated():
    config, state = {"start": 1}, {"marks": {"played": 3}}
    assert migrate(FORMAT, config, state) == (config, state)


def test_what_a_migration_does_not_know_stays():
    config = {"mine": 1, "learner": {"name": "my_own", "clip": 0.1}, "opponent": {"name": "random"}}
    state = {"other": {"marks": 1}, "processes": {"0": {"players": {"0": {"taken": 2}}}}}
    renamed, tree = migrate(3, config, state)
    assert renamed["mine"] == 1
    assert renamed["learner"]["name"] == "my_own"
    assert tree == state


def test_positions_of_format_4_have_their_first_hits_in_format_5():
    first = torch.tensor([[False, True, True, False]])
    hit = torch.tensor([[True, True, True, False]])
    position = {"shot": hit, "hit": hit, "aimed": ~hit, "sunk": hit[:, :0], "first": first}
    state = {"processes": {"0": {"collector": {"pool": {"state": position}}}}}
    _, migrated = migrate(4, {}, state)
    position = migrated["processes"]["0"]["collector"]["pool"]["state"]
    assert set(position) == {"shot", "hit", "aimed", "hit_turn", "sunk_turn"}
    assert position["hit_turn"].tolist() == [[2, 1, 1, 0]]
    assert position["hit_turn"].dtype == position["sunk_turn"].dtype == torch.int16
    assert position["sunk_turn"].shape == (1, 0)


@pytest.mark.parametrize("game", ["tictactoe", "connect4", "2048"])
def test_a_network_on_cells_of_format_4_loads_where_it_saw_the_same(game):
    config = {"policy": {"name": "embedding"}, "game": {"name": game}}
    if game == "2048":
        assert migrate(4, config, {})[0] == config
    else:
        with pytest.raises(ValueError, match="first seat"):
            migrate(4, config, {})
