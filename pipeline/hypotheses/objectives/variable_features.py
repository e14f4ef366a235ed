"""Features of variables whose moments give the dependence of all pairs of variables.

The inner products of features φ of x, and of features ψ of y, approximate Gaussian kernels. So
‖Cov(φ, ψ)‖²_F approximates HSIC_b. The second moments of all features, which are sums over rows,
therefore give the dependence of all pairs of variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from ...core.arrays import Floats, Integers
from ...core.sums import Sums
from ...data.store.sampling import MEDIAN_ROWS, median_distance, spread_rows


@dataclass(frozen=True, eq=False)
class VariableFeatures:
    """sin ωᵀx and cos ωᵀx of one variable, over the square root of the frequencies.

    Attributes
    ----------
    omega : float64, shape (k, L)
    """

    omega: Floats

    @classmethod
    def of(cls, sample: Floats, n_features: int, seed: int) -> VariableFeatures:
        """Return features of the Gaussian kernel of the sample's median distance.

        Frequencies are normal quantiles: of evenly spread fractions in one dimension, of a
        scrambled Halton sequence in several.
        """
        n_dims, n = sample.shape[1], n_features // 2
        if n_dims == 1:
            places = (np.arange(n) + 0.5)[:, None] / n / 2 + 0.5  # −ω has the features of ω
        else:
            halton = qmc.Halton(n_dims, scramble=True, rng=np.random.default_rng(seed))
            places = np.clip(halton.random(n), 1e-15, 1 - 1e-15)
        return cls(ndtri(places).T / median_distance(spread_rows(sample, MEDIAN_ROWS)))

    @property
    def n_features(self) -> int:
        """Numbers per row."""
        return int(2 * self.omega.shape[1])

    def __call__(self, rows: Floats) -> Floats:
        """Return the features of rows (n, k), shape (n, 2 L)."""
        angle = rows @ self.omega
        waves: Floats = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
        return waves / float(self.omega.shape[1] ** 0.5)


@dataclass(frozen=True, eq=False)
class Moments(Sums):
    """Sums over rows v, by fold.

    Attributes
    ----------
    n : float64, shape (n_folds,)
    first : shape (n_folds, D)
    second : shape (n_folds, D, D)
    """

    n: Floats
    first: Floats
    second: Floats

    @classmethod
    def zeros(cls, n_folds: int, n_columns: int) -> Moments:
        """Return the sums over no rows."""
        return cls(
            np.zeros(n_folds),
            np.zeros((n_folds, n_columns)),
            np.zeros((n_folds, n_columns, n_columns)),
        )

    def add(self, rows: Floats, folds: Integers) -> None:
        """Count rows, in place."""
        for fold in range(len(self.n)):
            part = rows[folds == fold]
            self.n[fold] += len(part)
            self.first[fold] += part.sum(axis=0)
            self.second[fold] += part.T @ part

    def centred(self, folds: Sequence[int]) -> tuple[Floats, Floats, float]:
        """Return the mean and the covariance of the rows of some folds, and their number."""
        n = float(self.n[list(folds)].sum())
        mean = self.first[list(folds)].sum(axis=0) / n
        covariance = self.second[list(folds)].sum(axis=0) / n - np.outer(mean, mean)
        return mean, covariance, n


def alignments(covariance: Floats, blocks: Sequence[slice], n: float) -> Floats:
    """Return the dependence of all pairs of variables, shape (J, J), from 0 to 1.

    The dependence is HSIC, less its mean for independent variables, tr C_x tr C_y / n. It is
    divided by the geometric mean of the HSIC of each variable with itself (centred kernel
    alignment).
    """
    J = len(blocks)
    aligned = np.empty((J, J))
    for i, block in enumerate(blocks):
        for j, other in enumerate(blocks[: i + 1]):
            value = (covariance[block, other] ** 2).sum()
            if i != j:
                chance = np.trace(covariance[block, block]) * np.trace(covariance[other, other]) / n
                value = max(0.0, value - chance)
            aligned[i, j] = aligned[j, i] = value
    own: Floats = np.sqrt(np.maximum(np.diag(aligned), 1e-300))
    return aligned / np.outer(own, own)
