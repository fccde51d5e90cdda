"""density_rollout: exact values over all layouts that agree, never worse than density."""

import pytest
from helpers import made, mean_turns, rng
from markers import quick

from rlgames.games.battleship import Battleship
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.salvo_duel import SalvoDuel
from rlgames.sampling import sample_uniform

GAMES = {
    "line": Battleship(1, 9, [2, 3, 2], 1),
    "board": Battleship(4, 4, [3, 2], 1),
    "sunk": Battleship(1, 9, [2, 3, 2], 1, show=["sunk"]),
    "sunk_board": Battleship(4, 4, [2, 2], 1, show=["sunk"]),
    "salvo": Battleship(4, 4, [3, 2], 2),
    "sequential": Battleship(4, 4, [3, 2], 2, aim="sequential"),
    "sunk_salvo": Battleship(1, 10, [2, 3, 2], 3, show=["sunk"]),
}
ONE_SHOT = ("line", "board", "sunk", "sunk_board")
STEPS = 10**6


def random_positions(game, plies, batch=12):
    state = game.initial(batch, rng(plies))
    for _ in range(plies):
        state = game.step(state, sample_uniform(game.legal_action_mask(state), rng(1)), rng())
    return state[(~state.done).nonzero()[:, 0]]


@pytest.mark.parametrize("name", quick(ONE_SHOT, *ONE_SHOT[:3]))
def test_turns_are_those_of_rollouts_over_all_layouts(name):
    """Against search=rollout around density, which plays every layout to the end."""
    game = GAMES[name]
    rollouts = made("search", "rollout", game, made("player", "density", game, samples=1, steps=0))
    player = made("player", "density_rollout", game, samples=1, steps=STEPS, next_cells=100)
    for plies in (0, 2, 4):
        state = game.public(random_positions(game, plies))
        q = rollouts.search(state, rng()).q  # 0.999 for the best, also where several are
        seen = game.seen(state)
        for row in range(len(state)):
            turn = player._best_turn(seen[row : row + 1])
            assert turn.sum() == 1
            assert float(q[row, turn.argmax()]) == pytest.approx(float(q[row].max()), abs=1e-6)


@pytest.mark.parametrize("name", GAMES)
def test_it_needs_at_most_as_many_turns_as_density(name):
    game = GAMES[name]
    density = mean_turns(game, made("player", "density", game, samples=1, steps=0))
    ahead = mean_turns(
        game, made("player", "density_rollout", game, samples=1, steps=STEPS, miss_weight=0)
    )
    assert ahead <= density + 1e-9
    never = mean_turns(
        game,
        made("player", "density_rollout", game, samples=1, steps=STEPS, miss_weight=0, layouts=1),
    )
    assert never == pytest.approx(density)


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (SalvoDuel(4, 4, [2]), "plays battleship and salvo"),
        (KInARow(3, 3, 3, gravity=False), "plays battleship and salvo"),
        (Battleship(12, 12, [3], 1), "at most 128 cells"),
    ],
)
def test_other_games_are_refused(game, message):
    with pytest.raises(ValueError, match=message):
        made("player", "density_rollout", game, samples=60, steps=STEPS)


def test_keys_without_effect_are_refused():
    with pytest.raises(ValueError, match="has to count layouts"):
        made("player", "density_rollout", GAMES["board"], samples=60, steps=0)
    board, duel = GAMES["board"], SalvoDuel(4, 4, [2])
    for name, game in (("density", board), ("density", duel), ("density_rollout", board)):
        with pytest.raises(ValueError, match="spreads the shots"):
            made("player", name, game, samples=60, steps=STEPS, miss_weight=0.4)
