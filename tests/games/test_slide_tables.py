"""2048's tables say of every line what the rule itself computes."""

import pytest
import torch

from rlgames.games.slide_tables import ComputedSlides, TabledSlides


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (3, 3), (2, 3), (3, 2), (1, 4), (4, 1)])
def test_what_is_looked_up_is_what_is_computed(rows, columns):
    rng, boards, cells = torch.Generator().manual_seed(0), 3000, rows * columns
    tabled, computed = TabledSlides(rows, columns, cells + 2), ComputedSlides(rows, columns)
    tiles = torch.randint(0, cells + 1, (boards, cells), generator=rng, dtype=torch.uint8)
    tiles[: boards // 2].clamp_(max=2)
    tiles[::3] *= torch.rand(boards // 3, cells, generator=rng) < 0.5
    open_ = computed.legal_actions(tiles)
    assert 0 < open_.float().mean() < 1
    assert torch.equal(tabled.legal_actions(tiles), open_)
    for action in range(4):
        every = torch.full((boards,), action)
        slid, gain = computed.slide(tiles, every)
        found, made = tabled.slide(tiles, every)
        assert torch.equal(found, slid)
        assert torch.equal(made, gain)
        assert torch.equal((slid != tiles).any(1), open_[:, action])
