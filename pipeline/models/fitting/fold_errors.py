"""Errors of kernel ridge regression over folds, which choose embeddings and kernel widths.

Every fold has the sums ZᵀZ and ZᵀY of its own rows. The model for a fold is solved from the sums of
all other folds, and judged on the rows of the fold. Z are Nyström features of landmarks. With at
most `N_LANDMARKS` rows they are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dposv, dpotrf, dpotrs, dtrtrs
from sklearn.utils.extmath import randomized_svd

from ...core.arrays import Floats, Integers
from ...data.store.sampling import spread_rows

MAX_JUDGED_BAGS = 2000  # bags of the sample on which embeddings are compared
N_LANDMARKS = 512  # a product of 2,000 rows with them, and a Cholesky factor, take milliseconds
_JITTER = 1e-8  # added to the kernel of landmarks, so that equal bags leave it positive definite
EXPONENTS = np.arange(-7.0, 1.75, 0.5)  # of penalties per bag: sums in float32 resolve no more
FIRST = int(np.flatnonzero(EXPONENTS == -3.0)[0])  # where a search begins
# Columns of labels that kernels are judged by: principal components of more. Then a fold's solution
# takes no longer than its factor, however many columns there are.
MAX_PLAIN_COLUMNS = 64
COMPONENTS_SEED, N_POWERS = 0, 2  # of the randomised singular value decomposition
_CHOICE_FOLDS = 5
_FOLD_SEED = 5  # differs from those of the splits in `bags` and of `cross_val_score`
REPEATED_BAGS = 1000  # fewer bags are split into folds several times, which costs little
_MAX_REPEATS = 4
# A kernel whose error in the first repeat is this many times a rival's, and worse by this many
# standard errors, cannot win: other repeats, which take most of the time, are not judged.
_BEHIND, ERRORS_BEHIND = 1.25, 3.0
# With fewer bags the least error is often that of a penalty far too small: the largest penalty
# within one standard error is taken.
_FEW_BAGS = 100


def choice_bytes(n_bags: int, n_targets: int) -> int:
    """Return the memory of labels and of the sums of `FoldJudge` for a sample of so many bags."""
    n, m = min(n_bags, MAX_JUDGED_BAGS), min(n_bags, N_LANDMARKS)
    n_rows, width = sizes_of_sums(m, min(n_targets, MAX_PLAIN_COLUMNS))
    sums = 8 * _n_repeats(n) * ((_CHOICE_FOLDS + 1) * n_rows * width + n * width)
    # the sums of fewer features have memory of their own
    return 2 * sums + 8 * n * n_targets * (1 + 2 * (n_targets > MAX_PLAIN_COLUMNS))


def _n_repeats(n: int) -> int:
    """Return how often this number of bags is divided into folds."""
    return int(np.clip(REPEATED_BAGS // max(1, n), 1, _MAX_REPEATS))


def sizes_of_sums(m: int, k: int) -> tuple[int, int]:
    """Return the shape of the products of m features, k labels and 1.

    Products of labels with each other are needed nowhere; they come for nothing if labels are few.
    """
    return (m + 1 if k > m else m + k + 1), m + k + 1


@dataclass(frozen=True, eq=False)
class FoldRows:
    """Rows whose errors over the folds are computed.

    Attributes
    ----------
    y : float64, shape (n, k)
        Encoded labels.
    folds : int64, shape (n_repeats, n)
        Fold of each row, in each repeat.
    units : float64, shape (k,)
        Divisors of the squared errors of each column.
    weights : float64, shape (n,)
        Weights of the rows.
    clusters : int64, shape (n,)
        Clusters of the rows. Rows of a cluster are not independent; standard errors are over
        clusters.
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
        """Landmarks: the rows from which features are made."""
        return spread_rows(np.arange(len(self)), N_LANDMARKS)

    def of_components(self) -> FoldRows:
        """Return rows with the principal components of labels, if more than `MAX_PLAIN_COLUMNS`.

        Squared errors of linear models, added up over all columns, are those of all components.
        The last components, which have the least variance, are left out; their fraction of the
        variance is left out of the units, too.
        """
        k = self.y.shape[1]
        if k <= MAX_PLAIN_COLUMNS:
            return self
        y = self.y / np.sqrt(self.units)
        y -= self.weights @ y / self.weights.sum()
        weighted = np.sqrt(self.weights)[:, None] * y
        total = float(np.vdot(weighted, weighted))
        _, values, vectors = randomized_svd(
            weighted, MAX_PLAIN_COLUMNS, n_iter=N_POWERS, random_state=COMPONENTS_SEED
        )
        share = float(values @ values) / total if total > 0 else 1.0
        units = np.full(len(vectors), k * share / len(vectors))
        return replace(self, y=y @ vectors.T, units=units)

    def mean(self, losses: Floats) -> float:
        """Return the weighted mean of losses, shape (n,)."""
        return float(self.weights @ losses / self.weights.sum())

    def standard_error(self, losses: Floats) -> float:
        """Return the standard error of the mean of losses, shape (n,), over the clusters."""
        deviations = self.weights * (losses - self.mean(losses))
        sums = np.bincount(self.clusters, weights=deviations)
        n = max(2, len(sums))
        return float(np.sqrt((sums**2).sum() * n / (n - 1)) / self.weights.sum())


@dataclass(frozen=True, eq=False)
class FoldErrors:
    """Errors of one kernel over the folds.

    Attributes
    ----------
    losses : float64, shape (n,)
        Out-of-fold loss of each row, with the best penalty. The losses of the mean label are 1 on
        average.
    error : float
        Mean of the losses.
    alpha : float
        Best penalty, per bag fitted.
    """

    losses: Floats
    error: float
    alpha: float


def assign_folds(
    n: int,
    classes: Integers | None = None,
    groups: Integers | None = None,
    n_folds: int = _CHOICE_FOLDS,
) -> Integers:
    """Return the fold of each row, shape (n_repeats, n): equally many rows in each fold.

    Folds have whole groups, and about equal fractions of each class. With fewer groups or rows than
    folds, there are as many folds as groups or rows.
    """
    n_repeats = _n_repeats(n)
    rng = np.random.Generator(np.random.Philox(key=np.array([_FOLD_SEED, 0], np.uint64)))
    folds = np.empty((n_repeats, n), dtype=np.int64)
    for repeat in range(n_repeats):
        order = rng.permutation(n)
        if classes is not None:
            order = order[np.argsort(classes[order], kind="stable")]
        if groups is None:
            folds[repeat, order] = np.arange(n) % min(n_folds, n)
        else:
            folds[repeat] = _folds_of_groups(groups, order, n_folds)
    return folds


def _folds_of_groups(groups: Integers, order: Integers, n_folds: int) -> Integers:
    """Assign groups to the smallest fold: the largest first, equal groups in random order."""
    sizes = np.bincount(groups)
    _, first = np.unique(groups[order], return_index=True)
    by_size = np.lexsort((first, -sizes))
    filled, of_group = np.zeros(min(n_folds, len(sizes))), np.empty(len(sizes), dtype=np.int64)
    for group in by_size.tolist():
        of_group[group] = int(filled.argmin())
        filled[of_group[group]] += sizes[group]
    return of_group[groups]


def squared_distances(rows: Floats, landmarks: Integers) -> Floats:
    """Return ‖a_i − a_j‖² of rows (n, s) and of their landmarks j, shape (n, m)."""
    rows = np.asarray(rows, np.float64)
    rows = rows - rows.mean(axis=0)
    squares = (rows**2).sum(axis=1)
    distances = rows @ rows[landmarks].T
    distances *= -2
    # row by row: the memory of another array of this size takes as long as the sum
    of_landmarks = squares[landmarks]
    for row, square in zip(distances, squares, strict=True):
        row += square + of_landmarks
    distances[landmarks, np.arange(len(landmarks))] = 0.0
    return np.maximum(distances, 0.0, out=distances)


def median_of(distances: Floats) -> float:
    """Return the median distance of two rows; 1 if most rows are equal."""
    median = float(np.sqrt(np.median(distances)))
    return median if median > 1e-7 * float(np.sqrt(distances.max(initial=0.0))) else 1.0


class LossesAt(NamedTuple):
    """The loss of each row with one penalty, and its derivative by the penalty's logarithm."""

    losses: Floats
    slopes: Floats


class FoldJudge:
    """Judges kernels by their errors over the same folds.

    A choice judges dozens of kernels, each with hundreds of factors. Most of the cost of a small
    matrix is the allocation of its memory, so matrices are allocated once and reused.

    Parameters
    ----------
    rows : FoldRows

    Attributes
    ----------
    repeats : list of Repeat
    """

    def __init__(self, rows: FoldRows) -> None:
        self._rows = rows
        n, m = len(rows), len(rows.landmarks)
        self._kernel, self._term = np.empty((n, m)), np.empty((n, m))
        self._rest = np.setdiff1d(np.arange(n), rows.landmarks)
        self._of_rest = self._term[: len(self._rest)]
        self._factor = np.empty((m, m), order="F")
        self.repeats = [Repeat(rows, folds, m) for folds in rows.folds]

    def gaussian(
        self, parts: Sequence[Floats], width: float, weights: Sequence[float] = ()
    ) -> Floats:
        """Return the mean of exp(−d² / 2 width²) of squared distances, each of shape (n, m).

        Parts have ``weights``, whose sum is 1; without any, they have equal ones. The next call
        overwrites the result.
        """
        kernel = self._kernel
        for i, squares in enumerate(parts):
            term = self._term if i else kernel
            np.multiply(-0.5 / width**2, squares, out=term)
            np.exp(term, out=term)
            if weights:
                term *= weights[i]
            if i:
                kernel += term
        if not weights:
            kernel /= len(parts)
        return kernel

    def landmark_features(self, kernel: Floats) -> Floats:
        """Return Z with Z Zᵀ = the Nyström approximation of a kernel (n, m), in its place.

        Rows of landmarks are those of the Cholesky factor, but for what is added to the diagonal;
        other rows are solved from it. If more has to be added, all rows are.
        """
        landmarks, factor = self._rows.landmarks, self._factor
        m = len(factor)
        scale = float(kernel[landmarks, np.arange(m)].mean()) or 1.0
        for jitter in (_JITTER, 1e-6, 1e-4):
            # memory in the order of LAPACK, which reads one triangle; no array is transposed
            np.take(kernel, landmarks, axis=0, out=factor.T, mode="clip")
            factor.ravel("K")[:: m + 1] += jitter * scale
            # LAPACK itself, as below: SciPy's functions check and copy what is as large
            triangle, failed = dpotrf(factor, lower=0, clean=1, overwrite_a=1)
            if failed:
                continue
            solve = partial(dtrtrs, triangle, lower=0, trans=1, overwrite_b=1)
            if jitter > _JITTER:
                return np.asarray(solve(kernel.T)[0].T)
            rest = np.take(kernel, self._rest, axis=0, out=self._of_rest, mode="clip")
            kernel[landmarks] = triangle.T
            if len(rest):
                kernel[self._rest] = solve(rest.T)[0].T
            return kernel
        raise scipy.linalg.LinAlgError("the kernel of the landmarks is not positive definite")

    def errors(
        self, z: Floats, near: float | None = None, rival: FoldErrors | None = None
    ) -> FoldErrors:
        """Return the errors of ridge regression on features (n, s), with the best penalty.

        There are at most as many features as landmarks. With up to 100 rows, the penalty is the
        largest one within one standard error of the best. The search begins at ``near``, and goes
        downhill. It ends at once if ten times the gain expected from the slope cannot beat the
        ``rival``. Other repeats are not judged if the first repeat cannot beat the ``rival``.
        """
        rows, s = self._rows, z.shape[1]
        repeats = self.repeats
        if s != len(self._factor):
            repeats = [Repeat(rows, folds, s) for folds in rows.folds]
        first, *others = repeats
        start = FIRST if near is None else int(np.abs(EXPONENTS - np.log10(near)).argmin())

        @cache
        def first_at(i: int) -> LossesAt:
            return first.losses(10.0 ** EXPONENTS[i])

        @cache
        def losses_at(i: int) -> LossesAt:
            alpha = 10.0 ** EXPONENTS[i]
            each = [first_at(i), *(repeat.losses(alpha) for repeat in others)]
            return LossesAt(*(np.mean(parts, axis=0) for parts in zip(*each, strict=True)))

        first.take(z)
        if rival is not None:
            losses, slopes = first_at(start)
            hoped = losses - np.log(10.0) * abs(rows.mean(slopes))
            if self.is_behind(hoped, rival):
                return FoldErrors(losses, rows.mean(losses), float(10.0 ** EXPONENTS[start]))
        best = _downhill(first_at, rows.mean, start)
        losses = first_at(best).losses
        if others and not (rival is not None and self.is_behind(losses, rival)):
            for repeat in others:
                repeat.take(z)
            best = _downhill(losses_at, rows.mean, best)
            if len(rows) <= _FEW_BAGS:
                best = self._smoothest(losses_at, best)
            losses = losses_at(best).losses
        return FoldErrors(losses, rows.mean(losses), float(10.0 ** EXPONENTS[best]))

    def _smoothest(self, losses_at: Callable[[int], LossesAt], best: int) -> int:
        """Return the largest penalty within one standard error of the best."""
        rows, losses = self._rows, losses_at(best).losses
        for i in range(best + 1, len(EXPONENTS)):
            gaps = losses_at(i).losses - losses
            if rows.mean(gaps) > rows.standard_error(gaps):
                return i - 1
        return len(EXPONENTS) - 1

    def is_behind(self, losses: Floats, rival: FoldErrors) -> bool:
        """Return whether losses are so far behind that similar kernels cannot win."""
        gaps, rows = losses - rival.losses, self._rows
        spread = rows.standard_error(gaps)
        return rows.mean(gaps) > max((_BEHIND - 1) * rival.error, ERRORS_BEHIND * spread)


def _downhill(at: Callable[[int], LossesAt], mean: Callable[[Floats], float], start: int) -> int:
    """Return the place of the least mean loss, by a search downhill.

    The slope gives the direction, so that only one neighbour of the minimum is judged. Steps have
    the lengths 1, 1, 2, 3, 5, …, so that a distant start costs few factors.
    """
    best, way, step, before = start, 0, 0, 0
    while True:
        up = mean(at(best).slopes) < 0
        if way != (way := 1 if up else -1):
            step, before = 0, 0
        least = mean(at(best).losses)
        for longer in dict.fromkeys((step + before, 1)):
            i = best + way * longer
            if longer and 0 <= i < len(EXPONENTS) and mean(at(i).losses) < least:
                break
        else:
            return best
        best, step, before = i, longer, step if longer == step + before else 0


class Repeat:
    """The folds of one repeat, with ridge regression on the rows outside each.

    Sums are of products of 1, m features and k labels. The column of 1 has no penalty; the first
    step of a Cholesky factor, which is by this column, takes the others about their means.

    Attributes
    ----------
    sums : list of arrays
        For each fold, those of the rows outside it; see `sizes_of_sums`.
    """

    def __init__(self, rows: FoldRows, folds: Integers, m: int) -> None:
        self._rows = rows
        order = np.argsort(folds, kind="stable")
        n, (n_sums, width) = len(rows), sizes_of_sums(m, rows.y.shape[1])
        weights, joined = rows.weights[order][:, None], np.empty((n, width))
        roots = joined[:, :1] = np.sqrt(weights)
        np.multiply(rows.y[order], roots, out=joined[:, m + 1 :])
        # rows without weight have no loss
        inverse = np.divide(
            1.0, weights * rows.units, out=np.zeros((n, rows.y.shape[1])), where=weights > 0
        )
        ends = np.cumsum(np.bincount(folds))[:-1]
        split = (np.split(of_rows, ends) for of_rows in (order, roots, joined, inverse))
        self._folds = list(zip(*split, strict=True))
        self.sums = [np.empty((n_sums, width)) for _ in self._folds]
        self._whole = np.empty((n_sums, width))
        self._factor = np.empty((m + 1, m + 1), order="F")

    def take(self, z: Floats) -> None:
        """Sum features, shape (n, m), over all folds but one."""
        whole, end = self._whole, z.shape[1] + 1
        whole[...] = 0.0
        for (places, roots, part, _), sums in zip(self._folds, self.sums, strict=True):
            np.multiply(z[places], roots, out=part[:, 1:end])
            members = part if len(sums) == part.shape[1] else part[:, :end]
            whole += np.matmul(members.T, part, out=sums)
        for sums in self.sums:
            np.subtract(whole, sums, out=sums)

    def losses(self, alpha: float) -> LossesAt:
        """Return the loss of each row, with a penalty per bag."""
        n, end = len(self._rows), len(self._factor)
        at = LossesAt(np.empty(n), np.empty(n))
        for (places, _, part, inverse), sums in zip(self._folds, self.sums, strict=True):
            coef, slopes = self._solve(sums, alpha)
            residuals = part[:, :end] @ coef - part[:, end:]
            at.losses[places] = (residuals**2 * inverse).mean(axis=1)
            residuals *= 2 * (part[:, :end] @ slopes)
            at.slopes[places] = (residuals * inverse).mean(axis=1)
        return at

    def _solve(self, sums: Floats, alpha: float) -> tuple[Floats, Floats]:
        """Return intercepts and coefficients, (m + 1, k), and their derivatives by ln ``alpha``.

        Without rows they are 0.
        """
        factor, weight = self._factor, float(sums[0, 0])
        size = len(factor)
        right = sums[:size, size:]
        if not weight > 0:
            return np.zeros(right.shape), np.zeros(right.shape)
        factor.T[...] = sums[:size, :size]
        factor.ravel("K")[size + 1 :: size + 1] += alpha * weight
        # what cho_factor and cho_solve call: their checks take a third of the time
        _, coef, failed = dposv(factor, right, lower=1, overwrite_a=1)
        if failed:
            raise scipy.linalg.LinAlgError("the products of features are not positive definite")
        right = -alpha * weight * coef
        right[0] = 0.0
        slopes, _ = dpotrs(factor, right, lower=1, overwrite_b=1)
        return coef, slopes
