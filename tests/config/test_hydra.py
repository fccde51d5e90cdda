"""Every flag and every key of Hydra does what it does in a plain Hydra app with the same configs,
or is refused with the reason."""

import contextlib
import io
import json
import logging
import os
import sys
from types import SimpleNamespace
from typing import Any, ClassVar

import hydra
import pytest
import yaml
from helpers import SMALL_TRAINING, check_refused
from hydra._internal.utils import get_args_parser
from hydra.core.global_hydra import GlobalHydra
from markers import one_in
from omegaconf import OmegaConf

import rlgames as package
from rlgames.cli import flags as command_flags
from rlgames.config import catalogue, hydra_keys
from rlgames.config.catalogue import conf_dir
from rlgames.config.compose import load_composition, load_config, load_shared
from rlgames.config.hydra_keys import is_hydra_word
from rlgames.config.plugins import load_plugins
from rlgames.core.errors import ConfigError
from rlgames.sweeps.sweep import Sweep
from rlgames.training import run as training_run

TASK = ["experiment=tictactoe", "games=20"]


def probe(name):
    """What a job sees of Hydra's settings, after a line of its log and one of a library's."""
    logging.getLogger(name).info("played")
    logging.getLogger("library").debug("detail")
    here = os.path.relpath(os.getcwd(), os.environ["START"])
    return {"here": here, "PROBE": os.environ.get("PROBE"), "HOME": os.environ.get("HOME")}


def app(*words):
    """A plain Hydra app: what it prints, and what its jobs see."""
    seen = []

    @hydra.main(config_path=str(conf_dir()), config_name="train", version_base="1.3")
    def main(cfg):
        seen.append(probe("app"))

    with pytest.MonkeyPatch.context() as patched, _logging_kept():
        GlobalHydra.instance().clear()
        flags = [word for word in words if "=" not in word or word[:1] == "-"]
        flags = [word for word in flags if word[:1] != "~"]  # argparse needs them together
        rest = [word for word in words if word not in flags]
        patched.setattr(sys, "argv", ["rlgames", *flags, *rest])
        patched.setenv("HYDRA_FULL_ERROR", "1")
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
            main()
    return output.getvalue(), seen


@contextlib.contextmanager
def _logging_kept():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    _enable_loggers()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    _enable_loggers()
    for name in ("app", "library"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def _enable_loggers():
    """All those that a configuration of logging has disabled."""
    for name in logging.root.manager.loggerDict:
        logging.getLogger(name).disabled = False


@pytest.fixture(autouse=True)
def _folders(monkeypatch, tmp_path):
    """Each test begins in a folder with configs of a user, and with the folders of rlgames only."""
    monkeypatch.setattr(catalogue, "FOLDERS", [conf_dir()])
    for path, text in {
        "own/mine.yaml": "defaults:\n  - train\n  - override reward: outcome\n"
        "  - override game: tictactoe\n  - _self_\nlr: 0.25\n"
        "hydra:\n  run:\n    dir: runs/${game.name}\n",
        "own/experiment/many.yaml": "# @package _global_\ndefaults:\n  - tictactoe\ngames: 20\n"
        "hydra:\n  mode: MULTIRUN\n  sweep: {dir: many, subdir: 'of_${seed}_${hydra.job.num}'}\n"
        "  sweeper:\n    params: {seed: '0,1', lr: 'choice(0.1,0.01)'}\n",
        "own/experiment/evil.yaml": "# @package _global_\n"
        "hydra:\n  job_logging: {root: {level: 3}}\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)


SHOWN = [
    ["--cfg", "job"],
    ["-c", "job", "-p", "learner", "learner.epochs=2"],
    ["--cfg=job", "--package=_global_", "lr=0.5"],
    ["--cfg", "job", "--resolve", "--package", "game"],
    ["--cfg", "job", "++lr=0.5", "-p", "lr"],
    ["--cfg", "job", "~search"],
    ["--cfg", "all", "--package", "hydra.sweeper"],
    ["--cfg", "hydra", "-p", "hydra.run"],
    ["--cfg", "hydra", "-p", "hydra.job_logging", "hydra/job_logging=stdout"],
    ["--cfg", "hydra", "-p", "hydra.searchpath", "--config-dir", "own"],
    ["--info", "defaults"],
    ["-i", "defaults-tree"],
    ["--info", "searchpath", "-cd", "own"],
    ["--config-dir", "own", "--config-name", "mine", "--cfg", "job", "-p", "lr"],
    ["-cd", "own", "-cn", "mine", "--cfg", "hydra", "-p", "hydra.run"],
    ["--hydra-help"],
]


@pytest.mark.parametrize("words", one_in(7, SHOWN), ids=str)
def test_what_a_flag_shows_is_what_a_hydra_app_shows(words, typed):
    task = [] if words == ["--hydra-help"] or {"mine"} & {*words} else TASK
    expected, _ = app(*task, *words)
    assert expected
    done = typed("train", *task, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == expected


def test_every_flag_of_hydra_is_known():
    names = {name for action in get_args_parser()._actions for name in action.option_strings}
    assert names == {*command_flags.FLAGS} | {*command_flags.REFUSED_FLAGS}


@pytest.mark.parametrize(
    ("words", "reason"),
    one_in(
        9,
        [
            (
                ["--experimental-rerun", "x"],
                "a pickle, which can run code; write config=RUN/config.yaml",
            ),
            (["--shell-completion", "install=bash"], "rlgames completion bash"),
            (["-m", "--cfg", "job"], "-m and --cfg contradict each other"),
            (["--run", "-m"], "--run and -m contradict each other"),
            (["--resolve"], "--resolve needs --cfg"),
            (["--package", "learner"], "--package needs --cfg"),
            (["--cfg", "jobs"], "did you mean job?"),
            (["--cfg"], "--cfg needs a value; write --cfg job|hydra|all"),
            (["--cfg", "job", "-p"], "--package needs a value; write --package PACKAGE"),
            (["--info", "plugin", "lr=1"], "cannot read 'plugin'"),
            (["--cfg", "job", "-p", "nowhere"], "no package is called 'nowhere'"),
            (["--config-name", "nobody"], "no config is called 'nobody'"),
            (["--config-dir", "nowhere"], "--config-dir nowhere is not a folder"),
            (["--config-path", "own"], "own has no train.yaml"),
            (["--hydra-help", "lr=1"], "--hydra-help explains Hydra, not lr=1"),
            (["+lr=1"], "keys cannot be added or removed; write lr=value"),
            (["~lr"], "lr cannot be removed"),
            (["~learner"], "learner cannot be removed"),
            (["--config-dir", "own", "experiment=evil"], "only a command line may; type it"),
            (["hydra.searchpath=[pkg://os]"], "only plugins= imports modules"),
            (["hydra/launcher=joblib"], "hydra/launcher=joblib belongs to a sweep; add -m"),
            (["hydra.sweep.dir=x"], "hydra.sweep.dir=x belongs to a sweep; add -m"),
            (["-m", "hydra.run.dir=x"], "write hydra.sweep.dir="),
            (["-m", "hydra/sweeper=optuna"], "hparams_search=tpe searches with Optuna"),
            (["-m", "hydra.mode=RUN"], "hydra.mode=RUN and -m contradict each other"),
            (["-m", "hydra.verbose=true,false"], "Hydra does not sweep over its own keys"),
            (["-m", "seed=0,1", "hydra.sweep.subdir=same", "dry_run=true"], "for jobs 0 and 1"),
            (["-m", "hydra.sweep.subdir=../x", "dry_run=true"], "lies outside the sweep"),
            (["out=x", "hydra.run.dir=y"], "out= and hydra.run.dir= both name the directory"),
            (["hydra.output_subdir=checkpoints"], "cannot be the name of a folder"),
            (["hydra.job_logging._target_=os.system"], "only plugins= imports modules"),
            (["hydra.jobs.name=x"], "did you mean hydra.job.name?"),
        ],
    ),
    ids=str,
)
def test_what_is_refused_is_refused_in_one_line_with_the_reason(words, reason, typed, tmp_path):
    before = {*tmp_path.rglob("*")}
    check_refused(typed("train", *words), reason)
    assert {*tmp_path.rglob("*")} == before


def test_every_key_of_hydra_is_supported_or_refused_with_a_reason():
    node = load_shared([]).composed.hydra
    keys = [key for key, _ in hydra_keys._leaves(OmegaConf.to_container(node))]
    keys += [str(group) for group in node.runtime.choices if str(group).startswith("hydra/")]
    assert len(keys) > 40
    refusals = [error for key in keys if (error := refusal(key))]
    assert all("is not supported here" in each.error and each.hint for each in refusals)
    assert 10 < len(refusals) < len(keys) - 20


def refusal(key):
    """The error for a key, None for one that is supported."""
    try:
        hydra_keys._check_key(key, key)
    except ConfigError as error:
        return error
    return None


class Probed:
    """A run that does not train: it records what it sees of Hydra's settings."""

    seen: ClassVar[list[Any]] = []

    def __init__(self, state, log, *_):
        self.log = log

    def run(self):
        self.seen.append(probe(self.log.logger.name))
        self.log.close()
        return SimpleNamespace(directory=self.log.directory)


def observed(monkeypatch, *words):
    """What a run of rlgames prints, and what it sees."""
    monkeypatch.setattr(training_run, "Run", Probed)
    monkeypatch.setattr(training_run, "TrainingState", lambda *_: None)
    monkeypatch.setattr(training_run, "build_components", lambda *_: None)
    Probed.seen, output = [], io.StringIO()
    with contextlib.redirect_stdout(output):
        package.train([*words])
    return output.getvalue(), Probed.seen


DIRECTORY = "hydra.run.dir=runs/${game.name}_${seed}"
JOBS = [
    [DIRECTORY],
    ["hydra.run.dir=runs/${hydra.job.override_dirname}"],
    ["hydra.run.dir=runs/${hydra:job.name}", "hydra.job.name=mine"],
    [DIRECTORY, "hydra.job.config.override_dirname.kv_sep=-"],
    [DIRECTORY, "hydra.job.chdir=true"],
    [DIRECTORY, "hydra.job.chdir=false"],
    [DIRECTORY, "+hydra.job.env_set.PROBE=7"],
    [DIRECTORY, "hydra.job.env_copy=[HOME]"],
    [DIRECTORY, "hydra.output_subdir=null"],
    [DIRECTORY, "hydra.output_subdir=notes"],
    [DIRECTORY, "hydra/job_logging=default", "hydra.job.name=mine"],
    [DIRECTORY, "hydra/job_logging=stdout"],
    [DIRECTORY, "hydra/job_logging=stdout", "hydra.verbose=true"],
    [DIRECTORY, "hydra/job_logging=stdout", "hydra.verbose=[library]"],
    [DIRECTORY, "hydra/job_logging=disabled"],
    [DIRECTORY, "hydra/hydra_logging=default"],
    [DIRECTORY, "hydra.mode=RUN"],
]


def files_of_hydra(folder):
    """The files of a job that Hydra writes, with what is alike in both."""
    contents = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.name == "hydra.yaml":
            node = yaml.safe_load(path.read_text())["hydra"]
            contents[name] = {
                key: node[key] for key in ("run", "sweep", "verbose", "output_subdir", "overrides")
            }
            contents[name]["dirname"] = node["job"]["override_dirname"]
        elif path.parent.name in (".hydra", "notes"):
            contents[name] = path.read_text()
        elif path.name == "mine.log":
            contents[name] = ["played" in line for line in path.read_text().splitlines()]
    return contents


@pytest.mark.parametrize("words", one_in(7, JOBS), ids=str)
def test_a_run_does_what_a_job_of_a_hydra_app_does(words, tmp_path, monkeypatch):
    results = []
    for name, start in (("a", app), ("b", lambda *typed: observed(monkeypatch, *typed))):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setenv("START", str(tmp_path / name))
        output, seen = start(*TASK, *words)
        output = ["detail" in output, "played" in output]
        results.append((seen, output, files_of_hydra(tmp_path / name)))
    assert results[0][0] == results[1][0]
    assert results[0][1] == results[1][1]
    for name, content in results[0][2].items():
        assert results[1][2][name] == content, name


def test_verbose_alone_shows_the_log_on_the_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv("START", str(tmp_path))
    output, _ = observed(monkeypatch, *TASK, "out=x", "hydra.verbose=true")
    assert "played" in output
    assert "detail" in output
    assert "detail" not in observed(monkeypatch, *TASK, "out=y")[0]


SWEEPS = [
    ["-m", "seed=1,2", "hydra.sweep.dir=many", "hydra.sweep.subdir=${seed}/x"],
    ["-m", "seed=range(1,4)", "hydra.sweep.dir=many", "hydra.sweep.subdir=j${hydra.job.num}"],
    ["hydra.mode=MULTIRUN", "seed=1,2", "hydra.sweep.dir=many", "hydra.sweep.subdir=${seed}"],
    ["-m", "sampling=glob(*a*)", "hydra.sweep.dir=many",
     "hydra.sweep.subdir=${hydra.job.override_dirname}"],
    ["-m", "seed=1,2", "hydra.sweeper.max_batch_size=1", "hydra.sweep.dir=many",
     "hydra.sweep.subdir=${seed}"],
    ["--config-dir=own", "experiment=many"],
    ["--config-dir=own", "experiment=many", "seed=7"],
]  # fmt: skip


@pytest.mark.parametrize("words", one_in(8, SWEEPS), ids=str)
def test_a_sweep_has_the_jobs_of_a_hydra_app(words, tmp_path, monkeypatch, typed):
    monkeypatch.setenv("START", str(tmp_path))
    task = [] if "experiment=many" in words else TASK
    app(*task, *words)
    expected = {path.parent.parent.relative_to(tmp_path).as_posix()
                for path in tmp_path.glob("many/**/.hydra/config.yaml")}  # fmt: skip
    overrides = [yaml.safe_load(path.read_text())
                 for path in tmp_path.glob("many/**/.hydra/overrides.yaml")]  # fmt: skip
    (tmp_path / "many").rename(tmp_path / "of_the_app")
    launched = []
    monkeypatch.setattr(Sweep, "launch", lambda self, numbers, *_: launched.extend(numbers))
    done = typed("train", *task, *words)
    assert done.returncode == 3, done.stderr  # nothing is done
    sweep = Sweep.read(tmp_path / "many")
    assert len(expected) == len(sweep.jobs) == len(launched) > 1
    assert {os.path.relpath(sweep.path(number), tmp_path) for number in launched} == expected
    assert sorted(sorted(job.overrides) for job in sweep.jobs) == sorted(map(sorted, overrides))


def test_jobs_of_a_sweep_search_every_folder(tmp_path, monkeypatch, typed):
    folders = [tmp_path / "own", tmp_path / "yours, too"]
    folders[1].mkdir()
    (folders[0] / "hydra" / "job_logging").mkdir(parents=True)
    (folders[0] / "hydra" / "job_logging" / "quiet.yaml").write_text("version: 1\n")
    options = []
    monkeypatch.setattr(Sweep, "launch", lambda self, numbers, words, *_: options.extend(words))
    words = ["--config-dir=own", f"hydra.searchpath=['{folders[1]}']", "hydra/job_logging=quiet"]
    assert typed("train", "-m", *TASK, "seed=0,1", "out=many", *words).returncode == 3
    monkeypatch.setattr(catalogue, "FOLDERS", [conf_dir()])  # as in the process of a job
    load_shared([word for word in load_plugins(options) if is_hydra_word(word)])
    assert catalogue.FOLDERS[1:] == folders


def test_environment_variables_have_the_type_of_their_key(monkeypatch):
    monkeypatch.setenv("MY_SEED", "9")
    monkeypatch.setenv("MY_SHIPS", "[3,2]")
    words = ["game=salvo", "seed=${oc.env:MY_SEED,7}", "ships=${oc.env:MY_SHIPS}"]
    cfg = load_config("train", [*words, "batch=${oc.env:NOT_SET,7}"])
    assert (cfg.seed, list(cfg.game.ships), cfg.batch) == (9, [3, 2], 7)
    chain = ["learner.epochs=${oc.env:MY_SEED}", "learner.minibatches=${learner.epochs}"]
    cfg = load_config("train", [*chain, "batch=${learner.minibatches}"])
    assert (cfg.learner.minibatches, cfg.batch) == (9, 9)
    monkeypatch.setenv("MY_SEED", "many")
    with pytest.raises(ConfigError, match="seed=many is not of the right kind"):
        load_config("train", words)


SMALL = [*SMALL_TRAINING, "solve_seconds=0", "learner.epochs=1"]


def config_of(run):
    return yaml.safe_load((run / "config.yaml").read_text())


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    return package.train([*SMALL, "seed=5", "learner.minibatches=2", f"out={folder}/run"])


@pytest.mark.parametrize(
    "words",
    one_in(
        4,
        [
            ["config=RUN/config.yaml"],
            ["--config-dir=RUN", "--config-name=config"],
            ["-cp", "RUN", "-cn", "config"],
            ["-cp", "RUN/.hydra", "-cn", "config"],
        ],
    ),
    ids=str,
)
def test_a_runs_config_starts_a_run(words, run, typed):
    words = [word.replace("RUN", str(run)) for word in words]
    done = typed("train", *words, "dry_run=true")
    assert yaml.safe_load(done.stdout) == config_of(run) | {"out": None}, done.stderr
    done = typed("train", *words, "lr=0.5", "board=2", "line=2", "learner=reinforce",
                 "dry_run=true")  # fmt: skip
    cfg = yaml.safe_load(done.stdout)
    assert (cfg["lr"], cfg["seed"], cfg["game"]["board"]) == (0.5, 5, 2)
    assert cfg["learner"]["name"] == "reinforce"
    assert "minibatches" not in cfg["learner"]


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
            ("game: {name: salvo}\nplugins: [os]", "needs plugins=['os']"),
            ("game: {name: salvo}\nlr: &a [*a]", "no aliases"),
            ("game: {name: salvo}\nhydra: {run: {dir: x}}", "no key is called 'hydra' here"),
            ("game: {name: slavo}", "did you mean salvo?"),
            ("game: {name: salvo}\nlrr: 1", "did you mean lr?"),
            ("- 1", "is no config"),
            ("a: [", "is no config"),
        ],
    ),
)
def test_a_strangers_config_is_data_alone(text, reason, typed, tmp_path):
    (tmp_path / "theirs.yaml").write_text(text)
    check_refused(typed("train", "config=theirs.yaml", "dry_run=true"), reason)


def test_exist_ok_numbers_the_directory(run, typed):
    name = str(run)
    words = [*SMALL, f"out={name}"]
    assert "already holds a run" in typed("train", *words).stderr
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert str(package.train([*words, "exist_ok=true"])) == f"{name}_1"
    assert config_of(run.with_name("run_1"))["out"] == f"{name}_1"
    assert str(package.train([*words, "exist_ok=true"])) == f"{name}_2"
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_exist_ok_numbers_the_directory_of_a_sweep(typed, tmp_path, monkeypatch):
    monkeypatch.setattr(Sweep, "launch", lambda *_: None)
    for name in ("many", "many_1", "many_2"):
        assert typed("train", "-m", *SMALL, "out=many", "exist_ok=true").returncode == 3
        assert (tmp_path / name / "sweep.json").is_file()
    assert "already holds a sweep" in typed("train", "-m", *SMALL, "out=many").stderr


@pytest.mark.parametrize(
    ("words", "learner"),
    [
        (["game=connect4", "policy=ntuple"], "td"),
        (["game=connect4", "policy=ntuple", "learner=dqn"], "dqn"),
        (["game=connect4", "policy=conv"], "ppo"),
        (["game=2048", "policy=ntuple"], "td"),
        (["game=2048"], "td"),
        (["game=2048", "policy=conv"], "ppo"),
        (["game=2048", "learner=dqn"], "dqn"),
    ],
)
def test_the_game_and_the_policy_or_the_learner_choose_the_preset(words, learner):
    assert load_composition("train", words, check=False).config.learner.name == learner
