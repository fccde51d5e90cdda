"""Runs the code blocks of the documents: each document block by block, in one empty folder.

A file name after ```python writes the block to that file. All other python blocks share their
variables. A comment before a block changes what the tests do with it:

    <!-- tests add: games=200 -->      add these words to commands that train, and to `eval` those
                                       that are keys of it
    <!-- tests short -->               add SHORT in the same way
    <!-- tests type: q -->             type this into an interactive command
    <!-- tests skip: a server -->      skip the block, for this reason
    <!-- tests vary: a reason -->      do not compare the output below

A ```text block after a block is the output, or lines of the output, of its last command. Where a
document runs as printed, each of its lines has to be in the output, in order: with the same words,
and with numbers that agree within their intervals, or roughly if they have none.
"""

import contextlib
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from markers import quick
from processes import Fork, Process

import rlgames
from rlgames.config.commands import COMMAND_SCHEMAS, COMMANDS
from rlgames.config.compose import load_config
from rlgames.config.schema import names_of

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NEEDS = {"other-tools": ("gymnasium", "pettingzoo", "onnx", "onnxruntime", "onnxscript")}
"""The packages that a document needs."""

BLOCK = re.compile(
    r"(?:<!-- tests (?P<how>add|short|type|skip|vary)(?:: (?P<what>[^\n]*))? -->\n)?"
    r"```(?P<kind>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)

SHORT = "games=300 batch=100 eval_games=10 solve_seconds=0"
"""Words that keep training short."""

SERVERS = (["tensorboard"], ["rlgames", "serve"])
"""Commands that do not end."""


def blocks(path, kinds=("sh", "python", "text")):
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
    variables, output = {"__name__": "__main__"}, ""
    for block in blocks(document):
        if block["how"] == "skip":
            output = None
        elif block["kind"] == "text":
            if output is not None and not shortened and block["how"] != "vary":
                check_output(block["text"], output)
        elif block["name"]:
            Path(block["name"]).write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(block["text"], f"{document.name}", "exec"), variables)
            output = printed.getvalue()
        else:
            for words in commands(block):
                more = {"add": block["what"], "short": SHORT}.get(block["how"], "")
                added = more.split() if shortened else []
                typed = block["what"] if block["how"] == "type" else ""
                if any(words[: len(server)] == server for server in SERVERS):
                    output = None
                elif words[0] == "rlgames" and ">" not in words:
                    output = run_command(folder, words[1:] + fitting(words[1], added), typed)
                else:
                    output = run_in_shell(folder, words)


def run_in_shell(folder, words):
    """Run another command than rlgames, or one whose output goes to a file."""
    line = " ".join(word if word == ">" else shlex.quote(word) for word in words)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        line, shell=True, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    return done.stdout


TIMES = re.compile(r"\d[\d.,]* (s|[KM]iB)\b|\b\d+(min|h|s)\b|\d+:\d\d|[\d,.]+ \w+/s\b")
"""Durations, sizes and speeds, which are never compared."""

NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?%?(?: ± \d[\d,.]*)?")
EXACT = re.compile(r"random play|optimum")


def check_output(printed, output):
    """Raises AssertionError for a line of a document that a command does not print. The headings of
    a table vary with the checkpoint that was best."""
    lines = iter(output.splitlines())
    shown = list(filter(str.strip, printed.splitlines()))
    for line, below in itertools.zip_longest(shown, shown[1:], fillvalue=""):
        if "─" not in line + below and line.strip() != "…":
            assert any(agree(line, other) for other in lines), f"{line}\nnot in\n{output}"


def agree(line, other):
    """Whether two lines of output have the same words and similar numbers."""
    first, second = (TIMES.sub("", each) for each in (line, other))
    if re.findall(r"[^\W\d]\w*", first) != re.findall(r"[^\W\d]\w*", second):
        return False
    pairs = zip(NUMBER.findall(first), NUMBER.findall(second), strict=False)
    return all(is_close(a, b, EXACT.search(line)) for a, b in pairs)


def is_close(first, second, exact):
    """Whether two numbers agree: exactly, within the sum of their intervals, or roughly."""
    (a, half), (b, other_half) = (
        [float(part.strip("%").replace(",", "")) for part in (text + " ± 0").split(" ± ")[:2]]
        for text in (first, second)
    )
    if exact:
        return a == b
    if half or other_half:
        return abs(a - b) <= half + other_half
    return abs(a - b) <= (20 if "%" in first else 0.3 * max(abs(a), abs(b)))


def fitting(command, words):
    """Those of the words that keep training short which a command takes."""
    if command == "eval":
        keys = names_of(COMMAND_SCHEMAS["eval"])
        return [word for word in words if word.partition("=")[0] in keys]
    return words if command in ("train", "resume") else []


def run_command(folder, words, typed):
    """Run a command with the typed text as standard input; it must succeed."""

    def prepare():
        with tempfile.TemporaryFile("w+") as lines:
            lines.write(typed + "\n")
            lines.seek(0)
            os.dup2(lines.fileno(), 0)

    result = Process(folder, *words, prepare=prepare, apart=True).ended(600)
    assert result.returncode == 0, f"rlgames {shlex.join(words)}\n{result.stdout}{result.stderr}"
    return result.stdout + result.stderr


def runs_in_fork(path, folder, quickly):
    """Whether a document runs, in a forked process: what it imports and registers does not stay."""

    def run():
        run_document(path, folder, quickly)
        sys.exit()

    fork = Fork([0, 1, 2], run)
    return os.waitpid(fork.pid, 0)[1] == 0


RUN = [
    *("README", "tutorial", "recipes", "paper", "teaching", "extend", "json", "adding-a-game"),
    "python",
]


def path_of(name):
    return ROOT / f"{name}.md" if name == "README" else ROOT / "docs" / f"{name}.md"


@pytest.mark.parametrize("name", quick(RUN, "adding-a-game"))
def test_code_blocks_run(name, tmp_path):
    assert runs_in_fork(path_of(name), tmp_path, True)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*RUN, "other-tools"])
def test_code_blocks_run_as_printed(name, tmp_path):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    assert runs_in_fork(path_of(name), tmp_path, False)


def test_outputs_are_compared_within_their_intervals():
    assert agree("trained, greedy  4.50", "trained, greedy  4.61  5.0")
    assert not agree("trained, greedy  4.50", "trained, greedy  9.00")
    assert not agree("exact optimum  4.50", "exact optimum  4.51")
    assert agree("turns 6.0 ± 0.3", "turns 6.5 ± 0.3")
    assert not agree("turns 6.0 ± 0.3", "turns 6.7 ± 0.3")
    assert not agree("4.0 s, in first", "4.0 s, in second")
    assert agree("4.0 s, in first", "90.1 s, in first")


@pytest.mark.parametrize(
    "words",
    [
        ["player=random", "game=tictactoe", "games=20"],
        ["player=random", "game=2048", "games=2", "solve_seconds=0"],
        ["player=density", "game=salvo", "board=3", "ships=[2]", "shots=1"],
        ["player=exact", "game=tictactoe", "opponent=exact", "games=2"],
    ],
)
def test_the_json_page_names_every_field(words):
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    fields = rlgames.evaluate(None, words)
    assert [name for name in fields if f"`{name}`" not in page] == []


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
            is_more = any(word.startswith(("-", "plugins=")) for word in words)
            has_run = "=" not in "".join(words[2:3]) and len(words) > 2
            if words[1] in ("train", "solve") and not is_more and not has_run:
                load_config(COMMAND_SCHEMAS[words[1]], words[2:])
