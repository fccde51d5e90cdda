"""Two-player Salvo: each side has a hidden fleet and fires as many shots as it has ships afloat.

The seats take turns. The cells of a salvo are chosen one after another and their results are shown
together; then the other side fires. The number of ships that each side has afloat is public.
The first to sink the whole fleet of the other side wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from rlgames.games.fleets import Fleet
from rlgames.games.game import HIDDEN, Spec
from rlgames.games.numbering import encode_cells
from rlgames.games.salvo_duel_notation import LETTERS, SalvoDuelNotation, SalvoDuelState, of_seat
from rlgames.games.sinkings import Seen, Sinkings, SinkingSlots
from rlgames.games.state import count_boards
from rlgames.games.symmetry import board_symmetries


class SalvoDuel(SalvoDuelNotation):
    """rows × columns cells for each side and the same fleet; ships by length.

    Raises ValueError for a fleet that cannot be placed.
    """

    def __init__(
        self, rows: int, columns: int, ships: Sequence[int], name: str = "salvo_duel"
    ) -> None:
        if len(ships) > len(LETTERS):
            raise ValueError(f"{len(ships)} ships are too many; {len(LETTERS)} is the most")
        self.fleet = Fleet(rows, columns, list(ships))
        self.slots = SinkingSlots(self.fleet.ships, names_length=False)
        self.rows, self.columns, self.num_cells = rows, columns, rows * columns
        self.spec = Spec(
            name=name,
            seats=2,
            actions=self.num_cells,
            observation=(14, rows, columns),
            has_cell_actions=True,
            max_plies=2 * self.num_cells,
            max_positions=count_boards(9, self.num_cells),
            goal="outcome",
            hidden=True,
            max_plies_per_turn=len(ships),
        )

    def initial(self, batch: int, rng: torch.Generator) -> SalvoDuelState:
        layouts = self.fleet.sample(2 * batch, rng)
        return self._start(layouts.view(batch, 2, self.num_cells))

    def openings(self, limit: int) -> tuple[SalvoDuelState, Tensor] | None:
        layouts = self.fleet.layouts
        if layouts is None or len(layouts) ** 2 > limit:
            return None
        count = len(layouts)
        first = layouts.repeat_interleave(count, 0)
        second = layouts.repeat(count, 1)
        probability = torch.full((count * count,), 1 / count**2, dtype=torch.float64)
        return self._start(torch.stack([first, second], 1)), probability

    def legal_action_mask(self, state: SalvoDuelState) -> Tensor:
        free = ~(of_seat(state.shot, state.current_seat) | state.aimed)
        return free | state.done[:, None].expand_as(free).contiguous()

    def apply_action(self, state: SalvoDuelState, action: Tensor) -> SalvoDuelState:
        live = ~state.done
        target = torch.zeros_like(state.aimed).scatter_(1, action[:, None], True)
        aimed = state.aimed | (target & live[:, None])
        unshot = self.num_cells - of_seat(state.shot, state.current_seat).sum(1)
        quota = of_seat(state.afloat, state.current_seat).minimum(unshot)
        fire = live & (aimed.sum(1) >= quota)
        seat = torch.nn.functional.one_hot(state.current_seat, 2).bool()  # [B, 2], who moves
        salvo = (aimed & fire[:, None])[:, None] & seat[:, :, None]
        turn = state.turn + fire
        new_hit = salvo & (state.ships.flip(1) > 0)
        hit_turn = torch.where(new_hit, turn.to(torch.int16)[:, None, None], state.hit_turn)
        other = 1 - state.current_seat
        sunk = self.fleet.sunk(
            of_seat(state.ships, other), of_seat(hit_turn, state.current_seat) > 0
        )
        slots = self.slots.record(of_seat(state.sunk_turn, state.current_seat), sunk, turn)
        sunk_turn = torch.where(seat[:, :, None], slots[:, None], state.sunk_turn)
        won = fire & sunk.all(1)
        payoff = seat.float() * 2 - 1
        current_seat = torch.where(fire, other, state.current_seat)
        return replace(
            state,
            done=state.done | won,
            current_seat=current_seat,
            turn=turn,
            score=state.score + payoff * won[:, None],
            own=of_seat(state.ships, current_seat),
            shot=state.shot | salvo,
            hit_turn=hit_turn,
            aimed=aimed & ~fire[:, None],
            sunk_turn=sunk_turn,
        )

    def observe(self, state: SalvoDuelState) -> Tensor:
        """Planes of the target board: not shot at, missed, hit; of the own board: ships, missed,
        hit; the cells aimed at; three filled ones: the share of the salvo already aimed, and the
        shares of the own and the other fleet afloat. Then, of the target board and of the own one:
        the turn of each hit ÷ the most turns, and the share of the fleet that its turn sank."""
        is_first = (state.current_seat == 0)[:, None, None]
        # Of the seat to move, then of the other: [B, 2, N] and [B, 2, ships].
        shot, hit_turn, sunk_turn = (
            torch.where(is_first, field, field.flip(1))
            for field in (state.shot, state.hit_turn, state.sunk_turn)
        )
        hit = hit_turn > 0
        missed = shot & ~hit
        other_afloat, afloat = (sunk_turn == 0).sum(2).T
        aimed = state.aimed.float()
        aimed_share = aimed.sum(1) / afloat.clamp(min=1)
        ships = len(self.fleet)
        values = torch.stack([aimed_share, afloat / ships, other_afloat / ships], 1)
        filled = values[:, :, None].expand(-1, -1, self.num_cells)
        target = [~shot[:, 0], missed[:, 0], hit[:, 0]]
        cells = torch.stack([*target, state.own > 0, missed[:, 1], hit[:, 1]], 1)
        sank = self.slots.per_hit(
            sunk_turn.flatten(0, 1), hit_turn.flatten(0, 1), self.spec.max_plies
        )
        history = torch.stack([hit_turn / self.spec.max_plies, sank.view(hit.shape)], 2)
        planes = [cells.view(torch.uint8).float(), aimed[:, None], filled, history.flatten(1, 2)]
        return torch.cat(planes, 1).view(-1, *self.spec.observation)

    def is_valid(self, state: SalvoDuelState) -> Tensor:
        current_seat = state.current_seat.clamp(0, 1)
        shot = of_seat(state.shot, current_seat)
        can_move = (~(shot | state.aimed)).any(1)
        layouts = state.own[:, None] if state.ships is HIDDEN else state.ships
        valid = (
            super().is_valid(state)
            & (state.done | can_move)
            & (state.shot | ~state.hit).flatten(1).all(1)
            & ((state.hit_turn >= 0) & (state.hit_turn <= state.turn[:, None, None]))
            .flatten(1)
            .all(1)
            & ~(state.aimed & shot).any(1)
            & (layouts <= len(self.fleet)).flatten(1).all(1)
        )
        for seat in range(2):
            valid &= self.slots.are_valid(state.sunk_turn[:, seat], state.hit_turn[:, seat])
        return valid

    def outcome(self, before: SalvoDuelState, action: Tensor, after: SalvoDuelState) -> Tensor:
        seat = before.current_seat
        hits = of_seat(after.hit_turn, seat) != of_seat(before.hit_turn, seat)
        sinkings = of_seat(after.sunk_turn, seat) != of_seat(before.sunk_turn, seat)
        return encode_cells(torch.cat([hits, sinkings], 1))

    def public(self, state: SalvoDuelState) -> SalvoDuelState:
        return replace(state, ships=HIDDEN)

    def view_from_seat(self, state: SalvoDuelState, seat: int) -> SalvoDuelState:
        current_seat = torch.full_like(state.current_seat, seat)
        # What is aimed at is hidden until the salvo is fired.
        aimed = state.aimed & (state.current_seat == seat)[:, None]
        own = of_seat(state.ships, current_seat)
        return replace(state, current_seat=current_seat, own=own, aimed=aimed)

    def seen(self, state: SalvoDuelState) -> Seen:
        shot, hit_turn, turns = (
            of_seat(field, state.current_seat)
            for field in (state.shot, state.hit_turn, state.sunk_turn)
        )
        return Seen(shot, hit_turn > 0, Sinkings(self.slots, hit_turn, turns))

    def score_actions(self, cells: Tensor) -> Tensor:
        return cells

    def resample(self, state: SalvoDuelState, rng: torch.Generator) -> SalvoDuelState:
        layouts = self.sample_layouts(state, rng)
        seat = torch.nn.functional.one_hot(state.current_seat, 2).bool()[:, :, None]
        return replace(state, ships=torch.where(seat, state.own[:, None], layouts[:, None]))

    def rewind(self, state: SalvoDuelState) -> SalvoDuelState:
        return self._start(state.ships)

    def with_layout(self, state: SalvoDuelState, seat: int, layout: Tensor) -> SalvoDuelState:
        """Initial positions in which a seat has this fleet, uint8 [N]."""
        ships = state.ships.clone()
        ships[:, seat] = layout.to(ships.device)
        return self._start(ships)

    def symmetries(self) -> Tensor:
        """Both boards are transformed together."""
        return board_symmetries(self.rows, self.columns)

    def hidden_hits(self, state: SalvoDuelState) -> Tensor:
        return state.ships.flip(1) > 0


def salvo_duel(board: int, ships: list[int]) -> SalvoDuel:
    """game=salvo_duel: a square board for each side."""
    return SalvoDuel(board, board, ships)
