"""What agents, searches and solvers say about a position, for a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import torch

from rlgames.core.metrics import GOAL_METRICS, direction
from rlgames.core.text import short_number
from rlgames.drawing.pictures import ActionOverlay, overlay_of_cells
from rlgames.evaluation.advice import Advice, advise, exact_text, unit_of
from rlgames.games.fleets.game import FleetGame
from rlgames.games.game import State
from rlgames.games.notation import legal_names
from rlgames.runs.agents import make_advisor
from rlgames.web.tables import Table

EXACT_SECONDS = 3.0
"""Time limit of the exact values of a position."""

COUNTED_LAYOUTS, SAMPLED_LAYOUTS = 5_000_000, 2_000
"""Steps and samples by which hidden ships are located, as those of player=density."""

MIN_SHARE = 0.0005
"""Moves that are less likely are not listed."""

OUTCOMES = {1.0: "win", 0.0: "draw", -1.0: "loss"}


@dataclass(frozen=True)
class Hint:
    """What to show. overlay: of cells, how dark each is, 0 to 1, and its label. moves: {move,
    share, text}, the best first; share: of a bar, 0 to 1."""

    summary: str
    overlay: Mapping[int, tuple[float, str]] = field(default_factory=dict)
    moves: Sequence[dict[str, Any]] = ()


def policy_hint(table: Table, seats: Sequence[str], search: str | None, seen: State) -> Hint:
    """The probabilities or values of the advisor's moves, or the shares of a search's visits."""
    name = table.advisor(seats)
    assert name is not None
    player = make_advisor(table.player(name, search))
    who = name if search is None else f"{name}+{search}"
    found = advise(table.game, seen, player, who, 0)
    value = "" if found.value is None else f"expects a return of {short_number(found.value)}"
    if found.likely is None:
        return Hint(f"{who} {value or 'has no probabilities'}")
    if found.moves[0].score is not None:
        return Hint(f"{who} {value}", *_values(table, seen, found))
    moves = [
        {"move": move.action, "share": likely, "text": f"{likely:.1%}"}
        for move in found.moves
        if (likely := move.probability or 0.0) >= MIN_SHARE
    ]
    overlay = ActionOverlay(found.likely.numpy(), [], is_distribution=True)
    return Hint(f"{who} {value}", _on_cells(table, seen, overlay), moves)


def _values(
    table: Table, seen: State, found: Advice
) -> tuple[dict[int, tuple[float, str]], list[dict[str, Any]]]:
    """The overlay and the moves of a hint by action values; the best move is the darkest."""
    scores = {move.action: move.score or 0.0 for move in found.moves}
    low, high = min(scores.values()), max(scores.values())
    shares = {name: (s - low) / (high - low) if high > low else 1.0 for name, s in scores.items()}
    ordered = sorted(scores, key=lambda name: -scores[name])
    moves = [{"move": n, "share": shares[n], "text": short_number(scores[n])} for n in ordered]
    weights, labels = np.zeros(table.game.spec.actions), [""] * table.game.spec.actions
    for action, name in legal_names(table.game, seen, 0).items():
        weights[action], labels[action] = shares[name], short_number(scores[name])
    return _on_cells(table, seen, ActionOverlay(weights, labels, is_distribution=False)), moves


def exact_hint(table: Table, seats: Sequence[str], search: str | None, seen: State) -> Hint:
    """The values of the moves if every seat plays perfectly."""
    game, unit = table.game, unit_of(table.game)
    found = advise(game, seen, None, "", EXACT_SECONDS)
    if found.exact is None or all(value is None for value in found.exact.actions):
        return Hint(f"not solved within {EXACT_SECONDS:g} seconds")
    weights = _weights(found, direction(game.spec.goal, GOAL_METRICS[game.spec.goal]), unit)
    labels = ["" if v is None else _label(v, unit) for v in found.exact.actions]
    moves: list[dict[str, Any]] = [
        {
            "move": move.action,
            "share": weights[move.exact],
            "text": exact_text(move.exact, unit)
            + (f" in {move.plies} plies" if move.plies else ""),
        }
        for move in found.moves
        if move.exact is not None
    ]
    moves.sort(key=lambda move: -move["share"])
    shades = np.array([weights.get(value, 0.0) for value in found.exact.actions])
    overlay = _on_cells(table, seen, ActionOverlay(shades, labels, is_distribution=False))
    best = found.exact.value
    summary = "" if best is None else f"with perfect play: {exact_text(best, unit)}"
    return Hint(summary, overlay, moves)


def ships_hint(table: Table, seats: Sequence[str], search: str | None, seen: State) -> Hint:
    """The probability of a ship in each cell, and the turns that perfect play still needs."""
    game = table.game
    assert isinstance(game, FleetGame)
    occupancy, how = game.exact_occupancy(seen, COUNTED_LAYOUTS), "all layouts that agree"
    if bool(occupancy.isnan().any()):
        rng = torch.Generator().manual_seed(0)
        occupancy, how = game.occupancy(seen, SAMPLED_LAYOUTS, rng), "sampled layouts"
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
        summary += f"; perfect play needs {exact.value:.4f} turns"
    return Hint(summary, {cell: (p, f"{100 * p:.0f}") for cell, p in enumerate(shares)}, moves)


Maker = Callable[[Table, Sequence[str], str | None, State], Hint]
HINTS: dict[str, Maker] = {
    "policy": lambda table, seats, _, seen: policy_hint(table, seats, None, seen),
    "search": policy_hint,
    "exact": exact_hint,
    "ships": ships_hint,
}
"""By the kinds of Table.hints."""


def _weights(found: Advice, sign: int, unit: str) -> dict[float | None, float]:
    """By exact value: how good it is among the moves, 0 to 1; of an outcome among all outcomes."""
    assert found.exact is not None
    values = [value for value in found.exact.actions if value is not None]
    low, high = min(sign * v for v in values), max(sign * v for v in values)
    if unit == "outcome":
        low, high = -1.2, 1.0  # a loss is still visible
    return {v: (sign * v - low) / (high - low) if high > low else 1.0 for v in values}


def _label(value: float, unit: str) -> str:
    return OUTCOMES.get(value, f"{value:+.2f}") if unit == "outcome" else f"{value:.2f}"


def _on_cells(table: Table, seen: State, overlay: ActionOverlay) -> dict[int, tuple[float, str]]:
    cells = table.game.action_cells(seen, 0)
    return {} if cells is None else overlay_of_cells(overlay, cells.cpu().numpy())
