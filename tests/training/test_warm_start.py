"""Learning from recorded games, cloning, initial weights of earlier runs, held-out layouts."""

import json
import re
from typing import Any

import pytest
import torch
from helpers import generator, make_game, make_game_and_rules, make_learner, rng
from markers import one_in

import rlgames as package
from rlgames.build.agents import open_run
from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.config.registry import make
from rlgames.config.typed import make_option, to_plain
from rlgames.core.errors import ConfigError
from rlgames.learners.learner import LearnerContext
from rlgames.players.player import Random
from rlgames.rollouts import records
from rlgames.rollouts.holdout import split_layouts
from rlgames.rollouts.play import collect_games
from rlgames.rollouts.trajectories import FinalStates, Trajectories
from rlgames.runs.files import read_metrics
from rlgames.training.parts import build_learner, build_training
from rlgames.training.sources import Demonstrations


def load(*words):
    """A config of training as the command line makes it."""
    return load_config(TrainConfig, words)


def recorded(path, game, rules, games=12, seed=1, players=None):
    """Record random games with alternating seats. Returns them as played and as read back."""
    players = players or [Random(game) for _ in range(game.spec.seats)]
    second = (torch.arange(games) % 2)[:, None]
    seating = torch.cat([second, 1 - second], 1) if game.spec.seats == 2 else None
    moves, results = collect_games(game, players, games, rng(seed), seating=seating)
    records.append(path, game, rules, ["one", "other"], moves, results)
    return moves, results, records.read(path, game, rules)


def by_game(column, moves):
    return column[moves._rows_by_game]


# ---------------------------------------------------------------- records as moves


def test_a_mismatched_score_or_final_position_is_refused(tmp_path):
    game, rules = make_game_and_rules("game=2048", "board=2")
    path = tmp_path / "games"
    recorded(path, game, rules, games=3)
    head, *lines = path.read_text().splitlines()
    for change, message in (
        (lambda line: line.update(score=[line["score"][0] + 4]), "line 3: .*gains"),
        (lambda line: line.update(final=line["moves"][0]["position"]), "line 3: .*final position"),
        (lambda line: line.pop("final"), "line 3: 'final' is missing"),
        (lambda line: line.update(moves=[]), "line 3: .*without moves"),
    ):
        line = json.loads(lines[1])
        change(line)
        path.write_text("\n".join([head, lines[0], json.dumps(line), lines[2]]) + "\n")
        with pytest.raises(records.BadRecord, match=message):
            records.read(path, game, rules)


def test_the_encoding_of_a_board_is_not_a_rule(tmp_path):
    game, rules = make_game_and_rules("game=2048", "board=2")
    recorded(tmp_path / "games", game, rules, games=3)
    other = make_game_and_rules("game=2048", "board=2", "encoding=exponents", "target=8")
    assert records.read(tmp_path / "games", *other).trajectories.num_games == 3
    with pytest.raises(records.BadRecord, match="other rules"):
        records.read(tmp_path / "games", *make_game_and_rules("game=2048", "board=2", "fours=0"))


# ---------------------------------------------------------------- in a batch


@pytest.mark.parametrize(
    "words",
    one_in(
        2,
        [
            ["game=2048", "board=3", "reward.scored=grid_sum", "learner=reinforce"],
            ["game=tictactoe", "policy=mlp"],
            ["game=salvo", "aim=sequential", "shots=3", "learner=reinforce"],
            ["experiment=hickman", "game=tictactoe"],
        ],
    ),
    ids=" ".join,
)
def test_recorded_games_are_learned_from_as_if_just_played(words, tmp_path):
    cfg = load_config(TrainConfig, words)
    game, rules = make("game", cfg.game), to_plain(cfg)["game"]
    small = [*words, "policy.layers=[8]"] if cfg.policy.name == "mlp" else words
    small += ["learner.num_minibatches=1"] if cfg.learner.name == "ppo" else []
    players = [Random(game)]
    first, ended = collect_games(game, players, 5, rng(1))
    later, ended_later = collect_games(game, players, 4, rng(2))
    records.append(tmp_path / "games", game, rules, ["one"], later, ended_later)
    demonstrations = Demonstrations.read(tmp_path / "games", game, rules, "one", generator(5))
    public = FinalStates(game.public(ended.state), ended.num_moves)
    more = FinalStates(game.public(ended_later.state), ended_later.num_moves)
    policy, learner = make_learner(game, *small)
    expected = learner.update(
        Trajectories.cat([first, later]), FinalStates.cat([public, more]), 0.0
    )
    other, learner = make_learner(game, *small)
    found = learner.update(
        Trajectories.cat([first, demonstrations.trajectories]),
        FinalStates.cat([public, demonstrations.final_states]),
        0.0,
    )
    assert found == pytest.approx(expected, abs=1e-5)
    for one, two in zip(policy.state_dict().values(), other.state_dict().values(), strict=True):
        assert torch.allclose(one, two, atol=1e-6)


def test_whole_games_are_sampled_evenly():
    game = make_game("game=2048", "board=3")
    moves, results = collect_games(game, [Random(game)], 5, rng(1))
    source = Demonstrations(moves, results, generator(2))
    expected = torch.bincount(moves.game)
    assert len(results.score.unique()) == 5
    for count in (3, 5, 12):
        drawn, ended = source.sample(count)
        assert drawn.num_games == count == len(ended.state)
        assert ended.num_moves == len(drawn)
        # Their final scores tell these games apart.
        which = (ended.score == results.score.T).int().argmax(1)
        assert torch.equal(torch.bincount(drawn.game, minlength=count), expected[which])
        assert torch.equal(
            torch.zeros(count).index_add_(0, drawn.game, drawn.score_delta), ended.score[:, 0]
        )
        often = torch.bincount(which, minlength=5)
        assert int(often.max() - often.min()) <= 1


def test_only_the_demonstrators_moves_are_learned(tmp_path):
    game, rules = make_game_and_rules("game=tictactoe")
    moves, _, _ = recorded(tmp_path / "games", game, rules)
    for name, player in (("one", 0), ("other", 1)):
        found = Demonstrations.read(tmp_path / "games", game, rules, name, generator()).trajectories
        expected = moves.by_player(player)
        assert torch.equal(by_game(found.action, found), by_game(expected.action, expected))
        assert set(found.seat.tolist()) == {0, 1}


def test_games_without_a_move_of_the_demonstrator_are_left_out(tmp_path):
    game, rules = make_game_and_rules("game=battleship", "board=6")
    for number, name in enumerate(("one", "other")):
        played = collect_games(game, [Random(game)], 5, rng(number))
        records.append(tmp_path / "games", game, rules, [name], *played)
    demonstrations = Demonstrations.read(tmp_path / "games", game, rules, "other", generator())
    assert demonstrations.trajectories.num_games == 5
    sampled, final_states = demonstrations.sample(7)
    assert torch.bincount(sampled.game, minlength=7).all()
    assert len(final_states.score) == 7


# ---------------------------------------------------------------- runs

TINY = ["solve_seconds=0", "eval_games=50"]


@pytest.fixture(scope="module")
def corner(tmp_path_factory):
    """A folder with a record of corner's games of 2048, 3 by 3."""
    folder = tmp_path_factory.mktemp("corner")
    words = ["player=corner", "game=2048", "board=3", "games=8", "solve_seconds=0"]
    package.evaluate(None, [*words, f"record='{folder}/the games=(é)'"])
    return folder / "the games=(é)"


def last_value(run, name):
    return [line[name] for line in read_metrics(run / "metrics.jsonl") if name in line][-1]


@pytest.mark.slow
@pytest.mark.parametrize("source", ["teacher", "record"])
def test_cloning_agrees_with_its_teacher_and_plays_like_it(source, corner, tmp_path):
    words = ["game=2048", "board=3", "learner=behavior_cloning", "policy.layers=[32]", *TINY]
    words += ["lr=0.003", "games=600", "batch=60", "learner.epochs=2", "eval_every=300"]
    given = "teacher=corner" if source == "teacher" else f"demonstrations='{corner}'"
    run = package.train([*words, given, f"out={tmp_path}/run"])
    assert last_value(run, "eval/agreement") > 0.95
    assert last_value(run, "train/agreement") > 0.95
    assert last_value(run, "train/loss") < 0.1
    own, others = (
        package.evaluate(*who, ["games=400", "solve_seconds=0", *more])
        for who, more in (((run,), []), ((None,), ["player=corner", "game=2048", "board=3"]))
    )
    low, high = others["score"]["ci95"]
    assert low - (high - low) < own["score"]["mean"] < high + (high - low)


@pytest.mark.slow
def test_cloning_a_run(tmp_path):
    words = ["game=battleship", "board=6", "ships=[2]", "policy.layers=[16]", *TINY, "batch=50"]
    teacher = package.train([*words, "games=200", f"out={tmp_path}/teacher"])
    words += ["learner=behavior_cloning", f"teacher={teacher}", "lr=0.01"]
    run = package.train([*words, "games=1500", f"out={tmp_path}/clone"])
    assert last_value(run, "eval/agreement") == 1.0
    latest = run / "checkpoints" / "latest.safetensors"
    moves = [package.evaluate(path, ["solve_seconds=0"])["moves"] for path in (latest, teacher)]
    assert moves[0] == moves[1]


def test_the_loss_of_cloning_is_the_cross_entropy_over_legal_actions():
    game = make_game("game=tictactoe")
    moves, results = collect_games(game, [Random(game)], 8, rng(1))
    policy, _ = make_learner(
        game, "game=tictactoe", "learner=reinforce", "learner.baseline=none", "policy.layers=[8]"
    )
    context = LearnerContext(game, policy, None, None, generator())
    clone: Any = build_learner(make_option("learner", "behavior_cloning"), context, 0.01)
    total = agreed = 0.0
    for row in range(len(moves)):
        scores = policy.scores(game, moves.state[row : row + 1])[0][0]
        legal = game.legal_action_mask(moves.state[row : row + 1])[0]
        chances = (scores.exp() * legal) / (scores.exp() * legal).sum()
        total -= chances[moves.action[row]].log().item()
        agreed += int(chances.argmax()) == int(moves.action[row])
    found = clone.evaluate(lambda: moves)
    assert found["cross_entropy"] == pytest.approx(total / len(moves), rel=1e-5)
    assert found["agreement"] == pytest.approx(agreed / len(moves))
    for _ in range(3):
        clone.update(moves, results, 0.0)
    assert clone.evaluate(lambda: moves)["cross_entropy"] < found["cross_entropy"]


def test_init_from_starts_with_the_weights_of_a_run(tmp_path):
    words = ["game=tictactoe", "policy=mlp", "games=40", "batch=20", "policy.layers=[8]", *TINY]
    words += ["eval_games=4"]
    run = package.train([*words, f"out={tmp_path}/a run=1 (é)".replace("out=", "out='") + "'"])
    tensors = open_run(run).weights
    policy: Any = build_training(load(*words, f"init_from={run}")).agent.policy
    assert all(torch.equal(value, tensors[name]) for name, value in policy.state_dict().items())
    other: Any = build_training(load(*words)).agent.policy
    assert not torch.equal(other.logits.weight, tensors["logits.weight"])
    # A value head is left out, or begins anew.
    bare: Any = build_training(
        load(*words, f"init_from={run}", "learner=reinforce", "learner.baseline=none")
    ).agent.policy
    assert torch.equal(bare.logits.weight, tensors["logits.weight"])
    assert not bare.has_value
    cloned = package.train(
        [*words, "learner=behavior_cloning", "teacher=random", f"out={tmp_path}/cloned"]
    )
    policy = build_training(load(*words, f"init_from={cloned}")).agent.policy
    clone: Any = open_run(cloned).agent()
    assert torch.equal(policy.logits.weight, clone.policy.logits.weight)
    assert policy.has_value
    # So are those of the networks of a staged policy.
    words += ["policy=staged", "policy.by=turn", "policy.at=[3]"]
    run = package.train([*words, f"out={tmp_path}/staged"])
    bare = build_training(
        load(*words, f"init_from={run}", "learner=reinforce", "learner.baseline=none")
    ).agent.policy
    tensors = open_run(run).weights
    assert torch.equal(bare.stages[1].logits.weight, tensors["stages.1.logits.weight"])


@pytest.mark.slow
def test_a_network_is_fitted_to_the_adp_and_trained_on_where_new_tiles_differ(tmp_path):
    """Dedieu and Amar's section 4.2 by its three presets: ADP, cloning, policy gradient."""
    few = ["games=20", "batch=10", "eval_games=4", "solve_seconds=0"]
    preset = "experiment=dedieu_amar_{}".format
    adp = package.train([preset("adp"), *few, f"out={tmp_path}/adp"])
    words = [preset("adp_cloning"), f"teacher={adp}", *few, "fours=0.1"]
    parts: Any = build_training(load(*words))
    teacher = parts.source.games.players[0]
    assert teacher.game.fours == 0.1  # the teacher looks ahead by the rules that are played
    clone = package.train([*words, f"out={tmp_path}/clone"])
    words = [preset("warm_start"), f"init_from={clone}", *few]
    parts = build_training(load(*words))
    assert parts.game.fours == 0.0
    weights = parts.agent.policy.state_dict()
    shapes = [tuple(weight.shape) for weight in weights.values()]
    assert shapes == [(200, 256), (100, 200), (4, 100)]
    tensors = open_run(clone).weights
    assert all(torch.equal(value, tensors[name]) for name, value in weights.items())
    run = package.train([*words, f"out={tmp_path}/warm"])
    assert last_value(run, "train/grid_sum") > 0
    with pytest.raises(ConfigError, match="board"):
        build_training(load(*words, "board=3"))


# ---------------------------------------------------------------- layouts held out

SEA = ["game=salvo", "board=4", "ships=[3,2]", "shots=1", "policy.layers=[8]", *TINY]


def rows(layouts):
    return {tuple(row) for row in (layouts > 0).int().tolist()}


def test_training_never_plays_held_out_layouts(tmp_path):
    parts: Any = build_training(load(*SEA, "holdout=0.25"))
    cut = parts.source.games.split
    met, kept = rows(cut.trained_on.ships), rows(cut.held_out.ships)
    everything = rows(parts.game.openings(10**6)[0].ships)
    assert met | kept == everything
    assert not met & kept
    assert abs(len(kept) - 0.25 * len(everything)) < 1
    _, results = parts.source.play(3000, 0, 0.0)
    assert rows(results.state.ships) == met
    # Two ships end to end may change places, and look the same: those are held out together.
    assert len(everything) < len(cut.trained_on) + len(cut.held_out)
    often = torch.unique(results.state.ships, dim=0, return_counts=True)[1]
    assert float(often.float().std()) < 2 * (3000 / len(met)) ** 0.5


def test_the_seed_alone_decides_what_is_held_out():
    game = make_game("game=salvo")
    splits: list[Any] = [split_layouts(game, 0.2, seed) for seed in (0, 0, 1)]
    first, again, other = splits
    assert torch.equal(first.held_out.ships, again.held_out.ships)
    assert not torch.equal(first.held_out.ships, other.held_out.ships)
    assert split_layouts(game, 0.0, 0) is None


def test_both_sets_are_reported_and_add_up(tmp_path, rlgames):
    words = [*SEA, "games=120", "batch=40", "eval_every=60", "holdout=0.3", "seed=3"]
    done = rlgames("train", *words, "out=run")
    assert done.returncode == 0, done.stderr
    assert "held-out" in done.stdout
    run = tmp_path / "run"
    lines = [line for line in read_metrics(run / "metrics.jsonl") if "eval/turns" in line]
    assert all("eval/held_out_turns" in line for line in lines)
    best = min(line["eval/turns"] for line in lines)
    report = package.evaluate(run, ["solve_seconds=0", "seed=9"])
    own, other = report["trained_on"], report["held_out"]
    assert own["mean"] == pytest.approx(best)
    assert own["games"] + other["games"] == report["games"]
    assert own["exact"]
    total = own["mean"] * own["games"] + other["mean"] * other["games"]
    assert total == pytest.approx(report["moves"]["mean"] * report["games"])
    assert "held-out layouts" in rlgames("eval", "run", "solve_seconds=0").stdout


# ---------------------------------------------------------------- what does not fit


@pytest.fixture(scope="module")
def things(tmp_path_factory):
    """A folder with a run, a run on fewer layouts, and a record."""
    folder = tmp_path_factory.mktemp("things")
    small = ["games=20", "batch=10", "policy.layers=[8]", *TINY]
    package.train(["game=tictactoe", "policy=mlp", *small, f"out={folder}/run"])
    package.train([*SEA, "games=20", "batch=10", "holdout=0.2", f"out={folder}/held"])
    recorded(folder / "record", *make_game_and_rules("game=tictactoe"), games=4)
    (folder / "text").write_text("hello")
    return folder


TTT = ["game=tictactoe", "policy=mlp", "policy.layers=[8]"]
CLONE = [*TTT, "learner=behavior_cloning"]
MISFITS = [
    (["init_from=nowhere"], "no checkpoint at nowhere"),
    ([*TTT, "init_from=@/text"], "not a readable checkpoint"),
    (["game=connect4", "init_from=@/run"], "game=tictactoe"),
    ([*TTT, "board=4", "init_from=@/run"], "board=3"),
    ([*TTT, "policy.layers=[9]", "init_from=@/run"], r"layers=\[8\]"),
    (["experiment=hickman", "init_from=@/run"], "policy=mlp"),
    ([*SEA, "holdout=0.3", "init_from=@/held"], "holds out"),
    ([*TTT, "demos_per_batch=2"], "demonstrations=FILE"),
    ([*TTT, "demonstrator=one"], "demonstrations=FILE"),
    ([*TTT, "demonstrations=nowhere", "demos_per_batch=2"], "not a file"),
    ([*TTT, "demonstrations=@/text", "demos_per_batch=2"], "not a record"),
    ([*TTT, "demonstrations=@/record"], "demos_per_batch=N"),
    ([*TTT, "demonstrations=@/record", "demos_per_batch=1", "demonstrator=on"], "mean one"),
    ([*TTT, "board=4", "demonstrations=@/record", "demos_per_batch=2"], "other rules"),
    (CLONE, "teacher=NAME"),
    ([*CLONE, "demonstrations=@/record", "demos_per_batch=1"], "teacher=NAME"),
    ([*CLONE, "teacher=human"], "demonstrations=FILE"),
    ([*CLONE, "teacher=corner"], "2048"),
    ([*CLONE, "teacher=past"], "another player"),
    ([*CLONE, "teacher=@/held"], "trained with game=salvo"),
    ([*CLONE, "teacher=win_or_block", "demonstrations=@/record"], "no effect"),
    ([*TTT, "teacher=win_or_block"], "learner=behavior_cloning"),
    (
        ["game=tictactoe", "learner=behavior_cloning", "policy=table", "teacher=random"],
        "policy=mlp",
    ),
    (
        [*SEA, "holdout=0.2", "learner=alphazero", "search=rollout", "sampling=stochastic"],
        "search=",
    ),
    ([*TTT, "holdout=0.2"], "tictactoe"),
    (["game=2048", "holdout=0.2"], "2048"),
    (["game=salvo_duel", "holdout=0.2"], "salvo_duel"),
    (["game=salvo", "board=10", "ships=[5,4,3,3,2]", "shots=1", "holdout=0.2"], "listed"),
    (["holdout=0.001"], "hold out 0 of"),
    (["holdout=1"], "hold out 120 of"),
    ([*SEA, "holdout=0.2", "demonstrations=@/record", "demos_per_batch=1"], "holdout="),
]


@pytest.mark.parametrize(
    ("words", "message"), one_in(4, MISFITS), ids=lambda value: str(value)[:60]
)
def test_settings_that_do_not_fit_are_refused_before_training(words, message, things):
    words = [word.replace("@", str(things)) for word in words]
    with pytest.raises(ConfigError) as caught:
        build_training(load(*words))
    line = f"{caught.value.error}; {caught.value.hint}"
    assert re.search(message, line), line
    assert "\n" not in line
