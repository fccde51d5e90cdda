"""The tables in docs/dev/ are what `rlgames study` makes of the records."""

from pathlib import Path

import pytest

from rlgames.commands.study import section, update_page
from rlgames.commands.study_file import read_study, values_of
from rlgames.commands.study_plan import plan_study
from rlgames.commands.study_record import make_record, read_record
from rlgames.config.commands import COMMAND_SCHEMAS, StudyConfig
from rlgames.config.compose import load_config
from rlgames.config.files import Files

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "records"
REPRODUCTIONS = ROOT / "docs" / "dev" / "reproductions.md"
STUDIES = [name for name in Files().names("study") if name not in ("learners", "agents")]


def records():
    return {path.stem: read_record(path) for path in RECORDS.glob("*.json")}


@pytest.mark.parametrize("name", STUDIES)
def test_a_section_of_a_page_is_made_from_its_record(name):
    page = ROOT / "docs" / "dev" / "strength.md" if name == "strength" else REPRODUCTIONS
    text = page.read_text(encoding="utf-8").partition(f"<!-- study {name} -->\n")[2]
    made = section(read_study(name), records())
    remedy = f"rlgames study {name} run=false records=docs/records page={page}"
    assert text.partition(f"<!-- end of study {name} -->")[0] == made, remedy


@pytest.mark.parametrize("name", records())
def test_a_record_holds_values_of_its_study_alone(name):
    used = {(run, column.metric) for run, column in values_of(read_study(name))}
    recorded = records()[name]["runs"].items()
    assert {(run, metric) for run, entry in recorded for metric in entry["cells"]} <= used


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("reproduce", marks=pytest.mark.slow),
        pytest.param("strength", marks=pytest.mark.slow),
        "agents",
    ],
)
def test_the_studies_fit_their_games_and_keep_their_records(name, tmp_path):
    """Each recorded value stays, because the commands that made it are those of the study."""
    planned = plan_study(load_config(StudyConfig, [f"file={name}", f"out={tmp_path}"]))
    old = records()
    for leaf in planned.study.leaves:
        if leaf.name in old:
            assert make_record(planned, leaf, old[leaf.name]) == old[leaf.name]


def test_a_page_is_updated_in_place(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(REPRODUCTIONS.read_text())
    update_page(page, read_study("reproduce"), records())
    assert page.read_text() == REPRODUCTIONS.read_text()


def test_every_plot_of_the_articles_has_a_command():
    commands = [
        line for line in REPRODUCTIONS.read_text().splitlines() if "| `rlgames report " in line
    ]
    assert len(commands) == 10
    for line in commands:
        name, *words = line.partition("`rlgames ")[2].partition("`")[0].split()
        runs = [word for word in words if "=" not in word]
        load_config(COMMAND_SCHEMAS[name], [word for word in words if word not in runs])
        study = read_study("reproduce")
        trained = {run for leaf in study.leaves for run in leaf.runs}
        assert {Path(run).name for run in runs} <= trained
