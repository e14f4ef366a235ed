"""`HDDEmbedding` as a scikit-learn transformer over bags, its edges and its refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from bagbasis import Bags, DataError, HDDEmbedding, ProjectionEmbedding
from bagbasis.embeddings.hdd import BANDWIDTH_FACTOR
from bagbasis.embeddings.hdd_measures import DISTANCES
from tests.oracles.hdd import direct_embedding, midpoints
from tests.oracles.ragged import bags_at_the_edge
from tests.oracles.series import index_set_by_loop

RNG = np.random.default_rng(0)
UNIT = [RNG.random((size, 2)) for size in (1, 30, 257)]


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_defaults():
    """JS, three nodes of two parts, 10² cosines, float32; h is 0.7 of the leave-one-out choice."""
    embedding = HDDEmbedding().fit(UNIT)
    out = embedding.transform(UNIT)
    assert out.shape == (3, 600)
    assert out.dtype == np.float32
    spec = embedding.spec_
    assert spec.distance == "js"
    best = HDDEmbedding("hellinger", n_per_dim=2).fit(UNIT).spec_.bandwidth / BANDWIDTH_FACTOR
    assert spec.bandwidth == pytest.approx(0.7 * best)
    assert np.pi * spec.n_coefficients * spec.bandwidth >= 2.4 or spec.n_coefficients == 64
    direct = direct_embedding(
        UNIT[1],
        spec.bandwidth,
        1e-3,
        (spec.lambdas, spec.weights),
        index_set_by_loop(2, 10, None, "cosine"),
        midpoints(80, 2),
    )
    np.testing.assert_allclose(out[1], direct, atol=2e-3)


@pytest.mark.parametrize(
    ("distance", "n_features", "grid"),
    [("js", 600, 20), ("chi2", 600, 20), ("hellinger", 100, 20), ("tv", 4000, 20), ("l2", 100, 10)],
)
def test_defaults_of_each_distance(distance, n_features, grid):
    """Functions, nodes and midpoints where none are given; TV has as many midpoints as
    functions. Points are spread, but for L2, which is no density estimate."""
    spec = HDDEmbedding(distance, bandwidth=0.04).fit(UNIT).spec_
    assert (spec.n_features, spec.grid) == (n_features, grid)
    assert spec.n_coefficients == (10 if distance == "l2" else None)
    assert (spec.cost.seconds(10, 0) > 0) == (distance != "l2")  # of the grids of a bag
    assert HDDEmbedding(distance, bandwidth=0.01, max_norm=4).fit(UNIT).spec_.grid >= 5
    assert HDDEmbedding("js", bandwidth=0.01).fit(UNIT).spec_.grid == 44


@pytest.mark.parametrize(("dtype", "atol"), [("float32", 1e-6), ("float64", 1e-12)])
@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("parameters", [{}, {"max_norm": 5.0}, {"marginals": 1}])
def test_l2_is_the_projection(dtype, atol, n_dims, parameters):
    """L2 as a 2-HDD (000, §4.3.2): the coefficients of plain projection, not floored and not
    smoothed, so that distances are equal too; Hellinger of order 2 is a multiple."""
    bags = [RNG.random((size, n_dims)) for size in (1, 2, 40, 300)] + [np.ones((5, n_dims))]
    projection = ProjectionEmbedding(dtype=dtype, **parameters).fit_transform(bags)
    out = HDDEmbedding("l2", dtype=dtype, **parameters).fit_transform(bags)
    np.testing.assert_allclose(out, projection, atol=atol, rtol=0)
    out = HDDEmbedding("hellinger", order=2, dtype=dtype, **parameters).fit_transform(bags)
    np.testing.assert_allclose(np.sqrt(2) * out, projection, atol=10 * atol, rtol=0)


def test_l2_of_smoothed_densities():
    """A bandwidth that is given damps the coefficients; more functions than a density estimate
    may have are no obstacle."""
    embedding = HDDEmbedding("l2", n_per_dim=70, bandwidth=0.001, dtype="float64").fit(UNIT)
    damping = np.exp(-0.5 * (np.pi * 0.001) ** 2 * (embedding.spec_.indices**2).sum(axis=1))
    projection = ProjectionEmbedding(n_per_dim=70, dtype="float64").fit_transform(UNIT)
    np.testing.assert_allclose(embedding.transform(UNIT), projection * damping, atol=1e-12)


def test_dropping_in_one_marginal():
    """A bag that is empty in its last marginal alone is refused, and named by its position
    though it is not in the first block."""
    good = RNG.random((3, 3))
    bags = Bags.from_list([good] * 50 + [good + np.array([0, 0, 7])])
    parameters = {"bandwidth": 0.05, "marginals": 1, "n_per_dim": 3, "grid": 4096}
    embedding = HDDEmbedding(out_of_box="drop", box=[(0, 1)] * 3, **parameters)
    with pytest.raises(DataError, match="bag 50: no point lies inside the box"):
        embedding.transform(bags)


@pytest.mark.parametrize(
    ("distance", "n_dims", "group_size"),
    [("js", 3, 3), ("js", 4, 2), ("hellinger", 6, 2), ("js", 7, 1), ("tv", 4, 1), ("l2", 4, 2)],
)
def test_marginals_are_chosen_by_the_dimension(distance, n_dims, group_size):
    """What is not said does not refuse bags of many coordinates; a triple of them is not taken."""
    bags = [np.random.default_rng(0).random((20, n_dims)) for _ in range(5)]
    spec = HDDEmbedding(distance, n_per_dim=3).fit(bags).spec_
    assert spec.group_size == group_size
    value = HDDEmbedding(distance, n_per_dim=3, marginals=1).fit(bags).spec_
    assert value.group_size == 1


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bags_at_the_edge(distance, dtype):
    """Points on the edges and in the corners, lone points, constant bags and densities that
    vanish nearly everywhere: finite features and no warning."""
    bags = bags_at_the_edge()
    for bandwidth in ("auto", 0.01, 0.5):
        embedding = HDDEmbedding(distance, bandwidth=bandwidth, dtype=dtype).fit(bags)
        out = embedding.transform(bags)
        assert np.isfinite(out).all()
        assert out.dtype == dtype
        mass = sum(embedding.spec_.weights)
        if distance not in ("tv", "l2"):
            assert ((out.astype(float) ** 2).sum(axis=1) < 1.2 * mass).all()
