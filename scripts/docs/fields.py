"""A Griffe extension: fields and parameters in docstrings, `name: text`, become tables."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Fields(griffe.Extension):
    """Finds the attributes of classes and the parameters of functions."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        names = [name for name, member in cls.members.items() if member.is_attribute]
        _divide(cls, "Attributes", names)

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        _divide(func, "Args", [parameter.name for parameter in func.parameters])


def _divide(described: griffe.Object, title: str, names: list[str]) -> None:
    """Give a docstring a section with this title for each paragraph that begins with a name."""
    if not described.docstring or not names:
        return
    name = "|".join(names)
    start = re.compile(rf"(?:^|(?<=[.;])\s)((?:{name})(?:, (?:{name}))*): ")
    paragraphs = []
    for paragraph in described.docstring.value.split("\n\n"):
        before, *parts = start.split(" ".join(paragraph.split()))
        if parts and not before:
            items = [
                f"    {each}: {text}"
                for named, text in zip(parts[::2], parts[1::2], strict=True)
                for each in named.split(", ")
            ]
            paragraph = "\n".join([f"{title}:", *items])
        paragraphs.append(paragraph)
    described.docstring.value = "\n\n".join(paragraphs)
