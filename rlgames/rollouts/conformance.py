"""What every game must do, whatever its rules: `check(game)` for one of your own.

Random games are followed ply by ply; draws are counted where theory says how often they come.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from rlgames.games.game import HIDDEN, Game, State
from rlgames.players.player import Random
from rlgames.rollouts.play import collect_games, play_games

MOST_PLIES = 300
"""Games whose rules allow many more are followed so far only."""


def check(game: Game[Any]) -> None:
    """Raises AssertionError, or what the game itself raises, with a note on what was checked."""
    for each in CHECKS:
        try:
            each(game)
        except Exception as error:
            error.add_note(f"{each.__name__}: {each.__doc__}")
            raise


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def same(left: State, right: State) -> bool:
    """Whether all fields of two batches of positions agree."""
    pairs = [(getattr(left, f.name), getattr(right, f.name)) for f in fields(type(left))]
    return all(a is b if a is HIDDEN or b is HIDDEN else torch.equal(a, b) for a, b in pairs)


def seen(game: Game[Any], state: State) -> list[Tensor]:
    """All that a mover may know of each position."""
    return [game.observe(state), game.legal_action_mask(state)]


class Walk:
    """Random games with everything checked that can be at each ply."""

    def __init__(self, game: Game[Any], batch: int, seed: int) -> None:
        self.game, self.batch = game, batch
        self.random = rng(seed)
        self.state = game.initial(batch, self.random)
        assert not self.state.done.any(), "a game was over before its first move"
        self.order = torch.randperm(batch, generator=self.random)
        self.other = self.state[self.order]
        self.plies = 0

    def step(self) -> None:
        game, state, spec = self.game, self.state, self.game.spec
        self._shapes()
        self._sights()
        u = torch.rand(self.batch, generator=self.random)
        action = game.sample_legal_action(game.public(state), u)
        assert game.legal_action_mask(state).gather(1, action[:, None]).all(), (
            "pick took what is not legal"
        )
        kept = state[torch.arange(self.batch)]
        slid = game.apply_action(state, action)
        assert same(kept, state), "act changed its argument"
        chance = torch.rand(self.batch, spec.num_chance_inputs, generator=self.random)
        after = game.apply_chance(slid, chance)
        assert same(after[state.done], state[state.done]), "a finished row changed"
        moved = (~state.done).nonzero()[:, 0]
        assert (game.depth(after) >= game.depth(state))[moved].all(), "rank fell"
        if spec.max_plies_per_turn == 1:
            assert (game.depth(after) > game.depth(state))[moved].all(), "rank did not grow"
        assert (after.turn - state.turn <= 1).all(), "a ply ended more than one turn"
        if spec.zero_sum:
            assert (after.score.sum(1) == 0).all(), "scores do not add up to nothing"
        self._chances(slid, after, ~state.done)
        if spec.has_exact_key:
            same_key = torch.equal(game.key(state), game.key(game.public(state)))
            assert same_key, "key looks at what is hidden"
        self.other = game.apply_chance(
            game.apply_action(self.other, action[self.order]), chance[self.order]
        )
        assert same(self.other, after[self.order]), "rows touch each other"
        self.state = after
        self.plies += 1

    def _shapes(self) -> None:
        game, state, spec = self.game, self.state, self.game.spec
        legal, observation = game.legal_action_mask(state), game.observe(state)
        assert legal.shape == (self.batch, spec.actions), f"legal has shape {legal.shape}"
        assert legal.dtype == torch.bool, f"legal is {legal.dtype}"
        assert legal.any(1).all(), "nothing is legal"
        assert legal[state.done].all(), "not everything is legal in a finished row"
        shape = (self.batch, *spec.observation)
        assert observation.shape == shape, f"an observation has shape {observation.shape}"
        assert observation.dtype == torch.float32, f"an observation is {observation.dtype}"
        low, high = spec.observation_range
        within = (observation >= low) & (observation <= high)
        assert within.all(), f"an observation goes beyond Spec.observed={spec.observation_range}"
        assert state.score.shape == (self.batch, spec.seats), f"score has shape {state.score.shape}"
        assert ((state.current_seat >= 0) & (state.current_seat < spec.seats)).all(), (
            "nobody is to move"
        )

    def _sights(self) -> None:
        """Nothing that a mover sees depends on what is hidden, or on the other rows."""
        game, state = self.game, self.state
        public = game.public(state)
        for mine, shown in zip(seen(game, state), seen(game, public), strict=True):
            assert torch.equal(mine, shown), "what is seen depends on what is hidden"
        for mine, theirs in zip(seen(game, state), seen(game, self.other), strict=True):
            assert torch.equal(mine[self.order], theirs), "what is seen depends on other rows"
        assert torch.equal(game.observe(state[:1]), game.observe(state)[:1]), (
            "rows touch each other"
        )

    def _chances(self, slid: State, after: State, live: Tensor) -> None:
        """The outcome that came is among those that can, and their probabilities add up to 1."""
        game = self.game
        rows = live.nonzero()[:3, 0]
        if not len(rows):
            return
        probability, outcomes = game.chance_outcomes(slid[rows])
        one = torch.ones(len(rows), dtype=torch.float64)
        assert torch.allclose(probability.sum(1), one), "chances do not add up to 1"
        assert len(outcomes) == probability.numel(), "chances are not as many as their positions"
        ways = probability.shape[1]
        for place, row in enumerate(rows.tolist()):
            part = slice(place * ways, (place + 1) * ways)
            candidates = outcomes[part][probability[place] > 0]
            assert any(
                same(candidates[i : i + 1], after[row : row + 1]) for i in range(len(candidates))
            ), "settle made what is not among chances"


def follows_its_contract(game: Game[Any], batch: int = 24, seed: int = 1) -> None:
    """Shapes, ranges, legal moves, independence of rows and of what is hidden, at every ply."""
    walk = Walk(game, batch, seed)
    while not walk.state.done.all() and walk.plies < min(game.spec.max_plies, MOST_PLIES):
        walk.step()
    if game.spec.max_plies < MOST_PLIES:
        assert walk.state.done.all(), "a game outlasted the longest that is declared"


def repeats_itself(game: Game[Any]) -> None:
    """The same seed gives the same games."""
    (one, first), (other, second) = (
        collect_games(game, [Random(game)], 20, rng(5)) for _ in range(2)
    )
    assert torch.equal(one.action, other.action)
    assert same(first.state, second.state)


def adds_up_gains(game: Game[Any]) -> None:
    """What a seat's moves gain adds up to its final score, and turns are counted."""
    moves, results = collect_games(game, [Random(game)], 50, rng(6), batch=16)
    total = torch.zeros_like(results.score)
    total.index_put_((moves.game, moves.seat), moves.score_delta, accumulate=True)
    moved = torch.zeros_like(total, dtype=torch.bool)
    moved[moves.game, moves.seat] = True
    assert torch.allclose(total[moved], results.score[moved])
    assert len(moves) == results.moves
    turns = torch.bincount(moves.game[moves.ends_turn], minlength=50)
    assert torch.equal(turns, results.turns)


def positions(game: Game[Any], count: int = 40, seed: int = 7) -> State:
    """Public positions from all through random games."""
    moves, _ = collect_games(game, [Random(game)], count, rng(seed))
    return moves.state[torch.linspace(0, len(moves) - 1, count).long()]


def reads_its_drawings(game: Game[Any]) -> None:
    """A drawing is read back into the same position, and moves from their names."""
    public = positions(game)
    form = game.board_format
    for row in range(len(public)):
        for board in game.boards(public, row):
            size = (len(board), *{len(line) for line in board})
            assert size == (form.rows, form.columns), f"boards have {size} cells, not as in form"
        aims = game.action_cells(public, row)
        if aims is not None:
            wanted = (game.spec.actions, form.rows * form.columns)
            assert aims.shape == wanted, f"aims are {tuple(aims.shape)} rather than {wanted}"
        text = game.render(public, row)
        found = game.parse(text)
        assert game.render(found, 0) == text, f"another position is read from\n{text}"
        part = public[row : row + 1]
        for one, other in zip(seen(game, found), seen(game, part), strict=True):
            assert torch.equal(one, other), f"another position is read from\n{text}"
        assert torch.equal(found.current_seat, part.current_seat), (
            f"another mover is read from\n{text}"
        )
        assert torch.equal(found.done, part.done), f"another end is read from\n{text}"
        for action in game.legal_action_mask(part)[0].nonzero()[:, 0].tolist():
            name = game.action_to_string(part, 0, action)
            read = game.parse_action(part, 0, name)
            # Sets of cells that differ where nothing is left to do are written alike.
            alike = read == action or game.action_to_string(part, 0, read) == name
            assert alike, f"{name} is read as another move"


def refuses_other_moves(game: Game[Any]) -> None:
    """What names no move is refused with ValueError."""
    public = positions(game, 1)
    for text in ("no such move", "", "0 0 0", "Z99", "99999999999999999999", "-1"):
        try:
            read = game.parse_action(public, 0, text)
        except ValueError:
            continue
        raise AssertionError(f"{text!r} is taken for {game.action_to_string(public, 0, read)}")


def resamples_what_is_hidden(game: Game[Any]) -> None:
    """Resampling changes nothing that is seen, and what it draws plays on to an end."""
    if not game.spec.hidden:
        return
    public = positions(game)
    public = public[~public.done]
    drawn = game.resample(public, rng(8))
    assert same(game.public(drawn), public)
    for one, other in zip(seen(game, drawn), seen(game, public), strict=True):
        assert torch.equal(one, other)
    state, random = drawn, rng(14)
    for _ in range(game.spec.max_plies):
        u = torch.rand(len(state), generator=random)
        state = game.step(state, game.sample_legal_action(game.public(state), u), random)
    assert state.done.all()


def hides_the_truth(game: Game[Any]) -> None:
    """A game has hidden fields where it says so, and none of them can be used."""
    public = game.public(game.initial(2, rng()))
    hidden = [f.name for f in fields(type(public)) if getattr(public, f.name) is HIDDEN]
    assert bool(hidden) == game.spec.hidden, f"Spec.hidden={game.spec.hidden}, and {hidden} are"


def reveals_the_same(game: Game[Any]) -> None:
    """What is revealed is the same through a game, and not of public positions."""
    start = game.initial(20, rng(12))
    try:
        truth = game.hidden_hits(start)
    except NotImplementedError:
        return
    assert truth.shape == (20, game.spec.seats, game.spec.actions)
    assert truth.dtype == torch.bool
    results = play_games(game, [Random(game)], 20, rng(13), initial_states=lambda *_: start)
    assert torch.equal(game.hidden_hits(results.state), truth)
    try:
        game.hidden_hits(game.public(start))
    except PermissionError:
        return
    raise AssertionError("revealed told of a public position")


def has_exact_keys(game: Game[Any]) -> None:
    """Keys lead back to positions, and different positions have different keys."""
    if not game.spec.has_exact_key or game.spec.hidden:
        return
    public = positions(game)
    found = game.state_from_key(game.key(public))
    for told in (game.key, game.observe, game.legal_action_mask, game.depth):
        assert torch.equal(told(found), told(public)), f"{told.__name__} differs"
    assert torch.equal(found.current_seat, public.current_seat)
    different = game.observe(public).flatten(1).unique(dim=0)
    assert len(different) <= len(game.key(public).unique())


def lists_its_openings(game: Game[Any]) -> None:
    """Openings are all ways to begin, which come as often as they should."""
    found = game.openings(100_000)
    if found is None:
        return
    states, probability = found
    assert len(states) == len(probability)
    assert (probability > 0).all()
    assert abs(float(probability.sum()) - 1) < 1e-6
    if not 2 <= len(states) <= 2000:
        return
    places = {game.render(states, row, reveal=True): row for row in range(len(states))}
    assert len(places) == len(states), "two openings look alike"
    count = 40 * len(states)
    drawn = game.initial(count, rng(11))
    rows = [places[game.render(drawn, row, reveal=True)] for row in range(count)]
    _as_often(torch.tensor(rows), probability)


def rolls_fair_dice(game: Game[Any]) -> None:
    """What settle makes of one position, many times, comes as often as chances says."""
    if not game.spec.num_chance_inputs:
        return
    state = game.initial(1, rng(9))
    slid = game.apply_action(state, game.sample_legal_action(state, torch.zeros(1)))
    probability, outcomes = game.chance_outcomes(slid)
    possible = (probability[0] > 0).nonzero()[:, 0]
    keys, order = game.key(outcomes[possible]).sort()
    assert len(keys.unique()) == len(keys), "two outcomes of chance are the same"
    count = 200_000
    u = torch.rand(count, game.spec.num_chance_inputs, generator=rng(10))
    settled = game.apply_chance(slid[torch.zeros(count, dtype=torch.int64)], u)
    _as_often(torch.searchsorted(keys, game.key(settled)), probability[0][possible][order])


def _as_often(rows: Tensor, probability: Tensor) -> None:
    """Whether what was drawn, int64 [D], comes as often as probability, float64 [K], says: within
    five standard deviations of chi-square."""
    mean = probability * len(rows)
    drawn = torch.bincount(rows, minlength=len(probability))
    assert len(drawn) == len(probability), "something was drawn that cannot be"
    chi_square, freedom = float(((drawn - mean) ** 2 / mean).sum()), len(probability) - 1
    assert abs(chi_square - freedom) <= 5 * (2 * freedom) ** 0.5, (
        f"chi-square is {chi_square:.1f} with {freedom} degrees of freedom"
    )


CHECKS = (
    follows_its_contract,
    repeats_itself,
    adds_up_gains,
    reads_its_drawings,
    refuses_other_moves,
    resamples_what_is_hidden,
    hides_the_truth,
    reveals_the_same,
    has_exact_keys,
    lists_its_openings,
    rolls_fair_dice,
)
