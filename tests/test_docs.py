"""What the documents show is run: for each of them block after block, in one empty folder.

A file name behind ```python makes a block a file; other python shares its names with the next.
A comment before a block says what is done otherwise here:

    <!-- tests add: games=200 -->                these words, to commands that train
    <!-- tests type: q -->                       this, to a command that asks
    <!-- tests leave this out: a server -->      nothing, for this reason
"""

import os
import re
import shlex
import sys
import tempfile
import traceback
from pathlib import Path

import pytest
from processes import Forked, Process

from rlgames.cli import main
from rlgames.config.compose import load_config
from rlgames.sweeps import jobs

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NEEDS = {"other-tools": ("gymnasium", "pettingzoo", "onnx", "onnxruntime", "onnxscript")}
"""The packages that a document speaks of."""

BLOCK = re.compile(
    r"(?:<!-- tests (?P<how>add|type|leave this out): (?P<what>[^\n]*) -->\n)?"
    r"```(?P<kind>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


def blocks(path, kinds=("sh", "python")):
    found = BLOCK.finditer(path.read_text(encoding="utf-8"))
    return [block for block in found if block["kind"] in kinds]


def commands(block):
    """The lines of a block of sh, as words."""
    lines = block["text"].replace("\\\n", " ").splitlines()
    split = [shlex.split(line, comments=True) for line in lines]
    return [words for words in split if words]


def run(document, folder, brief):
    """Do what a document shows. brief: with the words that are added for the tests."""
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    names = {"__name__": "__main__"}
    for block in blocks(document):
        if block["how"] == "leave this out":
            continue
        if block["name"]:
            Path(block["name"]).write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "python":
            exec(compile(block["text"], f"{document.name}", "exec"), names)
        else:
            for words in commands(block):
                assert words[0] == "rlgames", f"{words[0]} cannot be run here: say why"
                added = block["what"].split() if block["how"] == "add" and brief else []
                typed = block["what"] if block["how"] == "type" else ""
                type_words(folder, words[1:] + added * (words[1] in ("train", "resume")), typed)


def type_words(folder, words, typed):
    """Run a command, which has to succeed, typed being what it reads."""

    def prepare():
        jobs.start_process = Forked
        with tempfile.TemporaryFile("w+") as lines:
            lines.write(typed + "\n")
            lines.seek(0)
            os.dup2(lines.fileno(), 0)

    done = Process(folder, *words, prepare=prepare, apart=True).ended(600)
    assert done.returncode == 0, f"rlgames {shlex.join(words)}\n{done.stdout}{done.stderr}"


def in_a_fork(act, *arguments):
    """Call a function where what it imports and registers is forgotten."""
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        try:
            act(*arguments)
            code = 0
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("name", ["tutorial", "adding-a-game", "notebook"])
def test_what_a_document_shows_works(name, tmp_path):
    assert in_a_fork(run, ROOT / "docs" / f"{name}.md", tmp_path, True) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tutorial", "adding-a-game", "other-tools"])
def test_what_a_document_shows_works_as_printed(name, tmp_path):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    assert in_a_fork(run, ROOT / "docs" / f"{name}.md", tmp_path, False) == 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_commands_that_are_shown_are_known(document):
    """Whatever is not run: its command exists, and its words make a config."""
    for block in blocks(document, ["sh"]):
        for words in commands(block):
            if words[0] != "rlgames" or "--help" in words:
                continue
            assert words[1] in main.COMMANDS, words
            of_own = any(word.startswith("plugins=") for word in words)
            if words[1] in ("train", "solve") and not {"-m"} & {*words} and not of_own:
                load_config(words[1], [main.path_quoted(word) for word in words[2:]])
