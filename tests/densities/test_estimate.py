"""`estimate_densities`: from bags to densities in the units of the data."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from bagbasis import BagError, Bags, Box, DataError, ParameterError
from bagbasis.densities import choose_smoothness, estimate_densities, kde_at
from bagbasis.embeddings import BASES, index_set
from tests.oracles.series import index_set_by_loop, project_by_loop


def normal_bags(n_dims, sizes, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(3, 2, (size, n_dims)).astype(dtype) for size in sizes]


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("shape", ["ball", "tensor"])
def test_series_against_the_loop(basis, n_dims, mode, shape):
    """Coefficients are means of the functions over the bag's points."""
    bags, box = normal_bags(n_dims, (30, 5, 14)), [(0.0, 6.0)] * n_dims
    densities = estimate_densities(
        bags, smoothness=3, shape=shape, basis=basis, box=box, out_of_box=mode
    )
    limits = (None, 3.0) if shape == "ball" else (3, None)
    indices = index_set_by_loop(n_dims, *limits, basis)
    assert list(map(tuple, densities.indices.tolist())) == indices
    lo, hi = zip(*box, strict=True)
    expected, outside = project_by_loop(bags, indices, basis, lo, hi, mode=mode)
    assert outside.any()
    np.testing.assert_allclose(densities.coefficients, expected, atol=1e-12)
    np.testing.assert_allclose(densities.integral(), 1, atol=1e-13)


@pytest.mark.parametrize("method", ["series", "kde"])
@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_automatic_smoothness(method, n_dims):
    """ "loo" is the choice of `choose_smoothness` for these bags, in their own box."""
    bags = normal_bags(n_dims, (60, 40, 1))
    densities = estimate_densities(bags, method)
    best = choose_smoothness(bags, method).best
    value = estimate_densities(bags, method, smoothness=best)
    np.testing.assert_array_equal(densities.coefficients, value.coefficients)
    assert densities.box == value.box != Box.unit(n_dims)
    truth = np.exp(-0.5 * ((densities.grid_axes(30)[0] - 3) / 2) ** 2) / np.sqrt(8 * np.pi)
    estimate = densities[0].marginal(0).on_grid(30)[0]
    assert np.abs(estimate - truth).max() < 0.5 * truth.max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_marginals_are_estimates_of_the_coordinate(dtype):
    """The marginal of an estimate is the estimate of the coordinates alone, for both kinds."""
    bags = Bags.from_list(normal_bags(3, (50, 8), dtype=dtype))
    lone = [Bags.from_list([bag[:, [j]] for bag in bags]) for j in range(3)]
    box = Box.around(bags.points.min(axis=0), bags.points.max(axis=0))
    for method, smoothness in (("series", 5.0), ("kde", 0.15)):
        densities = estimate_densities(bags, method, smoothness=smoothness, box=box)
        for j in range(3):
            alone = estimate_densities(
                lone[j], method, smoothness=smoothness, box=[(box.lo[j], box.hi[j])]
            )
            np.testing.assert_allclose(densities.marginal(j).l2_distance(alone), 0, atol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_awkward_bags(n_dims):
    """One point, points all alike, points on the edges: finite, of integral one, valid."""
    bags = [
        np.full((1, n_dims), 0.4),
        np.full((20, n_dims), 0.7),
        np.concatenate([np.zeros((3, n_dims)), np.ones((3, n_dims))]),
    ]
    for method, smoothness in (("series", 4.0), ("kde", 0.1), ("series", "loo"), ("kde", "loo")):
        densities = estimate_densities(bags, method, smoothness=smoothness)
        valid = densities.valid()
        np.testing.assert_allclose(densities.integral(), 1, atol=1e-12)
        np.testing.assert_allclose(valid.integral(), 1, atol=1e-10)
        assert valid.on_grid().min() >= 0
        where_they_are = valid.at([bag[0] for bag in bags])
        assert (np.diag(where_they_are) > 1).all()
        assert np.isfinite(valid.sample(3).points).all()


def test_kernel_estimates_are_nearly_valid():
    """A kernel estimate is a density: making it valid changes what was cut off, and no more."""
    rng = np.random.default_rng(1)
    densities = estimate_densities([rng.random((30, 2)) for _ in range(3)], "kde", smoothness=0.05)
    assert np.abs(densities.valid().threshold).max() < 1e-4
    assert densities.on_grid().min() > -1e-4


def test_four_dimensions():
    """Beyond three dimensions a kernel estimate works as long as its functions are few."""
    rng = np.random.default_rng(2)
    bags = [rng.random((20, 4))]
    at = rng.random((15, 4))
    densities = estimate_densities(bags, "kde", smoothness=0.2)
    np.testing.assert_allclose(densities.at(at), kde_at(bags, at, bandwidth=0.2), atol=2e-4)
    with pytest.raises(ParameterError, match=r"bandwidth 0\.05 in 4 dimensions .* 200,000"):
        estimate_densities(bags, "kde", smoothness=0.05)


def test_points_outside_are_logged(caplog):
    """Clipped points are counted in the log."""
    with caplog.at_level(logging.INFO, logger="bagbasis.densities"):
        estimate_densities([[[0.5], [1.5], [-3.0]]], smoothness=2, box=[(0, 1)])
    assert "2 points outside the box: clip" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"smoothness": np.nan, "shape": "tensor"}, ParameterError, "smoothness is nan"),
        ({"method": "kde", "basis": "legendre"}, ParameterError, "do not fit 'kde'"),
        ({"smoothness": 2, "out_of_box": "error"}, BagError, "bag 1: 1 points lie outside"),
        ({"smoothness": 2, "out_of_box": "drop"}, BagError, "bag 1: no point lies inside"),
    ],
)
def test_refused(arguments, error, message):
    """What cannot be estimated is refused by name."""
    with pytest.raises(error, match=message):
        estimate_densities([[[0.5], [0.2]], [[1.5]]], **{"box": [(0, 1)], **arguments})


def test_too_many():
    """No bags, and coefficients that would not fit."""
    bags = Bags.from_list([[[0.5, 0.5]]])
    with pytest.raises(DataError, match="no bags"):
        estimate_densities(bags[:0])
    many = Bags.trusted(np.full((20_000, 2), 0.5), np.arange(20_001))
    n = len(index_set(2, None, max_norm=300.0))
    with pytest.raises(ParameterError, match=f"{n:,} coefficients of 20,000 densities take"):
        estimate_densities(many, smoothness=300)
