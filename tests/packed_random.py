"""The random numbers of kernels, and the new tiles that they place by the batched rules of 2048."""

import torch


class SplitMix64:
    """seed: its state."""

    def __init__(self, seed):
        self.random = seed

    def next_random(self):
        mask = (1 << 64) - 1
        self.random = (self.random + 0x9E3779B97F4A7C15) & mask
        bits = self.random
        bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 & mask
        bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB & mask
        return bits ^ (bits >> 31)


class PackedRandom(SplitMix64):
    """With the new tiles that it places."""

    def __init__(self, game, seed):
        super().__init__(seed)
        self.game = game

    def spawn(self, after):
        bits = self.next_random()
        empty = (self.game.tiles(after)[0] == 0).nonzero()[:, 0].tolist()
        cell = empty[(bits >> 32) * len(empty) >> 32]
        fours = round(self.game.fours * 2**32)
        u = torch.tensor([[empty.index(cell) + 0.5, 0.0 if bits & 0xFFFFFFFF < fours else 1.0]])
        u[0, 0] /= len(empty)
        return self.game.apply_chance(after, u)
