"""What `rlgames doctor RUN try=SECONDS` tries: changes of the settings of a run.

First the settings in which the run differs from the nearest preset of its game and learner, or from
the learner's defaults; then the remedies of the rules that hold; then what often helps.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rlgames.config.commands import TrainConfig
from rlgames.config.schema import as_typed, groups_of
from rlgames.config.typed import from_plain, own_keys, to_plain
from rlgames.runs.diagnosis import diagnose
from rlgames.runs.files import as_text, flatten
from rlgames.runs.series import Training

KEPT = {
    *("game", "games", "seed", "out", "device", "threads", "plugins", "engine", "eval_opponent"),
    *("log_every", "eval_every", "eval_games", "analyze_every", "save_every", "keep_every"),
    *("best_by", "solve_seconds", "join_seconds", "holdout", "demonstrations", "demonstrator"),
    *("demos_per_batch", "teacher"),
}
"""Groups and keys that no change sets: the task, how much is played, and how it is evaluated."""

MAX_GENERIC = 10

MIN_UPDATES, MIN_RATIO = 50, 4
"""A run may play fewer games than its preset, so a larger batch leaves at least so many updates. A
batch that differs by less than this ratio is no difference."""


@dataclass(frozen=True)
class Change:
    """Settings that replace those of a run.

    parts: each of one or more words that belong together; none: the run as it is.
    origin: where it comes from, for people.
    """

    parts: tuple[str, ...] = ()
    origin: str = field(default="", compare=False)

    def __str__(self) -> str:
        return " ".join(self.parts) or "unchanged"

    @property
    def words(self) -> list[str]:
        return " ".join(self.parts).split()

    @property
    def folder(self) -> str:
        """The name of its folder, which every system can have."""
        name = re.sub(r"[^\w.=,+-]+", "_", str(self))
        return f"{name[:50]}-{hashlib.sha256(str(self).encode()).hexdigest()[:8]}"


UNCHANGED = Change()


@dataclass(frozen=True)
class Candidates:
    """What can be tried.

    base: the name of the preset, in words. together: a change with all that differs from it, if
    anything does; single: each part of that, if there are several. remedies: of the rules. generic:
    what often helps.
    """

    base: str
    together: list[Change]
    single: list[Change]
    remedies: list[Change]
    generic: list[Change]

    def __len__(self) -> int:
        return sum(map(len, (self.together, self.single, self.remedies, self.generic)))


def candidates(run: Training) -> Candidates:
    """What to try for a run. Raises ConfigError."""
    from rlgames.config.compose import load_config, presets_of

    from_plain(run.run.config)  # names the plugins that it needs
    own = run.run.settings
    presets = presets_of(own["game"])
    of_learner = [name for name in presets if presets[name].learner.name == own["learner"]]
    if of_learner:
        name = min(of_learner, key=lambda name: _distance(own, presets[name]))
        base, text = presets.pop(name), f"preset {name}"
    else:
        words = ["experiment=null", f"game={own['game']}", f"learner={own['learner']}"]
        base, text = load_config(TrainConfig, words), f"defaults of {words[2]}"
    parts = differing_parts(own, base)
    single = [Change((part,), text) for part in parts]
    remedies = [Change((_new(each["try"], own),), each["name"]) for each in diagnose(run)]
    generic = [Change((_new(words, own),), "often helps") for words in _generic_words(run, presets)]
    seen, lists = {UNCHANGED, Change(("",))}, list[list[Change]]()
    for changes in ([Change(tuple(parts), text)], single, remedies, generic[:MAX_GENERIC]):
        lists.append([each for each in dict.fromkeys(changes) if each not in seen])
        seen |= {*changes}
    return Candidates(text, *lists)


def _settings(config: TrainConfig) -> dict[str, Any]:
    return flatten(to_plain(config))


def _distance(own: dict[str, Any], preset: TrainConfig) -> int:
    """In how many settings a preset differs, with the rules of the game."""
    return sum(as_text(own.get(name)) != as_text(v) for name, v in _settings(preset).items())


def _new(words: str, own: dict[str, Any]) -> str:
    """The words that a change may set and that the run has otherwise."""
    kept = list[str]()
    for word in words.split():
        name, _, value = word.partition("=")
        former = as_typed(own.get(name))
        is_same = former == value
        with suppress(ValueError):
            is_same |= float(former) == float(value)
        if not is_same and name.partition(".")[0] not in KEPT:
            kept.append(word)
    return " ".join(kept)


def differing_parts(own: dict[str, Any], base: TrainConfig, only: Sequence[str] = ()) -> list[str]:
    """The words that give a run the settings of another config, without the rules of its game; an
    option that is replaced comes with its keys. only: these groups; none: all."""
    parts, groups, rules = list[str](), groups_of(TrainConfig), vars(base.game)
    for name, value in (_settings(base) | {"batch": _batch(own, base.batch)}).items():
        group, _, key = name.partition(".")
        if group in KEPT or name in rules or (only and group not in only):
            continue
        if group in groups and own.get(group) != getattr(getattr(base, group), "name", None):
            if not key:
                option = getattr(base, group)
                keys = own_keys(group, groups[group], option) if option is not None else {}
                words = {name: value} | keys
                parts.append(" ".join(f"{each}={as_typed(v)}" for each, v in words.items()))
        elif as_text(own.get(name)) != as_text(value):
            parts.append(f"{name}={as_typed(value)}")
    return parts


def _batch(own: dict[str, Any], batch: int) -> int:
    """The batch for a run with these settings, by the batch of a preset."""
    former = int(own["batch"])
    fitting = min(batch, max(former, own["games"] // MIN_UPDATES))
    ratio = max(former, fitting) / min(former, fitting)
    return fitting if ratio >= MIN_RATIO else former


def _generic_words(run: Training, presets: dict[str, TrainConfig]) -> list[str]:
    """What often helps: another learning rate, more exploration, another reward of the game, a
    wider policy, another learner. presets: the other ones of the game."""
    own, others = run.run.settings, [*presets.values()]
    words = [run.typed("lr*0.1"), run.typed("lr*10")]
    if own.get("search"):
        words.append("search.dirichlet_fraction=0.25 search.temperature=1")
    elif "sampling.epsilon" in own:
        words.append("sampling.epsilon=0.3 sampling.epsilon_end=0.1")
    elif "learner.entropy_coef" in own:
        words.append("learner.entropy_coef=0.1 learner.entropy_coef_end=0")
    rewards = (differing_parts(own, each, ["reward"]) for each in others)
    words += dict.fromkeys(" ".join(parts) for parts in rewards if parts)
    if "policy.layers" in own and not run.number("policy.layers") >= 128:
        words.append("policy.layers=[128,128]")
    if own.get("opponent") not in (None, "self") and run.metric == "points":
        words.append("opponent=self")
    learners = {each.learner.name: each for each in others if each.learner.name != own["learner"]}
    return [*words, *(" ".join(differing_parts(own, each)) for each in learners.values())]
