"""Errors of kernel ridge regression over folds, from sums: embeddings and widths are chosen by it.

Every fold has the sums ZᵀZ, ZᵀY of its own rows. A model is solved from the sums of all folds
without one, and judged on the rows of that one. Z are the features of landmarks (Nyström): with no
more rows than `LANDMARKS` they are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ...arrays import Floats, Integers
from ...store import spread_rows

LANDMARKS = 512  # a product of 2,000 rows with them, and a Cholesky factor, take milliseconds
JITTER = 1e-8  # of the kernel of landmarks, so that equal bags leave it positive definite
EXPONENTS = np.arange(-7.0, 1.75, 0.5)  # of penalties per bag: what sums in float32 resolve
FIRST = int(np.flatnonzero(EXPONENTS == -3.0)[0])  # where a search begins
MOST_FOLDS = 5
FOLD_SEED = 5  # apart from those of the splits in `bags` and of `cross_val_score`
REPEATED_BAGS = 1000  # fewer bags are cut into folds several times, which costs little
MOST_REPEATS = 4


@dataclass(frozen=True, eq=False)
class FoldRows:
    """Rows that errors are taken of.

    Attributes
    ----------
    y : float64, shape (n, k)
        Encoded labels; each column's squared errors are divided by its unit.
    folds : int64, shape (n_repeats, n)
        The fold of each row, in each repeat.
    units : float64, shape (k,)
    weights : float64, shape (n,)
    clusters : int64, shape (n,)
        Rows with one number are not independent: standard errors are over these.
    """

    y: Floats
    folds: Integers
    units: Floats
    weights: Floats
    clusters: Integers

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.y)

    @property
    def landmarks(self) -> Integers:
        """The rows that features are taken from."""
        return spread_rows(np.arange(len(self)), LANDMARKS)

    def mean(self, losses: Floats) -> float:
        """Return the weighted mean of losses, shape (n,)."""
        return float(self.weights @ losses / self.weights.sum())

    def standard_error(self, losses: Floats) -> float:
        """Return the standard error of the mean of losses, shape (n,), over the clusters."""
        left = self.weights * (losses - self.mean(losses))
        sums = np.bincount(self.clusters, weights=left)
        n = max(2, len(sums))
        return float(np.sqrt((sums**2).sum() * n / (n - 1)) / self.weights.sum())


@dataclass(frozen=True, eq=False)
class FoldErrors:
    """Errors of one kernel over the folds.

    Attributes
    ----------
    losses : float64, shape (n,)
        Of each row by models not fitted to it, with the best penalty: 1 on average of the mean.
    error : float
        Their mean.
    alpha : float
        The best penalty, per bag fitted.
    """

    losses: Floats
    error: float
    alpha: float


def choose_folds(
    n: int, classes: Integers | None = None, groups: Integers | None = None
) -> Integers:
    """Return the fold of each row, shape (n_repeats, n): equally many rows in each fold.

    Folds have whole groups, or else as equal shares of each class as can be. With fewer groups, or
    rows, than folds there are as many folds as these.
    """
    n_repeats = int(np.clip(REPEATED_BAGS // max(1, n), 1, MOST_REPEATS))
    rng = np.random.Generator(np.random.Philox(key=np.array([FOLD_SEED, 0], np.uint64)))
    folds = np.empty((n_repeats, n), dtype=np.int64)
    for repeat in range(n_repeats):
        order = rng.permutation(n)
        if groups is not None:
            folds[repeat] = _folds_of_groups(groups, order)
            continue
        if classes is not None:
            order = order[np.argsort(classes[order], kind="stable")]
        folds[repeat, order] = np.arange(n) % min(MOST_FOLDS, n)
    return folds


def _folds_of_groups(groups: Integers, order: Integers) -> Integers:
    """Put whole groups, the largest first and equal ones in a random order, to the least fold."""
    sizes = np.bincount(groups)
    _, first = np.unique(groups[order], return_index=True)
    by_size = np.lexsort((first, -sizes))
    n_folds = min(MOST_FOLDS, len(sizes))
    filled, of_group = np.zeros(n_folds), np.empty(len(sizes), dtype=np.int64)
    for group in by_size.tolist():
        of_group[group] = int(filled.argmin())
        filled[of_group[group]] += sizes[group]
    return of_group[groups]


def squared_distances(rows: Floats, landmarks: Integers) -> Floats:
    """Return ‖a_i − a_j‖² of rows (n, s) and of their landmarks j, shape (n, m)."""
    rows = np.asarray(rows, np.float64)
    rows = rows - rows.mean(axis=0)
    squares = (rows**2).sum(axis=1)
    distances = squares[:, None] + squares[landmarks] - 2 * (rows @ rows[landmarks].T)
    distances[landmarks, np.arange(len(landmarks))] = 0.0
    return np.maximum(distances, 0.0)


def median_of(distances: Floats) -> float:
    """Return the median distance of two rows; 1 where most are equal."""
    median = float(np.sqrt(np.median(distances)))
    return median if median > 1e-7 * float(np.sqrt(distances.max(initial=0.0))) else 1.0


def landmark_features(kernel: Floats, landmarks: Integers) -> Floats:
    """Return Z with Z Zᵀ = the Nyström approximation of a kernel (n, m), shape (n, m)."""
    square = kernel[landmarks]
    square = 0.5 * (square + square.T)
    scale = float(np.trace(square)) / len(square) or 1.0
    for jitter in (JITTER, 1e-6, 1e-4):
        square[np.diag_indices(len(square))] += jitter * scale
        try:
            factor = scipy.linalg.cholesky(square, lower=True)
        except scipy.linalg.LinAlgError:
            continue
        solved = scipy.linalg.solve_triangular(factor, kernel.T, lower=True)
        return np.ascontiguousarray(solved.T)
    raise scipy.linalg.LinAlgError("the kernel of the landmarks is not positive definite")


def fold_errors(z: Floats, rows: FoldRows, near: float | None = None) -> FoldErrors:
    """Return the errors of ridge regression on features (n, m), with the best of all penalties.

    The search of penalties begins at ``near``, and goes downhill.
    """
    repeats = [_Repeat(z, rows, folds) for folds in rows.folds]
    start = FIRST if near is None else int(np.abs(EXPONENTS - np.log10(near)).argmin())

    def losses_at(i: int) -> Floats:
        each = [repeat.losses(10.0 ** EXPONENTS[i]) for repeat in repeats]
        mean: Floats = np.mean(each, axis=0)
        return mean

    best, losses = _downhill(losses_at, rows.mean, start)
    return FoldErrors(losses, rows.mean(losses), float(10.0 ** EXPONENTS[best]))


def _downhill(
    losses_at: Callable[[int], Floats], mean: Callable[[Floats], float], start: int
) -> tuple[int, Floats]:
    """Return where the mean of losses is least, going downhill, and the losses there."""
    found: dict[int, tuple[float, Floats]] = {}

    def at(i: int) -> float:
        if i not in found:
            losses = losses_at(i)
            found[i] = mean(losses), losses
        return found[i][0]

    best, step = start, 0
    while step is not None:
        best += step
        steps = (i for i in (1, -1) if 0 <= best + i < len(EXPONENTS))
        step = next((i for i in steps if at(best + i) < at(best)), None)  # type: ignore[assignment]
    return best, found[best][1]


class _Repeat:
    """The sums of the folds of one repeat."""

    def __init__(self, z: Floats, rows: FoldRows, folds: Integers) -> None:
        self._rows, m = rows, z.shape[1]
        order = np.argsort(folds, kind="stable")
        ends = np.cumsum(np.bincount(folds))[:-1]
        ordered = z[order]
        self._places, self._z = np.split(order, ends), np.split(ordered, ends)
        # one matrix has all sums: of products, of rows, and of weights
        joined = np.empty((len(z), m + rows.y.shape[1] + 1))
        joined[:, :m] = ordered
        joined[:, m:-1] = rows.y[order]
        joined[:, -1] = 1.0
        joined *= np.sqrt(rows.weights[order])[:, None]
        sums = [part.T @ part for part in np.split(joined, ends)]
        whole = sum(sums[1:], start=sums[0])
        self._fits = [_Centred.from_sums(whole - part, m) for part in sums]
        self._scratch = np.empty((m, m), order="F")

    def losses(self, alpha: float) -> Floats:
        """Return the loss of each row, with a penalty per bag."""
        rows = self._rows
        out = np.empty(len(rows))
        for places, z, fit in zip(self._places, self._z, self._fits, strict=True):
            coef, intercept = fit.solve(alpha, self._scratch)
            left = z @ coef + intercept - rows.y[places]
            out[places] = (left**2 / rows.units).mean(axis=1)
        return out


@dataclass(frozen=True, eq=False)
class _Centred:
    """Sums of some rows about their means, from which each penalty is solved.

    Attributes
    ----------
    gram : float64, shape (m, m)
        Symmetric, in the order of LAPACK, which then copies nothing.
    cross : float64, shape (m, k)
    means : float64, shape (m + k,)
    weight : float
        Of all rows; solutions without any are 0.
    """

    gram: Floats
    cross: Floats
    means: Floats
    weight: float

    @classmethod
    def from_sums(cls, sums: Floats, m: int) -> _Centred:
        """Take sums of products of m features, k labels and 1, shape (m + k + 1, m + k + 1)."""
        weight = float(sums[-1, -1])
        if not weight > 0:
            return cls(sums[:m, :m], sums[:m, m:-1], sums[-1, :-1], 0.0)
        means = sums[-1, :-1] / weight
        gram, cross = np.outer(means[:m], means[:m]), np.outer(means[:m], means[m:])
        gram *= weight
        np.subtract(sums[:m, :m], gram, out=gram)
        return cls(gram.T, sums[:m, m:-1] - weight * cross, means, weight)

    def solve(self, alpha: float, scratch: Floats) -> tuple[Floats, Floats]:
        """Return coefficients (m, k) and intercepts (k,); the mean without any rows.

        ``scratch`` has the shape and order of the Gram matrix: fresh memory for each penalty took
        half as long as its Cholesky factor.
        """
        m = len(self.gram)
        if not self.weight > 0:
            return np.zeros(self.cross.shape), np.zeros(self.cross.shape[1])
        np.copyto(scratch, self.gram)
        scratch[np.diag_indices(m)] += alpha * self.weight
        factor = scipy.linalg.cho_factor(scratch, lower=True, overwrite_a=True, check_finite=False)
        coef: Floats = scipy.linalg.cho_solve(factor, self.cross, check_finite=False)
        return coef, self.means[m:] - self.means[:m] @ coef
