"""Noise at the root of a search, for exploration in training."""

from __future__ import annotations

import torch
from torch import Tensor


def add_dirichlet_noise(prior: Tensor, fraction: float, total: float, rng: torch.Generator) -> None:
    """Mix prior, float32 [T, A] on the CPU, with noise; illegal actions stay minus infinity.

    fraction: the share of the noise. total: the sum of the parameters of its symmetric Dirichlet
    distribution (Silver et al. 2018).
    """
    from rlgames.kernels.tree_search import mix_noise, noise_parameters

    parameter = torch.empty_like(prior)
    noise_parameters(prior.numpy(), total, parameter.numpy())
    gamma = torch._standard_gamma(parameter.to(rng.device), generator=rng)
    mix_noise(prior.numpy(), fraction, gamma.cpu().numpy())
