"""What every registered game must do, whatever its rules; no game is named here."""

from dataclasses import fields
from functools import cache
from typing import get_origin, get_type_hints

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rlgames import build, config, schemas
from rlgames.config import ConfigError
from rlgames.games.game import HIDDEN, Game
from rlgames.play import play
from rlgames.players.player import Random

NAMES = config.options("game")
MOST_PLIES = 300
"""Games whose rules allow many more are followed so far only."""


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@cache
def built(*words):
    return build.build_game(config.load("solve", list(words)))


def every_game():
    """Each game as its file has it, and as the experiments do; the same rules once."""
    seen = []
    for name in NAMES:
        seen.append(config.load("solve", [f"game={name}"]).game)
        yield pytest.param([f"game={name}"], id=name)
    for name in config.options("experiment"):
        game = config.load("train", [f"experiment={name}"]).game
        if game in seen:
            continue
        seen.append(game)
        rules = build.arguments(game).items()
        words = [f"game={game.name}", *(f"{key}={config.json_text(v)}" for key, v in rules)]
        yield pytest.param(words, id=f"experiment {name}")


@st.composite
def some_rules(draw, name):
    """Rules of a game drawn from its schema: small numbers, any choice."""
    words = [f"game={name}"]
    for item in fields(schemas.SCHEMAS["game"][name]):
        if item.name == "name":
            continue
        kind = get_type_hints(schemas.SCHEMAS["game"][name])[item.name]
        low, choices = item.metadata["low"], item.metadata["of"]
        if get_origin(kind) is list:
            inner = st.sampled_from(choices) if choices else st.integers(int(low), int(low) + 3)
            value = draw(
                st.lists(inner, min_size=0 if choices else 1, max_size=3, unique=bool(choices))
            )
            text = "[" + ",".join(map(str, value)) + "]"
        elif choices:
            text = draw(st.sampled_from(choices))
        elif kind is float:
            text = draw(st.sampled_from(["0.0", "0.1", "0.5", "1.0"]))
        else:
            assert kind is int
            value = draw(st.integers(int(low), min(int(low) + 5, int(item.metadata["high"]))))
            text = str(value if low < 4 else 1 << value)
        words.append(f"{item.name}={text}")
    return words


def same(left, right):
    pairs = [(getattr(left, f.name), getattr(right, f.name)) for f in fields(type(left))]
    return all(a is b if a is HIDDEN or b is HIDDEN else torch.equal(a, b) for a, b in pairs)


def seen(game, state):
    """All that a mover may know of each position."""
    return [game.observe(state), game.legal(state)]


class Walk:
    """Random games with everything checked that can be at each ply."""

    def __init__(self, game: Game, batch: int, seed: int):
        self.game, self.batch = game, batch
        self.random = rng(seed)
        self.state = game.initial(batch, self.random)
        self.order = torch.randperm(batch, generator=self.random)
        self.other = self.state[self.order]
        self.plies = 0

    def step(self):
        game, state, spec = self.game, self.state, self.game.spec
        legal, observation = game.legal(state), game.observe(state)
        live = ~state.done
        assert legal.shape == (self.batch, spec.actions)
        assert legal.dtype == torch.bool
        assert legal.any(1).all()
        assert legal[state.done].all()
        assert observation.shape == (self.batch, *spec.observation)
        assert observation.dtype == torch.float32
        low, high = spec.observed
        assert ((observation >= low) & (observation <= high)).all()
        assert state.score.shape == (self.batch, spec.seats)
        assert ((state.mover >= 0) & (state.mover < spec.seats)).all()
        # Nothing that a mover sees depends on what is hidden, or on the other rows.
        public = game.public(state)
        for mine, shown in zip(seen(game, state), seen(game, public), strict=True):
            assert torch.equal(mine, shown)
        for mine, theirs in zip(seen(game, state), seen(game, self.other), strict=True):
            assert torch.equal(mine[self.order], theirs)
        assert torch.equal(game.observe(state[:1]), observation[:1])
        u = torch.rand(self.batch, generator=self.random)
        action = game.pick(public, u)
        assert legal.gather(1, action[:, None]).all()
        kept = state[torch.arange(self.batch)]
        slid = game.act(state, action)
        assert same(kept, state), "act changed its argument"
        chance = torch.rand(self.batch, spec.draws, generator=self.random)
        after = game.settle(slid, chance)
        assert same(after[state.done], state[state.done]), "a finished row changed"
        moved = live.nonzero()[:, 0]
        assert (game.rank(after) >= game.rank(state))[moved].all()
        if spec.turn_plies == 1:
            assert (game.rank(after) > game.rank(state))[moved].all()
        assert (after.turn - state.turn <= 1).all()
        if spec.zero_sum:
            assert (after.score.sum(1) == 0).all()
        self._chances(slid, after, live)
        if spec.keyed:
            keys = game.key(state)
            assert torch.equal(keys, game.key(public))
        self.other = game.settle(game.act(self.other, action[self.order]), chance[self.order])
        assert same(self.other, after[self.order]), "rows touch each other"
        self.state = after
        self.plies += 1

    def _chances(self, slid, after, live):
        """The outcome that came is among those that can, and their probabilities add up to 1."""
        game = self.game
        rows = live.nonzero()[:3, 0]
        if not len(rows):
            return
        probability, outcomes = game.chances(slid[rows])
        assert torch.allclose(probability.sum(1), torch.ones(len(rows), dtype=torch.float64))
        assert len(outcomes) == probability.numel()
        ways = probability.shape[1]
        for place, row in enumerate(rows.tolist()):
            part = slice(place * ways, (place + 1) * ways)
            candidates = outcomes[part][probability[place] > 0]
            assert any(
                same(candidates[i : i + 1], after[row : row + 1]) for i in range(len(candidates))
            )


def follow(words, batch=24, seed=1):
    game = built(*words)
    walk = Walk(game, batch, seed)
    while not walk.state.done.all() and walk.plies < min(game.spec.longest, MOST_PLIES):
        walk.step()
    if game.spec.longest < MOST_PLIES:
        assert walk.state.done.all(), "a game outlasted the longest that is declared"
    return walk


@pytest.mark.parametrize("words", list(every_game()))
def test_games_follow_their_contract(words):
    follow(words)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_rules_follow_the_contract_or_are_refused(name, data):
    words = data.draw(some_rules(name))
    try:
        built(*words)
    except ConfigError:
        assume(False)
    follow(words, batch=6, seed=data.draw(st.integers(0, 1000)))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_games(name):
    game = built(f"game={name}")
    (one, first), (other, second) = (play(game, [Random(game)], 20, rng(5)) for _ in range(2))
    assert torch.equal(one.action, other.action)
    assert same(first.state, second.state)
    assert torch.equal(first.score, second.score)


@pytest.mark.parametrize("name", NAMES)
def test_gains_add_up_to_the_final_scores(name):
    game = built(f"game={name}")
    moves, results = play(game, [Random(game)], 50, rng(6), batch=16)
    total = torch.zeros_like(results.score)
    total.index_put_((moves.game, moves.seat), moves.gain, accumulate=True)
    assert torch.allclose(total, results.score)
    assert len(moves) == results.moves
    turns = torch.bincount(moves.game[moves.ends_turn], minlength=50)
    assert torch.equal(turns, results.turns)


def positions(game, count=40, seed=7):
    """Positions from all through random games, and what is seen of them."""
    moves, results = play(game, [Random(game)], count, rng(seed))
    rows = torch.linspace(0, len(moves) - 1, count).long()
    return moves.state[rows], results


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_tells_the_position(name):
    game = built(f"game={name}")
    public, _ = positions(game)
    for row in range(len(public)):
        text = game.render(public, row)
        found = game.parse(text)
        assert game.render(found, 0) == text
        part = public[row : row + 1]
        for one, other in zip(seen(game, found), seen(game, part), strict=True):
            assert torch.equal(one, other)
        assert torch.equal(found.mover, part.mover)
        assert torch.equal(found.done, part.done)
        for action in game.legal(part)[0].nonzero()[:, 0].tolist():
            assert game.parse_action(part, 0, game.name_action(part, 0, action)) in (
                action,
                *same_moves(game, part, action),
            )


@pytest.mark.parametrize("name", NAMES)
def test_other_moves_are_refused(name):
    game = built(f"game={name}")
    public, _ = positions(game, 1)
    for text in ("no such move", "", "0 0 0", "Z99", "99999999999999999999", "-1"):
        with pytest.raises(ValueError, match="is not a move here"):
            game.parse_action(public, 0, text)


def same_moves(game, part, action):
    """Actions that a person writes alike: sets of cells that differ where nothing is left to do."""
    name = game.name_action(part, 0, action)
    legal = game.legal(part)[0].nonzero()[:, 0].tolist()
    return [other for other in legal if game.name_action(part, 0, other) == name]


@pytest.mark.parametrize("name", NAMES)
@given(text=st.text(alphabet=" .oxXOab+#|123ABC,:\n-", max_size=80))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_other_texts_are_refused(name, text):
    game = built(f"game={name}")
    try:
        found = game.parse(text)
    except ValueError:
        found = None
    if found is not None:
        assert game.render(game.parse(game.render(found, 0)), 0) == game.render(found, 0)


@pytest.mark.parametrize("name", NAMES)
def test_resampling_changes_nothing_that_is_seen(name):
    game = built(f"game={name}")
    if not game.spec.hidden:
        return
    public, _ = positions(game)
    public = public[~public.done]
    drawn = game.resample(public, rng(8))
    assert same(game.public(drawn), public)
    for one, other in zip(seen(game, drawn), seen(game, public), strict=True):
        assert torch.equal(one, other)
    # What is drawn plays on to an end like any other truth.
    state = drawn
    for _ in range(game.spec.longest):
        state = game.act(state, game.pick(game.public(state), torch.rand(len(state))))
    assert state.done.all()


@pytest.mark.parametrize("name", NAMES)
def test_the_hidden_truth_is_out_of_reach(name):
    game = built(f"game={name}")
    public = game.public(game.initial(2, rng()))
    hidden = [f.name for f in fields(type(public)) if getattr(public, f.name) is HIDDEN]
    assert bool(hidden) == game.spec.hidden
    for name_ in hidden:
        with pytest.raises(PermissionError):
            getattr(public, name_) + 1
        with pytest.raises(PermissionError):
            torch.zeros(2) + getattr(public, name_)


@pytest.mark.parametrize("words", list(every_game()))
def test_what_is_revealed_is_the_same_through_a_game(words):
    game = built(*words)
    start = game.initial(20, rng(12))
    try:
        truth = game.revealed(start)
    except NotImplementedError:
        return
    assert truth.shape == (20, game.spec.seats, game.spec.actions)
    assert truth.dtype == torch.bool
    _, results = play(game, [Random(game)], 20, rng(13), start=lambda first, count: start)
    assert torch.equal(game.revealed(results.state), truth)
    with pytest.raises(PermissionError):
        game.revealed(game.public(start))


@pytest.mark.parametrize("name", NAMES)
def test_keys_lead_back_to_positions(name):
    game = built(f"game={name}")
    if not game.spec.keyed or game.spec.hidden:
        return
    public, _ = positions(game)
    found = game.unkey(game.key(public))
    assert torch.equal(game.key(found), game.key(public))
    assert torch.equal(game.observe(found), game.observe(public))
    assert torch.equal(game.legal(found), game.legal(public))
    assert torch.equal(game.rank(found), game.rank(public))
    assert torch.equal(found.mover, public.mover)
    different = game.observe(public).flatten(1).unique(dim=0)
    assert len(different) <= len(game.key(public).unique())


@pytest.mark.parametrize("name", NAMES)
def test_openings_have_the_prior_probability(name):
    game = built(f"game={name}")
    found = game.openings(100_000)
    if found is None:
        return
    states, probability = found
    assert float(probability.sum()) == pytest.approx(1)
    assert (probability > 0).all()
    assert len(states) == len(probability)


@pytest.mark.parametrize("name", NAMES)
def test_the_dice_fall_as_often_as_they_should(name):
    """What settle makes of one position, many times, against the probabilities of chances."""
    game = built(f"game={name}")
    if not game.spec.draws:
        return
    state = game.initial(1, rng(9))
    slid = game.act(state, game.pick(state, torch.zeros(1)))
    probability, outcomes = game.chances(slid)
    possible = (probability[0] > 0).nonzero()[:, 0]
    keys, order = game.key(outcomes[possible]).sort()
    expected = probability[0][possible][order]
    assert len(keys.unique()) == len(keys)
    count = 200_000
    settled = game.settle(
        slid[torch.zeros(count, dtype=torch.int64)],
        torch.rand(count, game.spec.draws, generator=rng(10)),
    )
    seen = torch.bincount(torch.searchsorted(keys, game.key(settled)), minlength=len(keys))
    mean = expected * count
    chi_square = float(((seen - mean) ** 2 / mean).sum())
    freedom = len(keys) - 1
    assert abs(chi_square - freedom) < 5 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("name", NAMES)
def test_games_begin_as_often_in_each_way_as_they_should(name):
    game = built(f"game={name}")
    found = game.openings(2000)
    if found is None or len(found[0]) < 2:
        return
    states, probability = found
    places = {game.render(states, row, reveal=True): row for row in range(len(states))}
    assert len(places) == len(states)
    count = 40 * len(states)
    drawn = game.initial(count, rng(11))
    seen = torch.zeros(len(states))
    for row in range(count):
        seen[places[game.render(drawn, row, reveal=True)]] += 1
    mean = probability * count
    chi_square = float(((seen - mean) ** 2 / mean).sum())
    freedom = len(states) - 1
    assert abs(chi_square - freedom) < 5 * (2 * freedom) ** 0.5


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", NAMES)
def test_games_run_on_a_gpu(name):
    game = built(f"game={name}").to("cuda")
    generator = torch.Generator("cuda").manual_seed(0)
    _, results = play(game, [Random(game)], 50, generator)
    assert results.state.done.all()
