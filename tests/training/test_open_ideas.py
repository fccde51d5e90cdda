"""What the documents leave for later runs here by configuration alone."""

import pytest

import rlgames
from rlgames.runs.files import read_metrics

IDEAS = {
    "Ramesh: convolutions": ["experiment=ramesh_case5", "policy=conv"],
    "Ramesh: sizes, what is sunk, the first hit": [
        "experiment=ramesh_case5",
        "encoding=planes",
        "show=[sizes,sunk,first_hit]",
    ],
    "Ramesh: other rewards": ["experiment=ramesh_case5", "reward=turns"],
    "Ramesh: what a whole random turn would hit": [
        "experiment=ramesh_case5",
        "reward.minus=random_turn",
    ],
    "Ramesh: three shots": ["experiment=ramesh_case5", "shots=3"],
    "Ramesh: as many shots as ships afloat": ["game=salvo_duel"],
    "Ramesh: more shots on a larger board": ["game=salvo", "board=6", "shots=4"],
    "Dedieu and Amar: discounts": ["experiment=dedieu_amar_stochastic", "reward.discount=0.99"],
    "Dedieu and Amar: networks by stage": ["experiment=dedieu_amar_staged"],
    "Dedieu and Amar: a learnt value": ["experiment=dedieu_amar_stochastic_tuned"],
    "Dedieu and Amar: deeper networks": [
        "experiment=dedieu_amar_stochastic",
        "policy.layers=[200,100,100,50]",
    ],
    "Dedieu and Amar: the Q function": [
        "game=2048",
        "learner=dqn",
        "sampling=epsilon_greedy",
        "policy.layers=[200,100]",
    ],
    "Dedieu and Amar: exponents in place of bits": [
        "experiment=dedieu_amar_stochastic",
        "encoding=exponents",
    ],
    "Landy: a step per move": ["experiment=landy_loop"],
    "Landy: a learnt baseline": ["experiment=landy", "learner.baseline=value"],
    "Landy: layouts held out": ["experiment=landy", "holdout=0.2"],
    "Hickman: learning after every game": ["experiment=hickman", "batch=1"],
    "Hickman: larger boards": [
        "experiment=hickman",
        "game=connect4",
        "rows=3",
        "columns=4",
        "line=3",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("idea", IDEAS)
def test_an_open_idea_runs(idea, tmp_path):
    words = [*IDEAS[idea], "games=4", "batch=2", "eval_games=4", "solve_seconds=0"]
    run = rlgames.train([*words, f"out={tmp_path}/run"])
    last = read_metrics(run / "metrics.jsonl")[-1]
    assert last["games"] == 4
