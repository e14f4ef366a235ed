"""A Dirichlet-process mixture of Gaussians as the prior of frequencies (Oliva 2018, §6.2.1).

π ~ GEM(α); Σ_k ~ IW(Ψ₀, ν₀); μ_k | Σ_k ~ N(0, Σ_k / κ₀); Z_j ~ π; ω_j ~ N(μ_{Z_j}, Σ_{Z_j}).

Frequencies are in units of 1/σ: Ψ₀ and ν₀ are such that the mean of Σ_k is I, a Gaussian kernel of
width σ. ω and −ω are one feature, so what is compared are kernels, never mixtures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln, logsumexp

from ...core.arrays import Floats, Integers

Generator = np.random.Generator

FREE_DIMS = 2  # ν₀ beyond the dimension of Σ_k: the least integer for which its mean exists
MIN_STEP = 0.03  # length of a short step, in units of a component's width; the longest step is 1
MIN_STICK = 1e-12  # a remainder of GEM(α) below it is given to the last component


class _Family(Protocol):
    """Gaussians of one kind of covariance, with their conjugate prior."""

    def log_prior(self, omega: Floats) -> Floats:
        """Return log ∫ N(ω | μ, Σ) dP(μ, Σ) of rows (n, d), a Student t; shape (n,)."""

    def draw(self, members: Floats, generator: Generator) -> tuple[Floats, Floats]:
        """Draw the mean (d,) and a root of the covariance, given the members (m, d), m ≥ 0."""

    def whiten(self, offsets: Floats, root: Floats) -> tuple[Floats, float]:
        """Return rows (n, d) by the inverse of the root, and the logarithm of its determinant."""

    def spread(self, root: Floats, normal: Floats) -> Floats:
        """Return standard normal rows (n, d) times the root of the covariance."""


@dataclass(frozen=True)
class Diagonal:
    """Diagonal covariances: a prior for each coordinate, O(d) in all."""

    tightness: float  # κ₀

    def log_prior(self, omega: Floats) -> Floats:
        """Return log ∫ N(ω | μ, Σ) dP(μ, Σ) of rows (n, d), a Student t; shape (n,)."""
        logs: Floats = _log_student(omega**2, 1, self.tightness).sum(axis=1)
        return logs

    def draw(self, members: Floats, generator: Generator) -> tuple[Floats, Floats]:
        """Draw the mean (d,) and a root of the covariance, given the members (m, d), m ≥ 0."""
        m, total, kappa = len(members), members.sum(axis=0), self.tightness + len(members)
        mean = total / kappa
        # Ψ₀ + S + κ₀m/(κ₀+m) W̄² in one sum, without cancellation
        squares = (FREE_DIMS - 1) + ((members - mean) ** 2).sum(axis=0) + self.tightness * mean**2
        root = np.sqrt(squares / generator.chisquare(1 + FREE_DIMS + m, len(mean)))
        return mean + root * generator.standard_normal(len(mean)) / np.sqrt(kappa), root

    def whiten(self, offsets: Floats, root: Floats) -> tuple[Floats, float]:
        """Return rows (n, d) by the inverse of the root, and the logarithm of its determinant."""
        return offsets / root, float(np.log(root).sum())

    def spread(self, root: Floats, normal: Floats) -> Floats:
        """Return standard normal rows (n, d) times the root of the covariance."""
        return normal * root


@dataclass(frozen=True)
class Full:
    """Full covariances, by the inverse Wishart distribution of the thesis: O(d³)."""

    tightness: float  # κ₀

    def log_prior(self, omega: Floats) -> Floats:
        """Return log ∫ N(ω | μ, Σ) dP(μ, Σ) of rows (n, d), a Student t; shape (n,)."""
        return _log_student((omega**2).sum(axis=1), omega.shape[1], self.tightness)

    def draw(self, members: Floats, generator: Generator) -> tuple[Floats, Floats]:
        """Draw the mean (d,) and a root of the covariance, given the members (m, d), m ≥ 0."""
        m, d = members.shape
        kappa = self.tightness + m
        mean = members.sum(axis=0) / kappa
        centred = members - mean
        scale = (
            (FREE_DIMS - 1) * np.eye(d)
            + centred.T @ centred
            + self.tightness * np.outer(mean, mean)
        )
        # Σ⁻¹ ~ W(ν, Ψ⁻¹) by Bartlett: C⁻ᵀAAᵀC⁻¹ for Ψ = CCᵀ and A of normal and χ numbers
        lower = np.tril(generator.standard_normal((d, d)), -1)
        lower[np.diag_indices(d)] = np.sqrt(generator.chisquare(d + FREE_DIMS + m - np.arange(d)))
        turned = solve_triangular(lower, np.linalg.cholesky(scale).T, lower=True)
        root = np.linalg.cholesky(turned.T @ turned)
        return mean + root @ generator.standard_normal(d) / np.sqrt(kappa), root

    def whiten(self, offsets: Floats, root: Floats) -> tuple[Floats, float]:
        """Return rows (n, d) by the inverse of the root, and the logarithm of its determinant."""
        scaled = solve_triangular(root, offsets.T, lower=True, check_finite=False).T
        return scaled, float(np.log(root.diagonal()).sum())

    def spread(self, root: Floats, normal: Floats) -> Floats:
        """Return standard normal rows (n, d) times the root of the covariance."""
        return normal @ root.T


FAMILIES: dict[str, Callable[[float], _Family]] = {"diagonal": Diagonal, "full": Full}


def _log_student(squares: Floats, d: int, tightness: float) -> Floats:
    """Return the log density of ν₀ − d + 1 degrees of freedom in d dimensions, by ‖ω‖²."""
    df = FREE_DIMS + 1
    spread = (FREE_DIMS - 1) * (1 + 1 / tightness)  # df times the squared scale
    constant = gammaln((df + d) / 2) - gammaln(df / 2) - 0.5 * d * np.log(np.pi * spread)
    log_values: Floats = constant - 0.5 * (df + d) * np.log1p(squares / spread)
    return log_values


def log_density(family: _Family, omega: Floats, mean: Floats, root: Floats) -> Floats:
    """Return log N(ω | μ, Σ) of rows (n, d), shape (n,)."""
    scaled, log_width = family.whiten(omega - mean, root)
    density: Floats = -0.5 * (scaled**2 + np.log(2 * np.pi)).sum(axis=1) - log_width
    return density


@dataclass(frozen=True)
class Mixture:
    """Components, and which one each frequency is of.

    Attributes
    ----------
    family : Family
    concentration : float
        α of the Dirichlet process.
    labels : int64, shape (m,)
    means : list of arrays (d,)
    roots : list of arrays
        Square roots of the covariances, as the family has them.
    """

    family: _Family
    concentration: float
    labels: Integers
    means: list[Floats]
    roots: list[Floats]

    def with_components(self, omega: Floats, generator: Generator) -> Mixture:
        """Draw every component from its posterior given its members; the empty ones go."""
        used, labels = np.unique(self.labels, return_inverse=True)
        drawn = [self.family.draw(omega[labels == k], generator) for k in range(len(used))]
        means, roots = ([parameters[i] for parameters in drawn] for i in (0, 1))
        return replace(self, labels=labels, means=means, roots=roots)

    def with_labels(self, omega: Floats, generator: Generator) -> Mixture:
        """Draw the component of each frequency in turn, given those of all others."""
        labels, means, roots = self.labels.copy(), [*self.means], [*self.roots]
        counts = np.bincount(labels, minlength=len(means)).astype(np.float64)
        density = self._densities(omega, means, roots)
        new = np.log(self.concentration) + self.family.log_prior(omega)
        picks = generator.random(len(labels))
        for j in range(len(labels)):
            counts[labels[j]] -= 1
            with np.errstate(divide="ignore"):  # an empty component is never chosen again
                scores = np.append(np.log(counts) + density[j], new[j])
            chances = np.cumsum(np.exp(scores - logsumexp(scores)))
            k = min(int(np.searchsorted(chances, picks[j] * chances[-1])), len(counts))
            if k == len(counts):
                mean, root = self.family.draw(omega[j : j + 1], generator)
                means.append(mean)
                roots.append(root)
                counts = np.append(counts, 0.0)
                column = log_density(self.family, omega, mean, root)
                density = np.column_stack([density, column])
            labels[j] = k
            counts[k] += 1
        return replace(self, labels=labels, means=means, roots=roots)

    def propose(self, omega: Floats, generator: Generator) -> tuple[Mixture, Floats]:
        """Draw another frequency, with its component, for each: shape (m, d).

        Half of them come from the whole mixture, the others from a step of any length in their own
        component, along one or more of its coordinates. Neither changes the prior's distribution,
        so the ratio of the evidence alone decides whether one is accepted; and none depends on what
        was decided for another.

        The thesis draws ω_j from its own component: it cannot leave a mode that has no others.
        """
        m, d = omega.shape
        picks = generator.random(m)
        grown, weights = self._with_rest(float(np.max(picks)), d, generator)
        ends = np.cumsum(weights)
        anywhere = generator.random(m) < 0.5
        elsewhere = np.minimum(np.searchsorted(ends, picks), len(ends) - 1)
        labels = np.where(anywhere, elsewhere, self.labels)
        steps = np.where(anywhere, 1.0, np.exp(np.log(MIN_STEP) * generator.random(m)))
        shares = np.where(anywhere, 1.0, d ** -generator.random(m))
        steps = steps[:, None] * (generator.random((m, d)) < shares[:, None])
        normal, out = generator.standard_normal((m, d)), np.empty((m, d))
        for k in np.unique(labels):
            rows, mean, root = labels == k, grown.means[k], grown.roots[k]
            white, _ = self.family.whiten(omega[rows] - mean, root)
            moved = np.sqrt(1 - steps[rows] ** 2) * white + steps[rows] * normal[rows]
            out[rows] = mean + self.family.spread(root, moved)
        return replace(grown, labels=labels), out

    def _with_rest(self, needed: float, d: int, generator: Generator) -> tuple[Mixture, Floats]:
        """Draw π, and of its components without members as many as make up the share needed."""
        counts = np.bincount(self.labels, minlength=len(self.means))
        drawn = generator.dirichlet([*counts, self.concentration]).tolist()
        weights, rest = drawn[:-1], drawn[-1]
        means, roots = [*self.means], [*self.roots]
        while sum(weights) < needed and rest > MIN_STICK:
            weights.append(rest * generator.beta(1, self.concentration))
            rest -= weights[-1]
            mean, root = self.family.draw(np.empty((0, d)), generator)
            means.append(mean)
            roots.append(root)
        return replace(self, means=means, roots=roots), np.array(weights)

    def _densities(self, omega: Floats, means: list[Floats], roots: list[Floats]) -> Floats:
        pairs = zip(means, roots, strict=True)
        return np.stack([log_density(self.family, omega, *pair) for pair in pairs], axis=1)
