"""Random streams: one generator per use, from a seed and a name."""

from __future__ import annotations

import struct

import numpy as np
import torch
from torch import Tensor


def make_generator(seed: int, name: str, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator for one use of randomness. Equal seeds and names give equal numbers."""
    words = np.random.SeedSequence([seed, *name.encode()]).generate_state(2, np.uint32)
    return torch.Generator(device).manual_seed(int(words[0]) << 32 | int(words[1]))


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
