"""Why a run does not learn: rules over its settings and metrics; imports nothing heavy.

To add a rule, add it to RULES and a row to the table in tests/runs/test_diagnosis.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rlgames.core.errors import ConfigError
from rlgames.core.text import number_text as text
from rlgames.runs.history import History

MAX_FINDINGS = 3

CERTAIN = ("no_reward_signal", "lr_ran_out", "policy_does_not_move")
"""Rules that hold to the end of a run if they hold after a part of it."""


@dataclass(frozen=True)
class Rule:
    """A cause, and how it shows.

    Args:
        holds: whether the metrics show it, which they never do if one is not logged.
        evidence: a sentence with metrics in braces, see History; empty: the error of the run.
        remedy: overrides of the run's config; KEY*NUMBER multiplies a setting.
        learners: whose runs it is about; empty: all.
        is_advice: nothing went wrong, but this is why the run did not get further.
    """

    name: str
    holds: Callable[[History], bool]
    cause: str
    evidence: str
    remedy: str
    learners: str = ""
    is_advice: bool = False


def _largest_return(run: History) -> float:
    """The largest size of a return, as far as the reward tells, else NaN."""
    scored, scale = run.settings.get("reward.scored"), run.number("reward.scale")
    goals = {"points": "outcome", "turns": "turns"}
    scored = goals.get(run.info.metric) if scored == "goal" else scored
    if scored == "outcome":
        return scale * max(abs(run.number("reward.win")), abs(run.number("reward.loss")))
    return 2 * scale * run["turns"].highest if scored == "turns" else math.nan


def _is_blown_up(run: History) -> bool:
    norms = run["grad_norm"]
    later = norms.values[len(norms.values) // 2 :]
    is_dead = norms.start > 100 and norms.start > 1000 * sorted(later)[len(later) // 2]
    return is_dead or run["approx_kl"].start > 1


def _stops_exploring(run: History) -> bool:
    entropy = run["entropy"]
    early = entropy.values[: -(-len(entropy.values) // 3)]
    return min(early, default=math.inf) < entropy.start / 4


FEW_GAMES = "{distinct_games.later:.1%} of the final positions are different"


def _repeats_games(run: History) -> bool:
    return run["distinct_games"].later <= 0.02


def _draws_pay(run: History) -> bool:
    values = run.settings.get("reward.draws")
    draws = [each for each in values if type(each) is float] if isinstance(values, list) else []
    return min(draws, default=math.nan) >= run.number("reward.win") and run["draws"].last > 0.9


def _values_diverge(run: History) -> bool:
    """Whether errors grow, relative to the score or to the values, if these are logged."""
    error, growth = run["td_error"], 2.0
    for size in (run["score"], run["q_values"]):
        if abs(size.first) > 0 < abs(size.last):
            growth *= abs(size.last / size.first)
    return error.last > growth * error.first


def _values_stay_wrong(run: History) -> bool:
    error, score = run["td_error"], run["score"]
    return error.last > 0.7 * error.first and not score.last > 1.1 * score.first


def _repeats_moves(run: History) -> bool:
    moves_per_batch = run["time/moves"].end / max(run["time/updates"].end, 1)
    is_small = run["buffer_size"].last < 2 * moves_per_batch
    return is_small and run["samples_per_move"].last > 20


def _learns_to_lose(run: History) -> bool:
    """Whether three evaluations, and three in five, are clearly worse than random play."""
    margin = max(0.05 * abs(run.random), 3 * run["std_error"].highest)
    worse = [run.sign * (run.random - value) > margin for value in run["result"].values]
    return sum(worse) >= max(3, 0.6 * len(worse))


def _gets_worse(run: History) -> bool:
    result = run["result"]
    best = result.highest if run.sign > 0 else result.lowest
    lost, gained = run.sign * (best - result.end), run.sign * (best - run.random)
    return lost > max(0.05 * abs(best), 0.2 * gained, 4 * run["std_error"].highest)


def _meets_one_player(run: History) -> bool:
    """Whether it trains and is tested against the same player."""
    opponent, tester = (run.settings.get(name) or "self" for name in ("opponent", "eval_opponent"))
    return opponent == tester != "self" and "points" in run.info.metric


RULES = (
    Rule(
        "not_finite",
        lambda run: "NonFiniteError" in run.failure,
        "a value became infinite or not a number",
        "",
        "lr*0.1",
    ),
    Rule(
        "no_reward_signal",
        lambda run: run["return_std"].highest <= 1e-6 * max(abs(run["return"].end), 1e-3),
        "all moves return the same, so nothing tells good moves from bad ones",
        "returns are {return.last:.3g} and vary by {return_std.highest:.1g}",
        "reward=goal",
        learners="ppo reinforce dqn alphazero",
    ),
    Rule(
        "lr_ran_out",
        lambda run: run["lr"].share_below(0.001 * run["lr"].start) > 1 / 3,
        "the learning rate is 0 for much of the training",
        "lr falls from {lr.start:.2g}, and its median is {lr.later:.2g} later",
        "schedule_games=null",
    ),
    Rule(
        "policy_does_not_move",
        lambda run: run["approx_kl"].highest < 1e-6,
        "no update changes the policy",
        "approx_kl is at most {approx_kl.highest:.1g}",
        "lr*100",
        learners="ppo",
    ),
    Rule(
        "first_update_blew_up",
        _is_blown_up,
        "the first steps were so large that the network did not recover",
        "grad_norm falls from {grad_norm.start:.3g} to {grad_norm.last:.2g}",
        "lr*0.03",
    ),
    Rule(
        "q_out_of_range",
        lambda run: (
            abs(run["q_values"].last) > 1.5 * _largest_return(run)
            or run["q_max"].last > 3 * _largest_return(run)
        ),
        "Q values exceed what a game can pay",
        "Q values reach {q_max.last:.3g}, while returns are {return.last:.2g} on average",
        "learner.polyak_tau=0.01 lr*0.1",
        learners="dqn",
    ),
    Rule(
        "reward_scale_too_large",
        lambda run: (
            (
                run["grad_norm"].last > 100 * run.number("learner.max_grad_norm")
                and run["explained_variance"].last < 0.02
            )
            or run["loss"].last > 0.8 * run["td_error"].last > 0.8
        ),
        "rewards are too large for the network",
        "returns are {return.last:.3g} on average, and grad_norm is {grad_norm.last:.3g}",
        "reward.scale*0.001",
        learners="ppo dqn",
    ),
    Rule(
        "no_noise",
        _repeats_games,
        "the search has no noise, so self-play repeats a few games",
        FEW_GAMES,
        "search.dirichlet_fraction=0.25 search.temperature=1",
        learners="alphazero",
    ),
    Rule(
        "same_games",
        _repeats_games,
        "training plays the same few games again and again",
        FEW_GAMES,
        "sampling=epsilon_greedy sampling.epsilon=0.1 sampling.epsilon_end=null",
        learners="ppo reinforce dqn td td_ntuple td_lambda adp",
    ),
    Rule(
        "entropy_collapsed",
        _stops_exploring,
        "the policy stopped exploring early",
        "entropy falls from {entropy.start:.3g} to {entropy.last:.2g}",
        "learner.entropy_coef=0.1",
        learners="ppo reinforce",
    ),
    Rule(
        "entropy_bonus_wins",
        lambda run: (
            run["entropy"].lowest >= 0.93 * run["entropy"].first
            and run["ent_coef"].later * run["entropy"].later > 2 * run["return_std"].later
        ),
        "the entropy bonus outweighs the reward",
        "entropy stays at {entropy.later:.3g}; its weight is {ent_coef.later:.2g}, while returns "
        "vary by {return_std.later:.2g}",
        "learner.entropy_coef=0.1 learner.entropy_coef_end=0",
        learners="ppo reinforce",
    ),
    Rule(
        "draws_pay",
        _draws_pay,
        "a draw pays as much as a win, so it plays for draws",
        "{draws.last:.0%} of the games are draws",
        "reward.draws=[0,0]",
    ),
    Rule(
        "plays_at_random",
        lambda run: run["exploration_rate"].last >= 0.9,
        "nearly all moves of the training games are random",
        "exploration_rate is {exploration_rate.last:.2g}",
        "sampling.epsilon=0.1 sampling.epsilon_end=null",
    ),
    Rule(
        "tiles_share_values",
        lambda run: run["clipped_boards"].last > 0.5,
        "tiles of different size share their values",
        "{clipped_boards.last:.0%} of the boards have tiles beyond policy.num_cell_values",
        "policy.num_cell_values=16",
        learners="td_ntuple",
    ),
    Rule(
        "values_diverge",
        _values_diverge,
        "the errors of values grow",
        "td_error rises from {td_error.first:.3g} to {td_error.last:.3g}",
        "lr*0.1",
        learners="td td_ntuple td_lambda dqn",
    ),
    Rule(
        "lr_too_low",
        lambda run: _values_stay_wrong(run) and run.number("lr") < 0.01,
        "the learning rate is too low to change the values",
        "td_error goes from {td_error.first:.3g} to {td_error.last:.3g} only",
        "lr=0.5",
        learners="td td_ntuple",
    ),
    Rule(
        "values_cannot_fit",
        _values_stay_wrong,
        "the policy is too small to represent the values",
        "td_error goes from {td_error.first:.3g} to {td_error.last:.3g} only",
        "policy.tuples=null",
        learners="td td_ntuple",
    ),
    Rule(
        "too_few_updates",
        lambda run: run["samples_per_move"].last < 0.5,
        "it plays much and learns little",
        "it learns from {samples_per_move.last:.2g} samples per move played",
        "learner.updates_per_batch*20",
        learners="dqn alphazero",
    ),
    Rule(
        "learns_same_moves_too_often",
        _repeats_moves,
        "it learns the same moves again and again",
        "it learns from {samples_per_move.last:.3g} samples per move played, out of a buffer of "
        "{buffer_size.last:.0f} moves",
        "learner.buffer_size*100",
        learners="dqn alphazero",
    ),
    Rule(
        "search_too_small",
        lambda run: (
            1 <= run.number("search.simulations") < 8
            and run["target_entropy"].first <= math.log(run.number("search.simulations")) + 0.01
        ),
        "the search is too small to improve on the policy",
        "the entropy of its policy is {target_entropy.first:.2g}, as of very few simulations",
        "search.simulations=32",
        learners="alphazero",
    ),
    Rule(
        "teacher_is_random",
        lambda run: run.settings.get("teacher") == "random",
        "a random teacher has nothing to imitate",
        "agreement is {agreement.last:.0%}",
        "teacher=win_or_block",
        learners="behavior_cloning",
    ),
    Rule(
        "opponent_too_strong",
        lambda run: run["points"].later < 0.05,
        "its opponent is so strong that it never learns what wins",
        "it gets {points.later:.1%} of the points in its training games",
        "opponent=self",
    ),
    Rule(
        "wrong_way",
        _learns_to_lose,
        "it learns to lose",
        "evaluations are worse than random play: {result.lowest:.4g} to {result.highest:.4g}",
        "reward=goal",
    ),
    Rule(
        "got_worse",
        _gets_worse,
        "it was better before, and has lost a fifth of what it gained",
        "evaluations go from {result.lowest:.4g} to {result.highest:.4g}, and end at "
        "{result.end:.4g}",
        "lr*0.3 learner.lr_end=0",
    ),
    Rule(
        "judged_by_training_opponent",
        _meets_one_player,
        "it is tested only against the player that it trained with",
        "{result.end:.3g} points against this player",
        "opponent=self eval_opponent=win_or_block",
        is_advice=True,
    ),
    Rule(
        "too_short",
        lambda run: run["time/updates"].end < 8,
        "it made too few updates to learn",
        "{time/updates.end:.0f} updates",
        "games*50",
        learners="ppo reinforce",
        is_advice=True,
    ),
)
"""In the order in which they are tried: a setting that breaks a run also changes what later rules
look at."""


def diagnose(run: History, with_advice: bool = True) -> list[dict[str, str]]:
    """The causes that hold, the likeliest first: the name of the rule, the cause, the evidence and
    what to try. None if the run has reached all that there is to reach."""
    learner = run.settings.get("learner")
    rules = [rule for rule in RULES if not rule.learners or learner in rule.learners.split()]
    return [
        {
            "name": rule.name,
            "cause": rule.cause,
            "evidence": rule.evidence.format_map(run) or run.failure,
            "try": re.sub(r"(\S+)\*(\S+)", lambda match: run.scaled(*match.groups()), rule.remedy),
        }
        for rule in rules
        if run.is_weak and (with_advice or not rule.is_advice) and rule.holds(run)
    ][:MAX_FINDINGS]


def first_cause(directory: Path, is_running: bool = False) -> str:
    """A line about a training that goes badly; empty for any other, and for one that cannot be
    read. is_running: there is more to come, so only what is certain."""
    with suppress(ConfigError, OSError):
        for finding in diagnose(History.read(directory), with_advice=False):
            if not is_running or finding["name"] in CERTAIN:
                return "{cause}: {evidence}; try {try}".format_map(finding)
    return ""


def still_improves(run: History) -> bool:
    """Whether the last quarter of the evaluations is better than the quarter before."""
    values, size = run["result"].values, len(run["result"].values) // 4
    before, after = values[-2 * size : -size], values[len(values) - size :]
    gain = run.sign * (sum(after) - sum(before)) / max(size, 1)
    return gain > max(0.01 * abs(run["result"].end), run["std_error"].highest)


def verdict(run: History) -> str:
    """What to say of a run without a cause."""
    optimum = run.references.get("optimal", math.nan)
    known = {run.info.metric: run["result"].end, "random play": run.random, "optimum": optimum}
    texts = [f"{name} {text(value)}" for name, value in known.items() if value == value]
    gain = run.sign * (run["result"].end - run.random)
    words = "nothing found: no rule explains what limits it"
    if not run.is_weak:
        words = "nothing is wrong"
    elif still_improves(run):
        words = "no cause is known, and it still improves"
    elif gain <= max(0.05 * abs(run.random), 3 * run["std_error"].highest):
        words = "not known: it is not better than random play, and no rule explains why"
    return f"{words} ({', '.join(texts)})"
