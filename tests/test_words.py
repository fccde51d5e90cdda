"""Names and pages use the words of the field; former ones do not come back."""

import ast
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = {
    *("found", "told", "wanted", "kept", "given", "beyond", "ahead", "doubt", "theirs", "fresh"),
    *("Moves", "Results", "OpenGames", "Lessons", "Examiner", "Onlooker", "Tally", "Marks"),
    *("Parts", "settle", "chances", "mover", "gunners", "onlooker", "examiner", "lessons", "tally"),
    *("worth", "forest"),
}
PHRASES = re.compile(
    r"\b(by the clock|go(es)? on (with|from)|comes to|worked out|anew|so many|is to be had"
    r"|everybody against everybody|as far as it goes|learnt|broken off|told)\b",
    re.IGNORECASE,
)
HISTORY = {"log.md", "changelog.md"}


def code_files():
    return [path for folder in ("rlgames", "scripts") for path in (ROOT / folder).rglob("*.py")]


def pages():
    docs = [path for path in (ROOT / "docs").rglob("*.md") if path.name not in HISTORY]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *docs, *(ROOT / "conf").rglob("*.yaml")]


def identifiers(text):
    """Each name that the code defines or uses, with its line."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name


def prose(text):
    """The comments and docstrings of code, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (
            token.type == tokenize.STRING and token.string.lstrip("rf").startswith('"""')
        ):
            yield from enumerate(token.string.splitlines(), token.start[0])


def places(path, lines):
    return [f"{path.relative_to(ROOT)}:{number}: {line.strip()}" for number, line in lines]


def test_code_uses_no_former_name():
    found = []
    for path in code_files():
        names = identifiers(path.read_text(encoding="utf-8"))
        found += places(path, ((number, name) for number, name in names if name in NAMES))
    assert not found, "\n".join(found)


def test_comments_and_docstrings_use_no_former_phrase():
    found = []
    for path in code_files():
        lines = prose(path.read_text(encoding="utf-8"))
        found += places(path, ((number, line) for number, line in lines if PHRASES.search(line)))
    assert not found, "\n".join(found)


def test_pages_and_configs_use_no_former_phrase():
    found = []
    for path in pages():
        lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        found += places(path, ((number, line) for number, line in lines if PHRASES.search(line)))
    assert not found, "\n".join(found)
