"""A hook of MkDocs: the navigation, and the pages of the site that are not in docs/.

The first page is README.md, and CONTRIBUTING.md is a page. The reference is generated from the
docstrings of the modules that REFERENCE lists.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]

PAGES = {
    "Home": ["index", "install", "contributing", "roadmap", "changelog"],
    "Use": [
        *("tutorial", "guide", "notebook", "agents", "studies", "configs", "hydra"),
        *("figures", "engine", "other-tools", "metrics"),
    ],
    "Extend": ["adding-a-game", "architecture"],
    "Results": [
        *("results", "checked", "log", "statistics", "benchmarks", "benchmarks_gpu"),
        "reliability",
    ],
}
"""The sections of the site and their pages; pages that no section has follow in Use."""

FOLDERS = {"Games": "games", "Learners": "learners"}

REFERENCE = {
    "rlgames": ["rlgames"],
    "Games": ["rlgames.games.game", "rlgames.games.state", "rlgames.rollouts.conformance"],
    "Players": ["rlgames.players.player"],
    "Policies": ["rlgames.policies.policy"],
    "Learners": ["rlgames.learners.learner"],
    "Rewards": ["rlgames.rewards"],
    "Playing games": ["rlgames.rollouts.play", "rlgames.rollouts.trajectories"],
    "Search": ["rlgames.search.mcts", "rlgames.search.expectimax"],
    "Evaluation": ["rlgames.evaluation.evaluate", "rlgames.evaluation.statistics"],
    "Environments": ["rlgames.envs.gymnasium_env", "rlgames.envs.pettingzoo_env"],
    "Configuration": ["rlgames.config.schema", "rlgames.config.registry"],
}
"""The pages of the reference and their modules."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation."""
    docs = Path(config.docs_dir)
    named = {page for pages in PAGES.values() for page in pages}
    others = sorted(path.stem for path in docs.glob("*.md") if path.stem not in named)
    nav: list[dict[str, Any]] = []
    for section, pages in PAGES.items():
        listed = [*pages, *(others if section == "Use" else [])]
        nav.append({section: [f"{page}.md" for page in listed]})
    for section, folder in FOLDERS.items():
        names = sorted(path.name for path in (docs / folder).glob("*.md"))
        nav.append({section: [f"{folder}/{name}" for name in names]})
    nav.append({"Reference": [{title: _reference_file(title)} for title in REFERENCE]})
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    pages = {
        "index.md": _moved_into_docs(ROOT / "README.md"),
        "contributing.md": _moved_into_docs(ROOT / "CONTRIBUTING.md"),
    }
    for title, modules in REFERENCE.items():
        parts = [f"# {title}\n", *(f"::: {module}\n" for module in modules)]
        pages[_reference_file(title)] = "\n".join(parts)
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The file name after the language of a block becomes the title of the block."""
    return re.sub(r"^```(\w+) ([\w.]+)$", r'```\1 title="\2"', markdown, flags=re.MULTILINE)


def _moved_into_docs(path: Path) -> str:
    """The text of a page at the top of the repository, with links as from docs/."""
    text = path.read_text(encoding="utf-8").replace("](docs/", "](")
    return text.replace("](CONTRIBUTING.md)", "](contributing.md)")


def _reference_file(title: str) -> str:
    return f"reference/{title.lower().replace(' ', '_')}.md"
