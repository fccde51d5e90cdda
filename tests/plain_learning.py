"""What TD learners compute in kernels, in plain Python."""

from collections import Counter


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
