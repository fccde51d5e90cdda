"""What TD learners compute in kernels, in plain Python: random numbers, new tiles, corrections."""

from collections import Counter

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


class PlainValues:
    """Values of n-tuples and their statistics, as float64 in dictionaries."""

    def __init__(self, *, coherent, td_lambda, lr):
        self.coherent, self.td_lambda, self.lr = coherent, td_lambda, lr
        self.values, self.errors, self.sizes = {}, {}, {}
        self.total = 0.0

    def value(self, indices):
        return sum(self.values.get(index, 0.0) for index in indices)

    def learn(self, indices, target):
        """Correct the values of all indices towards a target for their sum."""
        error = target - self.value(indices)
        self.total += abs(error)
        for index, count in Counter(indices).items():
            part = error / len(indices)
            errors, sizes = self.errors.get(index, 0.0), self.sizes.get(index, 0.0)
            rate = self.lr * (abs(errors) / sizes if self.coherent and sizes else 1.0)
            step = (1 - (1 - rate) ** count) * part
            self.values[index] = self.values.get(index, 0.0) + step
            self.errors[index], self.sizes[index] = errors + part, sizes + abs(part)
