"""Words are completed in bash and in zsh as what is on the line has it."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time

import pytest
from rlgames.config.keys import option_keys

from rlgames.cli.completion import SCRIPTS, candidates, split
from rlgames.config.files import Files
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import Group

BREAKS = " \t\n\"'@><=;|&(:"
"""What breaks words in bash where nobody has changed it."""


def completed(line, shell="zsh"):
    return candidates([shell, line, BREAKS]).split("\n")[:-1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A directory with a run, a sweep, a checkpoint and other files."""
    for name, file in (("salvo/b run", "run.json"), ("sweeps/c", "sweep.json")):
        (tmp_path / "outputs" / name).mkdir(parents=True)
        (tmp_path / "outputs" / name / file).write_text("{}")
    for name in ("best.safetensors", "notes.txt", "other.py", ".hidden"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("rlgames re", ["resume ", "report "]),
        ("rlgames help gam", ["games "]),
        ("rlgames completion ", ["bash ", "zsh "]),
        ("rlgames study ra", ["ramesh "]),
        ("rlgames games he", ["hex "]),
        ("rlgames train ga", ["game=", "games="]),
        ("rlgames train game=sal", ["game=salvo ", "game=salvo_duel "]),
        ("rlgames train game=connect4 ro", ["rows="]),
        ("rlgames train game=2048 ro", []),
        ("rlgames train game=2048 ta", ["target="]),
        ("rlgames train experiment=ramesh_case1 sho", ["shots=", "show="]),
        ("rlgames train experiment=hickman lin", ["line="]),
        (
            "rlgames train learner=td learner.",
            [
                "learner.average_start=",
                "learner.backend=",
                "learner.backup=",
                "learner.frozen_tuples=",
                "learner.lr_end=",
                "learner.min_probability=",
                "learner.step_size=",
                "learner.td_lambda=",
                "learner.threads=",
            ],
        ),
        (
            "rlgames train learner=td learner.step_size=c",
            [
                "learner.step_size=constant ",
                "learner.step_size=counts ",
            ],
        ),
        ("rlgames train policy.canonical=", ["policy.canonical=false ", "policy.canonical=true "]),
        ("rlgames train best_by=n", ["best_by=null "]),
        ("rlgames train show=[sizes,", ["show=\\[sizes,first_hit", "show=\\[sizes,sunk"]),
        ("rlgames train game=salvo gam", ["games="]),
        ("rlgames train -m game=2048,sa", ["game=2048,salvo ", "game=2048,salvo_duel "]),
        ("rlgames train -m dry", ["dry_run="]),
        ("rlgames train dry", ["dry_run="]),
        ("rlgames train -m hydra/launcher=j", ["hydra/launcher=joblib "]),
        ("rlgames train opponent=p", ["opponent=past "]),
        ("rlgames eval opponent=p", []),
        ("rlgames report form", ["format="]),
        ("rlgames experiments format=", ["format=json ", "format=table "]),
        ("rlgames train plugins=[o", ["plugins=\\[other"]),
        ("rlgames train --config-dir o", ["outputs/", "other.py "]),
        ("rlgames train out=n", ["out=notes.txt "]),
        ("rlgames arena win", ["win_or_block "]),
        ("rlgames trian ga", []),
        ("rlgames train nothing=", []),
    ],
)
def test_what_is_begun_is_completed(line, found, folder):
    assert sorted(completed(line)) == sorted(found)


def test_runs_are_completed(folder):
    assert completed("rlgames eval ")[:4] == [
        "outputs/sweeps/c ",
        "outputs/salvo/b\\ run ",
        "best.safetensors ",
        "outputs/",
    ]
    assert "notes.txt " not in completed("rlgames eval ")
    assert completed("rlgames eval outputs/sa") == ["outputs/salvo/"]
    assert completed("rlgames eval outputs/salvo/") == ["outputs/salvo/b\\ run "]
    assert completed("rlgames eval 'outputs/salvo/b") == ["outputs/salvo/b run "]
    assert completed("rlgames eval best.safetensors opponent=out") == ["opponent=outputs/"]
    assert completed("rlgames eval /no/such/") == []


def test_every_key_is_offered_once_it_is_begun():
    for option in REGISTRY["learner"]:
        keys = option_keys("learner", Group("learner", None, ""), option, Files())
        found = completed(f"rlgames train learner={option} learner.")
        assert found == sorted(f"{key.name}=" for key in keys)


def test_bash_has_what_stands_before_a_break_already(folder):
    assert completed("rlgames train game=sa", "bash") == ["salvo ", "salvo_duel "]
    assert completed("rlgames eval opponent='outputs/salvo/b", "bash") == ["outputs/salvo/b run"]
    assert completed("rlgames eval opponent=outputs/salvo/b\\ r", "bash") == [
        "outputs/salvo/b\\ run "
    ]
    assert completed("rlgames train show=[s", "bash") == ["[sizes", "[sunk"]


def test_lines_are_split_as_a_shell_does():
    assert split("a 'b c' d\\ e f=g", "=") == (["a", "b c", "d e"], "f=g", 2, False)
    assert split("a 'b=c", "=") == (["a"], "b=c", 0, True)
    assert split('a "b" ', "=") == (["a", "b"], "", 0, False)
    assert split("a ''", "") == (["a"], "", 0, False)


def test_parts_of_ones_own_are_completed(own_parts, typed, tmp_path):
    (tmp_path / "striped.py").write_text((tmp_path / "striped.py").read_text() + "print('noise')\n")
    line = "rlgames train " + " ".join(own_parts)
    for begun, found in (
        ("game=st", "game=strip "),
        ("game=strip col", "colour="),
        ("game=strip colour=", "colour=grey \ncolour=gold "),
        ("policy=lit", "policy=little "),
        ("experiment=qu", "experiment=quick "),
    ):
        shown = typed("completion", "words", "zsh", f"{line} {begun}").stdout
        assert shown == found + "\n"
    assert typed("completion", "words", "zsh", "rlgames train plugins=[none] gam").stdout


@pytest.fixture
def command(tmp_path):
    """Settings of a shell that finds rlgames, and nothing of the person's own."""
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "rlgames"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m rlgames "$@"\n')
    script.chmod(0o755)
    where = os.pathsep.join(path or os.getcwd() for path in sys.path)
    return dict(
        os.environ,
        PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        PYTHONPATH=where,
        HOME=str(tmp_path),
        TERM="dumb",
        PS1="> ",
    )


def test_the_function_of_bash_fills_its_reply_quickly(command, folder):
    text = SCRIPTS["bash"] + (
        "\nCOMP_LINE='rlgames train learner=td learner.step_size=tem'; COMP_POINT=${#COMP_LINE}"
        '\n_rlgames rlgames; printf "<%s>" "${COMPREPLY[@]}"; complete -p rlgames; times'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", text], env=command, cwd=folder, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "<temporal_coherence >complete -o nospace -F _rlgames rlgames"
    seconds = [float(part) for part in re.findall(r"m([\d.]+)s", lines[2])]
    assert sum(seconds) < 1.5  # 0.1 where nothing else runs


@pytest.mark.slow
@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_person_presses_tab(shell, command, folder):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    lines = {
        "rlgames trai\tgame=salvo_d\tlearner=td learner.st\tte\t": (
            "rlgames train game=salvo_duel learner=td learner.step_size=temporal_coherence"
        ),
        "rlgames eval out\tsal\tb\topponent=ex\t": (
            "rlgames eval outputs/salvo/b run opponent=exact"
        ),
        "rlgames eval 'outputs/salvo/b\t": "rlgames eval outputs/salvo/b run",
        "A=1 rlgames train -m hydra/l\tsubmitit_l\t": (
            "A=1 rlgames train -m hydra/launcher=submitit_local"
        ),
    }
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(folder)
        words = ["bash", "--norc", "-i"] if shell == "bash" else ["zsh", "-f", "-i"]
        os.execvpe(shell, words, command)
    shown, until = b"", time.monotonic() + 60
    keys = f'told() {{ echo "<$*>" >> told; }}\neval "$(rlgames completion {shell})"\n'
    keys += "".join(f"{line}\x01told \n" for line in lines) + "echo all >> told\n"
    try:
        os.write(terminal, keys.encode())
        while "all" not in read(folder / "told") and time.monotonic() < until:
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 1 << 16)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    assert read(folder / "told").splitlines() == [
        *(f"<{line}>" for line in lines.values()),
        "all",
    ], shown.decode(errors="replace")


def read(path):
    return path.read_text() if path.exists() else ""
