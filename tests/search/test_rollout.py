"""search=rollout: exact means over all worlds, never worse than its player, blind to the hidden."""

import functools
from dataclasses import replace

import pytest
import torch
from helpers import game_2048, made, make_game, mean_turns, rng, untrained

import rlgames
from rlgames.games.battleship import Battleship
from rlgames.games.capabilities import ListedWorlds, find, reason_missing
from rlgames.games.k_in_a_row import KInARow
from rlgames.players.player import Random
from rlgames.rollouts.play import GamePool
from rlgames.sampling import Stochastic
from rlgames.search import rollout

LINE = Battleship(1, 6, [3], 1)
SALVO = Battleship(3, 3, [2, 1], 2)
SUNK = Battleship(1, 7, [2, 2], 1, show=["sunk"])
TICTACTOE = KInARow(3, 3, 3, gravity=False)
ALL = {"max_num_considered_actions": 1000}


def by_hand(game, player, state, action):
    """The mean number of turns from a position on, one layout and one shot at a time."""
    turns = []
    for ships in game.fleet.layouts:
        if torch.equal(state.hit[0], state.shot[0] & (ships > 0)):
            after = game.apply_action(replace(state, ships=ships[None]), torch.tensor([action]))
            while not bool(after.done):
                after = game.apply_action(after, player.choose(game.public(after), rng()))
            turns.append(int(after.turn - state.turn))
    return sum(turns) / len(turns)


@pytest.mark.parametrize("game", [LINE, SALVO], ids=["line", "salvo"])
def test_values_are_those_of_all_layouts_one_by_one(game):
    player = untrained(game)
    state = game.initial(4, rng(1))
    state = game.apply_action(state, torch.tensor([0, 1, 2, 3]))
    result = made("search", "rollout", game, player, **ALL).search(game.public(state), rng())
    legal = game.legal_action_mask(state)
    for row in range(4):
        one = state[row : row + 1]
        means = {a: by_hand(game, player, one, a) for a in legal[row].nonzero()[:, 0].tolist()}
        best = min(means.values())
        assert float(result.value[row]) == pytest.approx(-best)
        assert means[int(result.action[row])] == best
        chosen = {a for a, mean in means.items() if mean == best}
        assert set(result.policy[row].nonzero()[:, 0].tolist()) == chosen
        assert float(result.policy[row].sum()) == pytest.approx(1)
        assert torch.equal(result.visits[row] > 0, legal[row])


@pytest.mark.parametrize("game", [LINE, SALVO, SUNK], ids=["line", "salvo", "sunk"])
@pytest.mark.parametrize("seed", range(3))
def test_rollouts_are_never_worse_than_their_player(game, seed):
    player = untrained(game, seed)
    few = made("search", "rollout", game, player, max_num_considered_actions=3)
    many = made("search", "rollout", game, player, **ALL)
    turns = mean_turns(game, player)
    assert mean_turns(game, few) <= turns
    assert mean_turns(game, many) < turns


def test_the_result_does_not_depend_on_what_is_searched_together(monkeypatch):
    player = untrained(SALVO)
    state = SALVO.initial(12, rng(1))
    state = SALVO.public(SALVO.apply_action(state, torch.arange(12) * 3))
    search = made("search", "rollout", SALVO, player, **ALL)
    together = search.search(state, rng())
    monkeypatch.setattr(rollout, "MAX_ROOTS", 4)
    monkeypatch.setattr(rollout, "MAX_PLAYOUTS", 50)
    parts = search.search(state, rng())
    alone = [search.search(state[n : n + 1], rng()) for n in range(12)]
    for name in ("visits", "q", "policy", "action", "value"):
        assert torch.equal(getattr(together, name), getattr(parts, name))
        assert torch.equal(
            getattr(together, name), torch.cat([getattr(each, name) for each in alone])
        )


def test_the_worlds_are_all_layouts_that_agree():
    start = SUNK.initial(5, rng(2))
    shots = [torch.tensor(cells) for cells in ([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [6, 6, 6, 6, 6])]

    def played(state):
        for shot in shots:
            state = SUNK.apply_action(state, shot)
        return state

    state = SUNK.public(played(start))
    row, worlds = SUNK.worlds(state)
    for number in range(5):
        agreeing = [tuple(ships.tolist()) for ships in worlds.ships[row == number]]
        assert len(set(agreeing)) == len(agreeing)
        # Played from the start, exactly these layouts show the same.
        expected = set()
        for ships in SUNK.fleet.layouts:
            again = played(SUNK.rewind(replace(start, ships=ships.expand(5, -1))))
            if SUNK.key(again)[number] == SUNK.key(state)[number]:
                expected.add(tuple(ships.tolist()))
        assert set(agreeing) == expected
    fleet = make_game("game=salvo", "board=10", "ships=[5,4,3,3,2]")
    assert "too many to list" in reason_missing(fleet, ListedWorlds)
    assert find(TICTACTOE, ListedWorlds) is None


LINES = ["012", "345", "678", "036", "147", "258", "048", "246"]


@functools.cache
def expected_outcome(cells, mover):
    """The mean outcome of random play for x, from cells like "x..oo....", by counting."""
    for mark, outcome in (("x", 1.0), ("o", -1.0)):
        if any(all(cells[int(cell)] == mark for cell in line) for line in LINES):
            return outcome
    free = [cell for cell in range(9) if cells[cell] == "."]
    if not free:
        return 0.0
    other = "o" if mover == "x" else "x"
    boards = [cells[:cell] + mover + cells[cell + 1 :] for cell in free]
    return sum(expected_outcome(board, other) for board in boards) / len(free)


def test_both_seats_play_on_in_tic_tac_toe():
    state, cells = TICTACTOE.initial(1, rng()), "." * 9
    search = made("search", "rollout", TICTACTOE, Random(TICTACTOE), simulations=1000)
    for mover, played in (("x", 0), ("o", 3), ("x", 1), ("o", 4)):
        values = {}
        for cell in (cell for cell in range(9) if cells[cell] == "."):
            after = cells[:cell] + mover + cells[cell + 1 :]
            value = expected_outcome(after, "o" if mover == "x" else "x")
            values[cell] = value if mover == "x" else -value
        result = search.search(state, rng())
        assert float(result.value) == pytest.approx(max(values.values()), abs=0.1)
        assert values[int(result.action)] > max(values.values()) - 0.15
        state = TICTACTOE.apply_action(state, torch.tensor([played]))
        cells = cells[:played] + mover + cells[played + 1 :]
    # x wins in one move.
    win = made("search", "rollout", TICTACTOE, untrained(TICTACTOE, 1), **ALL)
    result = win.search(state, rng())
    assert torch.equal(result.visits, win.search(state, rng(1)).visits)  # no chance
    assert int(result.action) == 2
    assert float(result.value) == 1.0


def test_random_play_of_2048_becomes_strong():
    game = game_2048(2, 2)
    player = made("search", "rollout", game, Random(game), simulations=30)
    scores = []
    for chooser in (Random(game), player):
        pool = GamePool(game, [chooser], 40, rng(2))
        scores.append(float(pool.run().state.score.mean()))
    assert scores[1] > 1.3 * scores[0]


def test_an_agent_in_training_plays_on_greedily():
    exploring = untrained(LINE, sampling=Stochastic(1.0))
    state = LINE.public(LINE.initial(1, rng()))
    ours, greedy = (
        made("search", "rollout", LINE, player, **ALL).search(state, rng())
        for player in (exploring, untrained(LINE))
    )
    assert torch.equal(ours.q, greedy.q)


@pytest.mark.slow
def test_alphazero_learns_from_rollouts_to_play_perfectly(tmp_path):
    run = rlgames.train(
        [
            *("game=battleship", "board=7", "ships=[3]", "shots=1", "learner=alphazero"),
            *("search=rollout", "sampling=stochastic", "reward=turns", "reward.scale=0.1"),
            *("policy.layers=[32]", "games=1200", "batch=60", "lr=0.01", "learner.lr_end=0"),
            *("learner.minibatch_size=64", "learner.opening_epsilon=0.3", f"out={tmp_path}/run"),
        ]
    )
    report = rlgames.evaluate(run, ["checkpoint=final", "games=all"])
    assert report["moves"]["mean"] == pytest.approx(report["reference"]["optimal"])


def test_noise_brings_other_actions_to_be_tried():
    player, state = untrained(LINE), LINE.public(LINE.initial(1, rng()))
    tried = {}
    for scale in (0.0, 3.0):
        settings = {"max_num_considered_actions": 2, "gumbel_scale": scale}
        search = made("search", "rollout", LINE, player, **settings)
        results = [search.search(state, rng(seed)) for seed in range(40)]
        assert all(int((result.visits > 0).sum()) == 2 for result in results)
        tried[scale] = {a for r in results for a in r.visits[0].nonzero()[:, 0].tolist()}
    likeliest = player.policy.scores(LINE, state)[0][0].topk(2).indices
    assert tried == {0.0: set(likeliest.tolist()), 3.0: set(range(6))}


def test_a_temperature_shares_the_policy_among_good_actions():
    player, state = untrained(LINE), LINE.public(LINE.initial(1, rng()))
    settings = {"max_num_considered_actions": 6, "temperature": 0.5}
    result = made("search", "rollout", LINE, player, **settings).search(state, rng())
    means = torch.tensor([-by_hand(LINE, player, LINE.initial(1, rng()), a) for a in range(6)])
    assert torch.allclose(result.policy[0], (means / 0.5).softmax(0), atol=1e-6)


def test_a_low_temperature_leaves_the_best_actions_where_some_are_not_legal():
    player = untrained(LINE)
    state = LINE.apply_action(LINE.initial(1, rng()), torch.tensor([0]))
    settings = {"max_num_considered_actions": 6, "temperature": 1e-3}
    result = made("search", "rollout", LINE, player, **settings).search(LINE.public(state), rng())
    assert float(result.policy[0].sum()) == pytest.approx(1)
    assert float(result.policy[0, 0]) == 0
    assert float(result.policy[0, int(result.action)]) > 0.3


def test_a_random_player_is_sampled_even_where_worlds_are_listed():
    state = LINE.rewind(LINE.initial(1, rng()))
    state = replace(state, ships=torch.tensor([[0, 1, 1, 1, 0, 0]], dtype=torch.uint8))
    for cell in (0, 4):
        state = LINE.apply_action(state, torch.tensor([cell]))
    # Only one layout is left: three of the four cells. After one hit, random play needs
    # 2 * 4 / 3 shots on average to shoot at two given cells of three.
    search = made("search", "rollout", LINE, Random(LINE), simulations=1000)
    result = search.search(LINE.public(state), rng())
    assert float(result.value) == pytest.approx(-(1 + 8 / 3), abs=0.1)
    assert int(result.action) in (1, 2, 3)
