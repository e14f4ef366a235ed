"""`HistogramEmbedding` against exact κ over the bins of numpy's histograms."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags, HistogramEmbedding, ParameterError
from bagbasis.embeddings import HistogramSpec
from bagbasis.embeddings.hdd_measures import TOTAL_MASS
from bagbasis.embeddings.histogram import COUNTS_IN_TABLE
from tests.oracles.hdd import kappa

pytestmark = pytest.mark.portable

RNG = np.random.default_rng(0)
UNIT = [RNG.random((size, 2)) for size in (1, 30, 257)]
EXACT = {"js": "js", "chi2": "chi2", "intersection": "tv"}


def histograms(bags, n_bins):
    """Shares of points by numpy, in the unit cube, shape (n_bags, n_bins^d)."""
    n_dims = bags[0].shape[1]
    box = [(0, 1)] * n_dims
    counts = [np.histogramdd(bag, n_bins, box)[0].ravel() / len(bag) for bag in bags]
    return np.array(counts)


def exact_distances(shares, distance):
    """Σ_bins κ(h, h') for every pair of histograms; of an empty bin κ(h, 0) = h κ(1, 0)."""
    x, y = shares[:, None, :], shares[None, :, :]
    if distance == "l2":
        return ((x - y) ** 2).sum(axis=-1)
    x, y = np.broadcast_arrays(np.maximum(x, 1e-300), np.maximum(y, 1e-300))
    return kappa(EXACT[distance], x, y).sum(axis=-1)


def squared_distances(A):
    return ((A[:, None, :] - A[None, :, :]) ** 2).sum(axis=-1)


@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize(
    ("distance", "n_lambdas", "rtol"),
    [("js", 3, 2e-3), ("js", 8, 1e-5), ("chi2", 3, 7e-3), ("chi2", 8, 3e-5), ("l2", 3, 1e-12),
     ("intersection", 8, 0.1)],
)  # fmt: skip
def test_distances_are_those_of_the_histograms(n_dims, distance, n_lambdas, rtol):
    """‖A − A'‖² is Σ κ over the bins, empty ones included."""
    bags = [RNG.beta(a, 2, (size, n_dims)) for a, size in ((1, 40), (2, 7), (3, 300), (6, 1))]
    embedding = HistogramEmbedding(
        distance=distance, n_bins=5, n_lambdas=n_lambdas, box=[(0, 1)] * n_dims, dtype="float64"
    )
    ours = squared_distances(embedding.fit_transform(bags))
    exact = exact_distances(histograms(bags, 5), distance)
    np.testing.assert_allclose(ours, exact, rtol=rtol, atol=1e-13)


@pytest.mark.parametrize("distance", ["js", "chi2", "intersection", "l2"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_empty_bins_are_exactly_zero(distance, dtype):
    """No point, no feature; and where a bin is not empty the modulus is √(κ(1, 0) h)."""
    bags = [bag**3 for bag in UNIT]
    embedding = HistogramEmbedding(
        distance=distance, n_bins=9, n_lambdas=2, box=[(0, 1)] * 2, dtype=dtype
    )
    A = embedding.fit_transform(bags).reshape(3, -1, 81)
    h = histograms(bags, 9)
    assert (A[np.broadcast_to(h[:, None, :] == 0, A.shape)] == 0).all()
    mass = h**2 if distance == "l2" else TOTAL_MASS[EXACT[distance]] * h
    np.testing.assert_allclose((A.astype(np.float64) ** 2).sum(axis=1), mass, atol=1e-6)
    assert (A != 0).any(axis=1).sum() == (h > 0).sum()


@pytest.mark.parametrize("n_points", [COUNTS_IN_TABLE - 1, COUNTS_IN_TABLE, 5000])
def test_counts_beyond_the_table(n_points):
    """Counts that are looked up and counts that are computed give the same features."""
    bags = [np.full((n_points, 1), 0.1), np.full((n_points * 3, 1), 0.1), np.full((1, 1), 0.1)]
    bags[1][: 2 * n_points] = 0.9
    A = HistogramEmbedding(n_bins=2, box=[(0, 1)], dtype="float64").fit_transform(bags)
    A = A.reshape(3, 3, 2, 2)  # nodes, parts, bins
    lambdas = HistogramEmbedding().fit(UNIT).spec_.lambdas
    np.testing.assert_allclose(A[0], A[2], atol=1e-12)
    ratio = (A[1, :, 0] + 1j * A[1, :, 1]) / (A[0, :, 0, :1] + 1j * A[0, :, 1, :1])
    for share, column in ((1 / 3, 0), (2 / 3, 1)):
        expected = share ** (0.5 + 1j * np.array(lambdas))
        np.testing.assert_allclose(ratio[:, column], expected, atol=1e-12)


def test_bins_are_closed_below_and_the_last_above():
    """A point on an inner edge belongs to the upper bin, one on the edge to the last."""
    bags = [[[0.0]], [[0.25]], [[0.5]], [[0.75]], [[1.0]], [[np.nextafter(0.5, 0)]]]
    out = HistogramEmbedding(distance="l2", n_bins=4).fit_transform(bags)
    assert out.argmax(axis=1).tolist() == [0, 1, 2, 3, 3, 1]
    assert out.sum(axis=1).tolist() == [1.0] * 6


def test_defaults():
    """Jensen-Shannon, ten bins a dimension, three nodes of two parts, float32."""
    out = HistogramEmbedding().fit_transform(UNIT)
    assert out.shape == (3, 600)
    assert out.dtype == np.float32
    assert HistogramEmbedding(distance="l2").fit_transform(UNIT).shape == (3, 100)


def test_saved_nodes_are_kept():
    """A spec holds its nodes, so that other default nodes do not change a saved model; as many
    weights as nodes are asked for."""
    values = HistogramEmbedding(n_lambdas=2).fit(UNIT).spec_.to_dict()
    other = {**values, "lambdas": [0.1, 0.2, 0.7], "weights": [0.3, 0.02, 0.03]}
    spec = HistogramSpec.from_dict(other)
    assert spec.lambdas == (0.1, 0.2, 0.7)
    out = np.empty((1, spec.n_features))
    spec.embed(Bags.from_list(UNIT[:1]), out)
    np.testing.assert_allclose((out**2).sum(), 0.35)
    with pytest.raises(ParameterError, match="3 nodes, but 2 weights"):
        HistogramSpec.from_dict({**other, "weights": [0.3, 0.05]})
