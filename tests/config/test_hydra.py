"""`rlgames train` is a Hydra app: what Hydra's documentation says holds here."""

import shutil
from pathlib import Path

import pytest
import yaml
from helpers import SMALL_TRAINING, check_refused
from markers import one_in
from run_files import metrics_without_times
from untrusted_files import plain_error_line

from rlgames.commands.study_file import read_study
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.hydra_version import IS_1_3
from rlgames.config.options.rewards import RewardConfig
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import Option
from rlgames.config.typed import from_plain, to_yaml
from rlgames.core.errors import ConfigError

SMALL = [*SMALL_TRAINING, "solve_seconds=0", "learner.epochs=1"]


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """Each test begins in a folder with configs of a user."""
    for path, text in {
        "own/experiment/mine.yaml": "# @package _global_\n# mine\ndefaults:\n  - salvo\n"
        "  - override /reward: gentle\ngames: 20\n",
        "own/reward/gentle.yaml": "# gentler\ndefaults: [hits]\ndiscount: 0.8\n",
        "own/experiment/broken.yaml": "games: [\n",
        "own/experiment/dotted.yaml": "# @package _global_\nlearner.lr_end: 0.5\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


SHOWN = [
    (["--cfg", "job", "-p", "lr"], "0.002\n"),
    (["-c", "job", "-p", "reward", "reward=win"], "name: win\nscored: win\n"),
    (["--cfg=job", "--package=learner", "learner.epochs=2"], "epochs: 2\n"),
    (["--cfg", "job", "--resolve", "-p", "game", "game=2048", "board=3"], "columns: 3\n"),
    (["--cfg", "job", "-p", "game", "game=2048"], "columns: ${.board}\n"),
    (["--cfg", "job", "++lr=0.5", "-p", "lr"], "0.5\n"),
    (["--cfg", "job", "--resolve", "-p", "seed", "seed=${oc.env:NOT_SET,7}"], "7\n"),
    (["--cfg", "job", "-p", "reward", "-cd", "own", "reward=gentle"], "discount: 0.8\n"),
    (["--cfg", "hydra", "-p", "hydra.launcher", "hydra/launcher=basic"], "BasicLauncher\n"),
    (["--info", "searchpath", "--config-dir=own"], "own"),
    (["--info", "defaults"], "eval_opponent"),
    (["--hydra-help"], "--multirun"),
]


@pytest.mark.parametrize(("words", "expected"), one_in(3, SHOWN), ids=str)
def test_flags_of_hydra(words, expected, rlgames):
    done = rlgames("train", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert expected in done.stdout
    assert not Path("outputs").exists()


def test_other_commands_show_their_config(typed):
    shown = typed("eval", "--cfg", "job", "some/run", "games=all").stdout
    assert yaml.safe_load(shown)["run"] == "some/run"
    assert yaml.safe_load(shown)["games"] == "all"
    check_refused(typed("eval", "-m", "some/run"), "only train can sweep")


REFUSED = [
    (["lr=["], "cannot read 'lr=['; write key=value"),
    (["seed=0,1"], "seed=0,1 is a list of values; add -m to run a sweep"),
    (["learner=ppo,td"], "is a list of values"),
    (["hydra.foo=1"], "foo"),
    (["hydra/launcher=slurmm"], "slurmm"),
    (["+extra=1"], "no key is called 'extra' here"),
    (["~lr"], "lr has no value"),
    (["~learner"], "learner cannot be null"),
    (["game=null"], "game cannot be null"),
    (["seed=${oc.env:NO_NAME}"], "NO_NAME"),
    (["batch=${bacth}"], "bacth"),
    (["--config-dir=own", "experiment=broken"], "broken.yaml, line 2 is not YAML"),
    (
        ["--config-dir=own", "experiment=dotted"],
        "'learner.lr_end' here; write lr_end: below learner:",
    ),
    (["--config-dir", "nowhere"], "nowhere is not a folder"),
    (["--config-dir=.", "--config-dir=.."], "use hydra.searchpath="),
    (["--confg", "job"], "did you mean --cfg?"),
    (["out=x", "hydra.run.dir=y"], "out= and hydra.run.dir= both name the directory"),
]


@pytest.mark.parametrize(("words", "reason"), one_in(3, REFUSED), ids=str)
def test_mistakes_are_answered_in_one_line(words, reason, typed, folder):
    before = {*folder.rglob("*")}
    check_refused(typed("train", *words), reason)
    assert {*folder.rglob("*")} == before


def test_interpolations_have_the_type_of_their_key(monkeypatch):
    monkeypatch.setenv("MY_SEED", "9")
    words = ["seed=${oc.env:MY_SEED}", "learner.epochs=${seed}", "lr=${oc.env:NOT_SET,0.5}"]
    cfg = load_config(TrainConfig, words)
    assert (cfg.seed, cfg.learner.epochs, cfg.lr) == (9, 9, 0.5)
    monkeypatch.setenv("MY_SEED", "many")
    with pytest.raises(ConfigError, match="=many is not a whole number"):
        load_config(TrainConfig, words)


def test_a_variant_of_an_option_and_a_preset_of_ones_own_need_no_python():
    cfg = load_config(TrainConfig, ["--config-dir=own", "experiment=mine"])
    assert (cfg.games, cfg.game.name) == (20, "salvo")
    assert (cfg.reward.name, cfg.reward.minus, cfg.reward.discount) == ("hits", "random_shot", 0.8)


@pytest.mark.parametrize("date", ["2026-11-28", "2026-11-28 10:30:00", "2026-11-28T10:30:00Z"])
def test_a_date_in_a_file_is_text(date, folder):
    keys = f"init_from: {date}\nout: {date}\nlogger:\n  mlflow:\n    experiment: {date}\n"
    defaults = "defaults:\n  - override /logger: [mlflow]\n"
    (folder / "own/experiment/dated.yaml").write_text(f"# @package _global_\n{defaults}{keys}")
    cfg = load_config(TrainConfig, ["--config-dir=own", "experiment=dated", "game=tictactoe"])
    assert (cfg.init_from, cfg.out, cfg.logger["mlflow"].experiment) == (date, date, date)
    assert from_plain(yaml.safe_load(to_yaml(cfg))) == cfg
    table = f"{{title: {date}, rows: {{a: {date}}}, columns: {{{date}: train.seconds}}}}"
    study = f"before: {date}\nruns: {{a: game=tictactoe}}\ntable: {table}\n"
    (folder / "dated.yaml").write_text(study)
    read = read_study("dated.yaml")
    (shown,) = read.tables
    assert (read.before, shown.title, shown.rows) == (date, date, {"a": date})
    assert [column.heading for column in shown.columns] == [date]


def test_a_run_lies_where_hydra_puts_it(typed):
    done = typed("train", *SMALL, "hydra.run.dir='runs/${game.name} ${seed}'")
    assert done.returncode == 0, done.stderr
    assert Path("runs/tictactoe 0/run.json").is_file()
    assert typed("train", *SMALL, "out=runs/b").returncode == 0
    assert "already holds a run" in typed("train", *SMALL, "out=runs/b").stderr
    assert not Path("outputs").exists()


def test_a_run_is_trained_again_with_its_settings(typed, folder):
    own = ["learner.entropy_coef=0.3", "init_from=null", "logger=[tensorboard]", "opponent=random"]
    assert typed("train", *SMALL, *own, "seed=5", "out=a").returncode == 0
    assert typed("train", "a", "out=b").returncode == 0
    assert typed("train", "a/checkpoints/latest.safetensors", "out=c").returncode == 0
    one, two, three = map(metrics_without_times, map(Path, "abc"))
    assert one == two == three
    stored = [Path(run, "config.yaml").read_text() for run in "ab"]
    assert stored[0].replace("out: a\n", "out: b\n") == stored[1]
    # A key and an option that are typed replace those of the run.
    changed = ["learner=reinforce", "learner.baseline=mean", "lr=0.5", "out=d"]
    assert typed("train", "a", *changed).returncode == 0
    config = yaml.safe_load(Path("d/config.yaml").read_text())
    assert (config["learner"]["name"], config["lr"], config["seed"]) == ("reinforce", 0.5, 5)
    assert config["opponent"]["name"] == "random"
    check_refused(typed("train", "a", "b"), "train takes one run, and b is another")
    check_refused(typed("train", "a", "experiment=hex"), "both name the settings of the training")
    check_refused(typed("train", "nowhere"), "there is no run 'nowhere'")


def test_a_sweep_starts_from_a_run(typed):
    assert typed("train", *SMALL, "seed=5", "out=a").returncode == 0
    done = typed("train", "-m", "a", "seed=5,6", "out=s", "hydra/launcher=basic")
    assert done.returncode == 0, done.stderr
    runs = map(Path, ("a", "s/seed=5", "s/seed=6"))
    one, again, other = map(metrics_without_times, runs)
    assert one == again != other


HOSTILE = {
    "a callback": "hydra:\n  callbacks:\n    x: {_target_: evil.main}\n",
    "a searchpath": "hydra: {searchpath: ['file://own']}\n",
    "defaults": "defaults: [{override /learner: dqn}]\n",
    "a target": "reward: {_target_: evil.main}\n",
    "a target in a list": "policy: {name: mlp, layers: [{_target_: evil.main}]}\n",
    "an interpolation": "seed: ${oc.env:HOME}\n",
    "a plugin": "plugins: [evil]\ngame: {name: bad}\n",
    "a list": "[1]\n",
    "no YAML": "a: [\n",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_run_of_a_stranger_is_data(text, typed, folder):
    assert typed("train", *SMALL, "out=theirs").returncode == 0
    (folder / "evil.py").write_text("from pathlib import Path\nPath('marker').touch()\n")
    config = folder / "theirs/config.yaml"
    values = yaml.safe_load(config.read_text())
    try:
        hostile = values | yaml.safe_load(text)
        config.write_text(yaml.safe_dump(hostile))
    except (TypeError, yaml.YAMLError):
        config.write_text(text)
    before = {*folder.rglob("*")}
    check_refused(typed("train", "theirs", "out=again"), "theirs")
    for words in (
        *(["--config-dir", "theirs", "-cn", "config"], ["-cd=theirs", "--config-name=config"]),
        *(["--config-path", "theirs", "-cn", "config"], ["-cp", f"{folder}/theirs", "-cn=config"]),
        *(["-cd", ".", "-cn", "theirs/config"], ["-cd", "theirs", "experiment=config"]),
    ):
        refused = typed("train", *words, "out=again")
        check_refused(refused, "is a run, not a folder of configs; use rlgames train")
    assert {*folder.rglob("*")} == before


HIDDEN = ["experiment/salvo", "experiment/connect4_mlp", "learner/ppo", "train"]


@pytest.mark.parametrize("name", HIDDEN)
def test_a_file_that_hydra_would_not_see_is_an_error(name, typed, folder):
    path = folder / "own" / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("# @package _global_\nlr: 0.5\n")
    done = typed("train", "--config-dir=own", "experiment=mine", "--cfg", "job")
    check_refused(done, f"own/{name}.yaml has the name of a bundled file", "rename it")


def test_a_file_with_the_name_of_a_plugins_option_is_an_error(typed, folder, monkeypatch):
    monkeypatch.setitem(REGISTRY["reward"], "gentle", Option(RewardConfig, values={"name": "x"}))
    done = typed("train", "--config-dir=own", "experiment=mine", "--cfg", "job")
    check_refused(done, "own/reward/gentle.yaml has the name of a plugin's option", "rename it")


OF_HYDRA = {
    "own/experiment/sub/deep.yaml": (
        "# @package _global_\ndefaults:\n  - override /game: tictactoe\n"
    ),
    "own/experiment/ext.yaml": "# @package _global_\ndefaults:\n  - /experiment/tictactoe_mlp\n",
    "own/experiment/many.yaml": "# @package _global_\nhydra: {mode: MULTIRUN}\n",
    "own/learner/slow.yaml": "# slower\ndefaults: [ppo]\nepochs: 9\n",
    "own/other.yaml": "defaults:\n  - train\n  - _self_\nlr: 0.125\n",
}
"""Files in places that only Hydra reads."""

LEFT_TO_HYDRA = [
    ("experiment=sub/deep game.line=2 -p game.line", "2"),
    ("experiment=sub/deep line=2 -p game.line", "2"),
    ("experiment=ext line=2 -p game.line", "2"),
    ("experiment=ext.yaml line=2 -p game.line", "2"),
    ("experiment=ext learner.epochs=7 -p learner.epochs", "7"),
    ("learner=slow learner.gae_lambda=0.5 -p learner.epochs", "9"),
    ("learner=slow learner.gae_lambda=0.5 -p learner.gae_lambda", "0.5"),
    ("game=tictactoe learner=slow -p learner.epochs", "9"),
    ("--config-name other -p lr", "0.125"),
    ("--config-name other game=hex board=5 -p game.board", "5"),
    ("--config-name other opponent=random -p opponent.name", "random"),
    ("+learner.epochs_too=1 -p learner.epochs_too", "1"),
    ("++game.board=3 game=tictactoe -p game.board", "3"),
    ("~policy.init -p policy.name", "mlp"),
    ("hydra.job.name=mine -p lr", "0.002"),
    *([("game=${oc.env:NO_GAME,hex} -p game.name", "hex")] if IS_1_3 else []),
]
"""Hydra 1.4.0rc3 refuses the last one by itself."""


@pytest.mark.parametrize(("words", "shown"), one_in(3, LEFT_TO_HYDRA))
def test_what_only_hydra_can_know_is_left_to_hydra(words, shown, typed, folder):
    for path, text in OF_HYDRA.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    done = typed("train", "--config-dir=own", *words.split(), "--cfg", "job")
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().splitlines()[-1] == shown or f"name: {shown}" in done.stdout


def test_a_package_on_the_searchpath_has_presets(typed, folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    (folder / "mypkg/conf/experiment").mkdir(parents=True)
    (folder / "mypkg/__init__.py").touch()
    (folder / "mypkg/conf/__init__.py").touch()
    (folder / "mypkg/conf/experiment/theirs.yaml").write_text("# @package _global_\nlr: 0.25\n")
    for place in ("pkg://mypkg.conf", f"file://{folder}/mypkg/conf"):
        words = [f"hydra.searchpath=[{place}]", "experiment=theirs", "--cfg", "job", "-p", "lr"]
        assert typed("train", *words).stdout.strip() == "0.25"


@pytest.mark.parametrize("place", ["pkg://nowhere.conf", "file://nowhere"])
def test_a_place_of_the_searchpath_that_is_missing_is_an_error(place, typed):
    for command in ("train", "games"):
        said = plain_error_line(typed(command, f"hydra.searchpath=[{place}]"))
        assert "hydra.searchpath: there is no " in said
        assert "PYTHONPATH" in said


def test_a_key_of_a_game_that_the_command_has_keeps_its_prefix(typed, folder, monkeypatch):
    monkeypatch.setitem(REGISTRY, "game", {**REGISTRY["game"]})
    (folder / "keyed.py").write_text(
        "import rlgames\nfrom rlgames.games.k_in_a_row import KInARow\n"
        "def keyed(seat, state, format):\n    return KInARow(3, 3, 3, False, 'keyed')\n"
        "rlgames.register('game', 'keyed', keyed, seat=1, state=1, format='a')\n"
    )
    for command, key in (("play", "seat"), ("show", "state"), ("show", "format")):
        words = [f"game.{key}=2", "plugins=[keyed]", "game=keyed", "--cfg", "job", "-p", "game"]
        assert f"{key}: 2\n" in typed(command, *words).stdout


@pytest.mark.parametrize(
    "words",
    [
        ["hydra.mode=MULTIRUN", "out=s"],
        ["hydra.mode=MULTIRUN", "hydra.sweep.dir=s"],
        ["-m", "--config-dir=own", "--config-name=other", "out=s"],
        ["-m", "--config-dir=own", "--config-name=other", "hydra.sweep.dir=s"],
        pytest.param(
            ["--config-dir=own", "experiment=many", "hydra.sweep.dir=s"],
            marks=pytest.mark.skipif(not IS_1_3, reason="Hydra 1.4.0rc3 asks for -m"),
        ),
    ],
)
def test_a_sweep_is_one_however_it_is_asked_for(words, typed, folder):
    for path, text in OF_HYDRA.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    # Hydra names a job by all words if only a preset says that it is a sweep.
    alike = [word.partition("=")[0] for word in (*SMALL, "experiment=many")]
    name = f"hydra.job.config.override_dirname.exclude_keys=[{','.join(alike)}]"
    done = typed("train", *SMALL, "seed=0,1", "hydra/launcher=basic", name, *words)
    assert done.returncode == 0, done.stderr
    assert {path.parent.name for path in Path("s").glob("*/run.json")} == {"seed=0", "seed=1"}


def test_a_sweep_with_a_folder_of_configs_resumes_with_it(typed, folder):
    words = ["experiment=mine", "board=2", "ships=[1]", "shots=1", "policy.layers=[2]", "games=4"]
    words += ["batch=4", "eval_games=2", "solve_seconds=0", "seed=0,1", "out=s"]
    words += ["hydra/launcher=basic"]
    done = typed("train", "-m", "--config-dir=own", *words)
    assert done.returncode == 0, done.stderr
    shutil.rmtree("s/seed=1")
    check_refused(typed("resume", "s"), f"rlgames resume s --config-dir {folder}/own")
    done = typed("resume", "s", "--config-dir", "own")
    assert done.returncode == 0, done.stderr
    assert Path("s/seed=1/run.json").is_file()
