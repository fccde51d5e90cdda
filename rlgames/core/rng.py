"""Streams of chance: a generator for each use, by seed and name, and going on with one."""

from __future__ import annotations

import struct

import numpy as np
import torch
from torch import Tensor


def make_generator(seed: int, name: str, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator of its own for each use of chance: the same seed and name, the same numbers."""
    words = np.random.SeedSequence([seed, *name.encode()]).generate_state(2, np.uint32)
    return torch.Generator(device).manual_seed(int(words[0]) << 32 | int(words[1]))


def restore_generator(generator: torch.Generator, state: Tensor) -> bool:
    """Have a generator go on from a state that a file tells; False where it cannot, as that is of
    another kind of device. Raises ValueError for a state that cannot be."""
    if state.dtype != torch.uint8 or state.dim() != 1:
        raise ValueError("a generator has no such state")
    if len(state) != len(generator.get_state()):
        return False
    if generator.device.type == "cpu":
        left, _, after = struct.unpack("<iiQ", bytes(state[8:24].tolist()))
        # PyTorch would read on beyond its 624 numbers.
        if left + after != 625 and (left, after) != (1, 0):
            raise ValueError("a generator has no such state")
    generator.set_state(state)
    return True
