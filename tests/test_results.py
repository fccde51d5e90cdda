"""The pages strength.md and reproductions.md are what `rlgames study` makes of the records."""

from pathlib import Path

import pytest

from rlgames.commands.study import make_record, read_record, section
from rlgames.commands.study_file import read_study
from rlgames.commands.study_plan import plan_study
from rlgames.config.commands import COMMAND_SCHEMAS, StudyConfig
from rlgames.config.compose import load_config
from rlgames.config.conf import option_names

ROOT = Path(__file__).parents[1]
STRENGTH, REPRODUCTIONS = (
    ROOT / "docs" / "dev" / f"{name}.md" for name in ("strength", "reproductions")
)
STUDIES = [name for name in option_names("study") if name not in ("learners", "agents")]


def record(name):
    return read_record(ROOT / "docs" / "records" / f"{name}.json")


@pytest.mark.parametrize("name", STUDIES)
def test_a_section_of_a_page_is_made_from_its_record(name):
    page = STRENGTH if name in ("strength", "exact") else REPRODUCTIONS
    text = page.read_text(encoding="utf-8").partition(f"<!-- study {name} -->\n")[2]
    remedy = f"rlgames study {name} run=false records=docs/records page={page}"
    made = section(read_study(name), record(name))
    assert text.partition(f"<!-- end of study {name} -->")[0] == made, remedy


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_the_studies_fit_their_games_and_keep_their_records(name, tmp_path):
    """Each recorded value stays, because it is of the study and of the commands that made it."""
    planned = plan_study(load_config(StudyConfig, [f"file={name}", f"out={tmp_path}"]))
    assert make_record(planned, record(name)) == record(name)


def test_every_plot_of_the_articles_has_a_command():
    commands = [
        line for line in REPRODUCTIONS.read_text().splitlines() if "| `rlgames report " in line
    ]
    assert len(commands) == 10
    for line in commands:
        name, *words = line.partition("`rlgames ")[2].partition("`")[0].split()
        runs = [Path(word) for word in words if "=" not in word]
        load_config(COMMAND_SCHEMAS[name], [word for word in words if "=" in word])
        assert all(run.name in read_study(run.parent.name).runs for run in runs)
