"""Noise at the root of a search, for exploration in training."""

from __future__ import annotations

import torch
from torch import Tensor


def add_dirichlet_noise(
    prior: Tensor, fraction: float, total: float, rng: torch.Generator
) -> Tensor:
    """Prior, float32 [T, A], mixed with noise; illegal actions stay minus infinity.

    fraction: the share of the noise. total: the sum of the parameters of its symmetric Dirichlet
    distribution (Silver et al. 2018).
    """
    is_legal = prior >= 0
    parameter = total / is_legal.sum(1, keepdim=True).expand_as(prior)
    gamma = torch._standard_gamma(parameter.to(rng.device), generator=rng)
    noise = gamma.to(prior.device) * is_legal
    noise = noise / noise.sum(1, keepdim=True).clamp(min=1e-30)
    return torch.where(is_legal, (1 - fraction) * prior + fraction * noise, prior)
