"""`rlgames solve`: the exact optimum of a game."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlgames.config.commands import SolveConfig
from rlgames.core.errors import ConfigError

if TYPE_CHECKING:
    from rlgames.solvers.optimum import Optimum

UNITS = {
    "turns": "turns",
    "score": "points",
    "outcome": "for the first seat (1: win, 0: draw, -1: loss)",
}
"""The unit of an optimum, by Spec.goal."""


@dataclass(frozen=True)
class Result:
    """The exact optimum of a game, None where a limit was reached. goal: Spec.goal. reach: see
    solver_reach."""

    optimum: Optimum | None
    goal: str
    reach: str

    def as_dict(self) -> dict[str, Any]:
        """{optimal, positions, seconds}, None where not computed."""
        found = self.optimum
        values = (None,) * 3 if found is None else (found.value, found.states, found.seconds)
        return dict(zip(("optimal", "positions", "seconds"), values, strict=True))


def run(cfg: SolveConfig) -> Result:
    """Solve a game, and keep the report of a run. Raises ConfigError without a solver."""
    if cfg.run is None and cfg.game is None:
        raise ConfigError("solve needs a game", "as in: rlgames solve game=salvo board=4 shots=2")
    from rlgames.commands.match import report_directory, with_run
    from rlgames.config.registry import make
    from rlgames.runs.reports import check_report, keep_report
    from rlgames.solvers.optimum import find_optimum, solver_reach

    cfg, run = with_run(cfg)
    directory = report_directory(cfg, None if run is None else run.path)
    check_report(cfg, directory)
    assert cfg.game is not None
    game = make("game", cfg.game)
    reach = solver_reach(game)
    if reach == "no":
        raise ConfigError(
            f"there is no solver for game={cfg.game.name} with these rules",
            "rlgames games lists the games with one",
        )
    result = Result(find_optimum(game, cfg.seconds, cfg.memory_gb), game.spec.goal, reach)
    keep_report(cfg, directory, {}, result.as_dict())
    return result


def show(result: Result) -> None:
    """Print the optimum, or why it was not computed."""
    optimum = result.optimum
    if optimum is None:
        limit = "the limit on time or memory was reached (seconds=, memory_gb=)"
        large = "this board is too large, and smaller ones can be solved"
        print(f"not computed: {limit if result.reach == 'yes' else large}")
        return
    print(
        f"optimum {optimum.value:z.6f} {UNITS[result.goal]}, from {optimum.states:,} positions "
        f"in {optimum.seconds:.1f} s"
    )
