"""What Hydra does here is what it does in a plain Hydra app; everything else of it is an error."""

import contextlib
import io
import json
import os
import sys

import hydra
import pytest
import yaml
from helpers import SMALL_TRAINING, check_message, check_refused
from hydra._internal.utils import get_args_parser
from hydra.core.global_hydra import GlobalHydra
from markers import one_in
from omegaconf import OmegaConf

import rlgames as package
from rlgames.app import FLAGS, SHORT_FLAGS, parse_flags
from rlgames.cli.table import COMMANDS
from rlgames.commands.launch import load_training
from rlgames.config.compose import load, load_config
from rlgames.config.files import conf_dir
from rlgames.config.commands import TrainConfig
from rlgames.config.words import HYDRA_KEYS, SWEEP_KEYS
from rlgames.core.errors import ConfigError
from rlgames.sweeps.sweep import Sweep

TASK = ["experiment=tictactoe_mlp", "games=20"]


def app(*words):
    """What a plain Hydra app with the same configs prints."""

    @hydra.main(config_path=str(conf_dir()), config_name="train", version_base="1.3")
    def main(cfg):
        pass

    with pytest.MonkeyPatch.context() as patched:
        GlobalHydra.instance().clear()
        # argparse needs flags before overrides that begin with ~
        flags = [word for word in words if ("=" not in word and word[:1] != "~") or word[:1] == "-"]
        rest = [word for word in words if word not in flags]
        patched.setattr(sys, "argv", ["rlgames", *flags, *rest])
        patched.setenv("HYDRA_FULL_ERROR", "1")
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
            main()
    return output.getvalue()


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """Each test begins in a folder with configs of a user."""
    for path, text in {
        "own/experiment/many.yaml": "# @package _global_\ndefaults:\n  - tictactoe\ngames: 20\n"
        "hydra:\n  sweep: {dir: many, subdir: 'of_${seed}_${hydra.job.num}'}\n"
        "  sweeper:\n    params: {seed: '0,1', lr: 'choice(0.1,0.01)'}\n",
        "own/experiment/placed.yaml": "# @package _global_\ndefaults:\n  - tictactoe\n"
        "hydra: {run: {dir: 'runs/${game.name}'}}\n",
        "own/sampling/hot.yaml": "name: stochastic\ntemperature: 2.0\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


SHOWN = [
    ["--cfg", "job"],
    ["-c", "job", "-p", "learner", "learner.epochs=2"],
    ["--cfg=job", "--package=_global_", "lr=0.5"],
    ["--cfg", "job", "--resolve", "--package", "game"],
    ["--cfg", "job", "++lr=0.5", "-p", "lr"],
    ["--cfg", "job", "~search"],
    ["--cfg", "job", "seed=${oc.env:NOT_SET,7}", "batch=${games}"],
    ["--cfg", "job", "--resolve", "batch=${games}", "log_every=${oc.decode:'1'}"],
    ["--cfg", "job", "-cd", "own", "sampling=hot", "game.board=4"],
]


@pytest.mark.parametrize("words", one_in(4, SHOWN), ids=" ".join)
def test_cfg_shows_what_a_hydra_app_shows(words, typed):
    expected = app(*TASK, *words)
    assert expected
    done = typed("train", *TASK, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == expected


DIRECTORIES = [
    ["hydra.run.dir=runs/${game.name}_${seed}"],
    ["hydra.run.dir=runs/${hydra.job.override_dirname}", "lr=0.5"],
    ["hydra.run.dir='runs/a b, c'"],
    ["--config-dir=own", "experiment=placed"],
    ["hydra.searchpath=[file://own]", "experiment=placed", "seed=3"],
]


@pytest.mark.parametrize("words", one_in(3, DIRECTORIES), ids=" ".join)
def test_a_run_lies_where_a_hydra_app_puts_it(words, folder):
    words = [word.replace("own", str(folder / "own")) for word in words]
    task = [] if "experiment=placed" in words else TASK
    app(*task, *words)
    (path,) = folder.glob("runs/**/.hydra/overrides.yaml")
    config, files = load_training([*task, *words])
    assert config.out == path.parents[1].relative_to(folder).as_posix()
    assert yaml.safe_load(files[".hydra/overrides.yaml"]) == yaml.safe_load(path.read_text())


SWEEPS = [
    ["seed=1,2", "hydra.sweep.dir=many", "hydra.sweep.subdir=${seed}/x"],
    ["seed=range(1,4)", "hydra.sweep.dir=many", "hydra.sweep.subdir=j${hydra.job.num}"],
    ["sampling=glob(*a*)", "hydra.sweep.dir=many",
     "hydra.sweep.subdir=${hydra.job.override_dirname}"],
    ["seed=choice(1,2)", "lr=0.1,0.2", "hydra.sweeper.max_batch_size=1", "hydra.sweep.dir=many",
     "hydra.sweep.subdir=${seed}_${lr}"],
    ["policy.layers=[8],[16,8]", "hydra.sweep.dir=many", "hydra.sweep.subdir=${hydra:job.num}"],
    ["learner=ppo,reinforce", "hydra.sweep.dir=many",
     "hydra.sweep.subdir=${hydra:runtime.choices.learner}"],
    ["--config-dir=own", "experiment=many"],
    ["--config-dir=own", "experiment=many", "seed=7"],
]  # fmt: skip


@pytest.mark.parametrize("words", one_in(4, SWEEPS), ids=" ".join)
def test_a_sweep_has_the_jobs_of_a_hydra_app(words, folder, monkeypatch, typed):
    words = ["-m", *words] if "experiment=many" in words else ["-m", *TASK, *words]
    app(*words)
    paths = list(folder.glob("many/**/.hydra/overrides.yaml"))
    expected = {path.parents[1].relative_to(folder).as_posix() for path in paths}
    overrides = [yaml.safe_load(path.read_text()) for path in paths]
    (folder / "many").rename(folder / "of_the_app")
    launched = []
    monkeypatch.setattr(Sweep, "launch", lambda self, numbers, *_: launched.extend(numbers))
    done = typed("train", *words)
    assert done.returncode == 3, done.stderr  # nothing is done
    sweep = Sweep.read(folder / "many")
    assert len(expected) == len(sweep.jobs) == len(launched) > 1
    assert {os.path.relpath(sweep.path(number), folder) for number in launched} == expected
    assert sorted(sorted(job.overrides) for job in sweep.jobs) == sorted(map(sorted, overrides))


def test_every_other_flag_of_hydra_is_an_error():
    flags = [name for action in get_args_parser()._actions for name in action.option_strings]
    others = [flag for flag in flags if flag not in (*FLAGS, *SHORT_FLAGS, "-cd")]
    assert {"--info", "--config-name", "--run", "--hydra-help"} <= {*others}
    for flag in others:
        with pytest.raises(ConfigError, match="is not supported here") as raised:
            parse_flags(COMMANDS["train"], [flag])
        check_message(raised.value)


def leaves(node, prefix="hydra"):
    for name, value in node.items():
        yield from (
            leaves(value, f"{prefix}.{name}")
            if value and isinstance(value, dict)
            else [f"{prefix}.{name}"]
        )


@pytest.mark.parametrize("is_sweep", [False, True])
def test_every_other_key_of_hydra_is_an_error(is_sweep):
    node = load(TrainConfig, []).composed.hydra
    keys = [*leaves(OmegaConf.to_container(node)), "hydra", "hydra.new"]
    keys += [str(group) for group in node.runtime.choices if str(group).startswith("hydra/")]
    others = [key for key in keys if not key.startswith(HYDRA_KEYS)]
    assert 40 < len(others) < len(keys) - 4
    for word in [f"{key}=1" for key in others] + [f"+{HYDRA_KEYS[0]}=x", f"~{HYDRA_KEYS[0]}"]:
        with pytest.raises(ConfigError, match="is not supported here"):
            load(TrainConfig, [word], is_sweep=is_sweep)
    for key in SWEEP_KEYS:
        with pytest.raises(ConfigError, match=f"{key}=x belongs to a sweep; add -m"):
            load(TrainConfig, [f"{key}=x"])


@pytest.mark.parametrize("text", [
    "callbacks: {any: {_target_: evil.main}}", "sweeper: {_target_: evil.main}",
    "launcher: {_target_: evil.main}", "job_logging: {handlers: {any: {class: evil.main}}}",
    "job: {chdir: true}", "mode: MULTIRUN", "searchpath: [file://x]", "output_subdir: x",
])  # fmt: skip
def test_a_file_sets_only_directories_and_parameters_of_a_sweep(text, folder, typed):
    (folder / "evil.py").write_text("from pathlib import Path\nPath('marker').touch()\n")
    path = folder / "own/experiment/sly.yaml"
    for sly in (f"hydra:\n  {text}\n", "defaults:\n  - override /hydra/launcher: joblib\n"):
        path.write_text(f"# @package _global_\n{sly}")
        for words in (["-m"], []):
            done = typed("train", *words, "--config-dir=own", "experiment=sly", "out=x")
            check_refused(done, f"{path} sets hydra", "a file may set hydra.run.dir, ")
    assert not (folder / "marker").exists()
    assert not (folder / "x").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    one_in(
        5,
        [
            (["-m", "--cfg", "job"], "-m and --cfg contradict each other"),
            (["--resolve"], "--resolve needs --cfg"),
            (["--package", "learner"], "--package needs --cfg"),
            (["--cfg", "all"], "--cfg all is not supported here; use --cfg job"),
            (["--info"], "--info is not supported here; use --cfg job"),
            (["--config-name=x"], "--config-name=x is not supported here; use experiment=NAME"),
            (["--cfg", "job", "-p", "nowhere"], "no package is called 'nowhere'"),
            (["--config-dir", "nowhere"], "--config-dir: nowhere is not a folder"),
            (["+lr=1"], "keys cannot be added; use lr=value"),
            (["~lr"], "lr cannot be removed; every key has a default"),
            (["~learner"], "learner cannot be removed"),
            (["hydra.searchpath=[pkg://os]"], "only plugins= imports modules"),
            (["-m", "hydra.run.dir=x"], "use hydra.sweep.dir="),
            (["-m", "hydra.sweep.dir=a,b"], "Hydra does not sweep over its own keys"),
            (["-m", "seed=0,1", "hydra.sweep.subdir=same", "dry_run=true"], "for jobs 0 and 1"),
            (["-m", "hydra.sweep.subdir=../x", "dry_run=true"], "lies outside the sweep"),
            (["out=x", "hydra.run.dir=y"], "out= and hydra.run.dir= both name the directory"),
        ],
    ),
    ids=str,
)
def test_words_that_contradict_are_refused_before_anything_is_written(words, reason, typed, folder):
    before = {*folder.rglob("*")}
    check_refused(typed("train", *words), reason)
    assert {*folder.rglob("*")} == before


def test_environment_variables_have_the_type_of_their_key(monkeypatch):
    monkeypatch.setenv("MY_SEED", "9")
    monkeypatch.setenv("MY_SHIPS", "[3,2]")
    words = ["game=salvo", "seed=${oc.env:MY_SEED,7}", "ships=${oc.env:MY_SHIPS}"]
    cfg = load_config(TrainConfig, [*words, "batch=${oc.env:NOT_SET,7}"])
    assert (cfg.seed, cfg.game.ships, cfg.batch) == (9, [3, 2], 7)
    chain = ["learner.epochs=${oc.env:MY_SEED}", "learner.num_minibatches=${learner.epochs}"]
    cfg = load_config(TrainConfig, [*chain, "batch=${learner.num_minibatches}"])
    assert (cfg.learner.num_minibatches, cfg.batch) == (9, 9)
    monkeypatch.setenv("MY_NAME", "${oc.env:MY_SEED}")  # text, which refers to nothing
    with pytest.raises(ConfigError, match=r"seed=\$\{oc.env:MY_SEED\} is not a whole number"):
        load_config(TrainConfig, ["seed=${oc.env:MY_NAME}"])
    monkeypatch.setenv("MY_SEED", "many")
    with pytest.raises(ConfigError, match="seed=many is not a whole number"):
        load_config(TrainConfig, words)


SMALL = [*SMALL_TRAINING, "solve_seconds=0", "learner.epochs=1"]


def config_of(run):
    return yaml.safe_load((run / "config.yaml").read_text())


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("trained")
    return package.train([*SMALL, "seed=5", "learner.num_minibatches=2", f"out={place}/run"])


@pytest.mark.parametrize("name", ["config.yaml", ".hydra/config.yaml"])
def test_a_runs_config_starts_a_run(name, run, typed):
    words = [f"config={run}/{name}", "dry_run=true"]
    done = typed("train", *words)
    assert yaml.safe_load(done.stdout) == config_of(run) | {"out": None}, done.stderr
    done = typed("train", *words, "lr=0.5", "board=2", "line=2", "learner=reinforce")
    cfg = yaml.safe_load(done.stdout)
    assert (cfg["lr"], cfg["seed"], cfg["game"]["board"]) == (0.5, 5, 2)
    assert cfg["learner"]["name"] == "reinforce"
    assert "num_minibatches" not in cfg["learner"]


@pytest.mark.slow
def test_a_run_trains_from_a_runs_config_to_the_same_result(run, tmp_path):
    again = package.train([f"config={run}/config.yaml", f"out={tmp_path}/again"])
    metrics = [
        [json.loads(line) for line in (each / "metrics.jsonl").read_text().splitlines()]
        for each in (run, again)
    ]
    for lines in metrics:
        for line in lines:
            for name in [name for name in line if name.startswith("time/")]:
                del line[name]
    assert metrics[0] == metrics[1]
    assert config_of(again) == config_of(run) | {"out": f"{tmp_path}/again"}


@pytest.mark.parametrize(
    ("text", "reason"),
    one_in(
        4,
        [
            ("game: {name: salvo, board: '${oc.env:HOME}'}", "holds the resolver"),
            (
                "game: {name: salvo}\ndemonstrator: env\ninit_from: '${oc.${demonstrator}:HOME}'",
                "holds the resolver",
            ),
            ("defaults:\n- override game: salvo\nseed: ${oc.env:HOME}", "holds the resolver"),
            ("game: {name: salvo}\nplugins: [os]", "needs plugins=[os]"),
            ("reward: {name: hurry}\nplugins: [os]", "needs plugins=[os]"),
            ("game: {name: salvo}\nlr: &a [*a]", "no aliases"),
            ("game: {name: salvo}\nhydra: {run: {dir: x}}", "no key is called 'hydra' here"),
            ("game: {name: slavo}", "did you mean salvo?"),
            ("game: {name: salvo}\nlrr: 1", "did you mean lr?"),
            ("- 1", "is not a config"),
            ("defaults: [tictactoe]", "theirs.yaml extends tictactoe"),
            ("a: [", "is not a config"),
        ],
    ),
)
def test_a_strangers_config_is_data_alone(text, reason, typed, folder):
    (folder / "theirs.yaml").write_text(text)
    check_refused(typed("train", "config=theirs.yaml", "dry_run=true"), reason)


def test_exist_ok_numbers_the_directory(run, typed):
    words = [*SMALL, f"out={run}"]
    assert "already holds a run" in typed("train", *words).stderr
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert str(package.train([*words, "exist_ok=true"])) == f"{run}_1"
    assert config_of(run.with_name("run_1"))["out"] == f"{run}_1"
    assert str(package.train([*words, "exist_ok=true"])) == f"{run}_2"
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_exist_ok_numbers_the_directory_of_a_sweep(typed, folder, monkeypatch):
    monkeypatch.setattr(Sweep, "launch", lambda *_: None)
    for name in ("many", "many_1", "many_2"):
        assert typed("train", "-m", *SMALL, "out=many", "exist_ok=true").returncode == 3
        assert (folder / name / "sweep.json").is_file()
    assert "already holds a sweep" in typed("train", "-m", *SMALL, "out=many").stderr


@pytest.mark.parametrize(
    ("words", "learner"),
    [
        (["game=connect4", "policy=ntuple"], "td"),
        (["game=connect4", "policy=ntuple", "learner=td"], "td"),
        (["game=connect4", "policy=conv"], "ppo"),
        (["game=2048", "policy=ntuple"], "td"),
        (["game=2048"], "td"),
        (["game=2048", "policy=conv"], "ppo"),
        (["game=2048", "learner=dqn"], "dqn"),
    ],
)
def test_the_game_and_the_policy_or_the_learner_choose_the_preset(words, learner):
    assert load_config(TrainConfig, words).learner.name == learner
