"""`ProjectionEmbedding` as a scikit-learn transformer over bags."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags, BagStore, Box, ProjectionEmbedding
from bagbasis.densities import choose_smoothness
from bagbasis.embeddings import ProjectionSpec, spec_from_dict, spec_to_dict
from tests.oracles.ragged import random_bags
from tests.oracles.series import basis_function, index_set_by_loop, project_by_loop

RNG = np.random.default_rng(0)
UNIT = [RNG.random((size, 2)) for size in (1, 30, 257)]


def naive(bags, limits, basis="cosine", lo=(0, 0), hi=(1, 1), marginals=None, mode="clip"):
    indices = index_set_by_loop(marginals or bags[0].shape[1], *limits, basis)
    return project_by_loop(bags, indices, basis, lo, hi, marginals=marginals, mode=mode)[0]


def test_defaults_are_ten_cosines_a_dimension():
    """Without parameters: 10^d cosines, float32, on the unit cube."""
    out = ProjectionEmbedding().fit(UNIT).transform(UNIT)
    assert out.shape == (3, 100)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, naive(UNIT, (10, None)), atol=5e-6)


def test_points_outside_of_each_bag():
    """Bags that were removed from a store have no points, and none outside; the last one, too."""
    points = np.array([[0.5], [2.0], [-1.0], [3.0], [0.1]])
    bags = Bags.trusted(points, np.array([0, 2, 2, 5, 5]))
    spec = ProjectionEmbedding(box=[(0, 1)]).fit(bags[[0, 2]]).spec_
    assert spec.count_outside(bags).tolist() == [1, 0, 2, 0]


@pytest.mark.parametrize("marginals", [None, 1])
@pytest.mark.parametrize("basis", ["cosine", "trigonometric"])
def test_smoothed_coefficients_are_those_of_moved_points(basis, marginals):
    """The mean of a function over a point's Gaussian surroundings, here by quadrature: edges
    reflect cosines, and sines go on beyond them."""
    h, bag = 0.07, RNG.random((9, 2))
    params = {"basis": basis, "n_per_dim": 5, "marginals": marginals, "dtype": "float64"}
    out = ProjectionEmbedding(**params, bandwidth=h, box=[(0, 1)] * 2).fit_transform([bag])
    indices = index_set_by_loop(marginals or 2, 5, None, basis)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    columns = [[0, 1]] if marginals is None else [[0], [1]]
    expected = []
    for group in columns:
        for alpha in indices:
            moved = [bag[:, [c]] + h * nodes for c in group]
            factors = [
                np.vectorize(lambda x, k=k: float(basis_function(basis, k, x)))(x)
                for k, x in zip(alpha, moved, strict=True)
            ]
            means = [f @ weights / weights.sum() for f in factors]
            expected.append(np.prod(means, axis=0).mean())
    np.testing.assert_allclose(out[0], expected, atol=1e-12)


def test_bandwidth_auto_is_the_densities_choice():
    """The least leave-one-out score, of bandwidths that the functions resolve."""
    bags = list(0.5 + 0.08 * RNG.standard_normal((20, 100, 1)))
    chosen = ProjectionEmbedding(n_per_dim=60, bandwidth="auto", box=[(0, 1)]).fit(bags).spec_
    best = choose_smoothness(bags, "kde", box=[(0, 1)]).best
    assert chosen.bandwidth == pytest.approx(best, rel=0.11)  # candidates are 10 % apart
    few = ProjectionEmbedding(n_per_dim=2, bandwidth="auto", box=[(0, 1)]).fit(bags).spec_
    assert few.bandwidth > chosen.bandwidth


def test_specs_of_before_are_read():
    """Without smoothing a spec is written as before there was any; with it, it comes back."""
    plain, smooth = (
        ProjectionSpec("cosine", n_per_dim=5, max_norm=None, bandwidth=h, box=Box.unit(2))
        for h in (None, 0.1)
    )
    assert "bandwidth" not in plain.to_dict()
    for spec in (plain, smooth):
        assert spec_from_dict(spec_to_dict(spec)) == spec


def test_box_of_a_store(tmp_path):
    """From a store the embedding takes the store's box, without reading its bags."""
    store = BagStore.create(tmp_path / "s.zarr", 2, box=[(-3, 3), (0, 9)])
    assert ProjectionEmbedding().fit(store).spec_.box == Box((-3.0, 0.0), (3.0, 9.0))


@pytest.mark.parametrize("basis", ["cosine", "trigonometric", "legendre"])
@pytest.mark.parametrize("limits", [(5, None), (None, 3.5)])
@pytest.mark.parametrize("marginals", [None, 1, 2])
def test_against_the_loop(basis, limits, marginals):
    """Bases, index sets and marginals mean what they say; a given box is scaled to [0, 1]^d."""
    bags = random_bags(RNG, [1, 5, 300], 3)
    lo, hi = (-2.0, -3.0, -2.5), (2.0, 3.0, 2.5)
    n_per_dim, max_norm = limits
    embedding = ProjectionEmbedding(
        basis=basis, n_per_dim=n_per_dim or 10, max_norm=max_norm, marginals=marginals,
        box=list(zip(lo, hi, strict=True)),
        dtype="float64",
    )  # fmt: skip
    out = embedding.fit_transform(bags)
    np.testing.assert_allclose(out, naive(bags, limits, basis, lo, hi, marginals), atol=1e-12)
    assert embedding.spec_.n_features == out.shape[1]
