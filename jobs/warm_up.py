"""Compiles the kernels of what people use first, so that the first fit does not wait for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from bagbasis import DoubleBasisRegressor

_N_BAGS, _N_POINTS, _N_FEATURES = 24, 30, 32  # as few as every estimator takes: only types matter

Step = tuple[str, Callable[[], object]]


def warm_up() -> Iterator[tuple[str, float]]:
    """Yield the name of each step and the seconds it took, after it is done.

    Kernels are compiled for bags of float32 and float64, and kept where numba keeps them (next to
    the package, or in ``NUMBA_CACHE_DIR``): a second run reads them within seconds.
    """
    from bagbasis.core.compiling import compiling_at_once

    for name, step in warming_steps():
        begun = time.perf_counter()
        with compiling_at_once():
            step()
        yield name, time.perf_counter() - begun


def _fit_and_predict(
    model: DoubleBasisRegressor, bags: list[NDArray[Any]], labels: NDArray[Any]
) -> None:
    model.fit(bags, labels).predict(bags)


def warming_steps() -> Iterator[Step]:
    """Yield the name of each step of `warm_up`, and the step."""
    import numpy as np

    from bagbasis import (
        DoubleBasisClassifier,
        DoubleBasisRegressor,
        ProjectionEmbedding,
        RandomFourierFeatures,
        TripleBasisRegressor,
    )
    from bagbasis.embeddings import EMBEDDINGS
    from bagbasis.hypotheses import two_sample_test

    rng = np.random.default_rng(0)
    second = RandomFourierFeatures(n_features=_N_FEATURES)
    labels = np.arange(_N_BAGS) % 2
    # types are what is compiled for: the numbers are of no account
    double: list[NDArray[np.float64]] = [rng.random((_N_POINTS, 2)) for _ in range(_N_BAGS)]
    for dtype in (np.float32, np.float64):
        bags = [bag.astype(dtype) for bag in double]
        for name, kind in EMBEDDINGS.items():
            model = DoubleBasisRegressor(kind(), second, alpha=0.1)
            yield f"{name}, {dtype.__name__}", partial(_fit_and_predict, model, bags, labels)
    first = ProjectionEmbedding(n_per_dim=4)
    classifier = DoubleBasisClassifier(first, second)
    yield "classes", lambda: classifier.fit(double, labels).predict(double)
    densities = TripleBasisRegressor(first, second)
    yield "densities", lambda: densities.fit(double, double).predict_density(double, grid=8)
    yield "two-sample test", lambda: two_sample_test(double[:12], double[12:])
