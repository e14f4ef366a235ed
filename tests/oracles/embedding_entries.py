"""Mean maps, histograms, moments and quantiles against their oracles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import (
    BagOfWordsEmbedding,
    Bags,
    ExtremesEmbedding,
    HistogramEmbedding,
    MeanMapEmbedding,
    MomentsEmbedding,
    RankedSummariesEmbedding,
    SizeEmbedding,
    SlicedWassersteinEmbedding,
)
from bagbasis.embeddings import BagOfWordsSpec, RankedSummariesSpec

from .histogram import (
    extremes_by_loop,
    homogeneous_map,
    moments_by_loop,
    quantiles_by_loop,
    ranks_by_loop,
    shares_by_loop,
    sizes_by_loop,
    words_by_loop,
)
from .implementation import DTYPES, Implementation
from .mean_map import mean_map_by_loop, phases_of
from .ragged import SIZES
from .series_entries import HI, LO, ragged_bags


def embeddings() -> Iterator[Implementation]:
    """Every dimension and pair of dtypes clipped; then kernels, distances and dropping."""
    for n_dims in (1, 2, 3, 4):
        for points_dtype in DTYPES:
            for out_dtype in DTYPES:
                options = {"n_dims": n_dims, "dtypes": (points_dtype, out_dtype)}
                yield _mean_map(**options, n_features=64, bandwidth=0.3)
                yield _histogram(**options, distance="js", n_bins=5)
                yield _moments(**options)
                yield _sliced(**options, n_directions=7, n_quantiles=6)
                yield _extremes(**options, n_directions=4, tail=0.07)
                yield _size(**options)
                yield _words(**options, n_words=9)
                yield _ranks(**options, n_levels=3)
    doubles = {"n_dims": 2, "dtypes": (np.float64, np.float64)}
    for kernel in ("laplacian", "matern"):
        yield _mean_map(**doubles, kernel=kernel, n_features=600, bandwidth=0.4, nu=2.5, seed=3)
    yield _mean_map(**doubles, n_features=2, bandwidth=0.05, out_of_box="drop")
    yield _mean_map(**doubles, n_features=64, bandwidth=0.3, phase=True, out_of_box="drop")
    for distance in ("chi2", "intersection", "l2"):
        yield _histogram(**doubles, distance=distance, n_bins=7, n_lambdas=2)
    yield _histogram(**doubles, distance="js", n_bins=1, out_of_box="drop")
    yield _histogram(3, (np.float32, np.float64), distance="js", n_bins=4, marginals=2)
    yield _moments(**doubles, out_of_box="drop")
    yield _sliced(**doubles, n_directions=3, n_quantiles=300, out_of_box="drop")
    yield _extremes(**doubles, n_directions=1, out_of_box="drop")
    yield _size(**doubles, out_of_box="drop")
    yield _words(**doubles, n_words=2, out_of_box="drop")
    yield _ranks(**doubles, n_levels=1, out_of_box="drop")


def _mean_map(n_dims: int, dtypes: tuple[Any, Any], **params: Any) -> Implementation:
    embedding = MeanMapEmbedding(**params)

    def oracle(bags: Bags) -> Any:
        frequencies = _spec(embedding, n_dims).frequencies()
        mode = embedding.out_of_box
        result, outside = mean_map_by_loop(list(bags), frequencies, LO[:n_dims], HI[:n_dims], mode)
        return (phases_of(result) if embedding.phase else result), outside

    return _entry(embedding, oracle, n_dims, dtypes, params)


def _histogram(n_dims: int, dtypes: tuple[Any, Any], **params: Any) -> Implementation:
    embedding = HistogramEmbedding(**params)

    def oracle(bags: Bags) -> Any:
        spec = _spec(embedding, n_dims)
        shares, outside = shares_by_loop(
            list(bags),
            spec.n_bins,
            LO[:n_dims],
            HI[:n_dims],
            size=spec.marginals or n_dims,
            mode=spec.out_of_box,
        )
        if spec.distance == "l2":
            return shares.reshape(len(bags), -1), outside
        return homogeneous_map(shares, spec.lambdas, spec.weights), outside

    return _entry(embedding, oracle, n_dims, dtypes, params)


def _moments(n_dims: int, dtypes: tuple[Any, Any], **params: Any) -> Implementation:
    embedding = MomentsEmbedding(**params, standardize=False)

    def oracle(bags: Bags) -> Any:
        return moments_by_loop(list(bags), LO[:n_dims], HI[:n_dims], embedding.out_of_box)

    return _entry(embedding, oracle, n_dims, dtypes, params)


def _sliced(n_dims: int, dtypes: tuple[Any, Any], **params: Any) -> Implementation:
    embedding = SlicedWassersteinEmbedding(**params)

    def oracle(bags: Bags) -> Any:
        spec = _spec(embedding, n_dims)
        limits = LO[:n_dims], HI[:n_dims]
        mode = embedding.out_of_box
        return quantiles_by_loop(list(bags), spec.directions(), spec.n_quantiles, *limits, mode)

    return _entry(embedding, oracle, n_dims, dtypes, params)


def _extremes(n_dims: int, dtypes: tuple[Any, Any], **params: Any) -> Implementation:
    embedding = ExtremesEmbedding(**params)

    def oracle(bags: Bags) -> Any:
        spec = _spec(embedding, n_dims)
        limits = LO[:n_dims], HI[:n_dims]
        shares, mode = (0, embedding.tail, 1 - embedding.tail, 1), embedding.out_of_box
        return extremes_by_loop(list(bags), spec.directions(), shares, *limits, mode)

    return _entry(embedding, oracle, n_dims, dtypes, params)


def _size(n_dims: int, dtypes: tuple[Any, Any], **params: Any) -> Implementation:
    embedding = SizeEmbedding(**params)

    def oracle(bags: Bags) -> Any:
        return sizes_by_loop(list(bags), LO[:n_dims], HI[:n_dims], embedding.out_of_box)

    return _entry(embedding, oracle, n_dims, dtypes, params)


def _words(n_dims: int, dtypes: tuple[Any, Any], n_words: int, **params: Any) -> Implementation:
    rng = np.random.default_rng(n_words)
    embedding = BagOfWordsEmbedding(n_words=n_words, **params)
    box = list(zip(LO[:n_dims], HI[:n_dims], strict=True))
    centres = rng.random((n_words, n_dims))
    mode = embedding.out_of_box
    embedding.spec_ = BagOfWordsSpec(
        centres=tuple(centres.ravel().tolist()), out_of_box=mode, box=box
    )

    def oracle(bags: Bags) -> Any:
        return words_by_loop(list(bags), centres, LO[:n_dims], HI[:n_dims], mode)

    return _entry(embedding, oracle, n_dims, dtypes, {"n_words": n_words, **params})


def _ranks(n_dims: int, dtypes: tuple[Any, Any], n_levels: int, **params: Any) -> Implementation:
    embedding = RankedSummariesEmbedding(n_levels=n_levels, **params)
    box, mode = list(zip(LO[:n_dims], HI[:n_dims], strict=True)), embedding.out_of_box
    n = 5 * n_dims + n_dims * (n_dims + 1) // 2
    knots = np.sort(np.random.default_rng(n).random((n, n_levels + 1)), axis=1)
    knots[::3, -1] = knots[::3, -2]  # a step
    quantiles = tuple(knots.ravel().tolist())
    embedding.spec_ = RankedSummariesSpec(
        n_levels=n_levels, quantiles=quantiles, out_of_box=mode, box=box
    )

    def oracle(bags: Bags) -> Any:
        return ranks_by_loop(list(bags), knots, LO[:n_dims], HI[:n_dims], mode)

    return _entry(embedding, oracle, n_dims, dtypes, {"n_levels": n_levels, **params})


def _entry(
    embedding: Any,
    oracle: Callable[[Bags], Any],
    n_dims: int,
    dtypes: tuple[Any, Any],
    params: dict[str, Any],
) -> Implementation:
    points_dtype, out_dtype = dtypes
    names = [type(embedding).__name__, f"{n_dims}d", *(np.dtype(d).name for d in dtypes)]
    return Implementation(
        " ".join([*names, *(f"{name}={value}" for name, value in params.items())]),
        partial(_embedded, embedding, out_dtype),
        oracle,
        partial(ragged_bags, n_dims=n_dims, dtype=points_dtype),
        len(SIZES),
        atol=2e-6 if out_dtype == np.float32 else 1e-12,
    )


def _embedded(embedding: Any, dtype: Any, bags: Bags) -> tuple[NDArray[Any], int]:
    spec = _spec(embedding, bags.n_dims)
    out = np.empty((len(bags), spec.n_features), dtype=dtype)
    outside = np.array([spec.embed(bags[i : i + 1], out[i : i + 1]) for i in range(len(bags))])
    together = np.empty_like(out)
    assert spec.embed(bags, together) == outside.sum()
    np.testing.assert_array_equal(together, out)
    return out, outside


def _spec(embedding: Any, n_dims: int) -> Any:
    bounds = list(zip(LO[:n_dims], HI[:n_dims], strict=True))
    value = getattr(embedding, "spec_", None)
    return value or embedding.set_params(box=bounds).resolve(n_dims, None, list)
