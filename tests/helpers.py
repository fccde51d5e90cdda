"""What several tests build: generators of random numbers."""

import torch


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
