"""Why a run does not learn: rules over its settings and metrics; imports nothing heavy.

To add a rule, add it to RULES and a row to the table in tests/runs/test_diagnosis.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rlgames.core.errors import ConfigError
from rlgames.core.text import number_text as text
from rlgames.runs.series import Training


@dataclass(frozen=True)
class Rule:
    """A cause that may keep a run from learning.

    Args:
        name: of the rule. Rules for different learners may share one.
        learners: that it is about; none: all.
        holds: whether the run shows it, which no metric does that is not logged.
        cause, evidence: in words, for people.
        remedy: what to try: overrides; KEY*NUMBER multiplies a setting.
    """

    name: str
    learners: tuple[str, ...]
    holds: Callable[[Training], bool]
    cause: str
    evidence: Callable[[Training], str]
    remedy: str


def _known(*numbers: tuple[str, float]) -> str:
    """Those numbers with their names that were logged."""
    return ", ".join(f"{name} {text(value)}" for name, value in numbers if value == value)


def target_rate(run: Training) -> float:
    """How much of the network the target network takes over in a gradient step."""
    return run.number("learner.polyak_tau") / run.number("learner.target_every")


RULES: tuple[Rule, ...] = (
    Rule(
        "not_finite",
        (),
        lambda run: "NonFiniteError" in run.failure,
        "a value became infinite or not a number",
        lambda run: f"{run.failure}",
        "lr*0.1",
    ),
    Rule(
        "no_reward_signal",
        ("ppo", "reinforce", "dqn", "alphazero"),
        lambda run: (
            run.return_std.highest <= 1e-6 * max(abs(run.returns.end), 1e-3)
            or run.rewarded_games.highest <= 0
        ),
        "all moves return the same, so nothing tells good moves from bad ones",
        lambda run: (
            "rewarded_games is 0 in all lines"
            if run.rewarded_games.highest <= 0
            else f"returns are {run.returns.last:.3g} and vary by {run.return_std.highest:.1g}"
        ),
        "reward=goal",
    ),
    Rule(
        "lr_ran_out",
        (),
        lambda run: run.lr.share_below(0.001 * run.lr.start) > 1 / 3,
        "the learning rate is 0 for much of the training",
        lambda run: f"lr falls from {run.lr.start:.2g}, and its median is {run.lr.later:.2g} later",
        "schedule_games=null",
    ),
    Rule(
        "policy_does_not_move",
        ("ppo",),
        lambda run: run.approx_kl.highest < 1e-6,
        "no update changes the policy",
        lambda run: f"approx_kl is at most {run.approx_kl.highest:.1g}",
        "lr=0.002 learner.max_grad_norm=1",
    ),
    Rule(
        "lr_too_low",
        ("reinforce", "dqn", "alphazero", "behavior_cloning", "td_lambda"),
        lambda run: (
            run.status != "running"
            and run.lr.highest * run.gradient_steps.highest * run.updates.end < 0.01
        ),
        "the learning rate is too low for so few steps",
        lambda run: (
            f"{run.updates.end:.0f} updates of {run.gradient_steps.highest:.3g} steps at "
            f"lr={run.lr.start:.1g}"
        ),
        "lr=0.002",
    ),
    Rule(
        "too_greedy",
        ("ppo", "reinforce"),
        lambda run: run.number("sampling.temperature") < 0.1,
        "training games are played almost greedily, so they do not explore",
        lambda run: (
            f"sampling.temperature is {run.number('sampling.temperature'):.1g}, and entropy "
            f"starts at {run.entropy.start:.2g}"
        ),
        "sampling.temperature=1",
    ),
    Rule(
        "steps_too_large",
        (),
        lambda run: (
            run.grad_norm.start > max(100, 1000 * run.grad_norm.last)
            or run.approx_kl.start > 1
            or (run.approx_kl.later > 0.06 and run.clip_fraction.later > 1 / 3)
        ),
        "the steps are so large that the policy does not recover",
        lambda run: _known(
            ("approx_kl at first", run.approx_kl.start),
            ("later", run.approx_kl.later),
            ("clip_fraction", run.clip_fraction.later),
            ("grad_norm at first", run.grad_norm.start),
            ("at the end", run.grad_norm.last),
        ),
        "lr*0.03",
    ),
    Rule(
        "targets_stand_still",
        ("dqn",),
        lambda run: (
            run.gradient_steps.highest * run.updates.end * target_rate(run) < 3
            and target_rate(run) < 0.003
        ),
        "the target network hardly changes, so nothing is learned from later moves",
        lambda run: (
            f"learner.target_every={run.number('learner.target_every'):.0f} in "
            f"{run.gradient_steps.highest * run.updates.end:.0f} gradient steps"
        ),
        "learner.target_every=1 learner.polyak_tau=0.01",
    ),
    Rule(
        "q_out_of_range",
        ("dqn",),
        lambda run: (
            abs(run.q_values.last) > 1.5 * run.largest_return
            or run.q_max.last > 3 * run.largest_return
        ),
        "Q values exceed what a game can pay",
        lambda run: (
            f"Q values reach {run.q_max.last:.3g}, while returns are {run.returns.last:.2g} on "
            f"average"
        ),
        "learner.polyak_tau=0.01 lr*0.1",
    ),
    Rule(
        "reward_scale_too_large",
        ("ppo", "dqn"),
        lambda run: (
            (run.explained_variance.last < 0.02 and run.grad_norm.last > 100)
            or run.loss.last > 0.8 * run.td_error.last > 0.8
        ),
        "rewards are too large for the network",
        lambda run: _known(
            ("the mean return is", run.returns.last),
            ("grad_norm", run.grad_norm.last),
            ("td_error", run.td_error.last),
        ),
        "reward.scale*0.001",
    ),
    Rule(
        "discount_too_low",
        ("ppo", "reinforce", "dqn", "alphazero"),
        lambda run: (
            run.metric == "points"
            and abs(run.number("reward.discount")) ** (run.turns.later / 2) < 0.01
        ),
        "rewards are discounted so much that early moves do not learn from the result",
        lambda run: (
            f"a game has {run.turns.later:.3g} turns, and a reward loses most of its size at each"
        ),
        "reward.discount=0.97",
    ),
    Rule(
        "same_games",
        (),
        lambda run: run.distinct_games.later <= 0.02,
        "training plays the same few games again and again",
        lambda run: f"{run.distinct_games.later:.1%} of the final positions are different",
        "sampling=epsilon_greedy sampling.epsilon=0.1 sampling.epsilon_end=null",
    ),
    Rule(
        "entropy_collapsed",
        ("ppo", "reinforce"),
        lambda run: run.entropy.share_below(run.entropy.start / 4) > 2 / 3,
        "the policy stopped exploring early",
        lambda run: f"entropy falls from {run.entropy.start:.3g} to {run.entropy.last:.2g}",
        "learner.entropy_coef=0.1",
    ),
    Rule(
        "entropy_bonus_wins",
        ("ppo", "reinforce"),
        lambda run: (
            run.entropy.lowest >= 0.93 * run.entropy.first
            and run.ent_coef.later * run.entropy.later > 2 * run.return_std.later
        ),
        "the entropy bonus outweighs the reward",
        lambda run: (
            f"it pays {run.ent_coef.later:.2g} times {run.entropy.later:.3g}; returns vary by "
            f"{run.return_std.later:.2g}"
        ),
        "learner.entropy_coef=0.1 learner.entropy_coef_end=0",
    ),
    Rule(
        "plays_at_random",
        ("td", "td_ntuple", "td_lambda", "adp", "ppo", "reinforce"),
        lambda run: run.exploration_rate.last >= 0.9,
        "nearly all moves of the training games are random",
        lambda run: f"exploration_rate is {run.exploration_rate.last:.2g}",
        "sampling.epsilon=0.1 sampling.epsilon_end=null",
    ),
    Rule(
        "values_diverge",
        ("td", "td_ntuple", "td_lambda", "dqn"),
        lambda run: run.td_error.growth > 2 * max(1, run.score.growth, abs(run.q_values.growth)),
        "the errors of values grow",
        lambda run: f"td_error rises from {run.td_error.first:.3g} to {run.td_error.last:.3g}",
        "lr*0.1",
    ),
    Rule(
        "values_stand_still",
        ("td", "td_ntuple"),
        lambda run: (
            run.td_error.growth > 0.7 and not run.score.growth > 1.1 and run.number("lr") < 0.01
        ),
        "the learning rate is too low to change the values",
        lambda run: f"td_error goes from {run.td_error.first:.3g} to {run.td_error.last:.3g} only",
        "lr=0.5 learner.lr_end=null",
    ),
    Rule(
        "too_few_updates",
        ("dqn", "alphazero"),
        lambda run: run.samples_per_move.last < 0.5,
        "it plays much and learns little",
        lambda run: f"it learns from {run.samples_per_move.last:.2g} samples per move played",
        "learner.updates_per_batch*20",
    ),
    Rule(
        "opponent_too_strong",
        (),
        lambda run: run.points.last < 0.15 and run.setting("opponent") not in (None, "self"),
        "its opponent is so strong that it never learns what wins",
        lambda run: f"it gets {run.points.last:.1%} of the points in its training games",
        "opponent=self",
    ),
    Rule(
        "same_scores",
        (),
        lambda run: run.score_spread.end < 1e-4,
        "the policy does not tell positions apart: it drops its input, or a layer is too narrow",
        lambda run: (
            f"its scores differ in one direction only, by {run.score_spread.end:.1g} in others"
        ),
        "policy=mlp policy.layers=[128,128]",
    ),
    Rule(
        "wrong_reward",
        (),
        lambda run: (
            run.gain.share_below(-run.margin) >= max(0.6, 3 / len(run.gain.values))
            or (run.draws.last > 0.9 and run.number("reward.draws") >= run.number("reward.win"))
        ),
        "its reward pays for something else than winning",
        lambda run: _known(
            ("evaluations are at most", max(run.result.values, default=math.nan)),
            ("at least", min(run.result.values, default=math.nan)),
            ("random play", run.random),
            ("draws", run.draws.last),
        ),
        "reward=goal",
    ),
    Rule(
        "got_worse",
        (),
        lambda run: run.gain.highest - run.gain.end > max(1.5 * run.margin, 0.2 * run.gain.highest),
        "it was better before, and has lost a fifth of what it gained",
        lambda run: (
            f"evaluations go from {run.result.lowest:.4g} to {run.result.highest:.4g}, and end at "
            f"{run.result.end:.4g}"
        ),
        "lr*0.3 learner.lr_end=0",
    ),
    Rule(
        "too_short",
        ("ppo", "reinforce", "dqn", "alphazero", "behavior_cloning"),
        lambda run: run.status != "running" and run.updates.end < 8,
        "it made too few updates to learn",
        lambda run: f"{run.updates.end:.0f} updates",
        "games*50",
    ),
    Rule(
        "exploitable",
        ("ppo", "reinforce", "dqn"),
        lambda run: run.status == "done" and run.exploitability.lowest > 0.5,
        "an opponent that knows its greedy play beats it; a search while it learns prevents that",
        lambda run: f"exploitability is at least {run.exploitability.lowest:.2f}",
        "learner=alphazero",
    ),
)

"""In this order, because a setting that breaks a run also changes what later rules look at."""

CERTAIN = (
    *("not_finite", "no_reward_signal", "lr_ran_out", "policy_does_not_move"),
    "exploitable",  # of runs that are done
)
"""Rules that hold to the end of a run if they hold after a part of it."""

MAX_FINDINGS = 3


def diagnose(run: Training) -> list[dict[str, str]]:
    """The causes that hold, the likeliest first: the name of the rule, the cause, the evidence and
    what to try, which sets nothing that a likelier cause sets in another way. None if the run has
    reached all that there is to reach."""
    findings, keys = list[dict[str, str]](), set[str]()
    for rule in RULES if run.is_weak else ():
        is_about = not rule.learners or run.setting("learner") in rule.learners
        with suppress(ArithmeticError):
            if is_about and rule.holds(run):
                told = {"name": rule.name, "cause": rule.cause, "evidence": rule.evidence(run)}
                words = run.typed(rule.remedy)
                new = {word.partition("=")[0] for word in words.split()}
                if not new & keys:
                    findings.append(told | {"try": words})
                    keys |= new
                if rule.name in CERTAIN:  # it also explains what later rules would find
                    break
    return findings[:MAX_FINDINGS]


def certain_cause(directory: Path) -> str:
    """A line about a training that goes badly for certain; empty for any other, and for one that
    cannot be read."""
    with suppress(ConfigError, OSError):
        for finding in diagnose(Training.read(directory)):
            if finding["name"] in CERTAIN:
                return f"{finding['cause']}: {finding['evidence']}"
    return ""


def still_improves(run: Training) -> bool:
    """Whether the last quarter of the evaluations is better than the quarter before."""
    values, size = run.result.values, len(run.result.values) // 4
    before, after = values[-2 * size : -size], values[len(values) - size :]
    gain = run.sign * (sum(after) - sum(before))
    return gain > size * max(0.01 * abs(run.result.end), run.std_error.highest)


def verdict(run: Training) -> str:
    """What to say of a run without a cause."""
    optimum = run.references.get("optimal", math.nan)
    known = {run.metric: run.result.end, "random play": run.random, "optimum": optimum}
    texts = [f"{name} {text(value)}" for name, value in known.items() if value == value]
    words = "nothing found: no rule explains what limits it"
    if not run.result.values:
        return "nothing is known yet: it has no evaluation"
    if not run.is_weak:
        words = "nothing is wrong"
    elif still_improves(run):
        words = "no cause is known, and it still improves"
    elif run.gain.end <= run.margin:
        words = "not known: it is not better than random play, and no rule explains why"
    elif optimum != optimum and not run.exploitability.values:
        words = "nothing found, and the optimum is not known: it may have reached it"
    return f"{words} ({', '.join(texts)})"
