"""Print the coverage of each folder of the package and of the whole, after `coverage run`."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

UNITS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def coverage_by_file() -> dict[str, dict[str, int]]:
    command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", "-"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return {path: entry["summary"] for path, entry in report["files"].items()}


def line(name: str, counts: Counter[str]) -> str:
    statements, covered, branches, taken = (counts[unit] for unit in UNITS)
    percent = 100 * (covered + taken) / max(statements + branches, 1)
    return f"{name:<12} {statements:>10} {statements - covered:>7} {branches:>9} {percent:>8.1f} %"


def main() -> None:
    rooms: dict[str, Counter[str]] = {}
    for path, summary in coverage_by_file().items():
        room = Path(path).relative_to("rlgames").parts[0].removesuffix(".py")
        rooms.setdefault(room, Counter()).update({unit: summary[unit] for unit in UNITS})
    print(f"{'rlgames/':<12} {'statements':>10} {'missed':>7} {'branches':>9} {'covered':>10}")
    for room in sorted(rooms):
        print(line(room, rooms[room]))
    print(line("total", sum(rooms.values(), Counter())))


if __name__ == "__main__":
    main()
