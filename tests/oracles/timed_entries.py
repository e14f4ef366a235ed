"""Embeddings as benchmarks time them: bags of 200 points in R², compared with what numpy needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import (
    Bags,
    Box,
    HDDEmbedding,
    HistogramEmbedding,
    MeanMapEmbedding,
    MomentsEmbedding,
    ProjectionEmbedding,
    SlicedWassersteinEmbedding,
)
from bagbasis.embeddings import EmbeddingSpec

from .hdd import direct_embedding, midpoints
from .hdd_direct import embed_at
from .histogram import homogeneous_map, moments_by_loop, quantiles_by_loop, shares_by_loop
from .implementation import Implementation, Inputs
from .mean_map import mean_map_by_loop
from .series import project_by_loop, to_unit

LO, HI = (-10.0, -10.0), (10.0, 10.0)
BOX = Box(LO, HI)
N_POINTS = 200
N_TESTED, N_TIMED = 3, 1000

Rows = Callable[[Bags], NDArray[Any]]


def timed() -> Iterator[Implementation]:
    """One entry per embedding, with its defaults but for the box."""
    projection = ProjectionEmbedding().resolve(2, BOX, list)
    indices = projection.indices.tolist()
    yield _entry(
        "projection, 10² cosines",
        projection,
        lambda bags: project_by_loop(list(bags), indices, "cosine", LO, HI)[0],
        lambda bags: np.stack([_coefficients(to_unit(bag, LO, HI)) for bag in bags]),
        target="≥ 15 ×",
    )
    hdd = HDDEmbedding(bandwidth=0.03).resolve(2, BOX, list)
    at = midpoints(hdd.grid, 2)
    yield _entry(
        "HDD js",
        hdd,
        lambda bags: np.stack([_direct(to_unit(bag, LO, HI), hdd, at) for bag in bags]),
        lambda bags: _embedded_at(bags, hdd, at),
        atol=4e-3,  # what the coefficients leave out by default; `hdd_entries` have enough
    )
    mean_map = MeanMapEmbedding(bandwidth=0.3).resolve(2, BOX, list)
    frequencies = mean_map.frequencies()
    yield _entry(
        "mean map, 256 features",
        mean_map,
        lambda bags: mean_map_by_loop(list(bags), frequencies, LO, HI)[0],
    )
    histogram = HistogramEmbedding().resolve(2, BOX, list)
    nodes = histogram.lambdas, histogram.weights
    yield _entry(
        "histogram js, 10² bins",
        histogram,
        lambda bags: homogeneous_map(shares_by_loop(list(bags), 10, LO, HI, size=2)[0], *nodes),
        lambda bags: homogeneous_map(np.stack([_shares(bag) for bag in bags]), *nodes),
    )
    yield _entry(
        "moments",
        MomentsEmbedding(standardize=False).resolve(2, BOX, list),
        lambda bags: moments_by_loop(list(bags), LO, HI)[0],
    )
    sliced = SlicedWassersteinEmbedding().resolve(2, BOX, list)
    directions = sliced.directions()
    yield _entry(
        "sliced Wasserstein, 32 × 16",
        sliced,
        lambda bags: quantiles_by_loop(list(bags), directions, 16, LO, HI)[0],
    )


def _entry(
    name: str,
    spec: EmbeddingSpec,
    oracle: Rows,
    peer: Rows | None = None,
    *,
    atol: float = 4e-6,
    target: str = "> 1 ×",
) -> Implementation:
    """Without a peer it is the oracle, where that is what people would write."""

    def embed(bags: Bags) -> NDArray[np.float32]:
        out = np.empty((len(bags), spec.n_features), np.float32)
        spec.embed(bags, out)
        return out

    name = f"{name}, bags of {N_POINTS} points in R²"
    peer = peer or oracle
    return Implementation(
        name, embed, oracle, _bags, N_TESTED, atol=atol, peer=peer, n_timed=N_TIMED, target=target
    )


def _bags(rng: np.random.Generator, n: int) -> Inputs:
    points = rng.normal(0, 3, (n * N_POINTS, 2)).clip(LO, HI).astype(np.float32)
    return (Bags(points, np.arange(n + 1) * N_POINTS),)


def _coefficients(unit: NDArray[Any]) -> NDArray[Any]:
    """Cosine coefficients of one bag: a table per coordinate and a matrix product."""
    scale = np.where(np.arange(10) == 0, 1.0, np.sqrt(2.0))
    first, last = (np.cos(np.pi * column[:, None] * np.arange(10)) * scale for column in unit.T)
    return (first.T @ last).ravel() / len(unit)


def _shares(bag: NDArray[Any]) -> NDArray[Any]:
    counts, _ = np.histogramdd(to_unit(bag, LO, HI), bins=10, range=[(0, 1)] * 2)
    return counts.reshape(1, -1) / len(bag)


def _direct(unit: NDArray[Any], spec: Any, at: NDArray[Any]) -> NDArray[Any]:
    nodes = spec.lambdas, spec.weights
    return direct_embedding(unit, spec.bandwidth, spec.floor, nodes, spec.indices.tolist(), at)


def _embedded_at(bags: Bags, spec: Any, at: NDArray[Any]) -> NDArray[Any]:
    out = np.empty((len(bags), spec.n_features), np.float32)
    embed_at(spec, bags, at, out)
    return out
