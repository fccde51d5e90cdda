"""What `rlgames games`, `agents`, `experiments`, `solve` and `new` print."""

from __future__ import annotations

from typing import Any

from rlgames.commands.solve import Solution
from rlgames.core.text import columns, printable

GOALS = {"turns": "few turns", "score": "a high score", "outcome": "win, draw or loss"}
"""What a player wants, by Spec.goal."""

UNITS = {
    "turns": "turns",
    "score": "points",
    "outcome": "for the first seat (1: win, 0: draw, -1: loss)",
}
"""The unit of an optimum, by what the game is about."""


def print_games(result: dict[str, Any]) -> None:
    """Print the list, or one game."""
    if "games" in result:
        print_listing(result)
        return
    planes, *board = result["observation"]
    print(printable(f"{result['name']}: {result['about']}"))
    print(
        f"  {result['seats']} seat{'s' * (result['seats'] > 1)}, {GOALS[result['goal']]}, "
        f"{result['actions']} actions, board {'x'.join(map(str, board))} in {planes} "
        f"plane{'s' * (planes > 1)}, at most {result['max_plies']:,} plies"
    )
    print("\nkeys")
    keys = [(f"  {name}={key['value']}", key["help"]) for name, key in result["keys"].items()]
    print("\n".join(map(printable, columns(keys))))
    capabilities = result["capabilities"]
    print("\nhas, for")
    rows = [(f"  {c['name']}", c["makes_possible"]) for c in capabilities if not c["missing"]]
    print("\n".join(columns(rows)))
    print("\ndoes not have, for")
    rows = [
        row
        for each in capabilities
        if each["missing"]
        for row in ((f"  {each['name']}", each["makes_possible"]), ("", f"({each['missing']})"))
    ]
    print("\n".join(map(printable, columns(rows))))
    solver = result["solver"] or "none"
    reach = (
        ""
        if result["is_in_reach"] or not result["solver"]
        else "; this board is too large to solve from the start"
    )
    print(f"\nexact solver: {solver}{reach}")


def print_listing(report: dict[str, Any]) -> None:
    """Print a list as a table."""
    (entries,) = report.values()
    rows = [[printable(str(value)) for value in item.values()] for item in entries]
    print("\n".join(columns([list(entries[0]), *rows])))


def print_solution(solution: Solution) -> None:
    """The optimum, or why it was not computed."""
    optimum = solution.optimum
    if optimum is None:
        limit = "the limit on time or memory was reached (seconds=, memory_gb=)"
        print(f"not computed: {'this board is too large' if solution.reach != 'yes' else limit}")
        return
    print(
        f"optimum {optimum.value:.6f} {UNITS[solution.goal]}, from {optimum.states:,} positions "
        f"in {optimum.seconds:.1f} s"
    )


def print_new(result: dict[str, Any]) -> None:
    """The files, and what to do with them."""
    print("written: " + ", ".join(result["written"]))
    print("try it, then edit the rules:")
    print("\n".join(f"  {command}" for command in result["commands"]))
    print("docs/adding-a-game.md explains the file")
