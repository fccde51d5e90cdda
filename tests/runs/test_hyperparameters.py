"""TensorBoard's HParams list what tells runs apart."""

import json

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata

import rlgames
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.typed import to_plain
from rlgames.runs.files import changed_settings, listed_settings


def config(*words):
    return to_plain(load_config(TrainConfig, list(words)))


def test_a_single_run_leads_with_lr_seed_and_what_differs_from_the_defaults(tmp_path):
    words = ("experiment=null", "game=salvo", "board=5", "policy.layers=[64]", "games=500")
    settings = listed_settings(tmp_path / "run", config(*words))
    assert list(settings)[:2] == ["lr", "seed"]
    assert {**settings, "lr": 0, "seed": 0} == {
        **{"lr": 0, "seed": 0, "board": 5, "policy.layers": [64], "games": 500}
    }


def test_every_default_config_differs_from_the_defaults_in_its_choices_only():
    for words in (["game=tictactoe"], ["game='2048'", "reward=score"], ["game=connect4"]):
        changed = changed_settings(config("experiment=null", *words))
        assert set(changed) <= {"game", "reward"}, changed


def test_a_job_of_a_sweep_lists_what_differs_between_its_jobs(tmp_path):
    jobs = [config("game=salvo", "games=500", f"lr={lr}", "board=4") for lr in (0.1, 0.002)]
    overrides = {"task": ["experiment=salvo", "lr=0.1,0.002", "game.board=4"], "hydra": []}
    (tmp_path / "multirun.yaml").write_text(json.dumps({"hydra": {"overrides": overrides}}))
    assert listed_settings(tmp_path / "1", jobs[1]) == {"lr": 0.002}  # its default
    (tmp_path / "multirun.yaml").write_text("{")
    assert "games" in listed_settings(tmp_path / "1", jobs[1])


def test_tensorboard_has_them(tmp_path):
    words = ["game=salvo", "board=3", "ships=[2]", "games=20", "batch=10", "policy.layers=[8]"]
    run = rlgames.train([*words, "eval_games=4", "solve_seconds=0", f"out={tmp_path}/run"])
    events = EventAccumulator(str(run)).Reload()
    content = events.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    listed = metadata.parse_session_start_info_plugin_data(content).hparams
    assert {"lr", "seed", "board", "games"} <= {*listed}
    assert "learner.clip_range" not in listed
    content = events.summary_metadata["_hparams_/experiment"].plugin_data.content
    columns = metadata.parse_experiment_plugin_data(content)
    assert {info.name for info in columns.hparam_infos} == {*listed}
    tags = [info.name.tag for info in columns.metric_infos]
    assert tags[:2] == ["result/turns", "eval/turns"]
    assert not [tag for tag in tags if not tag.startswith(("result/", "eval/"))]
    scalars = sorted(events.Tags()["scalars"])
    assert scalars[0] == "eval/turns", "TensorBoard opens on it"
    assert {"games/distance_to_certainty"} <= {*events.Tags()["histograms"]}
    assert sorted(events.Tags()["images"])[0].startswith("game/"), "the first picture is a game"
    lines = [line for line in (run / "metrics.jsonl").read_text().splitlines() if "train/" in line]
    assert len(lines) == 2  # a line for each batch: 100 lines per run would be one per game
