"""Random streams: one generator per use, from a seed and a name."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

STATE_SIZE = 624
"""The number of words in the state of the Mersenne Twister."""

STATE_OFFSET = 24
"""Where they start in the bytes of a CPU generator's state; each takes eight bytes."""

TORCH_STREAM = "torch"
"""Of torch's own generators, from which a part of the user may draw."""

SELECTION_STREAM = "eval"
"""Evaluations during training, which select the best checkpoint of a run."""

FINAL_STREAM = "final"
"""The evaluation at the end of a run, which may select the best run of a search."""

REPORT_STREAM = "report"
"""The games of `rlgames eval`. An arena has a stream for each pair of players."""


def make_generator(seed: int, name: str, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator for one use of randomness. Equal seeds and names give equal numbers.

    On the CPU, manual_seed ignores all but 32 bits of a seed, so that two of 77,000 streams would
    more likely than not be the same. The whole state is set here instead, from all bits.
    """
    sequence = np.random.SeedSequence([seed, *name.encode()])
    generator = torch.Generator(device)
    if generator.device.type != "cpu":
        words = sequence.generate_state(2, np.uint32)
        return generator.manual_seed(int(words[0]) << 32 | int(words[1]))
    words = sequence.generate_state(STATE_SIZE, np.uint32)
    words[0] = 1 << 31  # the highest bit is the only one of this word that is used: never all zero
    state = generator.manual_seed(0).get_state()
    rows = state[STATE_OFFSET : STATE_OFFSET + 8 * STATE_SIZE].view(torch.int64)
    rows.copy_(torch.from_numpy(words.astype(np.int64)))
    generator.set_state(state)
    return generator


def restore_generator(generator: torch.Generator, state: Tensor) -> bool:
    """Set a generator to a state read from a file; False if the state is of another device type.

    Raises ValueError for an invalid state.
    """
    if state.dtype != torch.uint8 or state.dim() != 1:
        raise ValueError("invalid generator state")
    if len(state) != len(generator.get_state()):
        return False
    if generator.device.type == "cpu":
        left, _, next_index = struct.unpack("<iiQ", bytes(state[8:24].tolist()))
        # The Mersenne Twister has 624 numbers; PyTorch would read past them.
        if left + next_index != 625 and (left, next_index) != (1, 0):
            raise ValueError("invalid generator state")
    generator.set_state(state)
    return True


def torch_generators(device: torch.device) -> dict[str, torch.Generator]:
    """Torch's own generators, which a part of the user may draw from: on the CPU and on a GPU."""
    generators = {"torch": torch.default_generator}
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        generators["torch_cuda"] = torch.cuda.default_generators[index]
    return generators


@contextmanager
def torch_seeded(seed: int, name: str, device: torch.device | str = "cpu") -> Iterator[None]:
    """A block in which torch's own generators give the numbers of a stream; after it they go on as
    if there had been none."""
    generators = torch_generators(torch.device(device))
    before = [generator.get_state() for generator in generators.values()]
    for generator in generators.values():
        generator.set_state(make_generator(seed, name, generator.device).get_state())
    try:
        yield
    finally:
        for generator, state in zip(generators.values(), before, strict=True):
            generator.set_state(state)


def cpu_generator(rng: torch.Generator) -> torch.Generator:
    """The generator, or one seeded by it on the CPU, where hidden information is sampled."""
    if rng.device.type == "cpu":
        return rng
    seed = torch.randint(2**62, (1,), generator=rng, device=rng.device)
    return make_generator(int(seed), "hidden")
