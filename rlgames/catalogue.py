"""What can be chosen: the options of every group, where their YAML files lie, and what they are."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from rlgames.schemas import POSITIVE, SCHEMAS


def conf_dir() -> Path:
    """Where the YAML files lie: inside the installed package, or beside it in a checkout."""
    inside = Path(__file__).parent / "conf"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "conf"


FOLDERS = [conf_dir()]
"""Where the YAML files of options are looked for, the folder of --config-dir last."""

KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a word",
    "list[int]": "a list of whole numbers, as in [4,2]",
    "list[str]": "a list of words, as in [one,two]",
}
"""What a key's type is called."""


def options(group: str) -> list[str]:
    """The names of a config group's files, and of registered parts that have none."""
    files = [path.stem for folder in FOLDERS for path in (folder / group).glob("*.yaml")]
    return sorted({*files, *SCHEMAS.get(group, ())})


def option_file(group: str, name: str) -> Path | None:
    """The YAML file of an option, None where its schema's defaults stand for it."""
    paths = [folder / group / f"{name}.yaml" for folder in FOLDERS]
    return next((path for path in paths if path.is_file()), None)


def about(group: str, name: str) -> str:
    """What an option is: the first comment of its file, or the docstring of its schema."""
    path = option_file(group, name)
    if path is None:
        schema = SCHEMAS[group][name]
        told = (schema.__doc__ or "").strip()
        return "" if told.startswith(f"{schema.__name__}(") else told.partition("\n")[0]
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    comments = (line for line in lines if line.startswith("#") and "@package" not in line)
    return next(comments, "#")[1:].strip()


def kind_of(schema: type, name: str) -> str:
    """What the values of a key are, in words; nothing for a key that the schema has not."""
    kinds = {item.name: item.type for item in fields(schema)}
    own = kinds.get(name, "")  # text, where the module has `from __future__ import annotations`
    kind = own.__name__ if isinstance(own, type) else str(own)
    words = [KINDS.get(part.strip(), part.strip()) for part in kind.split("|")]
    return " or ".join(words).replace("None", "null")


def span(low: float, high: float) -> str:
    """The range of a number, in words."""
    least = "more than 0" if low == POSITIVE else f"at least {low:g}"
    return f"{least} and at most {high if isinstance(high, int) else format(high, 'g')}"
