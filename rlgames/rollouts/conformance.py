"""What every game must do, whatever its rules: `check(game)` checks your own game.

The checks follow random games ply by ply, and compare sampled frequencies with probabilities.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from rlgames.games.capabilities import (
    CellBoard,
    Chance,
    ExactKey,
    HiddenHits,
    HiddenInformation,
    InvertibleKey,
    Symmetric,
    check_declared,
    find,
    require,
)
from rlgames.games.game import HIDDEN, Game, State
from rlgames.games.notation import parse, parse_action, render
from rlgames.games.symmetry import Symmetries
from rlgames.players.player import Random
from rlgames.rng import Rng
from rlgames.rollouts.play import START, GamePool, collect_games

MAX_FOLLOWED_PLIES = 300
"""Longer games are followed only this far."""

MAX_CHANCE_ROWS = 3
"""At each ply this many positions are compared with all outcomes of chance."""

MAX_SAMPLED_OPENINGS = 2000
"""The frequencies of initial positions are compared up to this number of openings."""

HISTORY_BATCH = 50
"""Games side by side whose histories are compared with the histories of resampled positions."""


def are_equal(left: State, right: State) -> bool:
    """Whether all fields of two batches of positions are equal."""
    pairs = [(getattr(left, f.name), getattr(right, f.name)) for f in fields(type(left))]
    return all(a is b if a is HIDDEN or b is HIDDEN else torch.equal(a, b) for a, b in pairs)


def visible(game: Game[Any], state: State) -> list[Tensor]:
    """Everything that the seat to move may know of each position."""
    return [game.observe(state), game.legal_action_mask(state)]


def random_games(
    game: Game[Any], batch: int, rng: Rng, plies: int
) -> tuple[list[State], list[Tensor]]:
    """Positions of random games side by side, before each ply and after the last one, and the
    actions between them; until all games are over, or for so many plies."""
    states, actions = [game.initial(batch, rng.fold_in(START))], list[Tensor]()
    while not states[-1].done.all() and len(actions) < plies:
        now = rng.fold_in(len(actions))
        u = now.uniform(batch)
        actions.append(game.sample_legal_action(game.public(states[-1]), u))
        states.append(game.step(states[-1], actions[-1], now))
    return states, actions


def check(game: Game[Any]) -> None:
    """Raises AssertionError, or what the game itself raises, with a note that names the check."""
    for each in CHECKS:
        try:
            each(game)
        except Exception as error:
            error.add_note(f"{each.__name__}: {each.__doc__}")
            raise


def every_ply_follows_the_contract(game: Game[Any], batch: int = 24, seed: int = 1) -> None:
    """Shapes, ranges, legal actions, and independence of other rows and of hidden information."""
    rng, order = Rng(seed).rows(batch), Rng(seed, "order").permutation(batch)
    state = game.initial(batch, rng)
    assert not state.done.any(), "a game is over before its first move"
    shuffled, plies = game.initial(batch, rng[order]), 0  # the same games in another order
    assert are_equal(shuffled, state[order]), "first positions depend on other rows"
    while not state.done.all() and plies < min(game.spec.max_plies, MAX_FOLLOWED_PLIES):
        _check_shapes(game, state)
        _check_visible(game, state, shuffled, order)
        now = rng.fold_in(plies)
        action = game.sample_legal_action(game.public(state), now.uniform(batch))
        is_legal = game.legal_action_mask(state).gather(1, action[:, None])
        assert is_legal.all(), "sample_legal_action returned an illegal action"
        copied = state[torch.arange(batch)]
        afterstate, after = game.apply_action(state, action), game.step(state, action, now)
        assert are_equal(copied, state), "apply_action changed its argument"
        _check_progress(game, state, after)
        _check_chance(game, (~state.done).nonzero()[:MAX_CHANCE_ROWS, 0], afterstate, after)
        shuffled = game.step(shuffled, action[order], now[order])
        assert are_equal(shuffled, after[order]), "rows depend on other rows"
        state, plies = after, plies + 1
    if game.spec.max_plies < MAX_FOLLOWED_PLIES:
        assert state.done.all(), "a game exceeds spec.max_plies"


def _check_shapes(game: Game[Any], state: State) -> None:
    batch, spec = len(state), game.spec
    legal, observation = game.legal_action_mask(state), game.observe(state)
    assert legal.shape == (batch, spec.actions), f"legal_action_mask has shape {legal.shape}"
    assert legal.dtype == torch.bool, f"legal_action_mask has dtype {legal.dtype}"
    assert legal.any(1).all(), "a position has no legal action"
    assert legal[state.done].all(), "not every action is legal in a finished row"
    shape = (batch, *spec.observation)
    assert observation.shape == shape, f"observe has shape {observation.shape}"
    assert observation.dtype == torch.float32, f"observe has dtype {observation.dtype}"
    low, high = spec.observation_range
    is_within = (observation >= low) & (observation <= high)
    assert is_within.all(), f"an observation is outside {spec.observation_range=}"
    assert state.score.shape == (batch, spec.seats), f"score has shape {state.score.shape}"
    is_seat = (state.current_seat >= 0) & (state.current_seat < spec.seats)
    assert is_seat.all(), "current_seat is out of range"


def _check_visible(game: Game[Any], state: State, shuffled: State, order: Tensor) -> None:
    """What is visible depends neither on hidden information nor on other rows."""
    own, public = visible(game, state), game.public(state)
    for full, shown in zip(own, visible(game, public), strict=True):
        assert torch.equal(full, shown), "what is visible depends on hidden information"
    for full, moved in zip(own, visible(game, shuffled), strict=True):
        assert torch.equal(full[order], moved), "what is visible depends on other rows"
    assert torch.equal(game.observe(state[:1]), own[0][:1]), "observe depends on other rows"
    if keys := find(game, ExactKey):
        is_public = torch.equal(keys.key(state), keys.key(public))
        assert is_public, "key depends on hidden information"


def _check_progress(game: Game[Any], state: State, after: State) -> None:
    assert are_equal(after[state.done], state[state.done]), "a finished row changed"
    growth = (game.depth(after) - game.depth(state))[~state.done]
    assert (growth >= 0).all(), "depth decreased"
    if game.spec.max_plies_per_turn == 1:
        assert (growth > 0).all(), "depth did not increase"
    made = (game.ply(after) - game.ply(state))[~state.done]
    assert (made > 0).all(), "ply did not increase, but random numbers depend on it"
    assert (after.turn - state.turn <= 1).all(), "one ply ended more than one turn"
    if game.spec.goal == "outcome":
        assert (after.score.sum(1) == 0).all(), "scores of a zero-sum game do not sum to zero"


def _check_chance(game: Game[Any], rows: Tensor, afterstate: State, after: State) -> None:
    """The outcome is among the possible ones, and their probabilities sum to 1."""
    probability, outcomes = game.chance_outcomes(afterstate[rows])
    ones = torch.ones(len(rows), dtype=torch.float64)
    assert torch.allclose(probability.sum(1), ones), "chance_outcomes does not sum to 1"
    assert len(outcomes) == probability.numel(), "chance_outcomes: one state per probability"
    numbers = torch.arange(probability.numel()).view(probability.shape)
    for number, row in enumerate(rows):
        possible = outcomes[numbers[number][probability[number] > 0]]
        is_possible = any(
            are_equal(possible[i : i + 1], after[row[None]]) for i in range(len(possible))
        )
        assert is_possible, "apply_chance returned a state that is not among chance_outcomes"


def illegal_actions_change_no_shape_and_no_range(game: Game[Any]) -> None:
    """apply_action accepts every action in every position: learners value all of them at once, and
    ignore the results of illegal ones, which must be valid as numbers."""
    board = find(game, CellBoard)
    state = random_games(game, 24, Rng(9), 3)[0][-1]
    state = state if state.done.all() else state[~state.done]
    for action in range(game.spec.actions):
        after = game.apply_action(state, torch.full((len(state),), action))
        for name, column in vars(state).items():
            if isinstance(column, Tensor):
                is_same = getattr(after, name).shape == column.shape
                assert is_same, f"apply_action changes the shape of {name} after action {action}"
        if board is not None:
            cells = board.cells(after)
            is_valid = 0 <= int(cells.min()) <= int(cells.max()) < board.num_cell_values
            assert is_valid, (
                f"cells has values outside of 0 to {board.num_cell_values - 1} after the illegal "
                f"action {action}: give it the shape and the range of a legal one"
            )


def games_repeat_and_their_scores_add_up(game: Game[Any]) -> None:
    """Two batches of games with the same seed are equal; the score deltas of a seat's moves sum to
    its final score, and turns are counted."""
    (moves, final), (again, again_final) = (
        collect_games(game, [Random(game)], 50, Rng(6), batch=16) for _ in range(2)
    )
    assert torch.equal(moves.action, again.action)
    assert are_equal(final.state, again_final.state)
    total = torch.zeros_like(final.score)
    total.index_put_((moves.game, moves.seat), moves.score_delta, accumulate=True)
    has_moved = torch.zeros_like(total, dtype=torch.bool)
    has_moved[moves.game, moves.seat] = True
    assert torch.allclose(total[has_moved], final.score[has_moved])
    assert len(moves) == final.num_moves
    turns = torch.bincount(moves.game[moves.ends_turn], minlength=50)
    assert torch.equal(turns, final.turns)


def random_positions(game: Game[Any], count: int = 40, seed: int = 7) -> State:
    """Public positions spread over random games."""
    moves, _ = collect_games(game, [Random(game)], count, Rng(seed, device=game.device))
    rows = torch.linspace(0, len(moves) - 1, count, device=moves.state.done.device)
    return moves.state[rows.long()]


def rendered_positions_parse_back(game: Game[Any]) -> None:
    """A rendered position is parsed into the same position, and action names into actions. The
    boards and the cells of the actions have the size that board_format declares."""
    public, form = random_positions(game), game.board_format
    for row in range(len(public)):
        for board in game.boards(public, row):
            size = (len(board), *{len(line) for line in board})
            assert size == (form.rows, form.columns), f"a board has {size} cells, not {form}"
        cells, shape = game.action_cells(public, row), (game.spec.actions, form.rows * form.columns)
        is_sized = cells is None or cells.shape == shape
        assert is_sized, f"action_cells does not have the shape {shape}"
        text, position = render(game, public, row), public[row : row + 1]
        parsed = parse(game, text)
        message = f"another position is read from\n{text}"
        assert render(game, parsed, 0) == text, message
        for one, other in zip(visible(game, parsed), visible(game, position), strict=True):
            assert torch.equal(one, other), message
        for column in ("current_seat", "done"):
            is_same = torch.equal(getattr(parsed, column), getattr(position, column))
            assert is_same, f"another value of {column} is read from\n{text}"
        for action in game.legal_action_mask(position)[0].nonzero()[:, 0].tolist():
            name = game.action_to_string(position, 0, action)
            found = parse_action(game, position, 0, name)
            # Sets of cells that differ only in cells without effect share a name.
            is_same = found == action or game.action_to_string(position, 0, found) == name
            assert is_same, f"{name} is parsed as another action"


def invalid_moves_are_refused(game: Game[Any]) -> None:
    """parse_action raises ValueError for text that names no action."""
    public = random_positions(game, 1)
    for text in ("no such move", "", "0 0 0", "Z99", "99999999999999999999", "-1"):
        try:
            action = parse_action(game, public, 0, text)
        except ValueError:
            continue
        raise AssertionError(f"{text!r} is parsed as {game.action_to_string(public, 0, action)}")


def resampled_positions_agree_with_what_was_seen(
    game: Game[Any], positions: int = 400, seed: int = 15
) -> None:
    """resample changes no public field, and its positions can be played to the end. Played again
    from the start, the same actions make the same things visible."""
    hidden = find(game, HiddenInformation)
    if hidden is None:
        return
    public = random_positions(game)
    resampled = hidden.resample(public, Rng(8))
    assert are_equal(game.public(resampled), public)
    players, count = [Random(game)], len(resampled)
    pool = GamePool(game, players, count, Rng(14), initial_states=lambda *_: resampled)
    assert pool.run().state.done.all()
    num_contradictions, num_positions = count_contradictions(game, positions, seed)
    assert num_positions >= positions
    assert not num_contradictions, (
        f"{num_contradictions} of {num_positions} resampled positions contradict what was seen"
    )


def count_contradictions(game: Game[Any], positions: int, seed: int) -> tuple[int, int]:
    """How many resampled positions of random games contradict the visible history, and of how many.

    Each live position is resampled once. Its world is played from the start with the same actions.
    After each of them, what became visible must be the same; and whenever the seat to move is that
    of the resampled position, so must be its observation and its legal actions.
    """
    hidden = require(game, HiddenInformation, "this check")
    num_contradictions = num_positions = num_batches = 0
    while num_positions < positions:
        rng, num_batches = Rng(seed, f"batch {num_batches}"), num_batches + 1
        states, actions = random_games(game, HISTORY_BATCH, rng, game.spec.max_plies)
        for ply, state in enumerate(states[:-1]):
            rows = (~state.done).nonzero()[:, 0]
            world = hidden.resample(game.public(state[rows]), rng.fold_in(-ply)[rows])
            contradicts = torch.zeros(len(rows), dtype=torch.bool)
            replayed = hidden.rewind(world)
            for earlier in range(ply + 1):
                recorded = states[earlier][rows]
                is_seen = recorded.current_seat == world.current_seat
                for one, other in zip(
                    visible(game, replayed), visible(game, recorded), strict=True
                ):
                    contradicts |= is_seen & (one != other).flatten(1).any(1)
                if earlier < ply:
                    action, following = actions[earlier][rows], states[earlier + 1][rows]
                    after = game.step(replayed, action, rng[rows].fold_in(earlier))
                    outcomes = (
                        hidden.outcome(before, action, next_state)
                        for before, next_state in ((replayed, after), (recorded, following))
                    )
                    contradicts |= torch.ne(*outcomes)
                    replayed = after
            num_contradictions += int(contradicts.sum())
            num_positions += len(rows)
    return num_contradictions, num_positions


def hidden_fields_are_declared(game: Game[Any]) -> None:
    """public hides fields if and only if spec.hidden is set."""
    public = game.public(game.initial(2, Rng()))
    hidden = [f.name for f in fields(type(public)) if getattr(public, f.name) is HIDDEN]
    assert bool(hidden) == game.spec.hidden, f"{game.spec.hidden=}, and public hides {hidden}"


def hidden_hits_never_change(game: Game[Any]) -> None:
    """hidden_hits stays the same throughout a game, and refuses public positions."""
    revealing = find(game, HiddenHits)
    if revealing is None:
        return
    start = game.initial(20, Rng(12))
    hits = revealing.hidden_hits(start)
    assert hits.shape == (20, game.spec.seats, game.spec.actions)
    assert hits.dtype == torch.bool
    final = GamePool(game, [Random(game)], 20, Rng(13), initial_states=lambda *_: start).run()
    assert torch.equal(revealing.hidden_hits(final.state), hits)
    try:
        revealing.hidden_hits(game.public(start))
    except PermissionError:
        return
    raise AssertionError("hidden_hits accepts a public position")


def keys_identify_positions(game: Game[Any]) -> None:
    """state_from_key inverts key, and different positions have different keys."""
    keys = find(game, InvertibleKey)
    if keys is None or game.spec.hidden:
        return
    public = random_positions(game)
    restored = keys.state_from_key(keys.key(public))
    for function in (keys.key, game.observe, game.legal_action_mask, game.depth):
        assert torch.equal(function(restored), function(public)), f"{function.__name__} differs"
    assert torch.equal(restored.current_seat, public.current_seat)
    observations = game.observe(public).flatten(1).unique(dim=0)
    assert len(observations) <= len(keys.key(public).unique())


def symmetries_leave_the_rules_unchanged(game: Game[Any]) -> None:
    """Transformed actions lead to transformed positions, from starts that a symmetry maps to
    themselves."""
    if find(game, Symmetric) is None or game.spec.hidden or game.spec.num_chance_inputs:
        return
    symmetries, start = Symmetries(game, "cpu"), game.initial(1, Rng(17))
    state = start[torch.zeros(symmetries.count, dtype=torch.int64)]
    every = torch.arange(symmetries.count)
    seen = game.observe(state)
    symmetry = every[(symmetries.transform_planes(seen, every) == seen).flatten(1).all(1)]
    symmetry, plies = symmetry.repeat_interleave(10), 0
    state = twin = state[symmetry]
    while not bool(state.done.all()):
        u, plies = Rng(18).fold_in(plies).uniform(len(state)), plies + 1
        action = game.sample_legal_action(state, u)
        state = game.apply_action(state, action)
        twin = game.apply_action(twin, symmetries.transform_action(action, symmetry))
        transforms = symmetries.transform_planes, symmetries.transform_action_values
        pairs = zip(visible(game, state), visible(game, twin), transforms, strict=True)
        for one, other, transform in pairs:
            assert torch.equal(transform(one, symmetry), other), (
                "a transformed game is another one; see symmetries and action_symmetries"
            )


def openings_match_initial_positions(game: Game[Any]) -> None:
    """openings lists every initial position, with how often initial samples it."""
    openings = game.openings(100_000)
    if openings is None:
        return
    states, probability = openings
    assert len(states) == len(probability)
    assert (probability > 0).all()
    assert abs(float(probability.sum()) - 1) < 1e-6
    if not 2 <= len(states) <= MAX_SAMPLED_OPENINGS:
        return
    # Ships that touch can look alike in several layouts.
    texts = [render(game, states, row, reveal=True) for row in range(len(states))]
    index = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    kinds = torch.tensor([index[text] for text in texts])
    probability = torch.zeros(len(index), dtype=torch.float64).index_add_(0, kinds, probability)
    count = 40 * len(states)
    sampled = game.initial(count, Rng(11))
    rows = [index[render(game, sampled, row, reveal=True)] for row in range(count)]
    _check_frequencies(torch.tensor(rows), probability)


def chance_follows_its_probabilities(game: Game[Any]) -> None:
    """step and apply_chance return the outcomes of a position as often as chance_outcomes
    declares."""
    chance = find(game, Chance)
    if chance is None:
        return
    state = game.initial(1, Rng(9))
    action = game.sample_legal_action(state, torch.zeros(1))
    afterstate = game.apply_action(state, action)
    probability, outcomes = chance.chance_outcomes(afterstate)
    possible = (probability[0] > 0).nonzero()[:, 0]
    keys, order = _hashes(outcomes[possible]).sort()
    assert len(keys.unique()) == len(keys), "two outcomes of chance are the same position"
    count = 200_000
    rng, repeated = Rng(10), torch.zeros(count, dtype=torch.int64)
    u = rng.uniform(count, game.spec.num_chance_inputs)
    applied = chance.apply_chance(afterstate[repeated], u)
    for sampled in (applied, game.step(state[repeated], action[repeated], rng)):
        rows = torch.searchsorted(keys, _hashes(sampled))
        _check_frequencies(rows, probability[0][possible][order])


def _hashes(state: State) -> Tensor:
    """Int64 [B]: a hash of all fields of each position."""
    content = state.content()
    return (content * (2 * Rng(16).integers(1 << 32, content.shape[1]) + 1)).sum(1)


def _check_frequencies(rows: Tensor, probability: Tensor) -> None:
    """Whether samples, int64 [N], follow a distribution, float64 [K]: chi-square lies within five
    standard deviations of its mean."""
    expected = probability * len(rows)
    observed = torch.bincount(rows, minlength=len(probability))
    assert len(observed) == len(probability), "an impossible outcome was sampled"
    chi_square = float(((observed - expected) ** 2 / expected).sum())
    degrees = len(probability) - 1
    assert abs(chi_square - degrees) <= 5 * (2 * degrees) ** 0.5, (
        f"chi-square is {chi_square:.1f} with {degrees} degrees of freedom"
    )


CHECKS = (
    check_declared,
    every_ply_follows_the_contract,
    illegal_actions_change_no_shape_and_no_range,
    games_repeat_and_their_scores_add_up,
    rendered_positions_parse_back,
    invalid_moves_are_refused,
    resampled_positions_agree_with_what_was_seen,
    hidden_fields_are_declared,
    hidden_hits_never_change,
    keys_identify_positions,
    symmetries_leave_the_rules_unchanged,
    openings_match_initial_positions,
    chance_follows_its_probabilities,
)
