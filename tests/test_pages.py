"""The pages of docs/games/ and docs/learners/ agree with the code and with the measured results."""

import importlib
import re
from functools import cache
from pathlib import Path

import pytest
import tables
from helpers import make_game, rng

from rlgames.config.conf import option_names
from rlgames.config.registry import REGISTRY
from rlgames.config.schema import key_fields
from rlgames.games.symmetry import cell_symmetries

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FOLDERS = {"game": DOCS / "games", "learner": DOCS / "learners"}
OPTIONS = [(group, name) for group in FOLDERS for name in REGISTRY[group]]
PAGES = [FOLDERS[group] / f"{name}.md" for group, name in OPTIONS]
EVERY = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


@cache
def text_of(path):
    return path.read_text(encoding="utf-8")


def table_rows(text):
    """The cells of every table row, heads and rulers included."""
    rows = re.findall(r"^\| (.*) \|$", text, re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)] for row in rows]


def facts_of(path):
    """The table at the top of a page, by its first column."""
    return {row[0]: row[1] for row in table_rows(text_of(path).partition("\n## ")[0])}


def results_of(path):
    """The rows below the generated list of presets: what they reached."""
    return table_rows(text_of(path).partition("<!-- end of presets -->")[2])


def figures(text):
    """The numbers with a decimal point or at least four digits, without separators."""
    plain = re.sub(r"(?<=\d)[,  ](?=\d{3}\b)", "", text)
    return set(re.findall(r"\d+\.\d+|\d{4,}", plain))


@pytest.mark.parametrize(("group", "name"), OPTIONS)
def test_every_game_and_learner_has_a_page_that_its_index_links(group, name):
    path, index = FOLDERS[group] / f"{name}.md", FOLDERS[group] / "README.md"
    assert path.is_file(), f"write {path}, with the sections of the pages next to it"
    assert "<!-- keys -->\n|" in text_of(path), "make tables"
    assert "<!-- presets -->\n|" in text_of(path), "make tables"
    assert f"[`{name}`]({name}.md)" in text_of(index), f"add a row to {index}"


@pytest.mark.parametrize("name", REGISTRY["game"])
def test_the_facts_of_a_game_are_those_of_its_default_rules(name):
    facts, game = facts_of(FOLDERS["game"] / f"{name}.md"), make_game(f"game={name}")
    spec = game.spec
    shape = tuple(game.observe(game.initial(2, rng())).shape[1:])
    low, high = spec.observation_range
    assert facts["players"] == str(spec.seats)
    assert facts["observation"] == f"`{shape}`, float32, {low:g} to {high:g}"
    assert facts["actions"] == str(spec.actions)
    assert facts["longest game"] == f"{spec.max_plies:,} plies"
    assert facts["symmetries"] == str(len(cell_symmetries(game)))
    assert facts["hidden information"] == ("yes" if spec.hidden else "no")
    assert facts["chance after a move"] == ("yes" if spec.num_chance_inputs else "no")
    assert facts["objective"] == f"`{spec.goal}`"


@pytest.mark.parametrize("name", ["battleship", "2048"])
def test_the_encodings_of_a_game_have_as_many_planes_as_its_page_says(name):
    rows = table_rows(text_of(FOLDERS["game"] / f"{name}.md").partition("## Observation")[2])
    choices = key_fields(REGISTRY["game"][name].schema)["encoding"].metadata["of"]
    planes = {row[0].strip("`"): row[1] for row in rows}
    for encoding in choices:
        game = make_game(f"game={name}", f"encoding={encoding}")
        assert int(planes[encoding].split()[0]) == game.spec.observation[0]


@pytest.mark.parametrize("name", REGISTRY["game"])
def test_the_environment_of_a_game_is_registered_under_the_id_on_its_page(name):
    gymnasium = pytest.importorskip("gymnasium")
    importlib.import_module("rlgames.envs")
    identity = facts_of(FOLDERS["game"] / f"{name}.md")["Gymnasium id"].strip("`")
    env = gymnasium.make(identity)
    assert env.observation_space.shape == make_game(f"game={name}").spec.observation


def test_the_table_of_learners_lists_what_each_learns_from():
    yes = {True: "yes", False: "no"}
    sources = ("windows", "records", "earlier_weights")
    rows = [
        [f"`{name}`", *(yes[source in option.load().learns_from] for source in sources)]
        for name, option in REGISTRY["learner"].items()
    ]
    listed = table_rows(text_of(FOLDERS["learner"] / "README.md"))
    assert [row for row in rows if row not in listed] == []


@pytest.mark.parametrize("name", REGISTRY["learner"])
def test_the_metrics_of_a_learner_are_explained(name):
    section = text_of(FOLDERS["learner"] / f"{name}.md").partition("\n## Metrics\n")[2]
    names = re.findall(r"`([\w/*]+)`", section.partition("\n## ")[0])
    explained = text_of(DOCS / "metrics.md")
    assert names
    for metric in names:
        assert f"`{metric if '/' in metric else f'train/{metric}'}`" in explained, metric


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_presets_are_known_and_their_figures_measured(path):
    """A figure has the name of its record, or is on a page of measurements."""
    for row in results_of(path):
        for preset in re.findall(r"`(\w+)`", row[0]):
            assert preset in option_names("experiment"), preset
        assert figures(tables.FIGURE.sub("", " | ".join(row[1:]))) <= measured(), row


@cache
def measured():
    return figures("".join(map(text_of, (DOCS / "dev").glob("*.md"))))


@pytest.mark.parametrize("path", EVERY, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_figures_are_those_of_their_records(path):
    text = text_of(path)
    assert len(tables.FIGURE.findall(text)) == len(re.findall(r"<!--\w+/", text))
    assert text == tables.with_figures(text), "make tables"


def test_generated_tables_are_current():
    pages = [*tables.config_pages(), *tables.filled_pages()]
    for path, text in [*pages, (tables.FACTS, tables.facts_text())]:
        assert text_of(path) == text, f"{path}: make tables"


def slug(heading):
    """The anchor of a heading on GitHub and on the site."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


@pytest.mark.parametrize("path", EVERY, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_links_lead_to_files_and_headings(path):
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", text_of(path)):
        page = path.parent / target if target else path
        assert page.is_file(), target
        if anchor and page.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
            assert anchor in map(slug, headings), f"{target}#{anchor}"


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.name)
def test_no_table_is_torn_apart(path):
    """A blank line ends a table: what follows is shown as text, unless it begins another one."""
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    assert not re.search(r"^\|.*\n\n+\|(?!.*\n\|[ :|-]+\|$)", text, re.MULTILINE)
