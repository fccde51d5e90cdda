"""Agents as folders for the Hugging Face Hub: what is in them, and how they travel."""

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import util
from typing import Any

import pytest
import torch
import yaml
from helpers import SMALL_TRAINING
from hub_stub import COMMIT, serve
from PIL import Image
from processes import served
from safetensors.torch import save_file

import rlgames as package
from rlgames.commands.model_card import Agent, _code, model_card, result_rows
from rlgames.commands.publish import publish_command
from rlgames.config.typed import from_plain
from rlgames.core.errors import ConfigError
from rlgames.drawing import figures
from rlgames.factory.agents import checkpoint_path, load_agent
from rlgames.runs import hub
from rlgames.runs.checkpoint import BadCheckpoint, Checkpoint
from rlgames.runs.names import AGENTS, shipped_agent
from rlgames.runs.run_info import RunInfo

pytest.importorskip("matplotlib")

BRIEF = ["games=50", "solve_seconds=0"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "run"
    words = ["eval_every=10", "solve_seconds=0"]
    return package.train([*SMALL_TRAINING, *words, f"out={directory}"])


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("published") / "folder"
    publish_command(run, [*BRIEF, f"out={path}", "license=mit"])
    return path


def test_a_folder_has_the_agent_and_what_people_look_at(run, folder):
    names = {path.name for path in folder.iterdir()}
    assert names == {
        *("model.safetensors", "config.yaml", "README.md"),
        *("learning_curve.png", "game.gif"),
    }
    best = Checkpoint.read(run / "checkpoints" / "best.safetensors")
    model = Checkpoint.read(folder / "model.safetensors")
    assert model.state == {}
    assert model.games == best.games
    assert {*model.policy} == {*best.policy}
    assert all(torch.equal(model.policy[name], best.policy[name]) for name in best.policy)
    game: Any
    with Image.open(folder / "game.gif") as game:
        assert game.n_frames > 5  # tic-tac-toe takes at least five moves
    with Image.open(folder / "learning_curve.png") as curve:
        assert curve.width > 300


def test_a_folder_says_nothing_of_its_authors_files(run, folder):
    config = Checkpoint.read(folder / "model.safetensors").config
    assert config["out"] is None
    assert "logger" not in config
    for name in ("README.md", "config.yaml"):
        assert str(run.parent) not in (folder / name).read_text()


def test_agents_that_it_was_trained_with_are_named_as_others_can_name_them(run, tmp_path):
    """In the card and in the config, which then trains the same elsewhere."""
    words = ["opponent=tictactoe", f"eval_opponent={run}", f"init_from={run}"]
    trained = package.train([*SMALL_TRAINING, *words, "solve_seconds=0", f"out={tmp_path}/again"])
    publish_command(trained, [*BRIEF, f"out={tmp_path}/folder"])
    config = Checkpoint.read(tmp_path / "folder" / "model.safetensors").config
    assert config["opponent"] == {"name": "run", "path": "tictactoe"}
    assert config["eval_opponent"]["path"] == config["init_from"] == run.name
    card = (tmp_path / "folder" / "README.md").read_text()
    assert "`path=tictactoe`" in card
    for text in (card, (tmp_path / "folder" / "config.yaml").read_text()):
        assert str(run.parent) not in text
        assert str(AGENTS) not in text


def test_the_card_has_the_figures_that_eval_reports(folder):
    card = (folder / "README.md").read_text()
    _, head, text = card.split("---\n", 2)
    metadata = yaml.safe_load(head)
    assert metadata["license"] == "mit"
    assert {"tictactoe", "ppo", "reinforcement-learning"} <= {*metadata["tags"]}
    report = package.evaluate(folder, BRIEF)
    for row in result_rows(report):
        assert f"| {' | '.join(row)} |" in text
    (result,) = metadata["model-index"][0]["results"]
    low, high = report["win"]["ci95"]
    won = next(each for each in result["metrics"] if each["name"] == "fraction of games won")
    assert won["value"] == f"{report['win']['rate']:.4g} ({low:.4g} to {high:.4g})"


def test_an_opponent_who_is_not_there_leaves_nothing_behind(run, tmp_path):
    with pytest.raises(ConfigError, match="no player is called 'nobody'"):
        publish_command(run, [*BRIEF, "opponent=nobody", f"out={tmp_path}/folder"])
    assert not list(tmp_path.iterdir())


def test_large_figures_have_all_their_digits():
    score = {"mean": 250399.4, "ci95": [245637.0, 255161.0]}
    rows = result_rows({"exact": False, "score": score, "reference": {"random": 1088.85}})
    assert rows[0][1:] == ["250,399", "245,637 to 255,161"]
    assert rows[1][1] == "1,089"


def test_the_card_says_how_the_run_was_started(folder):
    checkpoint = Checkpoint.read(folder / hub.MODEL)
    config, report = from_plain(checkpoint.config), package.evaluate(folder, BRIEF)
    words = ["/home/me/rlgames", "train", "game=tictactoe", "out=/home/me/run", "logger=wandb"]
    paths = ["init_from=/home/me/My runs/a", "opponent=hf:me/b", "lr=[0.1,/home/me/c,d/e]"]
    others = ["--config-dir=/home/me/conf", "hydra.run.dir=/home/me/d", *paths]
    for command, started, preset in [
        (words, True, True),
        ([*words, *others], True, True),
        ([*words, "experiment=null"], True, False),
        (["-c"], False, False),
    ]:
        about = RunInfo("done", command=command, commit="abc")
        card = model_card(Agent("run", "me/it", config, checkpoint, report, about, []), None)
        assert ("\nrlgames train game=tictactoe\n" in card) == (command == words)
        assert ("was started with" in card) == started
        assert ("`experiment=tictactoe`" in card) == preset
        assert "/home/me" not in card
        shared = "\nrlgames train game=tictactoe init_from=a opponent=hf:me/b lr=[0.1,c,e]\n"
        assert (shared in card) == (command == [*words, *others])
        assert "\nrlgames play hf:me/it\n" in card


def test_its_config_trains_the_same_agent_again(folder, tmp_path):
    again = package.train([f"config={folder}/config.yaml", f"out={tmp_path}/again"])
    first, second = load_agent(folder).policy, load_agent(again).policy
    weights = second.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in first.state_dict().items())


def test_a_folder_stands_for_a_run(run, folder):
    agent, published = load_agent(run), load_agent(folder)
    state = agent.game.initial(8, torch.Generator().manual_seed(0))
    assert torch.equal(agent.choose(agent.game.public(state)), published.choose(state))
    report = package.evaluate(folder, BRIEF)
    assert report["checkpoint"] == "published"
    assert not (folder / "eval.json").exists()
    with pytest.raises(ConfigError, match="is a published agent"):
        load_agent(folder, checkpoint="latest")


def test_without_matplotlib_there_is_no_curve(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(figures, "is_installed", lambda: False)
    result = publish_command(run, [*BRIEF, f"out={tmp_path}/agent"])
    said = "rlgames: no learning curve, which needs matplotlib: pip install 'rlgames[figures]'\n"
    assert capsys.readouterr().err == said
    assert "learning_curve" not in result["files"]
    assert not (tmp_path / "agent/learning_curve.png").exists()
    assert "Learning curve" not in (tmp_path / "agent/README.md").read_text()


def test_a_job_of_a_sweep_is_called_like_its_directory(run, tmp_path):
    job = shutil.copytree(run, tmp_path / "0_lr=0.01")
    publish_command(job, [*BRIEF, f"out={tmp_path}/agent"])
    assert "\n- name: 0_lr=0.01\n" in (tmp_path / "agent/README.md").read_text()


def test_a_shipped_agent_can_be_published(tmp_path):
    result = publish_command(shipped_agent("tictactoe"), [*BRIEF, f"out={tmp_path}/agent"])
    assert result["next"] == f"rlgames play {tmp_path}/agent"
    assert checkpoint_path(tmp_path / "agent").name == hub.MODEL
    assert "learning_curve" not in result["files"]


def test_other_files_are_not_overwritten(run, tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(ConfigError, match="holds something else"):
        publish_command(run, [*BRIEF, f"out={tmp_path}"])
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_a_model_of_another_project_is_not_overwritten(run, tmp_path):
    save_file({"weight": torch.ones(2)}, tmp_path / hub.MODEL)
    before = (tmp_path / hub.MODEL).read_bytes()
    with pytest.raises(ConfigError, match="holds something else"):
        publish_command(run, [*BRIEF, f"out={tmp_path}"])
    assert [path.name for path in tmp_path.iterdir()] == [hub.MODEL]
    assert (tmp_path / hub.MODEL).read_bytes() == before


def test_a_link_in_a_folder_is_not_followed(folder, tmp_path):
    (tmp_path / "model.safetensors").symlink_to(folder / "model.safetensors")
    with pytest.raises(ConfigError, match="link"):
        load_agent(tmp_path)


@pytest.mark.parametrize("name", ["", "user", "user/", "/name", "a/b/c", "../x/y", "a/..", "a b/c"])
def test_a_name_that_is_no_repository_is_refused_before_any_work(name, tmp_path):
    with pytest.raises(ConfigError, match="not a repository"):
        hub.parse_name(name)


def test_a_missing_library_is_named_with_its_extra(run, tmp_path, monkeypatch):
    monkeypatch.setattr("rlgames.core.errors.find_spec", lambda name: None)
    with pytest.raises(ConfigError) as error:
        publish_command(run, [f"out={tmp_path}/new", "repo=me/agent"])
    assert error.value.hint == "pip install 'rlgames[hub]'"
    assert not (tmp_path / "new").exists()
    with pytest.raises(ConfigError, match="needs huggingface_hub"):
        hub.download("hf:me/agent")


def test_text_of_strangers_ends_in_no_other_place():
    assert _code("a` | <b>\n# title") == "`a' / <b> # title`"


def rlgames_with(server, folder, *words, **environment):
    """A command in a process of its own: the library reads its variables when it is imported."""
    own = {"HF_ENDPOINT": server.address, "HF_HOME": str(folder / "hf"), "HF_TOKEN": "hf_valid"}
    return subprocess.run(
        [sys.executable, "-m", "rlgames", *words],
        cwd=folder,
        env=os.environ | own | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_space_serves_the_agent(folder, tmp_path):
    """By the command of its Dockerfile, with the files where the Dockerfile copies them."""
    publish_command(folder, [*BRIEF, f"out={tmp_path}/it", "license=mit", "space=true"])
    space = tmp_path / "it" / "space"
    _, head, _ = (space / "README.md").read_text().split("---\n")
    metadata = yaml.safe_load(head)
    assert (metadata["sdk"], metadata["license"]) == ("docker", "mit")
    lines = (space / "Dockerfile").read_text().splitlines()
    name = re.fullmatch(r"COPY --chown=user model.safetensors (\S+)/", lines[-3])[1]
    (tmp_path / name).mkdir()
    shutil.copy(space / "model.safetensors", tmp_path / name)
    command = json.loads(lines[-1].removeprefix("CMD "))
    assert f"port={metadata['app_port']}" in command
    requirement = (space / "requirements.txt").read_text().strip()
    assert requirement == f"rlgames[web]=={package.__version__}"
    with served(tmp_path, *command[1:]) as (port, _):
        for host, status in (("me-it.hf.space", 200), ("evil.example", 400)):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            headers = {"Host": host, "Origin": f"https://{host}"}
            connection.request("POST", "/api/sessions", "{}", headers)
            answer = connection.getresponse()
            assert answer.status == status
            if status == 200:
                about = json.loads(answer.read())["about"]
                assert about["game"] == "tictactoe"
                assert about["players"][1] == name


def test_a_space_has_no_place_for_modules_of_its_author(own_parts, typed, tmp_path):
    words = [
        "game=strip",
        "games=20",
        "batch=10",
        "policy.layers=[8]",
        "solve_seconds=0",
        "out=own",
    ]
    assert typed("train", *words, "reward=outcome", *own_parts).returncode == 0
    done = typed("publish", "own", "space=true", *BRIEF, *own_parts[:1])
    assert "needs plugins=['striped']" in done.stderr
    assert not (tmp_path / "own" / "published").exists()


needs_hub = pytest.mark.skipif(
    util.find_spec("huggingface_hub") is None, reason="huggingface_hub is not installed"
)


@pytest.mark.slow
@needs_hub
def test_an_agent_travels_over_the_hub(run, tmp_path):
    with serve() as server:
        done = rlgames_with(server, tmp_path, "publish", str(run), *BRIEF, "repo=me/agent")
        assert done.returncode == 0, done.stderr
        assert f"url: {server.address}/me/agent" in done.stdout
        files = server.repositories["me/agent"]
        assert {*files} == {path.name for path in (run / "published").iterdir()}
        model = (run / "published" / hub.MODEL).read_bytes()
        assert files[hub.MODEL] == model
        assert b"hf:me/agent" in files["README.md"]
        server.requests.clear()
        done = rlgames_with(server, tmp_path, "arena", "hf:me/agent", "random", "games=20")
        assert done.returncode == 0, done.stderr
        assert "hf:me/agent" in done.stdout
        copy = tmp_path / "hf/rlgames/me/agent" / hub.MODEL
        assert copy.read_bytes() == model
        asked = [request for request in server.requests if "/me/agent/" in request]
        assert asked
        assert all("model.safetensors" in request for request in asked)
    # The hub is gone now.
    words = ["eval", "player=random", "game=tictactoe", "opponent=hf:me/agent", *BRIEF]
    done = rlgames_with(server, tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert "random against hf:me/agent" in done.stdout
    done = rlgames_with(server, tmp_path, "show", "hf:me/agent")
    assert "\nhf:me/agent expects a return" in done.stdout
    done = rlgames_with(server, tmp_path, "eval", "hf:me/agent", "opponent=connect4", *BRIEF)
    assert "connect4 was trained on connect4" in done.stderr


@pytest.mark.slow
@needs_hub
def test_a_space_is_uploaded_next_to_its_agent(run, tmp_path):
    with serve() as server:
        words = [*BRIEF, "repo=me/agent", "space=true", f"out={tmp_path}/out"]
        done = rlgames_with(server, tmp_path, "publish", str(run), *words)
        assert done.returncode == 0, done.stderr
        assert {*server.repositories["spaces/me/agent"]} == {
            *("README.md", "Dockerfile", "requirements.txt", hub.MODEL)
        }
        assert "Dockerfile" not in server.repositories["me/agent"]


@pytest.mark.slow
@needs_hub
def test_what_the_hub_does_not_have_gives_one_line(run, tmp_path):
    with serve() as server:
        server.repositories |= {"me/empty": {}, "me/bad": {hub.MODEL: b"\x80\x04cos\nsystem\n"}}
        for words, message in [
            (["eval", "hf:me/none"], "the hub has no such repository"),
            (["eval", "hf:me/bad@v9"], "no such revision"),
            (["eval", "hf:me/empty"], "has no model.safetensors"),
            (["eval", f"hf:me/bad@{COMMIT}"], "is not a readable checkpoint"),
            (["publish", str(run), *BRIEF, "repo=me/agent"], "hf auth login"),
        ]:
            done = rlgames_with(server, tmp_path, *words, HF_TOKEN="hf_other")
            assert done.returncode == 2, done.stderr
            assert message in done.stderr
            assert len([line for line in done.stderr.splitlines() if "rlgames:" in line]) == 1
    assert "me/agent" not in server.repositories


def test_a_damaged_model_is_refused(folder, tmp_path):
    model = bytearray((folder / hub.MODEL).read_bytes())
    model[-1] ^= 1
    (tmp_path / hub.MODEL).write_bytes(model)
    with pytest.raises(BadCheckpoint, match="damaged"):
        load_agent(tmp_path)
