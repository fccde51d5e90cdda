"""Checks what the parts that users write return, and names the part in one line where it is wrong.

`checked` derives a class from the user's, whose methods check what the user's methods return. A
built-in part is not checked: tests do that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn

from rlgames.core.errors import ConfigError, NonFiniteError
from rlgames.core.metrics import as_metrics
from rlgames.core.text import kind_of_value, some

Check = Callable[..., Any]
"""check(part, returned, *arguments of the method): what the method returns then. `part` is the
checked part. Raises ConfigError."""

MAX_ROUNDING = 1e-4
"""Probabilities may sum to 1 plus or minus this."""


def checked(group: str, name: str, make: Any) -> Any:
    """The class or the function of a user's part, so that what the part returns is checked.

    group, name: the option that makes it.
    """
    label, part_class = f"{group}={name}", make
    if isinstance(make, type):
        return _checked_class(part_class, group, label)

    @functools.wraps(make)
    def make_checked(*arguments: Any, **keys: Any) -> Any:
        part = make(*arguments, **keys)
        part_class: Any = type(part)
        if not _is_built_in(part_class):
            object.__setattr__(part, "__class__", _checked_class(part_class, group, label))
            if group in ("player", "search"):
                object.__setattr__(part, "own_game", arguments[0])
        return part

    return make_checked


@functools.cache
def _checked_class(kind: Any, group: str, label: str) -> Any:
    """A subclass that checks what the methods of a user's class return; a built-in class itself."""
    if _is_built_in(kind):
        return kind
    methods: dict[str, Any] = {}
    for name, wrap in METHODS[group].items():
        method = getattr(kind, name, None)
        # The rules of a game and the layers of a network decide what inherited methods return.
        if method is not None and (group in ("game", "policy") or not _is_built_in(method)):
            methods[name] = functools.wraps(method)(wrap(method))
    if group in ("player", "search", "policy"):
        methods["__init__"] = _remembering(kind)
    same = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(kind.__name__, (kind,), {"__slots__": (), "own_name": label, **same, **methods})


def is_own(part: Any) -> bool:
    """Whether a user wrote a part."""
    return hasattr(part, "own_name")


def _is_built_in(part: Any) -> bool:
    return str(getattr(part, "__module__", "")).partition(".")[0] in ("rlgames", "torch")


def _remembering(kind: Any) -> Callable[..., None]:
    """An __init__ that also keeps what checks need: the game, which is the first argument, and
    whether the learner needs a value of each position, which networks are told."""

    @functools.wraps(kind.__init__)
    def init(self: Any, *arguments: Any, **keys: Any) -> None:
        if isinstance(self, nn.Module):  # whose copies must not copy the game
            object.__setattr__(self, "own_value", keys.get("value") is True)
        else:
            self.own_game = arguments[0] if arguments else keys.get("game")
        kind.__init__(self, *arguments, **keys)

    return init


METHODS: dict[str, dict[str, Callable[[Any], Any]]] = {"logger": {}}
"""By group and method: what makes the method check what it returns."""


def checks(*methods: str) -> Callable[[Check], Check]:
    """Of a function: it checks what these methods return, each as GROUP.NAME."""

    def add(check: Check) -> Check:
        def wrap(method: Any) -> Any:
            def checking(self: Any, *arguments: Any, **keys: Any) -> Any:
                return check(self, method(self, *arguments, **keys), *arguments, **keys)

            return checking

        for name in methods:
            group, _, own = name.partition(".")
            METHODS.setdefault(group, {})[own] = wrap
        return check

    return add


def _count(number: int | None, things: str) -> str:
    return f"{number:,} {things}" if number != 1 else f"1 {things[:-1]}"


# Tensors


def check_tensor(
    part: Any,
    value: Any,
    shape: tuple[int | None, ...],
    rows: str,
    what: str = "",
    dtype: torch.dtype | None = None,
) -> Any:
    """The value if it is a tensor of real numbers of this shape, of which None is any size.

    rows: what its first dimension counts. what: what the tensor has, for errors; "" for all that a
    method returns. dtype: of the numbers; float32 stands for all types with which torch can compute
    gradients.
    """
    label, about = part.own_name, f" as {what}" if what else ""
    for_rows = f"{about} for {_count(shape[0], rows)}"
    sizes = ", ".join("any" if size is None else str(size) for size in shape)
    expected = f"expected a tensor of the shape [{sizes}]"
    if not isinstance(value, Tensor):
        raise ConfigError(f"{label} returned {kind_of_value(value)}{for_rows}", expected)
    is_same = value.dim() == len(shape) and all(
        size in (None, found) for size, found in zip(shape, value.shape, strict=False)
    )
    if not is_same:
        shown = f"the shape {list(value.shape)}"
        if value.dim() == len(shape) == 1:
            shown = _count(len(value), "numbers")
        raise ConfigError(f"{label} returned {shown}{for_rows}", expected)
    if value.is_complex():
        raise ConfigError(f"{label} returned complex numbers{for_rows}", "expected real ones")
    is_float = dtype == torch.float32 and value.is_floating_point()
    if dtype not in (None, value.dtype) and not is_float:
        found, wanted = (str(each).removeprefix("torch.") for each in (value.dtype, dtype))
        raise ConfigError(f"{label} returned {found}{about}", f"expected {wanted}")
    return value


def check_finite(part: Any, value: Tensor, what: str) -> None:
    """Raises NonFiniteError if one of the numbers is NaN or infinite."""
    if not bool(value.isfinite().all()):
        first = value[~value.isfinite()].flatten()[0].item()
        raise NonFiniteError(f"{part.own_name} returned {first} as {what}")


def check_actions(
    part: Any,
    action: Any,
    legal: Tensor,
    is_over: Tensor | None = None,
    name: Callable[[int, int], str] | None = None,
) -> Tensor:
    """Actions, int64 [B], that are legal, bool [B, A]; in rows that are over, any that exist.

    name: of an action in a row; None: its number only.
    """
    batch, count = legal.shape
    check_tensor(part, action, (batch,), "positions", "actions", torch.int64)
    exists = (action >= 0) & (action < count)
    if not bool(exists.all()):
        number = int(action[~exists][0])
        raise ConfigError(
            f"{part.own_name} chose action {number}, which does not exist",
            f"actions are numbers from 0 to {count - 1}",
        )
    is_legal = legal.gather(1, action[:, None].to(legal.device))[:, 0]
    if is_over is not None:
        is_legal = is_legal | is_over
    if not bool(is_legal.all()):
        row = int((~is_legal).nonzero()[0, 0])
        also = [str(number) for number in legal[row].nonzero()[:, 0].tolist()]
        move = ""
        with suppress(Exception):  # a user's game may be unable to name an illegal action
            move = "" if name is None else name(row, int(action[row]))
        raise ConfigError(
            f"{part.own_name} chose the illegal action {int(action[row])}"
            + f", {move}" * bool(move),
            f"legal in that position: {some(also)}",
        )
    checked_action: Tensor = action
    return checked_action


def check_probabilities(part: Any, value: Any, legal: Tensor, is_over: Tensor | None) -> Tensor:
    """Probabilities [B, A] that sum to 1 and are 0 for illegal actions, except in rows that are
    over."""
    check_tensor(part, value, tuple(legal.shape), "positions", "probabilities", torch.float32)
    p = value.detach()
    total = p.sum(1)
    illegal = p.masked_fill(legal.to(p.device), 0).abs().amax(1)
    lowest = p.amin(1)
    wrong = ~((total - 1).abs() <= MAX_ROUNDING) | ~(illegal <= MAX_ROUNDING)
    wrong |= ~(lowest >= -MAX_ROUNDING)
    if is_over is not None:
        wrong &= ~is_over.to(p.device)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0, 0])
        name = f"{part.own_name} returned probabilities"
        if not lowest[row] >= -MAX_ROUNDING:
            raise ConfigError(f"{name} as low as {float(lowest[row]):.4g}", "expected 0 to 1")
        if not illegal[row] <= MAX_ROUNDING:
            raise ConfigError(
                f"{name} of up to {float(illegal[row]):.4g} for illegal actions", "expected 0"
            )
        raise ConfigError(
            f"{name} that sum to {float(total[row]):.6g} in a position", "expected a sum of 1"
        )
    checked_value: Tensor = value
    return checked_value


# Parts by group


@checks("reward.rewards", "reward.returns")
def _rewards(part: Any, returned: Any, trajectories: Any, final_states: Any) -> Tensor:
    reward = check_tensor(part, returned, (len(trajectories),), "moves")
    check_finite(part, reward, "a reward")
    numbers: Tensor = reward.float()
    return numbers


def _check_scores(part: Any, returned: Any, batch: int | None, actions: int | None) -> Any:
    """Scores [B, A], and values [B] or None, which are finite at the first call."""
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise ConfigError(
            f"{part.own_name} returned {kind_of_value(returned)}",
            "expected scores and values, or scores and None",
        )
    scores, value = returned
    rows = batch
    if rows is None and isinstance(scores, Tensor) and scores.dim():
        rows = len(scores)
    shape = (rows, actions)
    check_tensor(part, scores, shape, "positions", "scores", torch.float32)
    if value is not None:
        check_tensor(part, value, (rows,), "positions", "values", torch.float32)
    elif part.own_value:
        raise ConfigError(
            f"{part.own_name} returned no values", "its learner needs one for each position"
        )
    if not vars(part).get("_was_called"):
        object.__setattr__(part, "_was_called", True)
        check_finite(part, scores, "a score")
        if value is not None:
            check_finite(part, value, "a value")
    return returned


@checks("policy.scores")
def _scores(part: Any, returned: Any, game: Any, state: Any) -> Any:
    return _check_scores(part, returned, len(state), game.spec.actions)


@checks("policy.value")
def _state_values(part: Any, returned: Any, game: Any, afterstate: Any) -> Any:
    return check_tensor(part, returned, (len(afterstate),), "positions", "values", torch.float32)


def _forward(method: Any) -> Any:
    def forward(self: Any, *inputs: Any, **keys: Any) -> Any:
        first = inputs[0] if inputs else next(iter(keys.values()))
        batch = len(first) if isinstance(first, Tensor) and first.dim() else None
        with batch_statistics_of_many(self, batch):
            returned = method(self, *inputs, **keys)
        return _check_scores(self, returned, batch, None)

    return forward


METHODS["policy"]["forward"] = _forward


@contextmanager
def batch_statistics_of_many(module: nn.Module, batch: int | None) -> Iterator[None]:
    """A block in which batch normalization uses its running statistics if a batch in training has
    only one row, which has no variance."""
    norms = []
    if batch == 1 and module.training:
        kind = nn.modules.batchnorm._BatchNorm
        norms = [each for each in module.modules() if isinstance(each, kind) and each.training]
    for norm in norms:
        norm.eval()
    try:
        yield
    finally:
        for norm in norms:
            norm.train()


@checks("sampling.choose")
def _chosen_by_rule(part: Any, action: Any, scores: Any, legal: Tensor, *_: Any, **__: Any) -> Any:
    return check_actions(part, action, legal)


@checks("sampling.choose_and_tell")
def _told_by_rule(part: Any, told: Any, scores: Any, legal: Tensor, *_: Any, **__: Any) -> Any:
    if not isinstance(told, tuple) or len(told) != 2:
        raise ConfigError(
            f"{part.own_name} returned {kind_of_value(told)}",
            "choose_and_tell returns actions and their log-probabilities",
        )
    check_actions(part, told[0], legal)
    check_tensor(part, told[1], (len(legal),), "positions", "log-probabilities", torch.float32)
    return told


@checks("sampling.logits")
def _logits(part: Any, logits: Any, scores: Any, legal: Tensor) -> Any:
    check_tensor(part, logits, tuple(legal.shape), "positions", "logits", torch.float32)
    if not bool((logits.detach() == -torch.inf).masked_fill(legal, True).all()):
        raise ConfigError(
            f"{part.own_name} returned logits that allow illegal actions", "expected -inf for them"
        )
    return logits


@checks("sampling.probabilities")
def _probabilities_of_rule(
    part: Any, p: Any, scores: Any, legal: Tensor, *_: Any, **__: Any
) -> Any:
    return check_probabilities(part, p, legal, None)


@checks("player.choose", "search.choose")
def _chosen(part: Any, action: Any, state: Any, *_: Any, **__: Any) -> Any:
    return check_actions(part, action, *_legal(part, state), _names(part, state))


@checks("player.act", "search.act")
def _decision(part: Any, decision: Any, state: Any, *_: Any, **__: Any) -> Any:
    legal, is_over = _legal(part, state)
    if not hasattr(decision, "action"):
        raise ConfigError(
            f"{part.own_name} returned {kind_of_value(decision)}", "act returns a Decision"
        )
    check_actions(part, decision.action, legal, is_over, _names(part, state))
    for name in ("log_prob", "value", "state_value"):
        if (column := getattr(decision, name, None)) is not None:
            check_tensor(part, column, (len(state),), "positions", name, torch.float32)
    if (target := getattr(decision, "target", None)) is not None:
        check_tensor(part, target, tuple(legal.shape), "positions", "target", torch.float32)
    return decision


@checks("player.probabilities", "search.probabilities")
def _probabilities(part: Any, p: Any, state: Any, *_: Any, **__: Any) -> Any:
    return check_probabilities(part, p, *_legal(part, state))


def _names(part: Any, state: Any) -> Callable[[int, int], str]:
    return lambda row, action: str(part.own_game.action_to_string(state, row, action))


def _legal(part: Any, state: Any) -> tuple[Tensor, Tensor]:
    """The legal actions of a player's positions, and where the game is over."""
    game = part.own_game
    state = state.to(game.device)
    return game.legal_action_mask(state), state.done


@checks("learner.update", "learner.evaluate")
def _update(part: Any, metrics: Any, *_: Any, **__: Any) -> dict[str, float]:
    return as_metrics(part.own_name, metrics)


@checks("learner.learn")
def _learn(part: Any, returned: Any, *_: Any, **__: Any) -> Any:
    final_states, metrics = returned
    return final_states, as_metrics(part.own_name, metrics)


@checks("game.legal_action_mask")
def _legal_mask(part: Any, legal: Any, state: Any) -> Tensor:
    shape = len(state), part.spec.actions
    check_tensor(part, legal, shape, "positions", "legal actions", torch.bool)
    if not bool((legal.any(1) | state.done).all()):
        turn = int(state.turn[~(legal.any(1) | state.done)][0])
        raise ConfigError(
            f"{part.own_name} has no legal action after {turn} turns of a game that is not over",
            "end the game there, or let the seat pass",
        )
    mask: Tensor = legal
    return mask


@checks("game.sample_legal_action")
def _sampled(part: Any, action: Any, state: Any, *_: Any, **__: Any) -> Any:
    check_tensor(part, action, (len(state),), "positions", "actions")
    exists = (action >= 0) & (action < part.spec.actions)
    if not bool(exists.all()):
        part.legal_action_mask(state)  # an action of -1 means that none is legal
        raise ConfigError(f"{part.own_name} sampled the action {int(action[~exists][0])}")
    return action


@checks("game.observe")
def _observation(part: Any, planes: Any, state: Any) -> Any:
    shape = (len(state), *part.spec.observation)
    return check_tensor(part, planes, shape, "positions", "observations", torch.float32)


@checks("game.apply_action", "game.step")
def _next_state(part: Any, after: Any, state: Any, *_: Any, **__: Any) -> Any:
    if type(after) is not type(state) or len(after) != len(state):
        shown = f"{len(after):,} positions" if hasattr(after, "done") else type(after).__name__
        raise ConfigError(
            f"{part.own_name} returned {shown} after a move in {len(state):,} positions",
            "apply_action returns one position for each",
        )
    seats = part.spec.seats
    check_tensor(part, after.score, (len(state), seats), "positions", "score")
    for name in ("done", "current_seat", "turn"):
        check_tensor(part, getattr(after, name), (len(state),), "positions", name)
    if not bool(((after.current_seat >= 0) & (after.current_seat < seats)).all()):
        raise ConfigError(
            f"{part.own_name} has a current_seat that does not exist",
            f"seats are numbers from 0 to {seats - 1}",
        )
    return after
