"""Bases next to their oracles: projections, evaluations, leave-one-out scores."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import cycle, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags, Box
from bagbasis.embeddings import BASES, evaluate_basis, index_set
from bagbasis.embeddings.bases.coefficients import project
from bagbasis.embeddings.bases.smoothness import leave_one_out_sums

from . import series
from .implementation import DTYPES, Implementation, Inputs
from .ragged import SIZES

LO, HI = (-1.5, -2.0, -0.75, -1.0), (2.0, 1.0, 1.25, 4.0)  # exact in float32
N_PER_DIM = {1: 12, 2: 7, 3: 4, 4: 3}
RADIUS = {1: 9.0, 2: 5.5, 3: 3.0, 4: 2.0}


def ragged_bags(rng: np.random.Generator, n: int, n_dims: int, dtype: Any) -> Inputs:
    """Bags of the usual ragged sizes; some points outside the box, some exactly on its edges."""
    lo, hi = np.array(LO[:n_dims]), np.array(HI[:n_dims])
    bags = []
    for size in islice(cycle(SIZES), n):
        points = rng.uniform(lo - 0.1 * (hi - lo), hi + 0.1 * (hi - lo), (size, n_dims))
        edges = rng.random(points.shape)
        points = np.where(edges < 0.02, lo, np.where(edges > 0.98, hi, points))
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
    indices, groups = (
        index_set(size, limits[0], max_norm=limits[1], basis=basis),
        series.subsets(bags.n_dims, size),
    )
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


def projections() -> Iterator[Implementation]:
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


def evaluations() -> Iterator[Implementation]:
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
    indices, group = index_set(2, 5, max_norm=None, basis=basis), np.arange(2)
    sums, _ = leave_one_out_sums(Bags.from_list(bags), indices, group, basis, Box.unit(2))
    return sums.mean_scores(np.eye(len(indices)))


def _scores_by_loop(bags: list[NDArray[Any]], basis: str) -> NDArray[Any]:
    indices = series.index_set_by_loop(2, 5, None, basis)
    return np.mean([series.leave_one_out_score(bag, indices, basis) for bag in bags], axis=0)
