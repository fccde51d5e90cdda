"""A hook of ProperDocs: the navigation, the pages that are not in docs/, and formulas.

The first page is README.md, and CONTRIBUTING.md is a page. The reference is generated from the
docstrings of the modules that REFERENCE lists. Formulas become MathML, which browsers draw without
a script.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from properdocs.config.defaults import ProperDocsConfig
from properdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]

PAGES = {
    "Start": ["install", "tutorial", "concepts", "play", "export", "agents"],
    "Guides": [
        *("train", "evaluate", "sweep", "studies", "trackers", "clusters"),
        *("recipes", "paper", "teaching", "python", "other-tools"),
        *("teaching-sheet", "teaching-answers"),
    ],
    "Help": ["faq", "does-not-learn", "coming-from", "not-here"],
    "Results": ["results", "reproductions", "benchmarks", "reliability"],
    "Extend": ["extend", "adding-a-game", "architecture", "contributing"],
    "Reference": ["metrics", "json", "statistics", "changelog"],
}
"""The sections of the site and their pages. docs/dev/, the notes of maintainers, is not there."""

FOLDERS = {"Games": "games", "Learners": "learners"}
"""Sections with a page for each file of a folder."""

REFERENCE = {
    "rlgames": ["rlgames"],
    "Games": ["rlgames.games.game", "rlgames.games.state", "rlgames.rollouts.conformance"],
    "Players": ["rlgames.players.player"],
    "Policies": ["rlgames.policies.policy"],
    "Learners": ["rlgames.learners.learner"],
    "Rewards": ["rlgames.rewards"],
    "Playing games": ["rlgames.rollouts.play", "rlgames.rollouts.trajectories"],
    "Search": ["rlgames.search.mcts", "rlgames.search.expectimax"],
    "Evaluation": ["rlgames.evaluation.evaluate", "rlgames.evaluation.estimates"],
    "Environments": ["rlgames.envs.gymnasium_env", "rlgames.envs.pettingzoo_env"],
    "Configuration": ["rlgames.config.schema", "rlgames.config.registry"],
}
"""The pages of the reference and their modules."""


CARDS = """<div class="grid cards" markdown>

- **[Play](play.md)** against a trained agent, or [send one](export.md) to somebody as a file.
- **[Train](tutorial.md)** an agent in seconds, and see how far it is from perfect play.
- **[Compare](sweep.md)** settings and learners, with intervals, figures and LaTeX tables.

</div>

"""
"""Where to start, on the first page below its picture."""


def on_config(config: ProperDocsConfig) -> ProperDocsConfig:
    """Set the navigation, and how formulas are drawn."""
    docs = Path(config.docs_dir)
    nav: list[dict[str, Any]] = [{"Home": "index.md"}]
    for section, pages in PAGES.items():
        nav.append({section: [f"{page}.md" for page in pages]})
        if section == "Help":
            for title, folder in FOLDERS.items():
                names = sorted(path.name for path in (docs / folder).glob("*.md"))
                nav.append({title: [f"{folder}/{name}" for name in names]})
    names = sorted(path.name for path in (docs / "configs").glob("*.md"))
    nav[-1]["Reference"].insert(0, {"Configuration": [f"configs/{name}" for name in names]})
    nav[-1]["Reference"].append(
        {
            "Python": [
                "reference/index.md",
                *({title: _reference_file(title)} for title in REFERENCE),
            ]
        }
    )
    config.nav = nav
    fence = {"name": "math", "class": "math", "format": formula}
    config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [fence]}
    return config


def on_files(files: Files, config: ProperDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    head, features, rest = _moved_into_docs(ROOT / "README.md").partition("- **Ten games**")
    pages = {
        "index.md": f"---\nhide: [navigation]\n---\n{head}{CARDS}{features}{rest}",
        "contributing.md": _moved_into_docs(ROOT / "CONTRIBUTING.md"),
        "site.css": (Path(__file__).parent / "site.css").read_text(encoding="utf-8"),
    }
    links = [f"- [{title}]({Path(_reference_file(title)).name})" for title in REFERENCE]
    pages["reference/index.md"] = "\n".join(["# Python reference\n", *links])
    for title, modules in REFERENCE.items():
        parts = [f"# {title}\n", *(f"::: {module}\n" for module in modules)]
        # The search ranks guides before the reference.
        pages[_reference_file(title)] = "---\nsearch: {boost: 0.05}\n---\n" + "\n".join(parts)
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn the file name after the language of a block into its title."""
    return re.sub(r"^```(\w+) ([\w.]+)$", r'```\1 title="\2"', markdown, flags=re.MULTILINE)


def formula(source: str, *_: Any, **__: Any) -> str:
    """A block of LaTeX as MathML."""
    # The converter knows \\operatorname, but not its starred form.
    plain = source.replace(r"\operatorname*", r"\operatorname")
    return str(convert(plain, display="block"))


def _moved_into_docs(path: Path) -> str:
    """The text of a page at the top of the repository, with links as from docs/."""
    text = path.read_text(encoding="utf-8").replace("](docs/", "](")
    return text.replace("](CONTRIBUTING.md)", "](contributing.md)")


def _reference_file(title: str) -> str:
    return f"reference/{title.lower().replace(' ', '_')}.md"
