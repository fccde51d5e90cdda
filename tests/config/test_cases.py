"""Cases that must come out right, on the command line and in Python, in single runs and sweeps."""

import json
import os
import signal
import threading
from pathlib import Path

import hydra
import pytest
import torch
import yaml
from helpers import SMALL_TRAINING, check_refused
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.version import VersionBase
from processes import Forked
from safetensors import safe_open
from safetensors.torch import save_file

import rlgames as package
from rlgames.config.commands import SolveConfig
from rlgames.config.compose import load_config
from rlgames.config.commands import TrainConfig
from rlgames.core.errors import ConfigError
from rlgames.runs.checkpoint import FORMAT
from rlgames.sweeps import jobs
from rlgames.sweeps.sweep import Sweep

SMALL = [*SMALL_TRAINING, "solve_seconds=0", "learner.epochs=1"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with two runs."""
    folder = tmp_path_factory.mktemp("trained")
    for seed, name in enumerate(("first", "second")):
        package.train([*SMALL, f"seed={seed}", f"out={folder}/{name}"])
    return folder


def write(path, text):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def config_of(run):
    return yaml.safe_load((Path(run) / "config.yaml").read_text())


def dry(typed, *words):
    """The config that words describe, or the jobs of a sweep."""
    done = typed("train", *words, "dry_run=true")
    assert done.returncode == 0, done.stderr
    return done.stdout if "-m" in words else yaml.safe_load(done.stdout)


def jobs_of(typed, monkeypatch, *words):
    """The configs of a sweep's jobs, none of which runs."""
    monkeypatch.setattr(Sweep, "launch", lambda *_: None)
    done = typed("train", "-m", *words, "out=sweep")
    assert done.returncode == 3, done.stderr
    return [job.config for job in Sweep.read(Path("sweep")).jobs]


def named(node):
    """A player, or the path of a run, in a plain config."""
    return node.get("path", node["name"]) if isinstance(node, dict) else node


PACKAGE = "# @package _global_\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("games: 20\n", "begin"),
        (f"# a comment\n{PACKAGE}games: 20\n", "begin"),
        (f"\n{PACKAGE}games: 20\n", "begin"),
        (f"\ufeff{PACKAGE}games: 20\n", "byte-order mark"),
        ("", "begin"),
        (f"{PACKAGE}search: {{simulations: 5}}\n", "search has keys, but no option is chosen"),
        (f"{PACKAGE}nobody: 5\n", "no key is called 'nobody'"),
        (f"{PACKAGE}gaems: 5\n", "did you mean games?"),
        (f"{PACKAGE}board: 5\n", "keys of a game stand below game:"),
        (f"{PACKAGE}game: {{bord: 5}}\n", "did you mean board?"),
        (f"{PACKAGE}defaults: [base]\n", "base.yaml does not begin"),
        (f"{PACKAGE}defaults: [{{override /game: slavo}}]\n", "mine.yaml: no game is called"),
        (f"{PACKAGE}defaults: [{{override /gaem: salvo}}]\n", "did you mean game?"),
        (f"{PACKAGE}defaults: [tictacto]\n", "did you mean tictactoe?"),
        (f"{PACKAGE}defaults: tictactoe\n", "line 2: defaults: is not a list"),
        (f"{PACKAGE}- 1\n", "mine.yaml holds no keys"),
        (f"{PACKAGE}reward:\n", "reward cannot be null"),
        (f"{PACKAGE}game: salvo\n", "`- override /game: salvo` below `defaults:`"),
    ],
)
def test_nothing_in_an_experiment_is_ignored(text, reason, typed):
    write("own/experiment/mine.yaml", text)
    write("own/experiment/base.yaml", "games: 20\n")
    words = ["--config-dir=own", "experiment=mine", "game=tictactoe", "out=x"]
    for more in ([], ["-m", "seed=0,1"]):
        done = check_refused(typed("train", *more, *words), reason)
        if "begin" in reason:
            assert "own/experiment/" in done
    with pytest.raises(ConfigError):
        package.train(words)
    assert not Path("x").exists()


@pytest.mark.parametrize("text", ["search: {simulations: 5}", "nobody: 5", "game: {bord: 5}"])
def test_nothing_in_a_config_file_is_ignored(text, typed):
    write("mine.yaml", f"defaults:\n- override game: tictactoe\n{text}\n")
    check_refused(typed("train", "config=mine.yaml", "reward=outcome"))


def test_an_option_file_sets_only_keys_of_its_option(typed):
    for line, reason in (
        ("# @package _global_", "mine.yaml is a learner, and not of `# @package _global_`"),
        ("defaults: [/policy/mlp]", "no learner is called '/policy/mlp'"),
        ("lr: 3", "no key is called 'learner.lr' here"),
    ):
        write("own/learner/mine.yaml", f"{line}\nname: ppo\n")
        check_refused(typed("train", "--config-dir=own", "learner=mine"), reason)
    write("own/learner/mine.yaml", "# @package learner\ndefaults: [ppo]\nepochs: 7\n")
    config = dry(typed, "--config-dir=own", "game=tictactoe", "learner=mine", "learner.epochs=8")
    assert (config["learner"]["name"], config["learner"]["epochs"]) == ("ppo", 8)


def test_the_number_of_a_job_is_a_value_of_any_key(typed, monkeypatch):
    number = "${hydra:job.num}"
    words = [*SMALL, f"seed={number},7", "lr=0.1,0.2"]
    jobs = jobs_of(typed, monkeypatch, *words)
    assert [job["seed"] for job in jobs] == [0, 1, 7, 7]
    Path("sweep").rename("before")
    jobs = jobs_of(typed, monkeypatch, *SMALL, "seed=5,6", f"solve_seconds={number}")
    assert [job["solve_seconds"] for job in jobs] == [0, 1]
    check_refused(typed("train", *SMALL, f"seed={number}"), "seed=None is not a whole number")


def test_names_of_option_files_have_dots_and_digits(typed, monkeypatch):
    write("own/experiment/v1.2.yaml", f"{PACKAGE}defaults: [tictactoe_mlp]\nbatch: 7\n")
    for name in ("m2.5", "7", "1e3"):
        write(f"own/policy/{name}.yaml", "name: mlp\nlayers: [3]\n")
    write("own/game/3.1.yaml", "name: tictactoe\nboard: 2\nline: 2\n")
    words = ["--config-dir=own", "experiment=v1.2"]
    assert dry(typed, *words)["batch"] == 7
    for name in ("m2.5", "7", "1e3", "'7'"):
        assert dry(typed, *words, f"policy={name}")["policy"]["layers"] == [3]
    assert load_config(SolveConfig, ["--config-dir=own", "game=3.1"]).game.board == 2
    assert "m2.5" in typed("train", "--help", "--config-dir=own", "policy=m2.5").stdout
    jobs = jobs_of(typed, monkeypatch, *words, "policy=7,m2.5,1e3", "experiment=glob(v1*)")
    assert [job["policy"]["layers"] for job in jobs] == [[3]] * 3
    check_refused(typed("train", "--config-dir=own", "experiment=v1.3"), "did you mean v1.2?")


def state_of_process():
    settings = (HydraConfig.instance().cfg, GlobalHydra.instance().hydra)
    place = (os.getcwd(), torch.get_num_threads(), signal.getsignal(signal.SIGINT))
    return (*settings, *place, VersionBase.instance().version_base, [*os.environ.items()])


def test_an_app_around_it_keeps_its_own_hydra(trained, monkeypatch):
    (Path("conf") / "x").mkdir(parents=True)
    write("conf/host.yaml", "value: 3\n")
    monkeypatch.setattr("sys.argv", ["host", "hydra.run.dir=of_the_host", "hydra.job.name=mine"])
    seen = []

    @hydra.main(config_path=str(Path("conf").absolute()), config_name="host", version_base="1.2")
    def host(_):
        before = state_of_process()
        package.train([*SMALL, "out=inside", "threads=2"])
        package.evaluate("inside", ["games=4", "threads=2"])
        package.report("inside")
        with pytest.raises(ConfigError):
            package.train(["nobody=1"])
        assert state_of_process() == before
        assert HydraConfig.get().job.name == "mine"
        seen.append(HydraConfig.get().runtime.output_dir)

    host()
    assert seen == [str(Path("of_the_host").absolute())]


def test_two_threads_train_at_once(here):
    before, ended = state_of_process(), []
    threads = [
        threading.Thread(
            target=lambda n=n: ended.append(package.train([*SMALL, f"seed={n}", f"out=run{n}"]))
        )
        for n in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(map(str, ended)) == ["run0", "run1"]
    assert state_of_process() == before
    assert [config_of(run)["seed"] for run in ("run0", "run1")] == [0, 1]


def test_a_dangling_link_among_option_files_is_passed_over(typed):
    write("own/experiment/mine.yaml", f"{PACKAGE}# quick\ndefaults: [tictactoe]\n")
    write("own/policy/small.yaml", "name: mlp\n")
    for name in ("experiment/gone.yaml", "policy/gone.yaml", "game/gone.yaml", "player/gone.yaml"):
        Path("own", name).parent.mkdir(exist_ok=True)
        Path("own", name).symlink_to("nowhere.yaml")
    for words in (
        ["train", "--help", "--config-dir=own"],
        ["train", "--config-dir=own", "experiment=mine", "dry_run=true"],
        ["games", "--config-dir=own"],
    ):
        done = typed(*words)
        assert (done.returncode, done.stderr) == (0, "")
        assert "gone" not in done.stdout
    check_refused(typed("train", "--config-dir=own", "policy=gone"), "no policy is called 'gone'")


@pytest.mark.parametrize("folder", ["experiment", "policy", "game", "player"])
def test_errors_of_yaml_name_the_file_and_the_line(folder, typed):
    write(f"own/{folder}/broken.yaml", f"{PACKAGE}name: mlp\nlayers: [8\nbias: true\n")
    name = "opponent" if folder == "player" else folder
    words = ["train", "--config-dir=own", f"{name}=broken"]
    check_refused(typed(*words), f"own/{folder}/broken.yaml, line ")
    check_refused(typed(*words, "-m", "seed=0,1"), f"own/{folder}/broken.yaml, line ")
    assert typed("train", "--help", "--config-dir=own").returncode == 0
    if folder != "game":
        assert typed("games", "--config-dir=own").returncode == 0


@pytest.mark.parametrize("key", ["opponent", "teacher", "eval_opponent", "init_from"])
def test_relative_paths_are_stored_absolute(key, trained, typed, here, monkeypatch):
    (trained / "work").mkdir(exist_ok=True)
    learner = ["learner=behavior_cloning"] if key == "teacher" else []
    words = [*SMALL, *learner, f"{key}=../first"]
    monkeypatch.chdir(trained / "work")
    run = package.train([*words, f"out={trained}/by_{key}"])
    stored = config_of(run)[key]
    assert named(stored) == str(trained / "work/../first")
    done = typed("resume", str(run), "games=30")  # from another folder
    assert done.returncode == 0, done.stderr
    relative = os.path.relpath(trained / "first", here)
    (config,) = jobs_of(typed, monkeypatch, *words[:-1], f"{key}={relative}")
    stored = config[key]
    path = Path(named(stored))
    assert path.is_absolute()
    assert path.samefile(trained / "first")


def test_demonstrations_are_stored_absolute(trained, typed):
    words = ["player=random", "game=tictactoe", "games=4"]
    assert typed("eval", *words, "record=games.txt").returncode == 0
    run = package.train([*SMALL, "demonstrations=games.txt", "demos_per_batch=2", "out=run"])
    assert config_of(run)["demonstrations"] == str(Path("games.txt").absolute())


def test_a_run_that_moved_is_named_again(trained, typed):
    first, moved = trained / "first", trained / "moved"
    package.train([*SMALL, f"opponent={first}", "out=run"])
    first.rename(moved)
    try:
        check_refused(typed("resume", "run", "games=30"), str(first))
        check_refused(typed("resume", "run", "games=30", "opponent=random"), "opponent=", "omit")
        done = typed("resume", "run", "games=30", f"opponent={moved}")
        assert done.returncode == 0, done.stderr
        assert config_of("run")["opponent"]["path"] == str(moved)
    finally:
        moved.rename(first)
    package.train([*SMALL, "opponent=random", "out=other"])
    check_refused(typed("resume", "other", "games=30", f"opponent={first}"), "opponent=")


def test_a_sweep_runs_over_paths(trained, typed, monkeypatch):
    first, second = trained / "first", trained / "second"
    for key, values in {
        "init_from": (first, second),
        "opponent": ("random", first),
        "eval_opponent": (second, "random", "exact"),
    }.items():
        jobs = jobs_of(typed, monkeypatch, *SMALL, f"{key}={','.join(map(str, values))}")
        assert [named(job[key]) for job in jobs] == [str(value) for value in values]
        Path("sweep").rename(f"of_{key}")


def test_a_path_has_a_comma(trained, typed, monkeypatch):
    (trained / "a,b").symlink_to(trained / "first")
    path = str(trained / "a,b")
    for word in (f"init_from={path}", f"init_from='{path}'"):
        assert dry(typed, *SMALL, word)["init_from"] == path
        (job,) = jobs_of(typed, monkeypatch, *SMALL, word)
        assert job["init_from"] == path
        Path("sweep").rename(f"sweep{len(word)}")
    assert dry(typed, *SMALL, f"opponent={path}")["opponent"]["path"] == path
    run = package.train([*SMALL, "out=x,y"])
    assert run == Path("x,y")


@pytest.mark.parametrize(
    ("words", "jobs"),
    [
        (["game=tictactoe,2048"], ["game=tictactoe", "game=2048"]),
        (["game='tictactoe', '2048'"], ["game='tictactoe'", "game='2048'"]),
        (["game=tictactoe", "experiment=null,tictactoe", "reward=outcome"], ["null", "tictactoe"]),
        (["game=tictactoe", "logger=tensorboard,null"], ["logger=tensorboard", "logger=null"]),
        (
            ["game=tictactoe", "policy=mlp", "opponent='a,b',random"],
            ["opponent='a,b'", "opponent=random"],
        ),
        (
            ["game=tictactoe", "policy=mlp", "opponent=choice('a,b',self)"],
            ["opponent=a,b", "opponent=self"],
        ),
    ],
)
def test_a_sweep_lists_options_and_players(words, jobs, trained, typed):
    Path("a,b").symlink_to(trained / "first")
    lines = dry(typed, "-m", *words).splitlines()
    assert len(lines) == len(jobs) + 1
    for line, job in zip(lines, jobs, strict=False):
        assert f"{job} " in f"{line} ", line


def test_an_arena_knows_the_options_of_a_folder(trained, typed):
    write("own/search/deep.yaml", "defaults: [mcts]\nname: mcts\nsimulations: 2\n")
    write("own/player/mine.yaml", f"name: run\npath: {trained}/second\n")
    words = ["--config-dir=own", "games=4", "format=json"]
    done = typed("arena", f"{trained}/first+deep", "mine", "random", *words)
    assert done.returncode == 0, done.stderr
    assert [player["name"] for player in json.loads(done.stdout)["players"]][1:] == [
        "mine",
        "random",
    ]


@pytest.mark.parametrize("word", ["game=", "game=tictactoe,"])
def test_an_option_has_a_name(word, typed):
    sweep = ["-m"] if "," in word else []
    check_refused(typed("train", *sweep, word), "no game is called ''")


def test_a_sweep_has_one_directory(typed):
    check_refused(typed("train", "-m", *SMALL, "out=a,b"), "out=a,b is a list of values")


def test_two_plus_signs_change_nothing(trained, typed, here):
    run = trained / "first"
    check_refused(
        typed("eval", str(run), "++player=random"), "player= cannot be combined with a run"
    )
    check_refused(typed("arena", "random", "random+mcts", "++search=mcts"), "does not use search=")
    write("mine.yaml", "games: 7\n")
    words = ["++config=mine.yaml", "++game=salvo"]
    assert dry(typed, *words)["games"] == 7
    assert "0: not started" in dry(typed, "-m", *words)
    write("mine.yaml", "gaems: 7\n")
    check_refused(typed("train", "-m", "++config=mine.yaml", "seed=0,1"), "did you mean games?")
    done = typed("games", "++format=json", "++nothing=1")
    assert done.returncode == 2
    assert "error" in json.loads(done.stdout)


def test_a_config_file_may_leave_options_as_they_are(typed):
    text = "defaults:\n- game: tictactoe\n- reward: outcome\n- player@opponent: win_or_block\n"
    write("mine.yaml", f"{text}opponent: {{}}\nsampling: {{temperature: 2}}\nlogger:\n")
    config = dry(typed, "config=mine.yaml")
    assert named(config["opponent"]) == "win_or_block"
    assert config["logger"] == {}
    assert config["sampling"]["temperature"] == 2
    assert config["sampling"]["name"] == "stochastic"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("seed: 0123", "0123"),
        ("games: 0777", "0777"),
        ("solve_seconds: 1:30", "1:30"),
        ("seed: 0o17", "0o17"),
        ("policy: {layers: [010]}", "010"),
    ],
)
def test_numbers_of_yaml_that_are_others_are_errors(text, number, typed):
    write("own/experiment/mine.yaml", f"{PACKAGE}defaults: [tictactoe]\n{text}\n")
    write("mine.yaml", f"game: {{name: tictactoe}}\n\n{text}\n")
    for file, words in {
        "own/experiment/mine.yaml": ["--config-dir=own", "experiment=mine"],
        "mine.yaml": ["config=mine.yaml", "reward=outcome"],
    }.items():
        for more in ([], ["-m"]):
            done = typed("train", *words, *more, "dry_run=true")
            check_refused(done, f"{file}, line 3: {number} is octal or base 60 in YAML")
    check_refused(typed("train", "game=tictactoe", "seed=0123"), "seed=0123 is not a whole number")


def test_files_hold_numbers_with_exponents_and_each_key_once(typed):
    for file, head, words in (
        ("own/experiment/mine.yaml", PACKAGE, ["--config-dir=own", "experiment=mine"]),
        ("mine.yaml", "", ["config=mine.yaml"]),
    ):
        text = f"{head}defaults:\n- override /game: tictactoe\n- override /reward: outcome\n"
        write(file, f"{text}lr: 1e-3\nlearner: {{max_grad_norm: 5E-1}}\n")
        config = dry(typed, *words)
        assert (config["lr"], config["learner"]["max_grad_norm"]) == (0.001, 0.5)
        write(file, f"{text}lr: 0.1\nreward: {{discount: 0.5}}\nlr: 0.2\n")
        line = 6 + head.count("\n")
        check_refused(typed("train", *words), f"{file}, line {line}: lr is set twice")


def test_a_search_lies_below_odd_names(typed, here, monkeypatch):
    pytest.importorskip("optuna")
    monkeypatch.setattr(jobs, "start_process", Forked)
    words = ["hparams_search=random", "hparams_search.trials=2", "lr=interval(0.001,0.1)"]
    name = "why? #1 of%20 x"
    done = typed("train", "-m", *SMALL, *words, f"out={name}/s")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(Sweep.read(here / name / "s").jobs) == 2
    assert {*os.listdir(here)} == {name}
    done = typed("resume", f"{name}/s", "hparams_search.trials=3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(Sweep.read(here / name / "s").jobs) == 3
    check_refused(typed("resume", f"{name}/s", "hparams_search.timeout=3"), "hparams_search")


def test_a_name_of_a_job_that_is_too_long_is_an_error_before_anything_is_written(typed, here):
    words = ["seed=0,1", "out=sweep", f"hydra.sweep.subdir={'x' * 256}_${{hydra.job.num}}"]
    check_refused(typed("train", "-m", *SMALL, *words), "hydra.sweep.subdir", "255 bytes")
    words[-1] = f"hydra.sweep.subdir='${{hydra.job.num}}_{'é' * 128}'"
    check_refused(typed("train", "-m", *SMALL, *words), "hydra.sweep.subdir", "255 bytes")
    assert not any(here.iterdir())


def test_the_home_directory_is_expanded(trained, typed, monkeypatch):
    monkeypatch.setenv("HOME", str(trained))
    config = dry(typed, *SMALL, "out=~/runs/x", "init_from=~/first", "opponent=~/second")
    assert config["out"] == f"{trained}/runs/x"
    assert config["init_from"] == f"{trained}/first"
    assert config["opponent"]["path"] == f"{trained}/second"
    monkeypatch.setattr(Sweep, "launch", lambda *_: None)
    assert typed("train", "-m", *SMALL, "out=~/sweep", "init_from=~/first,~/second").returncode == 3
    jobs = Sweep.read(trained / "sweep").jobs
    paths = [job.config["init_from"] for job in jobs]
    assert paths == [f"{trained}/first", f"{trained}/second"]
    assert typed("eval", "~/first", "games=4", "opponent=~/second").returncode == 0


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("device=gpu", "device=gpu is not a device; use device=cuda"),
        ("device=GPU:0", "use device=cuda"),
        ("learner=a3c", "no learner is called 'a3c'; use learner=ppo"),
        ("policy.hidden=[8]", "use policy.layers="),
    ],
)
def test_common_names_lead_to_the_ones_here(word, reason, typed):
    for more in ([], ["-m"]):
        check_refused(typed("train", *more, "policy=mlp", word, "out=x"), reason)


def test_a_folder_of_one_call_is_not_searched_by_the_next(here):
    write("own/policy/mine.yaml", "name: mlp\nlayers: [3]\n")
    words = ["game=tictactoe", "policy=mine"]
    assert load_config(TrainConfig, ["--config-dir=own", *words]).policy.layers == [3]
    with pytest.raises(ConfigError, match="no policy is called 'mine'"):
        load_config(TrainConfig, words)
    package.train(["--config-dir=own", *SMALL, "policy=mine", "out=run"])
    with pytest.raises(ConfigError, match="no policy is called 'mine'"):
        package.train([*SMALL, "policy=mine", "out=other"])


@pytest.mark.parametrize("number", ["1", str(FORMAT - 1), str(FORMAT + 1)])
def test_a_checkpoint_of_another_format_is_refused_with_both_numbers(number, trained, typed, here):
    source = trained / "first" / "checkpoints" / "best.safetensors"
    with safe_open(source, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = file.metadata() | {"format": number}
    save_file(tensors, here / "other.safetensors", header)
    age = "an older" if int(number) < FORMAT else "a newer"
    reason = (
        f"format {number}, which {age} version of rlgames reads; this one reads format {FORMAT}"
    )
    check_refused(typed("eval", "other.safetensors", "games=4"), reason)
    check_refused(typed("train", *SMALL, "init_from=other.safetensors", "out=x"), reason)
    with pytest.raises(ConfigError, match=reason):
        package.load("other.safetensors")


@pytest.mark.parametrize(
    ("typed_words", "same"),
    [
        ("game=connect4 policy=ntuple", "game=connect4"),
        ("game=connect4 learner=td_ntuple", "game=connect4"),
        ("game=2048 learner=td_ntuple policy=ntuple", "game=2048"),
        ("game=connect4 learner=ppo", "experiment=connect4_mlp"),
        ("game=connect4 policy=mlp", "experiment=connect4_mlp"),
        ("game=salvo learner=ppo", "game=salvo"),
    ],
)
def test_naming_what_a_preset_has_changes_nothing(typed_words, same):
    configs = [load_config(TrainConfig, words.split()) for words in (typed_words, same)]
    assert configs[0] == configs[1]
