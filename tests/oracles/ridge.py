"""Ridge regression the direct way: whole matrices in double precision, solved and refitted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Solution = tuple[NDArray[np.float64], NDArray[np.float64]]


def statistics(z: NDArray, y: NDArray) -> dict[str, NDArray[np.float64]]:
    """n, Σz, ZᵀZ, Σy, YᵀZ and Σy² of rows z (n, D) with targets y (n, k)."""
    z, y = z.astype(np.float64), y.astype(np.float64)
    return {
        "n": np.array(float(len(z))),
        "sum_z": z.sum(axis=0),
        "gram": z.T @ z,
        "sum_y": y.sum(axis=0),
        "cross": y.T @ z,
        "sum_yy": (y**2).sum(axis=0),
    }


def ridge(z: NDArray, y: NDArray, alpha: float) -> Solution:
    """coef (k, D) and intercept (k,) of the penalised, centred problem; alpha 0 is least norm."""
    z, y = z.astype(np.float64), y.astype(np.float64)
    centred_z, centred_y = z - z.mean(axis=0), y - y.mean(axis=0)
    if alpha == 0:
        coef = np.linalg.lstsq(centred_z, centred_y, rcond=1e-12)[0]
    else:
        normal = centred_z.T @ centred_z + alpha * np.eye(z.shape[1])
        coef = np.linalg.solve(normal, centred_z.T @ centred_y)
    return coef.T, y.mean(axis=0) - coef.T @ z.mean(axis=0)


def predict(z: NDArray, solution: Solution) -> NDArray[np.float64]:
    coef, intercept = solution
    return z.astype(np.float64) @ coef.T + intercept


def gcv_scores(z: NDArray, y: NDArray, alphas: NDArray) -> NDArray[np.float64]:
    """Generalised cross-validation from the hat matrix H: (‖y − Hy‖²/n) / (1 − tr(H)/n)².

    Each target's score is divided by its variance; the mean over targets.
    """
    n = len(z)
    centred = z.astype(np.float64) - z.astype(np.float64).mean(axis=0)
    variance = y.var(axis=0)
    scores = []
    for alpha in alphas:
        normal = centred.T @ centred + alpha * np.eye(z.shape[1])
        hat = np.full((n, n), 1 / n) + centred @ np.linalg.solve(normal, centred.T)
        mse = ((y - hat @ y) ** 2).mean(axis=0)
        scores.append((mse / variance).mean() / (1 - np.trace(hat) / n) ** 2)
    return np.array(scores)


def validation_scores(
    z: NDArray, y: NDArray, held: NDArray[np.bool_], alphas: NDArray
) -> NDArray[np.float64]:
    """Errors on the held-out rows of a fit to the others, one fit a penalty, over the variance."""
    scores = []
    for alpha in alphas:
        error = y[held] - predict(z[held], ridge(z[~held], y[~held], alpha))
        scores.append(((error**2).mean(axis=0) / y[held].var(axis=0)).mean())
    return np.array(scores)


def hat_matrix(z: NDArray, alpha: float) -> NDArray[np.float64]:
    """H of ŷ = Hy, of the penalised problem with its intercept, shape (n, n)."""
    centred = z - z.mean(axis=0)
    normal = centred.T @ centred + alpha * np.eye(z.shape[1])
    return 1 / len(z) + centred @ np.linalg.solve(normal, centred.T)


def gp_variance(z: NDArray, new: NDArray, alpha: float) -> NDArray[np.float64]:
    """Posterior variances at new rows of a Gaussian process with covariance z·z'/λ, noise 1 and
    an unknown mean ("ordinary kriging"), by the inverse over the n bags; shape (m,).
    """
    mean = z.mean(axis=0)  # an unknown mean makes the origin of z arbitrary
    z, new = z - mean, new - mean
    inverse = np.linalg.inv(z @ z.T / alpha + np.eye(len(z)))
    cross, ones = new @ z.T / alpha, np.ones(len(z))
    known = (new**2).sum(axis=1) / alpha - np.einsum("ij,jk,ik->i", cross, inverse, cross)
    return known + (1 - cross @ inverse @ ones) ** 2 / (ones @ inverse @ ones)


def partial_ridge(z: NDArray, a: NDArray, y: NDArray, alpha: float, beside: float) -> Solution:
    """`ridge` on [z, a] with the penalty ``alpha`` on z and ``beside`` on a."""
    both = np.hstack([z, a]).astype(np.float64)
    centred, penalties = both - both.mean(axis=0), [alpha] * z.shape[1] + [beside] * a.shape[1]
    coef = np.linalg.solve(
        centred.T @ centred + np.diag(penalties), centred.T @ (y - y.mean(axis=0))
    )
    return coef.T, y.mean(axis=0) - coef.T @ both.mean(axis=0)


def partial_gcv(
    z: NDArray, a: NDArray, y: NDArray, alphas: NDArray, beside: float
) -> NDArray[np.float64]:
    """`gcv_scores` of `partial_ridge`: of columns that have the penalty 1 once they are scaled."""
    scaled = [
        gcv_scores(np.hstack([z / np.sqrt(alpha), a / np.sqrt(beside)]), y, np.ones(1))
        for alpha in alphas
    ]
    return np.concatenate(scaled)


def own_ridge(z: NDArray, a: NDArray, y: NDArray, alpha: float) -> Solution:
    """`ridge` of what each target is beyond its regression on one column of a."""
    varies = a.var(axis=0) > 0
    slopes = [np.cov(a[:, j], y[:, j])[0, 1] / a[:, j].var(ddof=1) if varies[j] else 0.0
              for j in range(a.shape[1])]  # fmt: skip
    coef, intercept = ridge(z, y - a * slopes, alpha)
    return np.hstack([coef, np.diag(slopes)]), intercept
