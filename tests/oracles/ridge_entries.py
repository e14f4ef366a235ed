"""Ridge regression next to its oracles: statistics, solutions, scores, predictions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import RandomFourierFeatures
from bagbasis.models.ridge.moments import MANY_TARGETS
from bagbasis.models.ridge.partial_regression import beside_linear, beside_own
from bagbasis.models.ridge.penalties import Penalties
from bagbasis.models.ridge.ridge import solve, solve_gcv, solve_validation
from bagbasis.models.ridge.rows import RidgeRows
from bagbasis.models.ridge.statistics_kernels import linear_predictions
from bagbasis.models.ridge.sums import RidgeStatistics, StatisticsBuilder

from . import ridge
from .implementation import DTYPES, Implementation, Inputs

ALPHAS = np.array([1e-2, 1.0, 30.0])


def feature_rows(rng: np.random.Generator, n: int, dtype: Any = np.float64, k: int = 3) -> Inputs:
    """Random features (n, 40) and k targets that they explain in part."""
    a = rng.random((n, 5))
    z = RandomFourierFeatures(n_features=40, scale=1.0).fit(a).transform(a)
    y = np.stack([np.sin(3 * a[:, t % 5]) + 5 * t for t in range(k)], axis=1)
    return z.astype(dtype), y + 0.1 * rng.standard_normal(y.shape)


def collected(
    z: NDArray[Any], y: NDArray[Any], dtype: Any = np.float64, weights: Any = None
) -> RidgeStatistics:
    """The statistics of rows, collected as a fit does."""
    builder = StatisticsBuilder(z.shape[1], y.shape[1], dtype)
    builder.add(z, y, weights)
    return builder.finish()


def ridge_rows(
    z: NDArray[Any], y: NDArray[Any], dtype: Any = np.float64, weights: Any = None
) -> RidgeRows:
    """The rows themselves, which few bags are solved from."""
    return RidgeRows.of(z.astype(dtype), y, weights)


def unpacked(statistics: RidgeStatistics) -> tuple[NDArray[Any], ...]:
    """The fields, ZᵀZ as a full matrix."""
    s = statistics
    gram = np.zeros((s.n_features, s.n_features))
    gram[np.triu_indices(s.n_features)] = s.gram
    gram += np.triu(gram, 1).T
    return np.array(float(s.n)), s.sum_z, gram, s.sum_y, s.cross, s.sum_yy


def close(a: RidgeStatistics, b: RidgeStatistics, rtol: float) -> None:
    """Fail if sums differ by more than ``rtol`` of the largest of their field."""
    for ours, truth in zip(unpacked(a), unpacked(b), strict=True):
        np.testing.assert_allclose(ours, truth, rtol=0, atol=rtol * np.abs(truth).max())


def regression() -> Iterator[Implementation]:
    for dtype, n in ((np.float64, 5000), (np.float32, 5000), (np.float64, 1)):
        yield Implementation(
            f"statistics {np.dtype(dtype).name} n={n}",
            lambda z, y, dtype=dtype: unpacked(collected(z, y, dtype)),
            lambda z, y: tuple(ridge.statistics(z, y).values()),
            partial(feature_rows, dtype=dtype),
            n,
            atol=1e-4 if dtype == np.float32 else 1e-9,
            rtol=1e-6 if dtype == np.float32 else 1e-12,
        )
    for dtype in DTYPES:
        yield Implementation(
            f"statistics of many targets {np.dtype(dtype).name}",
            lambda z, y, dtype=dtype: unpacked(collected(z, y, dtype)),
            lambda z, y: tuple(ridge.statistics(z, y).values()),
            partial(feature_rows, dtype=dtype, k=MANY_TARGETS + 1),
            9000,
            atol=2e-4 if dtype == np.float32 else 1e-8,
            rtol=1e-6 if dtype == np.float32 else 1e-12,
        )
    for alpha in (0.3, 0.0):
        yield Implementation(
            f"ridge solve alpha={alpha}",
            lambda z, y, alpha=alpha: _fields(solve(collected(z, y), alpha, 1e-14)),
            lambda z, y, alpha=alpha: ridge.ridge(z, y, alpha),
            feature_rows,
            300,
            rtol=1e-7,
            atol=1e-8,
        )
    yield Implementation(
        "gcv scores",
        lambda z, y: solve_gcv(collected(z, y), Penalties(ALPHAS)).scores,
        lambda z, y: ridge.gcv_scores(z, y, ALPHAS),
        feature_rows,
        120,
        rtol=1e-8,
    )
    yield Implementation(
        "validation scores",
        _validation_scores,
        lambda z, y: ridge.validation_scores(z, y, _held(z), ALPHAS),
        feature_rows,
        300,
        rtol=1e-8,
    )
    yield from _partial()
    for dtype in DTYPES:
        yield Implementation(
            f"linear predictions {np.dtype(dtype).name}",
            _predictions,
            lambda z, coef, intercept: ridge.predict(z, (coef, intercept)),
            lambda rng, n, dtype=dtype: (
                feature_rows(rng, n, dtype)[0],
                rng.standard_normal((3, 40)),
                rng.standard_normal(3),
            ),
            257,
            atol=1e-12,
        )


def _partial() -> Iterator[Implementation]:
    """With the columns of a baseline: from sums, and from the rows of few bags."""
    for name, make, n in (("sums", collected, 300), ("rows", ridge_rows, 30)):
        yield Implementation(
            f"ridge with a linear baseline, from {name}",
            lambda z, a, y, make=make: _fields(
                solve(beside_linear(make(np.hstack([z, a]), y), 40, 0.02), 0.3, 0.0)
            ),
            lambda z, a, y: ridge.partial_ridge(z, a, y, 0.3, 0.02),
            _beside,
            n,
            rtol=1e-7,
            atol=1e-8,
        )
        yield Implementation(
            f"gcv scores with a linear baseline, from {name}",
            lambda z, a, y, make=make: (
                solve_gcv(
                    beside_linear(make(np.hstack([z, a]), y), 40, 0.02), Penalties(ALPHAS)
                ).scores
            ),
            lambda z, a, y: ridge.partial_gcv(z, a, y, ALPHAS, 0.02),
            _beside,
            n,
            rtol=1e-7,
        )
        yield Implementation(
            f"ridge with own coefficients, from {name}",
            lambda z, a, y, make=make: _fields(
                solve(beside_own(make(np.hstack([z, a[:, :3]]), y), 40), 0.3, 0.0)
            ),
            lambda z, a, y: ridge.own_ridge(z, a[:, :3], y, 0.3),
            _beside,
            n,
            rtol=1e-7,
            atol=1e-8,
        )


def _beside(rng: np.random.Generator, n: int) -> Inputs:
    """Random features, 20 columns of a baseline, the second of them constant, and targets."""
    z, y = feature_rows(rng, n)
    a = rng.standard_normal((n, 20))
    a[:, 1] = 2.0
    return z, a, y + a[:, :3]


def _held(z: NDArray[Any]) -> NDArray[np.bool_]:
    return np.arange(len(z)) % 5 == 0


def _validation_scores(z: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    held = _held(z)
    train, apart = collected(z[~held], y[~held]), collected(z[held], y[held])
    return solve_validation(train, apart, Penalties(ALPHAS), 1e-14).scores


def _fields(solution: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    return solution.coef, solution.intercept


def _predictions(z: NDArray[Any], coef: NDArray[Any], intercept: NDArray[Any]) -> NDArray[Any]:
    out = np.empty((len(z), len(intercept)))
    linear_predictions(0, len(z), z, coef, intercept, out)
    return out
