"""`ErrorScale`: the expected size of the error for a bag, from its features and its size.

Intervals of equal width contain too many labels of large bags and too few of small or noisy bags.
Therefore errors of bags that a model was not fitted to are divided by a predicted scale, and
intervals are multiplied by the scale: normalised conformal scores (Papadopoulos et al. 2008; Lei et
al. 2018, §5.2). The guarantee does not depend on the quality of the scale. A good scale makes the
coverage equal for different bags.

The logarithm of the scale is linear in the leading principal components of a bag's features, and
quadratic in the logarithm of its number of points. Features of small bags tell less, so that the
components may have other coefficients for small bags than for large bags (interactions). The scale
is fitted to absolute errors by penalised gamma regression. Folds choose the penalties, and decide
between this scale and one scale for all bags.

Penalties shrink the scales of the noisiest and the quietest bags towards each other, most of all if
noise has a threshold. Bags near the threshold can have large errors or small ones. Their mean error
is moderate, and an interval that is proportional to it misses the large ones. Therefore a second
regression adds a piecewise linear curve to the logarithm of the first scale, so that the scale is
proportional to the mean sixth power of errors to the power 1/6. Errors of outliers are limited.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers
from ...core.held_out_choice import simplest_within
from ...execution.costs import SECONDS_PER_PRODUCT
from ...execution.pool import even_edges, run_kernel
from ..ridge.statistics_kernels import linear_predictions

MIN_SCALE_ROWS = 100  # with fewer errors, scales of single bags cannot be told apart
_MAX_ROWS = 2000  # rows from which a scale is learnt
_MAX_NUMBERS = 2**24  # numbers of the features of these rows: 128 MiB
MAX_SCALED_TARGETS = 32  # each has a scale; with more targets, errors are not scaled
_N_COMPONENTS = 20  # principal components: 10, 30 and 80 gave no more even coverage
N_SIZE_COLUMNS = 2  # columns of the number of points: its logarithm and the square of it
_MIN_SIZE_SPREAD = 0.05  # standard deviation of log n above which bags count as unequally large
FEATURE_PENALTIES = 0.1, 1.0, 10.0, 100.0, np.inf  # in bags; infinity leaves the columns out
SIZE_PENALTIES = 1.0, np.inf
INTERACTION_PENALTIES = 1.0, 10.0  # times the penalty of the components; or none
MIN_ERROR = 1e-3  # fraction of the mean error, added to each error
N_PIECES = 8  # pieces of a curve, between quantiles of the logarithms of scales
CURVE_PENALTY = 0.5  # .1 to 2 change the coverage of the noisiest fifth of bags by .01
POWER = 6  # of errors that a curve is fitted to: smaller powers cover fewer of the noisiest bags
MAX_RATIO = 5.0  # to the mean of scaled errors: without it, outliers widen intervals by a half
_MAX_STEPS = 30
_TOLERANCE = 1e-7  # of the loss per row


@dataclass(frozen=True, eq=False)
class ErrorRows:
    """Out-of-fold errors of bags, and the values that their scale may depend on.

    Attributes
    ----------
    folds : int64, shape (m,)
        Fold of each bag.
    errors : float64, shape (m, k)
        Absolute errors.
    sizes : float64, shape (m,)
        Number of points of each bag.
    features : float, shape (m, D)
        Features of each bag.
    """

    folds: Integers
    errors: Floats
    sizes: Floats
    features: NDArray[Any]


@dataclass(frozen=True, eq=False)
class ErrorScale:
    """The predictor of error scales, for each of K folds (or K = 1) and k targets.

    Attributes
    ----------
    offset : float64, shape (r,)
    directions : float64, shape (r, D)
        Components of features z: directions · z + offset.
    coef : float64, shape (K, k, r + 2) or (K, k, 2r + 2)
        Coefficients of the components, of the size of a bag, and of the interactions, if any.
    intercept : float64, shape (K, k)
    limits : float64, shape (K, k, 2)
        Least and largest logarithm of a scale among the training bags. Scales of new bags are
        clipped to this range.
    sizes : sequence of float
        Mean of log n, the inverse of its standard deviation (0 where sizes hardly differ), and its
        least and largest value.
    knots : float64, shape (K, k, p)
        Logarithms of scales at which the curve bends; p is 0 without a curve.
    bends : float64, shape (K, k, 2 + p)
        Intercept, slope, and changes of slope at the knots of the added curve.
    """

    offset: Floats
    directions: Floats
    coef: Floats
    intercept: Floats
    limits: Floats
    sizes: Sequence[float]
    knots: Floats
    bends: Floats

    arrays: ClassVar[tuple[str, ...]] = ("offset", "directions", "coef", "intercept", "limits")
    of_curve: ClassVar[tuple[str, ...]] = ("knots", "bends")

    @property
    def is_curved(self) -> bool:
        """Whether a curve is added to the logarithms."""
        return bool(self.knots.shape[-1])

    @classmethod
    def learnt(cls, rows: ErrorRows, n_folds: int | None = None) -> Self | None:
        """Return scales, each learnt without one of ``n_folds`` folds; by default one, of all rows.

        None if all bags have the same scale. This is the case if predicted scales are not better by
        more than a standard error, or there are too few rows or too many targets.
        """
        m, k = rows.errors.shape
        if m < MIN_SCALE_ROWS or k > MAX_SCALED_TARGETS or not np.isfinite(rows.errors).all():
            return None
        offset, directions = _components(rows.features)
        sizes = _of_sizes(rows.sizes)
        n_own = len(directions)
        inputs = _inputs(linear_rows(rows.features, directions, offset), rows.sizes, sizes)
        parts = [np.ones(m, dtype=bool)]
        if n_folds is not None:
            parts = [rows.folds != j for j in range(n_folds)]
        fitted = [_fitted(inputs, n_own, error, rows.folds, parts) for error in rows.errors.T]
        if not any(coef[:, 1:].any() for coef, *_ in fitted):
            return None
        solved, knots, bends = (np.stack(arrays, axis=1) for arrays in zip(*fitted, strict=True))
        if not solved[:, :, 1 + n_own + N_SIZE_COLUMNS :].any():
            solved = solved[:, :, : 1 + n_own + N_SIZE_COLUMNS]
        used = inputs[:, : solved.shape[2] - 1]
        logs = solved[:, :, 0] + np.einsum("mj,fkj->mfk", used, solved[:, :, 1:])
        limits = np.stack([logs.min(axis=0), logs.max(axis=0)], axis=-1)
        coef, intercept = np.ascontiguousarray(solved[:, :, 1:]), solved[:, :, 0]
        if not bends.any():
            knots, bends = knots[:, :, :0], bends[:, :, :2]
        made = np.ascontiguousarray(intercept), limits, sizes, knots, bends
        return cls(offset, directions, coef, *made)

    def of(self, features: NDArray[Any], sizes: NDArray[Any]) -> Floats:
        """Return the scales of n bags, shape (n, k, K), for features (n, D) and sizes (n,)."""
        n_folds, k, n_columns = self.coef.shape
        components = linear_rows(features, self.directions, self.offset)
        inputs = np.ascontiguousarray(_inputs(components, sizes, self.sizes)[:, :n_columns])
        logs = linear_rows(inputs, self.coef.reshape(-1, n_columns), self.intercept.reshape(-1))
        ends = self.limits.reshape(-1, 2)
        logs = np.clip(logs, ends[:, 0], ends[:, 1])
        if self.is_curved:
            p = self.knots.shape[-1]
            logs += _curve(logs, self.knots.reshape(-1, p), self.bends.reshape(-1, 2 + p))
        return np.ascontiguousarray(np.exp(logs).reshape(-1, n_folds, k).transpose(0, 2, 1))

    def check(self, n_folds: int, n_targets: int, n_features: int) -> None:
        """Raise ValueError unless the scales fit a model of these sizes."""
        r = len(self.offset)
        n_columns = r + N_SIZE_COLUMNS
        if self.coef.shape[-1] != n_columns:
            n_columns += r
        expected = {
            "offset": (r,),
            "directions": (r, n_features),
            "coef": (n_folds, n_targets, n_columns),
            "intercept": (n_folds, n_targets),
            "limits": (n_folds, n_targets, 2),
            "knots": (n_folds, n_targets, self.knots.shape[-1]),
            "bends": (n_folds, n_targets, 2 + self.knots.shape[-1]),
        }
        for name, shape in expected.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} of the scale has shape {getattr(self, name).shape}")
        if len(self.sizes) != 4 or not np.isfinite(np.array(self.sizes, np.float64)).all():
            raise ValueError(f"sizes of the scale are {self.sizes}")


def rows_to_learn(n_features: int) -> int:
    """Return the largest number of rows with so many features from which a scale is learnt."""
    return max(MIN_SCALE_ROWS, min(_MAX_ROWS, _MAX_NUMBERS // max(1, n_features)))


def _components(features: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return offset and directions of principal components, the first of variance 1."""
    mean = features.mean(axis=0, dtype=np.float64)
    centred = features - mean
    _, values, vectors = scipy.linalg.svd(centred, full_matrices=False, check_finite=False)
    n = int((values > 1e-6 * values[0]).sum()) if len(values) and values[0] > 0 else 0
    n = min(n, _N_COMPONENTS)
    directions = vectors[:n] / (values[0] / len(features) ** 0.5 if n else 1.0)
    directions = np.ascontiguousarray(directions, dtype=np.float64)
    return -directions @ mean, directions


def _of_sizes(sizes: Floats) -> tuple[float, float, float, float]:
    logs = np.log(np.maximum(sizes, 1))
    spread = float(logs.std())
    slope = 1 / spread if spread > _MIN_SIZE_SPREAD else 0.0
    return float(logs.mean()), slope, float(logs.min()), float(logs.max())


def _inputs(components: Floats, sizes: NDArray[Any], known: Sequence[float]) -> Floats:
    """Return components (n, r), columns of sizes (n,), and interactions, shape (n, 2r + 2).

    Sizes are clipped to the known range.
    """
    mean, slope, least, most = known
    logs = slope * (np.clip(np.log(np.maximum(sizes, 1)), least, most) - mean)
    return np.column_stack([components, logs, logs**2, components * logs[:, None]])


def linear_rows(rows: NDArray[Any], coef: Floats, intercept: Floats) -> Floats:
    """Return rows (n, D) · coef (m, D)ᵀ + intercept (m,), shape (n, m), summed in double."""
    out = np.empty((len(rows), len(intercept)))
    if out.size:
        edges = even_edges(len(out), SECONDS_PER_PRODUCT * max(1, coef.size))
        run_kernel(linear_predictions, edges, rows, coef, intercept, out)
    return out


def _fitted(
    inputs: Floats,
    n_components: int,
    errors: Floats,
    folds: Integers,
    parts: Sequence[NDArray[np.bool_]],
) -> tuple[Floats, Floats, Floats]:
    """Return intercept and coefficients for some parts of the rows, shape (parts, 1 + columns).

    Knots (parts, p) and bends (parts, 2 + p) of curves follow. If one scale for all bags suffices,
    all coefficients and bends are 0.
    """
    n_columns = inputs.shape[1]
    no_curve = np.zeros((len(parts), N_PIECES - 1)), np.zeros((len(parts), N_PIECES + 1))
    constant = np.zeros((len(parts), 1 + n_columns)), *no_curve
    mean = float((errors / (errors.max() or 1.0)).mean())
    if not mean > 0:
        return constant
    values = errors / (errors.max() * mean) + MIN_ERROR
    kinds = np.repeat([0, 1, 2], [n_components, N_SIZE_COLUMNS, n_components])

    def judge(penalties: Sequence[float]) -> Floats:
        """Return the loss of each row by the regression without its fold."""
        logs = np.empty(len(values))
        for fold in np.unique(folds):
            own = folds == fold
            coef = _gamma_regression(inputs[~own], values[~own], np.take(penalties, kinds))
            logs[own] = coef[0] + inputs[own] @ coef[1:]
        return np.asarray(logs + values * np.exp(-logs))

    sizes_differ = bool(inputs[:, n_components:].any())
    of_sizes = SIZE_PENALTIES if sizes_differ else (np.inf,)
    grid = [(*pair, np.inf) for pair in product(FEATURE_PENALTIES, of_sizes)]
    losses = {penalties: judge(penalties) for penalties in grid}
    best = min(losses, key=lambda penalties: losses[penalties].mean())
    if sizes_differ and np.isfinite(best[0]):
        for ratio in INTERACTION_PENALTIES:
            tried = *best[:2], ratio * best[0]
            losses[tried] = judge(tried)
        best = min(losses, key=lambda penalties: losses[penalties].mean())
    if simplest_within([losses[np.inf, np.inf, np.inf], losses[best]]) == 0:
        return constant
    penalties = np.take(best, kinds)
    solved = np.stack([_gamma_regression(inputs[p], values[p], penalties) for p in parts])
    curves = [
        _fit_curve(coef[0] + inputs[part] @ coef[1:], values[part])
        for part, coef in zip(parts, solved, strict=True)
    ]
    return solved, np.concatenate([c[0] for c in curves]), np.concatenate([c[1] for c in curves])


def _fit_curve(logs: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return knots (1, p) and bends (1, 2 + p) of a curve to add to logs, shape (n,).

    The sums are the logarithms of the mean sixth power of values, to the power 1/6.
    """
    knots = np.quantile(logs, np.arange(1, N_PIECES) / N_PIECES)[None]
    columns = np.column_stack([logs, np.maximum(logs[:, None] - knots, 0)])
    ratios = values * np.exp(-logs)
    ratios = np.minimum(ratios, MAX_RATIO * ratios.mean())
    penalties = np.full(columns.shape[1], CURVE_PENALTY)
    bends = _gamma_regression(POWER * columns, ratios**POWER, penalties)
    bends[0] /= POWER
    return knots, bends[None]


def _curve(logs: Floats, knots: Floats, bends: Floats) -> Floats:
    """Return the values of curves at logs (n, m), for knots (m, p) and bends (m, 2 + p)."""
    added = bends[:, 0] + bends[:, 1] * logs
    for knot, bend in zip(knots.T, bends.T[2:], strict=True):
        added += bend * np.maximum(logs - knot, 0)
    return np.asarray(added)


def _gamma_regression(inputs: Floats, values: Floats, penalties: Floats) -> Floats:
    """Return the intercept and coefficients of log means of gamma variables.

    They minimise Σ (η + v e^−η) + ½ Σ λ_j β_j² by Fisher scoring. Columns with an infinite penalty
    have the coefficient 0.
    """
    used = np.flatnonzero(np.isfinite(penalties))
    columns = np.column_stack([np.ones(len(values)), inputs[:, used]])
    ridge = np.concatenate([[0.0], penalties[used]])
    information = scipy.linalg.cho_factor(columns.T @ columns + np.diag(ridge))
    coef = np.zeros(len(ridge))
    coef[0] = np.log(values.mean())

    def loss_of(coef: Floats) -> tuple[float, Floats]:
        logs = columns @ coef
        with np.errstate(over="ignore"):
            ratios = values * np.exp(-logs)
        return float((logs + ratios).sum() + 0.5 * ridge @ coef**2), ratios

    loss, ratios = loss_of(coef)
    for _ in range(_MAX_STEPS):
        step = scipy.linalg.cho_solve(information, columns.T @ (1 - ratios) + ridge * coef)
        before = loss
        for share in 0.5 ** np.arange(12):
            new = coef - share * step
            loss, ratios = loss_of(new)
            if loss < before:
                coef = new
                break
        if not before - loss > _TOLERANCE * len(values):
            break
    out = np.zeros(1 + len(penalties))
    out[0], out[1 + used] = coef[0], coef[1:]
    return out
