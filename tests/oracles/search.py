"""Active search by its definitions: every posterior solved anew, every expectation drawn."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri


def posterior(prior, noise, observed, prior_mean=0.0):
    """Mean (n, m) and covariance (n, n) given [(place, values)], from one system of equations."""
    at = [place for place, _ in observed]
    values = np.array([values for _, values in observed]) - prior_mean
    among = prior[np.ix_(at, at)] + noise * np.eye(len(at))
    mean = prior_mean + prior[:, at] @ np.linalg.solve(among, values)
    return mean, prior - prior[:, at] @ np.linalg.solve(among, prior[at])


def chance(weights, offset, mean, covariance):
    """E Φ(Σ w f + b) by quadrature over the distribution of the sum; weights (n, m)."""
    x = np.linspace(-9, 9, 601)
    w = np.exp(-(x**2) / 2)
    centre = sum(weights[:, j] @ mean[:, j] for j in range(weights.shape[1])) + offset
    variance = sum(row @ covariance @ row for row in weights.T)
    return w @ ndtr(centre + np.sqrt(variance) * x) / w.sum()


def reward(weights, offset, prior, noise, observed, place, threshold, n_draws, rng):
    """The share of drawn observations at a place after which the chance exceeds the threshold."""
    mean, covariance = posterior(prior, noise, observed)
    result = []
    for _ in range(n_draws):
        spread = np.sqrt(covariance[place, place] + noise)
        values = mean[place] + spread * rng.standard_normal(mean.shape[1])
        after = posterior(prior, noise, [*observed, (place, values)])
        result.append(chance(weights, offset, *after) > threshold)
    return np.mean(result)


def reward_by_correlation(chance, threshold, rho):
    """u = Φ(Φ⁻¹(θ)(R − √(1 − ρ²))/ρ), R = Φ⁻¹(T)/Φ⁻¹(θ); undefined at θ = ½."""
    level = ndtri(threshold)
    ratio = ndtri(chance) / level
    return ndtr(level * (ratio - np.sqrt(1 - rho**2)) / rho)
