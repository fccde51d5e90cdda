"""What agents, searches and solvers say about a position, for a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from rlgames.build.players import make_advisor
from rlgames.core.metrics import GOAL_METRICS, direction
from rlgames.core.text import short_number
from rlgames.drawing.pictures import ActionOverlay, overlay_of_cells
from rlgames.evaluation.advice import advise, exact_text, unit_of
from rlgames.games.fleets.game import FleetGame
from rlgames.games.game import Game, State
from rlgames.games.notation import legal_names
from rlgames.rng import Rng

if TYPE_CHECKING:
    from rlgames.web.table import Table

EXACT_SECONDS = 3.0
"""Time limit of the exact values of a position."""

COUNTED_LAYOUTS, SAMPLED_LAYOUTS = 5_000_000, 2_000
"""Steps and samples that locate hidden ships, as in player=density."""

MIN_SHARE = 0.0005
"""Moves that are less likely are not listed."""

OUTCOMES = {1.0: "win", 0.0: "draw", -1.0: "loss"}


@dataclass(frozen=True)
class Hint:
    """What to show. overlay: of cells, how dark each is, 0 to 1, and its label. moves: {move,
    share, text}, the best first; share: of a bar, 0 to 1. value: what is expected for seat 1, from
    a loss, -1, to a win, 1; None if it is unknown or the game has no outcome."""

    summary: str
    overlay: Mapping[int, tuple[float, str]] = field(default_factory=dict)
    moves: Sequence[dict[str, Any]] = ()
    value: float | None = None


def policy_hint(table: Table, seats: Sequence[str], search: str | None, seen: State) -> Hint:
    """The probabilities or values of the advisor's moves, or the shares of a search's visits."""
    name = table.advisor(seats)
    assert name is not None
    who = name if search is None else f"{name}+{search}"
    with table.player(name, search) as player:
        found = advise(table.game, seen, make_advisor(player), who, 0)
    value = "" if found.value is None else f"expects a return of {short_number(found.value)}"
    opinions, scores = [], [move.score for move in found.moves if move.score is not None]
    if found.likely is None and not scores:
        return Hint(f"{who} {value or 'has no probabilities'}")
    for move in found.moves:
        if scores:
            share, label = _between(move.score or 0.0, scores), short_number(move.score or 0.0)
            opinions.append((move.action, share, label, label))
        else:
            share = move.probability or 0.0
            opinions.append((move.action, share, "", f"{share:.1%}"))
    hint = _hint(table.game, seen, f"{who} {value}", opinions, is_distribution=not scores)
    return replace(hint, value=_for_first_seat(table.game, seen, found.value))


def exact_hint(table: Table, seats: Sequence[str], search: str | None, seen: State) -> Hint:
    """The values of the moves if every seat plays perfectly."""
    game, unit = table.game, unit_of(table.game)
    found = advise(game, seen, None, "", EXACT_SECONDS)
    sign, opinions = direction(game.spec.goal, GOAL_METRICS[game.spec.goal]), []
    values = [sign * move.exact for move in found.moves if move.exact is not None]
    if found.exact is None or not values:
        return Hint(f"not solved within {EXACT_SECONDS:g} seconds")
    if unit == "outcome":
        values = [-1.2, 1.0]  # a loss is still visible
    for move in found.moves:
        if move.exact is not None:
            label = f"{move.exact:z.2f}"
            if unit == "outcome":
                label = OUTCOMES.get(move.exact, f"{move.exact:+.2f}")
            text = exact_text(move.exact, unit) + (f" in {move.plies} plies" if move.plies else "")
            opinions.append((move.action, _between(sign * move.exact, values), label, text))
    best = found.exact.value
    summary = "" if best is None else f"with perfect play: {exact_text(best, unit)}"
    hint = _hint(game, seen, summary, opinions)
    return replace(hint, value=_for_first_seat(game, seen, best))


def ships_hint(table: Table, seats: Sequence[str], search: str | None, seen: State) -> Hint:
    """The probability of a ship in each cell, and the turns that perfect play still needs."""
    game = table.game
    assert isinstance(game, FleetGame)
    occupancy, how = game.exact_occupancy(seen, COUNTED_LAYOUTS), "all layouts that agree"
    if bool(occupancy.isnan().any()):
        occupancy, how = game.occupancy(seen, SAMPLED_LAYOUTS, Rng()), "sampled layouts"
    shares = occupancy[0].tolist()
    marks = [*chain(*game.boards(seen, 0)[0])]
    name = game.board_format.cell_name
    moves = [
        {"move": name(cell), "share": shares[cell], "text": f"{shares[cell]:.1%}"}
        for cell in sorted(range(len(shares)), key=lambda cell: -shares[cell])
        if marks[cell] == "." and shares[cell] >= MIN_SHARE
    ]
    summary = f"probability of a ship, by {how}"
    exact = advise(game, seen, None, "", EXACT_SECONDS).exact
    if exact is not None and exact.value is not None:
        summary += f"; perfect play needs {exact.value:z.4f} turns"
    return Hint(summary, {cell: (p, f"{100 * p:.0f}") for cell, p in enumerate(shares)}, moves)


HINTS: dict[str, Callable[[Table, Sequence[str], str | None, State], Hint]] = {
    "policy": lambda table, seats, _, seen: policy_hint(table, seats, None, seen),
    "search": policy_hint,
    "exact": exact_hint,
    "ships": ships_hint,
}
"""By the kinds of Table.hints."""


def _for_first_seat(game: Game[Any], seen: State, value: float | None) -> float | None:
    """As in Hint; value: for the seat to move."""
    if value is None or game.spec.goal != "outcome":
        return None
    return value * (1 - 2 * int(seen.current_seat[0]))


def _between(value: float, values: Sequence[float]) -> float:
    low, high = min(values), max(values)
    return (value - low) / (high - low) if high > low else 1.0


def _hint(
    game: Game[Any],
    seen: State,
    summary: str,
    opinions: Iterable[tuple[str, float, str, str]],
    is_distribution: bool = False,
) -> Hint:
    """A hint by moves. opinions: the name of a move, its share, its label on the board and its text
    in the list. is_distribution: the shares are probabilities."""
    actions = {name: action for action, name in legal_names(game, seen, 0).items()}
    weights, labels, moves = np.zeros(game.spec.actions), [""] * game.spec.actions, []
    for name, share, label, text in sorted(opinions, key=lambda opinion: -opinion[1]):
        weights[actions[name]], labels[actions[name]] = share, label
        if share >= MIN_SHARE or not is_distribution:
            moves.append({"move": name, "share": share, "text": text})
    cells = game.action_cells(seen, 0)
    overlay = ActionOverlay(weights, labels, is_distribution)
    on_cells = {} if cells is None else overlay_of_cells(overlay, cells.cpu().numpy())
    return Hint(summary, on_cells, moves)
