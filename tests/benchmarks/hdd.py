"""HDD embeddings against the direct algorithm of the papers and against plain projection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import qmc
from sklearn.metrics import root_mean_squared_error

from bagbasis import (
    Bags,
    CoefficientPCA,
    DoubleBasisRegressor,
    HDDEmbedding,
    ProjectionEmbedding,
    RandomFourierFeatures,
)
from bagbasis.embeddings import HDDSpec
from bagbasis.jobs.experiments.data.samples import truncated_mixtures
from tests.oracles.hdd import kappa
from tests.oracles.hdd_direct import embed_at

from .data import mixture_store
from .pairing import Row, pair

SEEDS = (0, 1, 2)
CANDIDATES = (250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000)
SAME = 1.05  # kernel errors closer than this are the same
N_BAGS, N_POINTS, N_TEST = 4000, 200, 2000


def hdd() -> Iterator[Row]:
    """JS, n = 200, d = 2, 10² cosines, float32; five nodes against the direct algorithm; and whole
    fits with 64 principal components of TV's 4,000 numbers, the test errors in the name."""
    bags = mixture_store(N_BAGS).read()
    box = [(-10, 10)] * 2
    ours = HDDEmbedding("js", n_lambdas=5, box=box).fit(bags)
    projection = ProjectionEmbedding(box=box).fit(bags)
    out = np.empty((N_BAGS, ours.spec_.n_features), dtype=np.float32)
    few = bags[: N_BAGS // 20]
    for name, draw, target in (
        ("at random points (001)", uniform_points, "≥ 10 ×"),
        ("at Halton points", halton_points, ""),
    ):
        n_points = points_needed(draw)
        at = draw(n_points, 0)
        row = pair(
            f"HDD js, fast / direct {name}, {n_points} for the same kernel error",
            lambda: ours.transform(bags),
            lambda at=at: embed_at(ours.spec_, few, at, out[: len(few)]),
        )
        yield _scaled(row, N_BAGS / len(few), target)
    yield pair(
        "HDD js, default nodes / projection",
        partial(HDDEmbedding("js", box=box).fit(bags).transform, bags),
        partial(projection.transform, bags),
        target="≤ 12",
        floor=True,
    )
    yield shortened()


def shortened() -> Row:
    """A fit with TV's principal components compared with one with JS."""
    store = mixture_store(N_BAGS + N_TEST)
    bags, y = store.read(), store.targets()[:, 0]
    ours, other = (
        DoubleBasisRegressor(embedding, RandomFourierFeatures(n_features=1024))
        for embedding in (CoefficientPCA(HDDEmbedding("tv"), n_components=64), HDDEmbedding("js"))
    )
    row = pair(
        f"fit of {N_BAGS:,}, 64 components of tv / js",
        partial(ours.fit, bags[:N_BAGS], y[:N_BAGS]),
        partial(other.fit, bags[:N_BAGS], y[:N_BAGS]),
        repeats=2,
        floor=True,
    )
    errors = [
        root_mean_squared_error(y[N_BAGS:], model.predict(bags[N_BAGS:])) for model in (ours, other)
    ]
    return replace(row, name=f"{row.name}, error {errors[0]:.4g} / {errors[1]:.4g}")


def points_needed(draw: Callable[[int, int], np.ndarray]) -> int:
    """The fewest integration points with the fast path's kernel error: the root mean square of
    exp(−d²/2σ²) − truth over mixtures of 001, Appendix A, with 200 points each, σ² the median true
    d², averaged over three data sets and three draws of the points."""
    problems = [_problem(seed) for seed in SEEDS]
    fast = np.mean([_error(spec, bags, true, None) for spec, bags, true in problems])
    for n_points in CANDIDATES:
        errors = [
            _error(spec, bags, true, draw(n_points, seed))
            for spec, bags, true in problems
            for seed in SEEDS
        ]
        if np.mean(errors) <= SAME * fast:
            return n_points
    raise RuntimeError(f"{CANDIDATES[-1]} integration points are not enough")


def uniform_points(n_points: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((n_points, 2))


def halton_points(n_points: int, seed: int) -> np.ndarray:
    return qmc.Halton(2, seed=np.random.default_rng(seed)).random(n_points)


def _problem(seed: int) -> tuple[HDDSpec, Bags, np.ndarray]:
    bags, densities = truncated_mixtures(seed, n_points=N_POINTS)
    true = np.array([kappa("js", p, densities).mean(axis=1) for p in densities])
    spec = HDDEmbedding("js", n_lambdas=5).fit(bags).spec_
    return spec, bags, true[np.triu_indices(len(true), 1)]


def _error(spec: HDDSpec, bags: Bags, true: np.ndarray, at: np.ndarray | None) -> float:
    out = np.empty((len(bags), spec.n_features), dtype=np.float32)
    if at is None:
        spec.embed(bags, out)
    else:
        embed_at(spec, bags, at, out)
    scale = 2 * np.median(true)
    estimate = np.exp(-pdist(out.astype(np.float64), "sqeuclidean") / scale)
    return float(np.sqrt(np.mean((estimate - np.exp(-true / scale)) ** 2)))


def _scaled(row: Row, factor: float, target: str) -> Row:
    """As if the other had worked on ``factor`` times as many bags."""
    times = [x * factor for x in (row.other, row.ratio, row.low, row.high)]
    return Row(row.name, row.ours, *times, target)
