"""Why a run does not learn: rules over its settings and metrics; imports nothing heavy.

To add a rule, add it to TABLE and a row to the table in tests/runs/test_diagnosis.py.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from pathlib import Path

from rlgames.core.errors import ConfigError
from rlgames.core.text import number_text as text
from rlgames.runs.history import History

TABLE = """\
not_finite:
    "NonFiniteError" in run.failure
    a value became infinite or not a number
    {run.failure}
    lr*0.1
no_reward_signal: ppo reinforce dqn alphazero
    return_std.highest <= 1e-6 * max(abs(returns.end), 1e-3)
    all moves return the same, so nothing tells good moves from bad ones
    returns are {returns.last:.3g} and vary by {return_std.highest:.1g}
    reward=goal
never_rewarded: ppo reinforce dqn alphazero
    rewarded_games.highest <= 0
    no game pays any reward, so nothing tells good moves from bad ones
    rewarded_games is {rewarded_games.highest:.0%} in all lines
    reward=goal
lr_ran_out:
    lr.share_below(0.001 * lr.start) > 1 / 3
    the learning rate is 0 for much of the training
    lr falls from {lr.start:.2g}, and its median is {lr.later:.2g} later
    schedule_games=null
policy_does_not_move: ppo
    approx_kl.highest < 1e-6
    no update changes the policy
    approx_kl is at most {approx_kl.highest:.1g}
    lr=0.002 learner.max_grad_norm=1
lr_too_low: reinforce dqn alphazero behavior_cloning td_lambda
    run.info.status != "running" and lr.start * gradient_steps.highest * updates.end < 0.01
    the learning rate is too low for so few steps
    {updates.end:.0f} updates of {gradient_steps.highest:.3g} steps at lr={lr.start:.1g}
    lr=0.002
first_update_blew_up:
    grad_norm.start > max(100, 1000 * grad_norm.last) or approx_kl.start > 1
    the first steps were so large that the network did not recover
    grad_norm falls from {grad_norm.start:.3g} to {grad_norm.last:.2g}
    lr*0.03
steps_too_large: ppo
    approx_kl.later > 0.06 and clip_fraction.later > 1 / 3
    every update moves the policy too far
    approx_kl is {approx_kl.later:.2g}, and clip_fraction is {clip_fraction.later:.2g}
    lr*0.1 learner.epochs=4
q_out_of_range: dqn
    abs(q_values.last) > 1.5 * run.largest_return or q_max.last > 3 * run.largest_return
    Q values exceed what a game can pay
    Q values reach {q_max.last:.3g}, while returns are {returns.last:.2g} on average
    learner.polyak_tau=0.01 lr*0.1
reward_scale_too_large: ppo
    explained_variance.last < 0.02 and grad_norm.last > 100
    rewards are too large for the network
    returns are {returns.last:.3g} on average, and grad_norm is {grad_norm.last:.3g}
    reward.scale*0.001
reward_scale_too_large: dqn
    loss.last > 0.8 * td_error.last > 0.8
    rewards are too large for the network
    returns are {returns.last:.3g} on average, and td_error is {td_error.last:.3g}
    reward.scale*0.001
discount_too_low: ppo reinforce dqn alphazero
    run.info.metric == "points" and abs(setting("reward.discount")) ** (turns.later / 2) < 0.01
    rewards are discounted so much that early moves do not learn from the result
    a game has {turns.later:.3g} turns, and a reward loses most of its size at each
    reward.discount=0.97
no_noise: alphazero
    distinct_games.later <= 0.02
    the search has no noise, so self-play repeats a few games
    {distinct_games.later:.1%} of the final positions are different
    search.dirichlet_fraction=0.25 search.temperature=1
same_games: ppo reinforce dqn td td_ntuple td_lambda adp
    distinct_games.later <= 0.02
    training plays the same few games again and again
    {distinct_games.later:.1%} of the final positions are different
    sampling=epsilon_greedy sampling.epsilon=0.1 sampling.epsilon_end=null
entropy_collapsed: ppo reinforce
    entropy.share_below(entropy.start / 4) > 2 / 3
    the policy stopped exploring early
    entropy falls from {entropy.start:.3g} to {entropy.last:.2g}
    learner.entropy_coef=0.1
entropy_bonus_wins: ppo reinforce
    entropy.lowest >= 0.93 * entropy.first and ent_coef.later * entropy.later > 2 * return_std.later
    the entropy bonus outweighs the reward
    it pays {ent_coef.later:.2g} times {entropy.later:.3g}; returns vary by {return_std.later:.2g}
    learner.entropy_coef=0.1 learner.entropy_coef_end=0
draws_pay:
    draws.last > 0.9 and setting("reward.draws") >= setting("reward.win")
    a draw pays as much as a win, so it plays for draws
    {draws.last:.0%} of the games are draws
    reward.win=1 reward.draws=[0,0]
plays_at_random: td td_ntuple td_lambda adp ppo reinforce
    exploration_rate.last >= 0.9
    nearly all moves of the training games are random
    exploration_rate is {exploration_rate.last:.2g}
    sampling.epsilon=0.1 sampling.epsilon_end=null
tiles_share_values: td_ntuple
    clipped_boards.last > 0.5
    tiles of different size share their values
    {clipped_boards.last:.0%} of the boards have tiles beyond policy.num_cell_values
    policy.num_cell_values=16
values_diverge: td td_ntuple td_lambda dqn
    td_error.growth > 2 * max(1, score.growth, abs(q_values.growth))
    the errors of values grow
    td_error rises from {td_error.first:.3g} to {td_error.last:.3g}
    lr*0.1
lr_too_low: td td_ntuple
    td_error.growth > 0.7 and not score.growth > 1.1 and setting("lr") < 0.01
    the learning rate is too low to change the values
    td_error goes from {td_error.first:.3g} to {td_error.last:.3g} only
    lr=0.5
values_cannot_fit: td_ntuple
    td_error.growth > 0.7 and not score.growth > 1.1
    the policy is too small to represent the values
    td_error goes from {td_error.first:.3g} to {td_error.last:.3g} only
    policy.tuples=null
too_few_updates: dqn alphazero
    samples_per_move.last < 0.5
    it plays much and learns little
    it learns from {samples_per_move.last:.2g} samples per move played
    learner.updates_per_batch*20
learns_same_moves_too_often: dqn alphazero
    samples_per_move.last > 20 and buffer_size.last < 2 * moves.end / updates.end
    it learns the same moves again and again
    {samples_per_move.last:.3g} samples per move played, of a buffer of {buffer_size.last:.0f} moves
    learner.buffer_size*100
search_too_small: alphazero
    2.718 ** target_entropy.first <= 1.01 * setting("search.simulations") < 8
    the search is too small to improve on the policy
    the entropy of its policy is {target_entropy.first:.2g}, as of very few simulations
    search.simulations=32
teacher_is_random: behavior_cloning
    run.settings.get("teacher") == "random"
    a random teacher has nothing to imitate
    agreement is {agreement.last:.0%}
    teacher=win_or_block
opponent_too_strong:
    points.later < 0.05
    its opponent is so strong that it never learns what wins
    it gets {points.later:.1%} of the points in its training games
    opponent=self
wrong_way:
    gain.share_below(-run.margin) >= max(0.6, 3 / len(gain.values))
    it learns to lose
    evaluations are worse than random play: {result.lowest:.4g} to {result.highest:.4g}
    reward=goal
got_worse:
    gain.highest - gain.end > max(1.5 * run.margin, 0.2 * gain.highest)
    it was better before, and has lost a fifth of what it gained
    evaluations go from {result.lowest:.4g} to {result.highest:.4g}, and end at {result.end:.4g}
    lr*0.3 learner.lr_end=0
judged_by_training_opponent:
    run.settings.get("opponent") == run.settings.get("eval_opponent") not in (None, "self")
    it is tested only against the player that it trained with
    {result.end:.3g} points against this player
    opponent=self eval_opponent=win_or_block
too_short: ppo reinforce dqn alphazero behavior_cloning
    run.info.status != "running" and updates.end < 8
    it made too few updates to learn
    {updates.end:.0f} updates
    games*50
"""
"""In the order in which they are tried: a setting that breaks a run also changes what later rules
look at. Each rule has five lines:

    NAME: the learners that it is about, or all
    whether the run shows it, which no metric does that is not logged: Python about `run`, a
        History, its metrics by their names there, and setting(KEY)
    the cause
    the evidence, with metrics in braces
    what to try: overrides; KEY*NUMBER multiplies a setting
"""

CERTAIN = ("no_reward_signal", "lr_ran_out", "policy_does_not_move")
"""Rules that hold to the end of a run if they hold after a part of it."""

ADVICE = ("entropy_bonus_wins", "judged_by_training_opponent", "too_short")
"""Nothing went wrong, but this is why the run did not get further."""

MAX_FINDINGS = 3

MULTIPLE = re.compile(r"(\S+)\*(\S+)")

_LINES = iter(line.strip() for line in TABLE.splitlines())

RULES = [(*first.split(":"), *others) for first, *others in zip(*[_LINES] * 5, strict=True)]


def diagnose(run: History) -> list[dict[str, str]]:
    """The causes that hold, the likeliest first: the name of the rule, the cause, the evidence and
    what to try. None if the run has reached all that there is to reach."""
    findings = []
    for name, learners, condition, cause, evidence, remedy in RULES if run.is_weak else ():
        metrics = re.findall(r"([a-z_]+)\.", condition + evidence)
        names = {metric: run[metric] for metric in metrics} | {"run": run, "setting": run.number}
        holds = not learners or run.settings.get("learner") in learners.split()
        with suppress(ArithmeticError):
            if holds and eval(condition, names):
                told = {"name": name, "cause": cause, "evidence": evidence.format_map(names)}
                findings.append(told | {"try": MULTIPLE.sub(run.scaled, remedy)})
    return findings[:MAX_FINDINGS]


def first_cause(directory: Path, is_running: bool = False) -> str:
    """A line about a training that goes badly; empty for any other, and for one that cannot be
    read. is_running: there is more to come, so only what is certain."""
    with suppress(ConfigError, OSError):
        for finding in diagnose(History.read(directory)):
            name = finding["name"]
            if name in CERTAIN or not (is_running or name in ADVICE):
                return "{cause}: {evidence}; try {try}".format_map(finding)
    return ""


def still_improves(run: History) -> bool:
    """Whether the last quarter of the evaluations is better than the quarter before."""
    values, size = run["result"].values, len(run["result"].values) // 4
    before, after = values[-2 * size : -size], values[len(values) - size :]
    gain = run.sign * (sum(after) - sum(before))
    return gain > size * max(0.01 * abs(run["result"].end), run["std_error"].highest)


def verdict(run: History) -> str:
    """What to say of a run without a cause."""
    optimum = run.references.get("optimal", math.nan)
    known = {run.info.metric: run["result"].end, "random play": run.random, "optimum": optimum}
    texts = [f"{name} {text(value)}" for name, value in known.items() if value == value]
    words = "nothing found: no rule explains what limits it"
    if not run.is_weak:
        words = "nothing is wrong"
    elif still_improves(run):
        words = "no cause is known, and it still improves"
    elif run["gain"].end <= run.margin:
        words = "not known: it is not better than random play, and no rule explains why"
    return f"{words} ({', '.join(texts)})"
