"""Small samples are embedded by NumPy where an embedding is chosen.

The values are compared with their oracles in tests/oracles/test_table.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    Bags,
    Box,
    DoubleBasisRegressor,
    ExtremesEmbedding,
    HDDEmbedding,
    MeanMapEmbedding,
    MomentsEmbedding,
    ProjectionEmbedding,
    SlicedWassersteinEmbedding,
    as_bags,
)
from bagbasis.embeddings import launching as module
from bagbasis.embeddings.bases.coefficients import project
from bagbasis.embeddings.kernels import by_arrays as arrays
from bagbasis.embeddings.kernels.by_arrays import by_arrays, is_small
from bagbasis.models.fitting.choice.automatic import choose_embedding
from tests.passes import compiling_at_once

SIZES = (1, 2, 7, 300, 33)
CASES = {
    "moments": (MomentsEmbedding(), (1, 2, 5)),
    "means": (MomentsEmbedding(covariance=False, standardize=False), (3,)),
    "mean_map": (MeanMapEmbedding(n_features=32), (1, 2, 3, 5)),
    "phases": (MeanMapEmbedding(n_features=8, phase=True), (2,)),
    "sliced": (SlicedWassersteinEmbedding(n_directions=7, n_quantiles=5), (1, 2, 4)),
    "extremes": (ExtremesEmbedding(n_directions=7), (1, 2, 9)),
    "projection": (ProjectionEmbedding(n_per_dim=5), (1, 2, 3)),
    "ball": (ProjectionEmbedding(max_norm=3.5), (2, 3)),
    "pairs": (ProjectionEmbedding(n_per_dim=4, marginals=2), (4,)),
    "singles": (ProjectionEmbedding(n_per_dim="auto", marginals=1), (3,)),
    "js": (HDDEmbedding("js", n_per_dim=5), (1, 2, 3)),
    "js_singles": (HDDEmbedding("js", n_per_dim=5, marginals=1), (2,)),
    "js_pairs": (HDDEmbedding("js", n_per_dim=4, marginals=2), (4,)),
    "js_coefficients": (HDDEmbedding("js", n_per_dim=5, bandwidth=0.15, grid=11), (2,)),
    "tv": (HDDEmbedding("tv", n_per_dim=4, order=1.5), (1, 2)),
    "l2": (HDDEmbedding("l2", n_per_dim=4, bandwidth=0.05), (2,)),
}


def ragged(d: int, dtype: str) -> Bags:
    """Bags of different sizes, with points on and beyond the edges, and equal ones."""
    rng = np.random.default_rng(d)
    bags = [rng.normal(0.5, 0.3, (n, d)) for n in SIZES]
    bags[2][:] = bags[2][0]
    bags[3][:4] = 0.0
    bags[3][4:8] = 1.0
    return as_bags([bag.astype(dtype) for bag in bags])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "d"), [(name, d) for name, (_, ds) in CASES.items() for d in ds])
def test_as_the_kernels(name, d, dtype):
    embedding = CASES[name][0].set_params(box=[(-0.2, 1.1)] * d)
    bags = ragged(d, dtype)
    spec = embedding.fit(bags).spec_
    rows, outside = np.empty((len(bags), spec.n_features)), np.zeros(len(bags), np.int64)
    with compiling_at_once():
        spec.embed(bags, rows, outside)
    result, beyond = np.full_like(rows, np.nan), np.zeros_like(outside)
    with by_arrays(True):
        spec.embed(bags, result, beyond)
    np.testing.assert_allclose(result, rows, rtol=1e-9, atol=1e-12 * np.abs(rows).max())
    assert beyond.tolist() == outside.tolist()


@pytest.mark.parametrize(
    ("n_points", "n_dims", "small"),
    [
        (200_000, 2, True),
        (200_001, 2, False),
        (200_000, 10, True),
        (25_000, 80, True),
        (25_001, 80, False),
    ],
)
def test_size_alone_decides(n_points, n_dims, small):
    assert is_small(n_points, n_dims) is small


@pytest.mark.parametrize("small", [True, False])
def test_kernels_of_a_choice(monkeypatch, small):
    """A choice on a small sample calls no kernel, one on a large sample calls them all."""
    called, run = set(), module.run_kernel

    def run_kernel(kernel, *arguments):
        called.add(kernel)
        run(kernel, *arguments)

    def choose(*arguments):
        monkeypatch.setattr(module, "run_kernel", run_kernel)
        choice = choose_embedding(*arguments)
        monkeypatch.setattr(module, "run_kernel", run)
        return choice

    monkeypatch.setattr("bagbasis.models.fitting.choice.automatic.is_small", lambda *_: small)
    monkeypatch.setattr("bagbasis.models.fitting.planning.choose_embedding", choose)
    rng = np.random.default_rng(0)
    y = rng.uniform(0.5, 2, 24)
    model = DoubleBasisRegressor().fit([rng.normal(0, s, (9, 2)) for s in y], y)
    assert called == set() if small else len(called) >= 5
    assert len(model.report_["choice"]["tried"]) > 10


def test_kernels_again_after_an_error():
    with pytest.raises(ZeroDivisionError), by_arrays(True):
        raise ZeroDivisionError
    assert module.substitutes.get() is None


def test_tables_are_of_the_coordinates_that_are_taken(monkeypatch):
    """A marginal of many coordinates has the kernel's values, and no cosines of the others."""
    bags, box = ragged(9, "float64"), Box((-0.2,) * 9, (1.1,) * 9)
    arguments = bags, np.arange(4)[:, None], np.array([[5], [2]]), "cosine", box
    rows, result = np.empty((2, len(bags), 8))
    outside = project(*arguments, rows, drop=False)
    compute, n_numbers = arrays.sines_and_cosines, []

    def counted(turns):
        n_numbers.append(turns.size)
        return compute(turns)

    monkeypatch.setattr(arrays, "sines_and_cosines", counted)
    with by_arrays(True):
        beyond = project(*arguments, result, drop=False)
    np.testing.assert_allclose(result, rows, rtol=1e-9, atol=1e-12)
    assert beyond.tolist() == outside.tolist()
    assert sum(n_numbers) == (2 + 2) * 2 * bags.n_points


@pytest.mark.parametrize("n_functions", [1, 2, 10, 17, 256])
@pytest.mark.parametrize("squared", [False, True])
def test_sums_of_many_cosines(n_functions, squared):
    """By products of few, to the digits of the sums of all; the edges of the box among them."""
    unit = np.concatenate([np.random.default_rng(0).random((3, 2000)), [[0.0], [0.5], [1.0]]], 1)
    tables = np.cos(np.pi * np.arange(n_functions)[:, None, None] * unit)
    expected = (tables**2 if squared else tables).sum(axis=2).T
    sums = arrays.cosine_sums(unit, n_functions, squared)
    np.testing.assert_allclose(sums, expected, rtol=0, atol=1e-9)
