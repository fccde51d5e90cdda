"""Benchmarks: every speed figure comes with the command that reproduces it."""

import re
from pathlib import Path

import bench
import bench_tools
import pytest

ROOT = Path(__file__).parent.parent
PAGE = bench.PAGES["cpu"].read_text(encoding="utf-8")
SPEED = re.compile(
    r"\d[\d., ]*(M |million )?(moves|games|steps|positions|simulations)( \w+)* (a|per) second"
    r"|(moves|steps|simulations)/s\b|\b\d+ times (faster|as fast|the speed|as many)"
)
"""A claim about speed."""

REPRODUCED_BY = re.compile(r"`(make |\.venv/bin/|rlgames |eval |python )")


def sections(page=PAGE):
    return dict(re.findall(r"<!-- (\w+) -->\n(.*?)<!-- end of \1 -->", page, re.DOTALL))


def test_every_part_has_a_section_and_every_section_a_part():
    assert set(sections()) == set(bench.PARTS)
    outside = re.sub(r"<!-- (\w+) -->\n.*?<!-- end of \1 -->", "", PAGE, flags=re.DOTALL)
    assert "\n|" not in outside


def test_the_page_of_a_gpu_has_what_runs_there():
    page = bench.PAGES["cuda"].read_text(encoding="utf-8")
    assert set(sections(page)) == {name for name, part in bench.PARTS.items() if part.on_gpu}
    for name, section in sections(page).items():
        assert f"`.venv/bin/python scripts/bench/bench.py {name} --device cuda`" in section


@pytest.mark.parametrize("name", bench.PARTS)
def test_every_table_names_the_command_that_reproduces_it(name):
    command = f"`.venv/bin/python scripts/bench/bench.py {name}"
    assert f"{command}`" in sections()[name] or f"{command} --" in sections()[name]


def test_commands_on_the_page_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"`make ([\w-]+)`", PAGE)) <= targets
    for words in re.findall(r"`\.venv/bin/python scripts/bench/bench\.py ([^`]*)`", PAGE):
        parts = words.partition(" --")[0].split()
        assert set(parts) <= {*bench.PARTS, "peers"}


def test_every_speed_claim_names_its_command():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    texts = [path.read_text(encoding="utf-8") for path in pages]
    texts = [re.sub(r"^```text\n.*?^```$", "", text, flags=re.S | re.M) for text in texts]
    for paragraph in (part for text in texts for part in re.split(r"\n\s*\n|\n(?=- )", text)):
        assert not SPEED.search(paragraph) or REPRODUCED_BY.search(paragraph), paragraph


def test_sides_alternate_and_ratios_are_per_round():
    order = []

    def side(name, values):
        def measure():
            order.append(name)
            return next(values)

        return measure

    sides = {"a": side("a", iter([2.0, 8.0, 3.0])), "b": side("b", iter([1.0, 2.0, 3.0]))}
    result = bench_tools.in_turn(sides, 3)
    assert order == ["a", "b"] * 3
    assert result["a"].median == 3.0
    assert bench_tools.ratio(result["a"], result["b"]) == "1.5 (1 to 4)"


def test_a_worker_reports_a_failed_request():
    with (
        bench_tools.Worker("bench_peer_openspiel.py") as worker,
        pytest.raises(RuntimeError, match=r"bench_peer_openspiel\.py: \w*Error"),
    ):
        worker.ask(game="chess", how="bots", seconds=0.01)
