"""Tables as Markdown and LaTeX, whatever text is in them."""

from __future__ import annotations

from collections.abc import Sequence

from rlgames.core.text import printable

LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"},
    **{"±": "$\\pm$", "–": "--", "…": "\\ldots{}", "×": "$\\times$", '"': "''"},
    **{"<": "$<$", ">": "$>$", "|": "$|$", "[": "{[}", "]": "{]}"},
}
"""Characters that LaTeX would take for commands, or lacks."""


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, inside a table too."""
    return "".join("\\" * (each in "\\`*_[]<>|~") + each for each in printable(text))


def escape_latex(text: str) -> str:
    """Text that LaTeX shows as it is, inside a table too."""
    return "".join(LATEX.get(each, each) for each in printable(text))


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """A table; the first row has the headings."""
    headings, *lines = [[escape_markdown(text) for text in row] for row in rows]
    every = [headings, ["---"] * len(headings), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in every)


def latex_table(rows: Sequence[Sequence[str]], left: Sequence[str]) -> str:
    """A table for the package booktabs; the first row has the headings, and the columns with the
    headings `left` are aligned to the left."""
    columns = "".join("l" if name in left else "r" for name in rows[0])
    lines = [" & ".join(map(escape_latex, row)) + r" \\" for row in rows]
    return "\n".join(
        [
            "% \\usepackage{booktabs}",
            f"\\begin{{tabular}}{{{columns}}}",
            *("\\toprule", lines[0], "\\midrule", *lines[1:], "\\bottomrule", "\\end{tabular}"),
        ]
    )
