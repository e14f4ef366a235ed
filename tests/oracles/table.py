"""Every implementation beside its oracle: what the oracle tests run and benchmarks time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline import Bags, RandomFourierFeatures
from pipeline.bags import Box
from pipeline.bases import BASES, evaluate_basis, evaluate_series, index_set, project
from pipeline.embeddings.selection import LeaveOneOutScore
from pipeline.random_features import FourierSpec
from pipeline.random_features.fourier import median_distance
from pipeline.random_features.fourier_kernels import sine_cosine
from pipeline.regression.ridge import solve, solve_gcv, solve_validation
from pipeline.regression.statistics import RidgeStatistics, StatisticsBuilder
from pipeline.regression.statistics_kernels import linear_predictions

from . import fourier, ridge, series
from .ragged import SIZES

Inputs = tuple[Any, ...]
LO, HI = (-1.5, -2.0, -0.75, -1.0), (2.0, 1.0, 1.25, 4.0)  # exact in float32
N_PER_DIM = {1: 12, 2: 7, 3: 4, 4: 3}
RADIUS = {1: 9.0, 2: 5.5, 3: 3.0, 4: 2.0}
DTYPES = (np.float32, np.float64)
ALPHAS = np.array([1e-2, 1.0, 30.0])


@dataclass(frozen=True)
class Implementation:
    """One function of the package and its slow twin.

    Attributes
    ----------
    name : str
    implementation, oracle : callable
        Take what ``make`` gives; return an array or a tuple of arrays.
    make : callable (generator, n) → inputs
        n is the number of bags, or of rows.
    n : int
        For the tests.
    atol, rtol : float
        How far the two may be apart.
    """

    name: str
    implementation: Callable[..., Any]
    oracle: Callable[..., Any]
    make: Callable[[np.random.Generator, int], Inputs]
    n: int
    atol: float = 0.0
    rtol: float = 0.0


def ragged_bags(rng: np.random.Generator, n: int, n_dims: int, dtype: Any) -> Inputs:
    """Bags of the usual ragged sizes; some points outside the box, some exactly on its walls."""
    lo, hi = np.array(LO[:n_dims]), np.array(HI[:n_dims])
    bags = []
    for size in islice(cycle(SIZES), n):
        points = rng.uniform(lo - 0.1 * (hi - lo), hi + 0.1 * (hi - lo), (size, n_dims))
        walls = rng.random(points.shape)
        points = np.where(walls < 0.02, lo, np.where(walls > 0.98, hi, points))
        points[0] = lo + 0.5 * (hi - lo)  # so that no bag is outside as a whole
        bags.append(points.astype(dtype))
    return (Bags.from_list(bags),)


def projected(
    bags: Bags,
    *,
    basis: str,
    limits: tuple[int | None, float | None],
    size: int,
    out_dtype: Any = np.float64,
    mode: str = "clip",
    squared: bool = False,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """`bases.project` for a table entry: all dimensions, or marginals of ``size`` of them."""
    indices, groups = index_set(size, *limits, basis), series.subsets(bags.n_dims, size)
    out = np.empty((len(bags), len(groups) * len(indices)), dtype=out_dtype)
    box = Box(LO[: bags.n_dims], HI[: bags.n_dims])
    drop = mode == "drop"
    n_outside = project(
        bags, indices, np.array(groups), basis, box, out, drop=drop, squared=squared
    )
    return out, n_outside


def projected_by_loop(
    bags: Bags,
    *,
    basis: str,
    limits: tuple[int | None, float | None],
    size: int,
    mode: str = "clip",
    squared: bool = False,
) -> tuple[NDArray[Any], NDArray[Any]]:
    indices = series.index_set_by_loop(size, *limits, basis)
    lo, hi = LO[: bags.n_dims], HI[: bags.n_dims]
    return series.project_by_loop(
        list(bags), indices, basis, lo, hi, marginals=size, mode=mode, squared=squared
    )


def _projections() -> Iterator[Implementation]:
    """All bases, index sets, dimensions and dtypes; then marginals, dropping and squares."""
    for basis in BASES:
        for n_dims in (1, 2, 3, 4):
            for kind in ("tensor", "ball"):
                limits = (N_PER_DIM[n_dims], None) if kind == "tensor" else (None, RADIUS[n_dims])
                for points_dtype in DTYPES:
                    for out_dtype in DTYPES:
                        yield _projection(basis, kind, limits, n_dims, points_dtype, out_dtype)
        yield _projection(basis, "tensor", (5, None), 4, np.float32, np.float64, size=1)
        yield _projection(basis, "tensor", (4, None), 4, np.float64, np.float64, size=2)
        yield _projection(basis, "ball", (None, 3.0), 3, np.float32, np.float32, size=2)
        for squared in (False, True):
            options = {"mode": "drop", "squared": squared}
            yield _projection(basis, "ball", (None, 4.0), 2, np.float64, np.float64, **options)
            yield _projection(basis, "tensor", (6, None), 1, np.float32, np.float32, **options)
        yield _projection(basis, "tensor", (4, None), 3, np.float64, np.float64, squared=True)
        yield _projection(basis, "both", (4, 3.5), 3, np.float64, np.float64)


def _projection(
    basis: str,
    kind: str,
    limits: tuple[int | None, float | None],
    n_dims: int,
    points_dtype: Any,
    out_dtype: Any,
    size: int | None = None,
    **options: Any,
) -> Implementation:
    size = size or n_dims
    common = {"basis": basis, "limits": limits, "size": size, **options}
    names = [basis, kind, f"{n_dims}d", np.dtype(points_dtype).name, np.dtype(out_dtype).name]
    names += [f"marginals={size}"] * (size < n_dims) + [str(v) for v in options.values()]
    coarse = out_dtype == np.float32
    return Implementation(
        "project " + " ".join(names),
        partial(projected, **common, out_dtype=out_dtype),
        partial(projected_by_loop, **common),
        partial(ragged_bags, n_dims=n_dims, dtype=points_dtype),
        len(SIZES),
        atol=4e-6 if coarse else 1e-13,
        rtol=4e-6 if coarse else 1e-13,
    )


def _evaluations() -> Iterator[Implementation]:
    for basis in BASES:
        yield Implementation(
            f"evaluate_basis {basis}",
            lambda x, basis=basis: evaluate_basis(basis, 12, x),
            lambda x, basis=basis: np.stack(
                [series.basis_function(basis, k, x) for k in range(12)], axis=1
            ),
            lambda rng, n: (np.concatenate([[0.0, 0.5, 1.0], rng.random(n)]),),
            1000,
            atol=1e-12,
        )
        indices = index_set(2, None, 4.0, basis)
        yield Implementation(
            f"evaluate_series {basis}",
            lambda a, x, basis=basis, indices=indices: evaluate_series(a, indices, basis, x),
            lambda a, x, basis=basis, indices=indices: (
                a @ np.stack([series.product_function(basis, alpha, x) for alpha in indices])
            ),
            lambda rng, n, indices=indices: (
                rng.standard_normal((3, len(indices))),
                rng.random((n, 2)),
            ),
            200,
            atol=1e-11,
        )
        yield Implementation(
            f"leave-one-out score {basis}",
            partial(_scores, basis=basis),
            partial(_scores_by_loop, basis=basis),
            lambda rng, n: ([rng.random((size, 2)) for size in islice(cycle((2, 3, 41)), n)],),
            3,
            atol=1e-11,
            rtol=1e-11,
        )


def _scores(bags: list[NDArray[Any]], basis: str) -> NDArray[Any]:
    groups = np.array([[0, 1]])
    score = LeaveOneOutScore(index_set(2, 5, None, basis), groups, basis, Box.unit(2), drop=False)
    score.add(Bags.from_list(bags))
    return score.mean


def _scores_by_loop(bags: list[NDArray[Any]], basis: str) -> NDArray[Any]:
    indices = series.index_set_by_loop(2, 5, None, basis)
    return np.mean([series.leave_one_out_score(bag, indices, basis) for bag in bags], axis=0)


def _random_features() -> Iterator[Implementation]:
    for dtype in DTYPES:
        name = np.dtype(dtype).name
        for orthogonal in (False, True):
            spec = FourierSpec(30, 200, 1.5, seed=3, orthogonal=orthogonal)
            yield Implementation(
                f"random features {name} orthogonal={orthogonal}",
                partial(_transform, spec=spec),
                lambda a, spec=spec: fourier.features(a, spec.frequencies()),
                lambda rng, n, dtype=dtype: (rng.standard_normal((n, 30)).astype(dtype),),
                300,
                atol=3e-6 if dtype == np.float32 else 1e-14,
            )
    yield Implementation(
        "sine_cosine float32",
        _sine_cosine,
        lambda phases: (np.sin(phases.astype(np.float64)), np.cos(phases.astype(np.float64))),
        lambda rng, n: (rng.normal(0, 50, (n, 256)).astype(np.float32),),
        64,
        atol=2e-7,
    )
    yield Implementation(
        "median distance",
        median_distance,
        fourier.median_distance_by_loop,
        lambda rng, n: (rng.standard_normal((n, 5)) + 100,),
        62,  # an odd number of pairs: the median is one of them
        rtol=1e-9,
    )


def _transform(embeddings: NDArray[Any], spec: FourierSpec) -> NDArray[Any]:
    out = np.empty((len(embeddings), spec.n_features), dtype=embeddings.dtype)
    spec.transform(embeddings, out)
    return out


def _sine_cosine(phases: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    out = np.hstack([phases, np.zeros_like(phases)])
    sine_cosine(out, np.float32(1))
    return out[:, : phases.shape[1]], out[:, phases.shape[1] :]


def feature_rows(rng: np.random.Generator, n: int, dtype: Any = np.float64, k: int = 3) -> Inputs:
    """Random features (n, 40) and k targets that they explain in part."""
    a = rng.random((n, 5))
    z = RandomFourierFeatures(40, scale=1.0).fit(a).transform(a)
    y = np.stack([np.sin(3 * a[:, t % 5]) + 5 * t for t in range(k)], axis=1)
    return z.astype(dtype), y + 0.1 * rng.standard_normal(y.shape)


def collected(z: NDArray[Any], y: NDArray[Any], dtype: Any = np.float64) -> RidgeStatistics:
    """The statistics of rows, collected as a fit does."""
    builder = StatisticsBuilder(z.shape[1], y.shape[1], dtype)
    builder.add(z, y)
    return builder.finish()


def unpacked(statistics: RidgeStatistics) -> tuple[NDArray[Any], ...]:
    """The fields, ZᵀZ as a full matrix."""
    s = statistics
    gram = np.zeros((s.n_features, s.n_features))
    gram[np.triu_indices(s.n_features)] = s.gram
    gram += np.triu(gram, 1).T
    return np.array(float(s.n)), s.sum_z, gram, s.sum_y, s.cross, s.sum_yy


def _regression() -> Iterator[Implementation]:
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
        lambda z, y: solve_gcv(collected(z, y), ALPHAS).scores,
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


def _held(z: NDArray[Any]) -> NDArray[np.bool_]:
    return np.arange(len(z)) % 5 == 0


def _validation_scores(z: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    held = _held(z)
    train, apart = collected(z[~held], y[~held]), collected(z[held], y[held])
    return solve_validation(train, apart, ALPHAS, 1e-14).scores


def _fields(solution: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    return solution.coef, solution.intercept


def _predictions(z: NDArray[Any], coef: NDArray[Any], intercept: NDArray[Any]) -> NDArray[Any]:
    out = np.empty((len(z), len(intercept)))
    linear_predictions(z, coef, intercept, out)
    return out


IMPLEMENTATIONS: dict[str, Implementation] = {
    entry.name: entry
    for makers in (_projections(), _evaluations(), _random_features(), _regression())
    for entry in makers
}
