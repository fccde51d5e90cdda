"""What needs a capability asks for it by name; no method of a game fails only when it is called."""

from pathlib import Path

import helpers
import pytest
import torch

from rlgames.config.registry import REGISTRY
from rlgames.games import capabilities
from rlgames.games.capabilities import (
    Capability,
    Chance,
    ExactKey,
    HiddenInformation,
    MissingCapability,
    Symmetric,
    check_declared,
    find,
    require,
)
from rlgames.games.hex import Hex
from rlgames.games.k_in_a_row import KInARow
from rlgames.games.symmetry import action_symmetries, cell_symmetries

GAMES = [*REGISTRY["game"]]
CAPABILITIES = [
    each
    for each in vars(capabilities).values()
    if isinstance(each, type) and issubclass(each, Capability) and each is not Capability
]

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-game.md"


@pytest.mark.parametrize("name", GAMES)
def test_every_capability_of_a_game_can_be_asked_for_by_its_name(name):
    game = helpers.make_small_game(name)
    check_declared(game)
    for capability in CAPABILITIES:
        if find(game, capability) is None:
            with pytest.raises(MissingCapability, match=f"x needs {capability.__name__}, which"):
                require(game, capability, "x")
        else:
            assert require(game, capability, "x") is game


def test_what_the_spec_declares_has_to_be_defined():
    game = KInARow(3, 3, 3, False)
    for declared, capability in (
        ({"hidden": True}, HiddenInformation),
        ({"num_chance_inputs": 1}, Chance),
    ):
        spec = game.spec
        game.spec = type(spec)(**vars(spec) | declared)
        with pytest.raises(MissingCapability, match=capability.__name__):
            check_declared(game)
        game.spec = spec


def test_a_game_says_in_lacks_what_it_does_not_have_on_some_boards():
    large = Hex(11, True)
    with pytest.raises(MissingCapability, match="does not have: its positions are too many"):
        require(large, ExactKey, "x")
    assert find(Hex(3, True), ExactKey)


def test_without_the_capability_a_game_has_the_identity_as_its_only_symmetry():
    class Asymmetric(Hex):
        def lacks(self, capability):
            return "nobody looked" if capability is Symmetric else super().lacks(capability)

    game = Asymmetric(3, False)
    assert torch.equal(cell_symmetries(game), torch.arange(9)[None])
    assert torch.equal(action_symmetries(game), torch.arange(9)[None])


def test_the_page_on_adding_a_game_lists_all_capabilities():
    text = PAGE.read_text(encoding="utf-8")
    for each in CAPABILITIES:
        (row,) = (line for line in text.splitlines() if line.startswith(f"| `{each.__name__}` |"))
        assert row.endswith(f"| {each.__doc__.splitlines()[0]} |")
        assert all(f"`{name}`" in row for name in each.__abstractmethods__)
