"""`rlgames solve`: the exact optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlgames.config.commands import SolveConfig
from rlgames.core.errors import ConfigError

if TYPE_CHECKING:
    from rlgames.solvers.optimum import Optimum


@dataclass(frozen=True)
class Solution:
    """The exact optimum of a game, None where a limit was reached. goal: Spec.goal. reach: see
    solver_reach."""

    optimum: Optimum | None
    goal: str
    reach: str

    def as_dict(self) -> dict[str, Any]:
        """{optimal, states, seconds}, None where not computed."""
        optimum = self.optimum
        if optimum is None:
            return {"optimal": None, "states": None, "seconds": None}
        return {"optimal": optimum.value, "states": optimum.states, "seconds": optimum.seconds}


def solve_command(cfg: SolveConfig) -> Solution:
    if cfg.game is None:
        raise ConfigError("solve needs a game", "as in: rlgames solve game=salvo board=4 shots=2")
    from rlgames.config.registry import make
    from rlgames.solvers.optimum import find_optimum, solver_reach

    game = make("game", cfg.game)
    reach = solver_reach(game)
    if reach == "no":
        raise ConfigError(
            f"there is no solver for game={cfg.game.name} with these rules",
            "rlgames games lists the games with one",
        )
    return Solution(find_optimum(game, cfg.seconds, cfg.memory_gb), game.spec.goal, reach)
