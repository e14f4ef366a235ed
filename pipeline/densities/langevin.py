"""Langevin chains with Metropolis correction, which sample from an unnormalised density."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ..core.arrays import Floats

MAX_LANGEVIN_STEPS: Final = 10**6
CHAINS_AT_ONCE = 2**13  # number of chains whose features are in memory at a time
# Acceptance rate at which Langevin chains mix fastest (Roberts and Rosenthal 1998).
_TARGET = 0.57
ADAPTED_FRACTION = 0.5  # fraction of the steps during which the step length is adapted


def run_chains(
    log_density: Callable[[Floats], Floats],
    score: Callable[[Floats], Floats],
    first: Floats,
    covariance: Floats,
    n_steps: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the last point of each of n chains, shape (n, d).

    Parameters
    ----------
    log_density, score : callable
        Functions of points (n, d): log p up to a constant, shape (n,), and its gradient, shape
        (n, d).
    first : shape (n, d)
        Start of each chain.
    covariance : shape (d, d)
        Covariance of the steps up to a factor, which is adapted in the first half of the chain.
    n_steps : int
        Number of steps of each chain.
    rng : numpy Generator
        Random generator for all chains.
    """
    out = np.empty_like(first)
    for start in range(0, len(first), CHAINS_AT_ONCE):
        part = slice(start, start + CHAINS_AT_ONCE)
        out[part] = _run_part(log_density, score, first[part], covariance, n_steps, rng)
    return out


def _run_part(
    log_density: Callable[[Floats], Floats],
    score: Callable[[Floats], Floats],
    first: Floats,
    covariance: Floats,
    n_steps: int,
    rng: np.random.Generator,
) -> Floats:
    n, d = first.shape
    root: Floats = cholesky(covariance, lower=True)
    step = d ** (-1 / 3)  # order of magnitude for the target acceptance rate
    z, level, slope = first.copy(), log_density(first), score(first)
    for i in range(n_steps):
        noise = rng.standard_normal((n, d)) @ root.T
        new = z + 0.5 * step * slope @ covariance + step**0.5 * noise
        new_level, new_slope = log_density(new), score(new)
        # the noise that would lead back from the new point
        back = z - new - 0.5 * step * new_slope @ covariance
        ratio = new_level - level + 0.5 * _squares(noise, root) - _squares(back, root) / (2 * step)
        taken = np.log(rng.random(n)) < ratio
        z[taken], level[taken], slope[taken] = new[taken], new_level[taken], new_slope[taken]
        if i < ADAPTED_FRACTION * n_steps:
            step *= float(np.exp((taken.mean() - _TARGET) / (1 + i) ** 0.5))
    return z


def _squares(gaps: Floats, root: Floats) -> Floats:
    """Return gapᵀ C⁻¹ gap for each row, with C = root rootᵀ."""
    squares: Floats = (solve_triangular(root, gaps.T, lower=True) ** 2).sum(axis=0)
    return squares
