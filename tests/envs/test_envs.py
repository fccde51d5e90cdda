"""The games as environments of Gymnasium and PettingZoo."""

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import torch

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

import rlgames.envs  # noqa: E402, F401
from rlgames.core.errors import ConfigError  # noqa: E402
from rlgames.envs import batched_env  # noqa: E402
from rlgames.envs.batched_env import MAX_ILLEGAL_ACTIONS  # noqa: E402

CHANCE = np.random.default_rng(0)


def some_legal(mask):
    """A random legal action of each row."""
    return (mask * CHANCE.random(mask.shape)).argmax(-1)


def played(envs, steps, seed=1):
    """The rewards, terminations and observations of each step of random legal play."""
    _, info = envs.reset(seed=seed)
    for _ in range(steps):
        seen, reward, terminated, truncated, info = envs.step(some_legal(info["action_mask"]))
        assert seen in envs.observation_space
        assert not truncated.any()
        yield reward, terminated, seen


@pytest.mark.others
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("Salvo", {"board": 4, "shots": 2}),
        ("2048", {"board": 2, "columns": 3}),
        ("Connect4", {"seat": 2, "opponent": "win_or_block"}),
        ("SalvoDuel", {"board": 3, "ships": [2, 1], "seat": 2}),
        ("SalvoDuel", {"board": 2, "ships": [1], "seat": 2}),
    ],
)
def test_gymnasium_check_env_passes(name, keys):
    env = gymnasium.make(f"rlgames/{name}-v0", **keys)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


@pytest.mark.others
@pytest.mark.filterwarnings("ignore::UserWarning")  # boards are not pictures
@pytest.mark.parametrize("keys", [{"board": 3, "ships": [2, 1]}, {"board": 2, "ships": [1]}])
def test_stable_baselines3_check_env_passes(keys):
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.env_checker import check_env

    check_env(gymnasium.make("rlgames/SalvoDuel-v0", seat=2, **keys))


def test_a_finished_game_restarts_with_the_next_step():
    envs = gymnasium.make_vec("rlgames/TicTacToe-v0", num_envs=50)
    over = np.zeros(50, dtype=bool)
    ended = 0
    for reward, terminated, seen in played(envs, 40):
        assert not reward[over].any()
        assert not terminated[over].any()
        assert not seen[over].any(), "a new board is empty"
        assert set(np.unique(reward)) <= {-1, 0, 1}
        over, ended = terminated, ended + terminated.sum()
    assert ended > 300


def test_rewards_are_those_of_the_config_group():
    """Of Battleship's three: all hits, as they fall; -1 a turn; hits less what chance would hit."""
    keys = {"board": 5, "ships": [2], "num_envs": 1}
    found: dict[Any, Any] = {}
    for reward in ("turns", "score", "hits"):
        envs = gymnasium.make_vec("rlgames/Battleship-v0", reward=reward, **keys)
        envs.reset(seed=2)
        found[reward] = []
        for cell in range(5):
            _, paid, terminated, _, _ = envs.step(np.array([cell]))
            found[reward].append(float(paid[0]))
            if terminated:
                break
    turns = len(found["turns"])
    assert found["turns"] == [-1.0] * turns
    assert sum(found["score"]) == 2
    cells, left = 5, 2
    for paid, hit in zip(found["hits"], found["score"], strict=True):
        assert paid == pytest.approx(hit - left / cells)
        cells, left = cells - 1, left - hit
    default = gymnasium.make("rlgames/Battleship-v0").unwrapped
    assert default.games.reward.scored == "turns"


@pytest.mark.parametrize("seat", [1, 2])
def test_an_opponent_has_the_other_seat(seat):
    envs = gymnasium.make_vec(
        "rlgames/TicTacToe-v0", num_envs=30, seat=seat, opponent="exact", reward="outcome"
    )
    rewards = np.concatenate([reward for reward, _, _ in played(envs, 20)])
    assert rewards.max() == 0, "nobody beats perfect play"
    assert rewards.min() == -1


LOST_AT_ONCE = {"board": 2, "ships": [1], "seat": 2}
"""A duel of one hidden cell each, which one shot in four ends before the agent's first move."""


@pytest.mark.parametrize("reward", ["outcome", "score"])
def test_every_game_of_a_batch_is_paid_once(reward):
    """Also those that the opponent wins in the step that starts them."""
    envs = gymnasium.make_vec("rlgames/SalvoDuel-v0", num_envs=200, reward=reward, **LOST_AT_ONCE)
    starts_over = num_lost = 0
    over = np.zeros(200, dtype=bool)
    envs.reset(seed=3)
    ended_before = envs.games.terminated.numpy().copy()
    for _ in range(12):
        _, paid, terminated, truncated, _ = envs.step(some_legal(envs.action_masks()))
        assert not truncated.any()
        assert not paid[over].any()
        assert not terminated[over].any(), "a step that starts a game does not end it"
        assert (np.abs(paid) == terminated).all()
        assert (paid[ended_before] == -1).all()
        starts_over += ended_before.sum()
        num_lost += (paid == -1).sum()
        ended_before = envs.games.terminated.numpy() & over
        over = terminated
    assert 100 < starts_over < num_lost


def test_a_reset_mask_starts_new_games_in_its_rows_alone():
    """As the vector environments of Gymnasium do, which play on in the other rows."""
    envs = gymnasium.make_vec("rlgames/TicTacToe-v0", num_envs=4)
    seen, info = envs.reset(seed=1)
    for _ in range(2):
        seen, _, terminated, _, info = envs.step(some_legal(info["action_mask"]))
    assert not terminated.any()
    mask = np.array([True, False, True, False])
    after, info = envs.reset(options={"reset_mask": mask})
    assert not after[mask].any()
    assert np.array_equal(after[~mask], seen[~mask])
    assert info["action_mask"].sum(1).tolist() == [9, 5, 9, 5]
    while not terminated.any():
        seen, _, terminated, _, info = envs.step(some_legal(info["action_mask"]))
    seen, info = envs.reset(options={"reset_mask": terminated})
    action = some_legal(info["action_mask"])
    after = envs.step(action)[0]
    played = after[np.arange(4), 0].reshape(4, 9)[np.arange(4), action]
    assert played.all(), "a row that was reset plays its action"
    for wrong in ([True] * 4, np.ones(4), np.ones(3, dtype=bool), np.zeros(4, dtype=bool)):
        with pytest.raises((TypeError, ValueError), match="reset_mask"):
            envs.reset(options={"reset_mask": wrong})


@pytest.mark.parametrize(
    ("name", "keys"),
    [("Salvo", {"board": 4}), ("2048", {"board": 3}), ("TicTacToe", {})],
)
def test_each_game_of_a_batch_can_have_its_own_seed(name, keys):
    """It is the game that a single environment plays with this seed, whatever the others do."""
    seeds = [7, 3, 7]
    envs = gymnasium.make_vec(f"rlgames/{name}-v0", num_envs=3, **keys)
    single = [gymnasium.make(f"rlgames/{name}-v0", **keys).unwrapped for _ in seeds]
    seen, info = envs.reset(seed=seeds)
    for row, (env, seed) in enumerate(zip(single, seeds, strict=True)):
        assert np.array_equal(env.reset(seed=seed)[0], seen[row])
    for _ in range(4):
        action = info["action_mask"].argmax(1)
        seen, reward, terminated, _, info = envs.step(action)
        for row, env in enumerate(single):
            alone, paid, over, _, _ = env.step(action[row])
            assert np.array_equal(alone, seen[row])
            assert (paid, over) == (reward[row], terminated[row])
        if terminated.any():
            break
    mask = np.array([False, True, False])
    again = envs.reset(seed=[1, 7, None], options={"reset_mask": mask})[0]
    assert np.array_equal(again[1], single[0].reset(seed=7)[0])
    assert np.array_equal(again[0], seen[0]), "not in the mask"
    first, second = (envs.reset(seed=[5, None, 5])[0] for _ in range(2))
    assert np.array_equal(first[0], first[2])
    assert np.array_equal(first[0], second[0])
    with pytest.raises(ValueError, match="needs 3 seeds"):
        envs.reset(seed=[1, 2])


@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("2048", {}),
        ("SalvoDuel", {"board": 4, "ships": [2, 1], "opponent": "density"}),
        ("TicTacToe", {"opponent": "exact", "seat": 2}),
        ("Connect4", {"rows": 4, "columns": 4, "opponent": "exact"}),
        ("Connect4", {"opponent": "connect4"}),
        ("Hex", {"board": 4}),
    ],
)
def test_a_copied_environment_plays_on_as_the_original(name, keys, vector):
    """From the same position, with the same chance and without touching the original."""
    if vector:
        env = gymnasium.make_vec(f"rlgames/{name}-v0", num_envs=3, **keys)
    else:
        env = gymnasium.make(f"rlgames/{name}-v0", **keys)
    _, info = env.reset(seed=4)
    seen = env.step(info["action_mask"].argmax(-1))[0]
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    mask = env.unwrapped.action_masks()
    results = []
    for each in (env, *copies):
        results.append([each.step(mask.argmax(-1)), each.reset(), each.reset(seed=6)])
    for original, *copied in zip(*results, strict=True):
        for result in copied:
            np.testing.assert_equal(result, original)
    assert seen.shape == results[0][0][0].shape


@pytest.mark.others
@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("autoreset", [*AutoresetMode])
def test_gymnasiums_own_vector_environments_take_the_games(mode, autoreset):
    if mode == "async" and autoreset is not AutoresetMode.NEXT_STEP:
        pytest.skip("processes are slow to start")
    envs = gymnasium.make_vec(
        "rlgames/SalvoDuel-v0",
        num_envs=2,
        vectorization_mode=mode,
        vector_kwargs={"autoreset_mode": autoreset},
        reward="outcome",
        illegal=0,
        **LOST_AT_ONCE,
    )
    _, info = envs.reset(seed=[1, 2])
    paid = ended = 0
    for _ in range(20):
        _, reward, terminated, _, info = envs.step(some_legal(info["action_mask"]))
        paid += np.abs(reward).sum()
        ended += terminated.sum()
        if autoreset is AutoresetMode.DISABLED and terminated.any():
            _, info = envs.reset(options={"reset_mask": terminated})
            info["action_mask"] = np.ones((2, 4), dtype=np.int8)  # it has those of new games only
    envs.close()
    assert paid == ended > 3


def test_an_illegal_action_changes_nothing_and_is_penalized():
    env = gymnasium.make("rlgames/Battleship-v0", illegal=-0.5)
    env.reset(seed=0)
    before, _, _, _, info = env.step(0)
    assert not info["action_mask"][0]
    assert env.action_space.sample(info["action_mask"]) != 0
    for count in range(1, MAX_ILLEGAL_ACTIONS + 1):
        seen, reward, terminated, truncated, _ = env.step(0)
        assert np.array_equal(seen, before)
        assert (reward, terminated) == (-0.5, False)
        assert truncated == (count == MAX_ILLEGAL_ACTIONS)
    _, info = env.reset()
    assert info["action_mask"].all()


@pytest.mark.parametrize("reward", ["outcome", "score"])
@pytest.mark.parametrize("ignored", [0, 4])
def test_the_action_after_a_truncation_is_ignored(reward, ignored, monkeypatch):
    """Legal or not, it moves no chance: every row stays the game that GameEnv plays."""
    monkeypatch.setattr(batched_env, "MAX_ILLEGAL_ACTIONS", limit := 25)
    keys = {"board": 3, "ships": [2, 1], "reward": reward}
    envs = gymnasium.make_vec("rlgames/SalvoDuel-v0", num_envs=2, **keys)
    single = [gymnasium.make("rlgames/SalvoDuel-v0", **keys).unwrapped for _ in range(2)]
    envs.reset(seed=[1, 2])
    for row, env in enumerate(single):
        env.reset(seed=row + 1)
    over, ends = [False, False], {"terminated": 0, "truncated": 0}
    for step in range(4 * limit):
        mask = envs.action_masks()
        action = mask.argmax(1)
        if step < 2 * limit:  # row 0 insists on a cell that it has shot at
            action[0] = 0
        action[over] = ignored
        seen, paid, terminated, truncated, _ = envs.step(action)
        for row, env in enumerate(single):
            if over[row]:
                own = (env.reset()[0], 0, False, False)
            else:
                own = env.step(action[row])[:4]
                ends["terminated"] += own[2]
                ends["truncated"] += own[3]
            for mine, other in zip(own, (seen, paid, terminated, truncated), strict=True):
                np.testing.assert_equal(other[row], mine)
            over[row] = bool(own[2] or own[3])
    assert ends["truncated"] == 1
    assert ends["terminated"] > 6


def test_a_finished_game_ignores_actions_and_pays_nothing():
    env = gymnasium.make("rlgames/TicTacToe-v0").unwrapped
    for can_end in ("terminated", "truncated"):
        _, info = env.reset(seed=0)
        terminated = truncated = False
        while not (terminated or truncated):
            action = int(info["action_mask"].argmax()) if can_end == "terminated" else 0
            seen, _, terminated, truncated, info = env.step(action)
        again = env.step(int(info["action_mask"].argmax()))
        np.testing.assert_equal(again[:4], (seen, 0, terminated, truncated))


@pytest.mark.parametrize(
    ("single", "batch"),
    [
        (1.7, [0, 1.7]),
        (1.0, np.zeros(2)),
        ("0", ["0", "1"]),
        (True, [True, False]),
        (None, None),
        (9, [0, 9]),
        (-1, [-1, 0]),
        ([0], [[0], [1]]),
        (np.array([0]), [0]),
        ([0, [1]], [0, [1]]),
    ],
)
def test_an_action_is_a_whole_number_of_the_space(single, batch):
    env = gymnasium.make("rlgames/TicTacToe-v0", disable_env_checker=True)
    envs = gymnasium.make_vec("rlgames/TicTacToe-v0", num_envs=2)
    for each, action in ((env, single), (envs, batch)):
        each.reset(seed=0)
        with pytest.raises(gymnasium.error.InvalidAction, match="0 to 8"):
            each.step(action)
        assert each.unwrapped.action_masks().all(), "nothing was played"
    for valid in (np.int32(4), np.array(5), torch.tensor(6)):
        env.step(valid)
        envs.step(np.array([valid, valid]))


@pytest.mark.parametrize("name", ["2048", "Hex", "SalvoDuel"])
def test_a_board_is_drawn_as_text_or_as_a_picture(name, recwarn):
    env = gymnasium.make(f"rlgames/{name}-v0", render_mode="rgb_array")
    _, info = env.reset(seed=0)
    frames = [env.render()]
    env.step(int(info["action_mask"].argmax()))
    frames.append(env.render())
    assert frames[0].dtype == np.uint8
    assert frames[0].shape == frames[1].shape
    assert frames[0].shape[2] == 3
    assert (frames[0] != frames[1]).any()
    envs = gymnasium.make_vec(f"rlgames/{name}-v0", num_envs=2, render_mode="rgb_array")
    envs.reset(seed=[0, 1])
    assert np.array_equal(envs.render()[0], frames[0])
    text = gymnasium.make(f"rlgames/{name}-v0", render_mode="ansi")
    text.reset()
    assert isinstance(text.render(), str)
    assert not recwarn.list


@pytest.mark.parametrize("num_envs", [0, -1, 1.5, True])
@pytest.mark.parametrize("render_mode", ["human", "rgb", "rgb_array_list"])
@pytest.mark.filterwarnings("ignore:.*render_mode:UserWarning")
def test_numbers_of_games_and_render_modes_are_never_ignored(num_envs, render_mode):
    with pytest.raises(ConfigError, match=f"num_envs={num_envs} is not a whole number from 1"):
        gymnasium.make_vec("rlgames/TicTacToe-v0", num_envs=num_envs)
    with pytest.raises(ConfigError, match=f"render_mode={render_mode} is not ansi or rgb_array"):
        gymnasium.make_vec("rlgames/Hex-v0", num_envs=2, render_mode=render_mode)


def test_returned_arrays_may_be_changed():
    env = gymnasium.make("rlgames/TicTacToe-v0").unwrapped
    seen, info = env.reset(seed=0)
    seen[:], info["action_mask"][:] = 9, 0
    env.action_masks()[:] = False
    assert env.action_masks().all()
    assert "." in env.render()


@pytest.mark.parametrize(
    ("keys", "hint"),
    [
        ({"bord": 3}, "bord"),
        ({"board": 99}, "board=99"),
        ({"opponent": "nobody"}, "nobody"),
        ({"opponent": "self"}, "in training"),
        ({"reward": "turms"}, "turms"),
        ({"lr": 0.1}, "lr"),
    ],
)
def test_invalid_keys_are_refused(keys, hint):
    with pytest.raises(ConfigError, match=hint):
        gymnasium.make("rlgames/TicTacToe-v0", **keys)


def test_a_game_for_one_has_one_seat():
    for keys in ({"seat": 2}, {"opponent": "random"}):
        with pytest.raises(ConfigError, match="one-player game"):
            gymnasium.make("rlgames/2048-v0", **keys)
    with pytest.raises(ConfigError, match="needs a game"):
        gymnasium.make("rlgames/Game-v0")


@pytest.mark.others
@pytest.mark.parametrize(
    "keys", [{"game": "tictactoe"}, {"game": "salvo_duel", "board": 3, "ships": [2, 1]}]
)
@pytest.mark.filterwarnings("ignore:Observation:UserWarning")
def test_pettingzoo_api_test_passes(keys, capsys):
    pytest.importorskip("pettingzoo")
    from pettingzoo.test.api_test import api_test
    from pettingzoo.test.seed_test import seed_test

    from rlgames.envs.pettingzoo_env import env

    api_test(env(**keys), num_cycles=30)
    seed_test(lambda: env(**keys), num_cycles=10)


def test_pettingzoo_rewards_both_seats():
    pytest.importorskip("pettingzoo")
    from rlgames.envs.pettingzoo_env import env

    table = env(game="connect4")
    table.reset(seed=0)
    for column in (0, 1, 0, 1, 0, 1, 0):
        told = table.last()[0]
        assert told["action_mask"][column]
        assert not table.observe("player_1" if table.agent_selection[-1] == "0" else "player_0")[
            "action_mask"
        ].any()
        table.step(column)
    assert table.terminations == {"player_0": True, "player_1": True}
    assert table.rewards == {"player_0": 1.0, "player_1": -1.0}
    with pytest.raises(ConfigError, match="render_mode=human is not ansi or rgb_array"):
        env(game="connect4", render_mode="human")
    with pytest.raises(NotImplementedError, match="state"):  # PettingZoo's own method
        table.state()
    with pytest.raises(ConfigError, match="one-player game"):
        env(game="2048")
    with pytest.raises(ConfigError, match="both seats"):
        env(game="connect4", opponent="random")


@pytest.mark.others
@pytest.mark.slow
@pytest.mark.parametrize("masked", [False, True])
def test_ppo_of_stable_baselines3_learns_salvo(masked):
    """Stable-Baselines3's PPO on a small board: far fewer turns than random play needs."""
    sb3 = pytest.importorskip("stable_baselines3")
    make = sb3.PPO
    if masked:
        make = pytest.importorskip("sb3_contrib").MaskablePPO
    torch.manual_seed(0)
    keys = {"board": 3, "ships": [3], "shots": 1}
    env = gymnasium.make("rlgames/Salvo-v0", **keys)
    model = make("MlpPolicy", env, n_steps=512, batch_size=128, learning_rate=1e-3, seed=0)
    model.learn(8_000)
    envs = gymnasium.make_vec("rlgames/Salvo-v0", num_envs=500, **keys)
    turns = {}
    for who in ("random", "trained"):
        seen, info = envs.reset(seed=5)
        total, over = np.zeros(500), np.zeros(500, dtype=bool)
        for _ in range(9 + MAX_ILLEGAL_ACTIONS):
            action = some_legal(info["action_mask"])
            if who == "trained":
                told = {"action_masks": envs.action_masks()} if masked else {}
                action, _ = model.predict(seen, deterministic=True, **told)
            seen, reward, terminated, truncated, info = envs.step(action)
            total += reward * ~over
            over |= terminated | truncated
        turns[who] = -total.mean()
    assert turns["random"] == pytest.approx(7.5, abs=0.3)
    assert turns["trained"] < 6


@pytest.mark.parametrize("seat", [1, 2])
@pytest.mark.parametrize(
    "keys", [{"game": "salvo_duel", "board": 3, "ships": [2, 1]}, {"game": "tictactoe"}]
)
def test_the_last_observation_is_the_agents_own_view(keys, seat):
    """Whoever made the last move: the own ships or stones are where the agent saw them before."""
    from rlgames.envs.gymnasium_env import GameEnv

    env = GameEnv(**keys, seat=seat)
    last_movers = set()
    own_plane = 3 if keys["game"] == "salvo_duel" else 0
    for game in range(20):
        observation, info = env.reset(seed=game)
        terminated = False
        while not terminated:
            before = observation
            action = int(info["action_mask"].argmax())
            observation, _, terminated, _, info = env.step(action)
            own, own_before = observation[own_plane], before[own_plane]
            assert (own >= own_before).all()  # stones are added, ships stay
            if keys["game"] == "salvo_duel":
                assert (own == own_before).all()
        last_movers.add(int(env.games.state.current_seat[0]))
        other = {1: 1, 2: 0}[seat]
        view = env.games.game.view_from_seat(env.games.state, other)
        assert (observation != env.games.game.observe(view)[0].numpy()).any()
    assert last_movers == {0, 1}


@pytest.mark.parametrize(
    "keys",
    [
        {"game": "salvo_duel", "board": 3, "ships": [2, 1]},
        *({"game": name} for name in ("connect4", "hex", "othello", "breakthrough", "gomoku")),
    ],
)
def test_both_agents_observe_the_current_position(keys):
    """From its own side, as if it were to move, like PettingZoo's classic games; what the other one
    hides stays hidden: an observation does not change with it."""
    pytest.importorskip("pettingzoo")
    from rlgames.envs.pettingzoo_env import TwoPlayerEnv

    table = TwoPlayerEnv(**keys)
    table.reset(seed=1)
    for _ in range(12):
        mover = table.agent_selection
        waiting = next(agent for agent in table.possible_agents if agent != mover)
        own, other = table.observe(mover), table.observe(waiting)
        assert not other["action_mask"].any()
        assert own["observation"] in table.observation_space(mover)["observation"]
        assert (own["observation"] == table.game.observe(table.position)[0].numpy()).all()
        seen = other["observation"]
        if keys["game"] in ("connect4", "gomoku", "othello"):
            assert (seen[[0, 1]] == own["observation"][[1, 0]]).all()
        if keys["game"] == "breakthrough":
            assert (seen[[0, 1]] == own["observation"][[1, 0]][:, ::-1, ::-1]).all()
        if keys["game"] == "hex":
            sides_exchanged = own["observation"].transpose(0, 2, 1)[[1, 0, 4, 5, 2, 3]]
            assert (seen[:6] == sides_exchanged).all()
            assert not seen[6].any(), "only who may swap is told"
        if keys["game"] == "salvo_duel":
            assert (seen[[4, 5]] == own["observation"][[1, 2]]).all(), "where it was shot at"
            assert not seen[6:8].any(), "a salvo is not shown before it is fired"
        action = int(own["action_mask"].argmax())
        table.step(action)
        if table.terminations[mover]:
            break
        if keys["game"] == "connect4":
            assert table.observe(mover)["observation"][0, :, action].any()
