"""Every interval that a command prints contains the truth about 95% of the time."""

import math
import re
from pathlib import Path

import interval_coverage
import pytest
from markers import quick

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "dev" / "coverage.md"

SIMULATIONS = 400

CASES = interval_coverage.all_cases(games=4000)

RIGHT = [case for case in CASES if case.is_right]


QUICK = [case for case in RIGHT if not case.kind.startswith("Elo")]
"""Elo's take long."""

NAMES = [f"{case.kind}, {case.situation}" for case in RIGHT]


@pytest.mark.parametrize("case", quick(RIGHT, *QUICK), ids=NAMES)
def test_an_interval_contains_the_truth(case):
    """Within 94 to 96% and three standard errors of this short simulation."""
    for size in case.sizes:
        simulations = SIMULATIONS // case.cost
        fraction, intervals = interval_coverage.measure(case.experiment, size, simulations)
        margin = 3 * math.sqrt(0.95 * 0.05 / intervals)
        low, high = (0.935, 0.97) if size < 20 else (0.935, 0.965)
        assert low - margin < fraction < high + margin, size


def test_the_table_of_the_page_has_every_case_and_claims_what_it_found():
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and re.search(r"\d \(\d", cells[2]):
            rows[cells[0], cells[1]] = cells[2]
    assert list(rows) == [(case.kind, case.situation) for case in CASES]
    for case in RIGHT:
        found = re.findall(r"([\d.]+) \(([\d,]+)\)", rows[case.kind, case.situation])
        assert [int(size.replace(",", "")) for _, size in found] == list(case.sizes)
        for percent, _ in found:
            assert 93 <= float(percent) <= 97, (case.kind, case.situation)
