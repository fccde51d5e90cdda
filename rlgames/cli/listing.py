"""What `rlgames games`, `solve` and `new` print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len

from rlgames.commands.solve import Solution
from rlgames.config.schema import as_typed
from rlgames.core.text import counted, printable
from rlgames.terminal.tables import GAP, print_rows, terminal_width

GOALS = {"turns": "few turns", "score": "a high score", "outcome": "win, draw or loss"}
"""What a player wants, by Spec.goal."""

UNITS = {
    "turns": "turns",
    "score": "points",
    "outcome": "for the first seat (1: win, 0: draw, -1: loss)",
}
"""The unit of an optimum, by what the game is about."""


MIN_LAST_WIDTH = 24
"""Of the last column of a list."""


def print_games(result: dict[str, Any]) -> None:
    """Print the list, or one game."""
    if "games" in result:
        _print_list(result["games"])
        return
    planes, *board = result["observation"]
    print(printable(f"{result['name']}: {result['about']}"))
    print(
        f"  {counted(result['seats'], 'seat')}, {GOALS[result['goal']]}, "
        f"{result['actions']} actions, board {'x'.join(map(str, board))} in "
        f"{counted(planes, 'plane')}, at most {result['max_plies']:,} plies"
    )
    print("\nkeys")
    keys = [
        (f"  {name}={as_typed(key['value'])}", key["help"]) for name, key in result["keys"].items()
    ]
    print_rows(keys)
    capabilities = result["capabilities"]
    print("\nhas, for")
    rows = [(f"  {c['name']}", c["makes_possible"]) for c in capabilities if not c["missing"]]
    print_rows(rows)
    print("\ndoes not have, for")
    rows = [
        row
        for each in capabilities
        if each["missing"]
        for row in ((f"  {each['name']}", each["makes_possible"]), ("", f"({each['missing']})"))
    ]
    print_rows(rows)
    solver = result["solver"] or "none"
    reach = (
        ""
        if result["is_in_reach"] or not result["solver"]
        else "; this board is too large to solve from the start"
    )
    print(f"\nexact solver: {solver}{reach}")
    if result["agents"]:
        print("\nagents, as in: rlgames play NAME")
        print_rows([(f"  {each['name']}", each["strength"]) for each in result["agents"]])
    if result["presets"]:
        print("\npresets, as in: rlgames train experiment=NAME")
        print_rows(
            [(f"  {p['name']}", p["learner"], p["policy"], p["about"]) for p in result["presets"]]
        )


def _print_list(games: Sequence[dict[str, Any]]) -> None:
    """Print the games as a table, and their presets. A narrow terminal leaves out columns before
    the last one, which explains the first."""
    names = ["name", "seats", "goal", "solve", "board", "agents", "about"]
    columns = [[name, *(_word(game[name]) for game in games)] for name in names]
    width, left_out = terminal_width(), list[str]()
    while width and len(columns) > 2 and _width(columns[:-1]) + MIN_LAST_WIDTH > width:
        left_out.insert(0, columns.pop(-2)[0])
    print_rows([*zip(*columns, strict=True)])
    if left_out:
        print(f"no room for: {', '.join(left_out)}")
    print("\npresets, as in: rlgames train experiment=NAME")
    print_rows([(f"  {game['name']}", _word(game["presets"])) for game in games if game["presets"]])


def _word(value: Any) -> str:
    return printable(", ".join(value) if isinstance(value, list) else str(value))


def _width(columns: Sequence[Sequence[str]]) -> int:
    """Of columns, with the gaps behind them."""
    return sum(max(map(cell_len, cells)) + len(GAP) for cells in columns)


def print_solution(solution: Solution) -> None:
    """The optimum, or why it was not computed."""
    optimum = solution.optimum
    if optimum is None:
        limit = "the limit on time or memory was reached (seconds=, memory_gb=)"
        large = "this board is too large, and smaller ones can be solved"
        print(f"not computed: {limit if solution.reach == 'yes' else large}")
        return
    print(
        f"optimum {optimum.value:.6f} {UNITS[solution.goal]}, from {optimum.states:,} positions "
        f"in {optimum.seconds:.1f} s"
    )
