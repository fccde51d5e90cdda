"""Trainings whose parts do not go together are refused before they start, in one line."""

import importlib.util
import re

import pytest
from helpers import check_refused
from markers import one_in

from rlgames.config.commands import TrainConfig
from rlgames.config.compose import load_config
from rlgames.core.errors import ConfigError
from rlgames.training.parts import build_training

GREEDY = "sampling=epsilon_greedy"
BELIEF = "experiment=null policy=belief_propagation"
OCCUPANCY = "experiment=null learner=occupancy"
ADP = f"game=2048 policy=linear learner=adp {GREEDY}"
TUPLES = "game=2048 policy=ntuple learner=td_ntuple"
SLIDE = "experiment=null game=2048 board=3 reward=score policy=ntuple learner=td_ntuple"
LINES = f"experiment=null game=connect4 reward=outcome policy=ntuple learner=td_ntuple {GREEDY}"
SMALL_LINES = f"{LINES} rows=4 columns=4 line=3 policy.tuples=[[0,1,5,8],[6,7,10]]"
GAINS = "experiment=null reward=score reward.scored=score_delta"
GUMBEL = "experiment=tictactoe_alphazero search.rule=gumbel"
STAGED = "game=2048 policy=staged"
ACTORS = "engine=ray"
PAST = "game=tictactoe experiment=null reward=outcome opponent=past"

REFUSED = [
    # AlphaZero and its searches
    ("experiment=null game=tictactoe learner=alphazero search=null", "use search=mcts"),
    ("game=tictactoe search=mcts", "does not learn from a search"),
    ("game=2048 learner=alphazero search=mcts policy=table", "does not train"),
    ("experiment=connect4_alphazero search.value=score", "is not what the run learned"),
    (GUMBEL, r"use search\.dirichlet_fraction=0"),
    # Hidden fleets
    (f"{OCCUPANCY} game=2048", "needs HiddenHits, which game=2048 does not have"),
    (f"{OCCUPANCY} game=connect4", "needs HiddenHits, which game=connect4 does not have"),
    (f"{OCCUPANCY} game=salvo aim=joint", "an action is several cells"),
    (f"{OCCUPANCY} game=tictactoe policy=table", "does not train policy=table"),
    (f"{BELIEF} game=2048 reward=score", "needs battleship, salvo or salvo_duel"),
    (f"{BELIEF} game=salvo board=4 shots=2 aim=joint", "one action per cell"),
    (f"{BELIEF} game=salvo board=25 ships=[4,3,2] shots=1", "lists 3,450 placements"),
    # Networks by stage, and steps per move
    (f"{STAGED} policy.by=max_tiles", "max_tiles"),
    (f"{STAGED} policy.at=[]", "at="),
    (f"{STAGED} policy.at=[8,4]", "at="),
    ("experiment=landy_loop learner.baseline=value", "does not work with learner"),
    # N-tuples of 2048
    (f"{SLIDE} sampling=argmax sampling.ties=random", "ties=first"),
    (f"{SLIDE} sampling=stochastic", "sampling=argmax or epsilon_greedy"),
    (f"{SLIDE} sampling=argmax board=5 policy.tuples=[[0,1,2]]", "larger than 4x4"),
    (f"{SLIDE} sampling=argmax reward=grid_sum", "only from reward=score"),
    (f"{TUPLES} policy=table", "learner=td_ntuple does not train policy=table"),
    (
        f"{SLIDE} sampling=argmax demonstrations=games.jsonl demos_per_batch=4",
        "does not learn from recorded games",
    ),
    (f"{TUPLES} policy.tuples=[[0,16]]", "from 0 to 15"),
    (f"{TUPLES} policy.tuples=[[0,0]]", "distinct cells"),
    (f"{TUPLES} policy.tuples=[[]]", "distinct cells"),
    (f"{TUPLES} policy.tuples=[]", "0 tuples"),
    (f"{TUPLES} policy.tuples=[[0,1,2,3,4,5,6,7]]", r"need 8\.16e"),
    ("game=2048 policy=ntuple learner=reinforce", "does not train policy=ntuple"),
    # N-tuples of k in a row
    (f"{SMALL_LINES} sampling.ties=random", "ties=first"),
    (f"{SMALL_LINES} opponent=random", "learns from games against itself"),
    (f"{LINES} policy.num_cell_values=2", "use 3 or more"),
    (f"{LINES} policy.tuples=[[0,42]]", "from 0 to 41"),
    (f"{TUPLES} policy.num_tuples=9", "are for two seats"),
    (f"{TUPLES} policy.stages=2", "are for two seats"),
    (f"{LINES} reward.win=-1 reward.loss=1", r"needs reward\.win above 0"),
    (f"{LINES} reward.loss=-0.5", "sum to zero"),
    (f"{LINES} reward.draws=[1,0]", "sum to zero"),
    (
        f"{LINES} games=200 schedule_games=100 learner.average_start=0.5",
        "averages until schedule_games=100",
    ),
    # Windows
    ("game=2048 learner=reinforce window=8", "unfinished games"),
    ("game=tictactoe policy=table learner=td window=8", "one-player games"),
    ("game=2048 experiment=null restart_fraction=0.5", "add window=N"),
    # Values
    (f"game=tictactoe policy=linear learner=adp {GREEDY}", "2048"),
    ("game=2048 policy=linear learner=dqn sampling=argmax", "policy=mlp"),
    ("game=2048 policy=linear learner=td", "policy=table"),
    ("game=2048 learner=adp policy=mlp", "policy=linear"),
    ("game=2048 policy=table learner=dqn", "policy=conv"),
    ("experiment=null game=tictactoe reward=outcome learner=dqn sampling=stochastic", GREEDY),
    ("game=2048 policy=linear learner=adp sampling=stochastic", GREEDY),
    (f"{ADP} policy.features=[]", "features"),
    (f"{ADP} policy.features=[one,one]", "once"),
    (f"{ADP} policy.features=[on]", "one"),
    ("game=2048 learner=dqn learner.polyak_tau=0", "polyak_tau"),
    ("experiment=null game=2048 reward=turns learner=td_lambda sampling=argmax", "score_delta"),
    (f"{GAINS} game=tictactoe policy=table learner=td {GREEDY}", "reward=outcome"),
    (f"{GAINS} game=tictactoe learner=td_lambda sampling=argmax", "reward=outcome"),
    ("game=2048 learner=td_lambda sampling=argmax reward=grid_sum", "score_delta"),
    ("game=2048 learner=td_lambda sampling=stochastic", "logits"),
    # Mistakes against perfect play
    ("game=salvo_duel analyze_every=8", "no exact solver supports"),
    ("game=salvo board=10 ships=[5,4,3,3,2] analyze_every=8", "no exact solver"),
    ("game=tictactoe analyze_every=0", "analyze_every=0"),
    # Actors
    (f"{ACTORS} game=tictactoe policy=mlp", "learner=ppo .* earlier weights.*learner=alphazero"),
    (f"{ACTORS} game=2048 policy=ntuple", "learner=td_ntuple .*learner=dqn, learner=occupancy"),
    (f"{ACTORS} {PAST} learner=dqn {GREEDY}", "opponent=past changes .*opponent=self"),
    (f"{ACTORS} experiment=tictactoe_alphazero window=4", "window=4"),
    (f"{ACTORS} engine.actors=0", "engine.actors=0 is out of range; valid: 1 to"),
    (f"{ACTORS} engine.actros=2", "did you mean engine.actors"),
    # Metrics and opponents; others: tests/config/test_invalid_config.py
    ("game=tictactoe best_by=turns", "neither more nor less turns is better"),
    ("game=salvo best_by=score", "score is not measured"),
    ("game=connect4 policy=mlp opponent=nobody", "there is"),
]


def test_a_missing_ray_is_named_with_the_command_that_installs_it(typed, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "rlgames.core.errors.find_spec", lambda name: None if name == "ray" else find_spec(name)
    )
    done = typed("train", "experiment=tictactoe_alphazero", "engine=ray")
    check_refused(done, "engine=ray needs ray", "pip install 'rlgames-lab[ray]'")


@pytest.mark.parametrize(("words", "said"), one_in(2, REFUSED))
def test_what_does_not_go_together_is_refused(words, said):
    with pytest.raises(ConfigError) as error:
        build_training(load_config(TrainConfig, words.split()))
    line = f"{error.value.error}; {error.value.hint}"
    assert re.search(said, line), line
    assert "\n" not in line
