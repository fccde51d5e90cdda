"""An extension of griffe: parameters that docstrings describe as `name: text` become a table.

The docstrings of rlgames have one line for each parameter or field that needs one, after the first
paragraph. Google style, which the site reads, wants them below "Args:" or "Attributes:".
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Class, Extension, Function, Object

FIELD = re.compile(r"(\w+(?:, \w+)*): (.*)")


class Fields(Extension):
    """Adds the headings that Google style wants."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None and isinstance(obj, Class | Function):
            title = "Attributes:" if isinstance(obj, Class) else "Args:"
            obj.docstring.value = with_sections(obj.docstring.value, title)


def with_sections(text: str, title: str) -> str:
    """The docstring with a heading before each run of `name: text`, whose lines are indented."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.split("\n")
        match = FIELD.fullmatch(lines[0])
        if match and not lines[0].startswith(("Args:", "Returns:", "Raises:")):
            entries: list[str] = []
            rest: list[str] = []
            for line in lines:
                found = FIELD.fullmatch(line)
                if found:
                    entries += [f"    {name}: {found[2]}" for name in found[1].split(", ")]
                elif (line.startswith(" ") or line[:1].islower()) and not rest:
                    entries.append(f"        {line.strip()}")
                else:
                    rest.append(line)
            paragraphs.append("\n".join([title, *entries]))
            paragraphs += ["\n".join(rest)] if rest else []
        else:
            paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)
