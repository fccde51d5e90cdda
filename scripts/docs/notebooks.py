"""Write examples/notebook.ipynb from docs/notebook.md; a test compares the two.

The notebook has a cell for each block of the page, and one for the text between two blocks.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE, NOTEBOOK = ROOT / "docs" / "notebook.md", ROOT / "examples" / "notebook.ipynb"

SITE = "https://github.com/rlgames/rlgames/blob/main/docs/"
INSTALL = "%pip install -q 'rlgames[notebook] @ git+https://github.com/rlgames/rlgames'"
"""Colab has torch; elsewhere docs/install.md says how to get it for the CPU."""

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def notebook() -> dict[str, Any]:
    """The notebook as JSON."""
    parts = BLOCK.split(PAGE.read_text(encoding="utf-8"))
    cells = [_cell("markdown", parts[0].strip()), _cell("code", INSTALL, tags=["install"])]
    for number, part in enumerate(parts[1:]):
        if text := part.strip():
            cells.append(_cell("markdown" if number % 2 else "code", text))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def text() -> str:
    """The notebook as its file holds it."""
    return json.dumps(notebook(), indent=1, sort_keys=True) + "\n"


def _cell(kind: str, text: str, tags: list[str] | None = None) -> dict[str, Any]:
    text = re.sub(r"\]\((?!https?:)", f"]({SITE}", text) if kind == "markdown" else text
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text.splitlines(True)}
    if tags:
        cell["metadata"]["tags"] = tags
    return cell if kind == "markdown" else cell | {"execution_count": None, "outputs": []}


if __name__ == "__main__":
    NOTEBOOK.write_text(text(), encoding="utf-8")
