"""Runs the code blocks of the documents: each document block by block, in one empty folder.

A file name after ```python writes the block to that file. All other python blocks share their
variables. A comment before a block changes what the tests do with it:

    <!-- tests add: games=200 -->      add these words to commands that train, and to `eval` those
                                       that are keys of it
    <!-- tests type: q -->             type this into an interactive command
    <!-- tests skip: a server -->      skip the block, for this reason
"""

import os
import re
import shlex
import sys
import tempfile
import traceback
from pathlib import Path

import pytest
from markers import quick
from processes import Forked, Process

from rlgames.cli.table import COMMANDS
from rlgames.config.compose import load_config
from rlgames.config.schema import names_of
from rlgames.sweeps import jobs

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NEEDS = {"other-tools": ("gymnasium", "pettingzoo", "onnx", "onnxruntime", "onnxscript")}
"""The packages that a document needs."""

BLOCK = re.compile(
    r"(?:<!-- tests (?P<how>add|type|skip): (?P<what>[^\n]*) -->\n)?"
    r"```(?P<kind>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


def blocks(path, kinds=("sh", "python")):
    matches = BLOCK.finditer(path.read_text(encoding="utf-8"))
    return [block for block in matches if block["kind"] in kinds]


def commands(block):
    """The commands of a shell block, each split into words."""
    lines = block["text"].replace("\\\n", " ").splitlines()
    split = [shlex.split(line, comments=True) for line in lines]
    return [words for words in split if words]


def run_document(document, folder, shortened):
    """Run all blocks of a document. shortened: add the words that keep training short."""
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    variables = {"__name__": "__main__"}
    for block in blocks(document):
        if block["how"] == "skip":
            continue
        if block["name"]:
            Path(block["name"]).write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "python":
            exec(compile(block["text"], f"{document.name}", "exec"), variables)
        else:
            for words in commands(block):
                assert words[0] == "rlgames", f"{words[0]} cannot run here: skip it and say why"
                added = block["what"].split() if block["how"] == "add" and shortened else []
                typed = block["what"] if block["how"] == "type" else ""
                run_command(folder, words[1:] + fitting(words[1], added), typed)


def fitting(command, words):
    """Those of the words that keep training short which a command takes."""
    if command == "eval":
        keys = names_of(COMMANDS["eval"].config)
        return [word for word in words if word.partition("=")[0] in keys]
    return words if command in ("train", "resume") else []


def run_command(folder, words, typed):
    """Run a command with the typed text as standard input; it must succeed."""

    def prepare():
        jobs.start_process = Forked
        with tempfile.TemporaryFile("w+") as lines:
            lines.write(typed + "\n")
            lines.seek(0)
            os.dup2(lines.fileno(), 0)

    result = Process(folder, *words, prepare=prepare, apart=True).ended(600)
    assert result.returncode == 0, f"rlgames {shlex.join(words)}\n{result.stdout}{result.stderr}"


def run_in_fork(function, *arguments):
    """Call a function in a forked process, so that its imports and registrations do not persist."""
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        try:
            function(*arguments)
            code = 0
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize(
    "name",
    quick(["tutorial", "adding-a-game", "notebook", "engine"], "adding-a-game", "notebook"),
)
def test_code_blocks_run(name, tmp_path):
    assert run_in_fork(run_document, ROOT / "docs" / f"{name}.md", tmp_path, True) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tutorial", "adding-a-game", "other-tools"])
def test_code_blocks_run_as_printed(name, tmp_path):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    assert run_in_fork(run_document, ROOT / "docs" / f"{name}.md", tmp_path, False) == 0


def test_the_architecture_page_lists_every_folder():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `rlgames/(\w+)`", page, re.MULTILINE))
    assert listed == {path.parent.name for path in (ROOT / "rlgames").glob("*/__init__.py")}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_code_block_is_closed(document):
    """A block without its end would be skipped silently."""
    fences = re.findall(r"^```", document.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) % 2 == 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_shown_commands_exist_and_compose(document):
    """Commands that no test runs exist at least, and their overrides compose to a config."""
    for block in blocks(document, ["sh"]):
        for words in commands(block):
            if words[0] != "rlgames" or "--help" in words:
                continue
            assert words[1] in COMMANDS, words
            # Other tests type these words.
            is_more = any(
                word.startswith(("-", "plugins=", "config=", "dry_run=")) for word in words
            )
            if words[1] in ("train", "solve") and not is_more:
                load_config(COMMANDS[words[1]].config, words[2:])
