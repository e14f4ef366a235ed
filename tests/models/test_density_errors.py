"""`density_errors`: against a loop over bags, in one process and on a cluster."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import BagStore, ProjectionEmbedding, RandomFourierFeatures, TripleBasisRegressor
from bagbasis.clusters import connect
from bagbasis.errors import DataError, ModelError
from bagbasis.evaluation import density_errors
from bagbasis.regression.stored_predictions import members
from tests.oracles import series
from tests.oracles.labelled import labelled_bags

N = 70
BAGS, _ = labelled_bags(N, most=25)
RESPONSES = [None if i % 5 == 4 else 1 - bag[: 1 + i % 7] for i, bag in enumerate(BAGS)]
INDICES = series.index_set_by_loop(2, 4, None, "cosine")


def project(bags, **options):
    return series.project_by_loop(bags, INDICES, "cosine", (0, 0), (1, 1), marginals=2, **options)[
        0
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    url = tmp_path_factory.mktemp("errors") / "s.zarr"
    made = BagStore.create(url, 2, response_dims=2, dtype=np.float64, chunk_points=90)
    return made.append(BAGS, responses=RESPONSES)


@pytest.fixture(scope="module")
def model(store):
    return TripleBasisRegressor(
        ProjectionEmbedding(n_per_dim=4),
        RandomFourierFeatures(32),
        ProjectionEmbedding(n_per_dim=4),
        alpha=0.1,
        precision="float64",
    ).fit(store, holdout=0.4)


@pytest.mark.parametrize("subset", ["all", "holdout", "train"])
def test_against_a_loop(store, model, subset):
    """Each sum is that of the bags of the subset that have a response, one after the other."""
    keep = members(model, subset, 0, N)
    rows = [i for i in range(N) if keep[i] and RESPONSES[i] is not None]
    truth = project([RESPONSES[i] for i in rows])
    predicted = model.predict([BAGS[i] for i in rows])
    variance = 0.0
    for i, a in zip(rows, truth, strict=True):
        m = len(RESPONSES[i])
        if m > 1:
            squares = project([RESPONSES[i]], squared=True)[0]
            variance += (squares - a**2).sum() / (m - 1)
    errors = density_errors(model, store, subset=subset)
    assert errors.n == len(rows)
    assert errors.n_unlabelled == keep.sum() - len(rows)
    expected = {
        "model": ((predicted - truth) ** 2).sum(),
        "average": ((model.mean_coefficients_ - truth) ** 2).sum(),
        "input": ((project([BAGS[i] for i in rows]) - truth) ** 2).sum(),
        "noise": variance,
    }
    for name, value in expected.items():
        assert getattr(errors, name) == pytest.approx(value, rel=1e-9), name
    result = errors.result()
    assert result["r2"] == pytest.approx(1 - expected["model"] / expected["average"], rel=1e-9)


def test_on_a_cluster(store, model):
    """Two workers sum the same, with progress by bags."""
    seen = []
    with connect("local", n_workers=2, cores_per_worker=1):
        errors = density_errors(model, store, progress=lambda *done: seen.append(done))
    alone = density_errors(model, store)
    assert errors.n == alone.n
    assert errors.model == pytest.approx(alone.model, rel=1e-12)
    assert seen[-1] == (N, N)


def test_noise_is_what_true_densities_are_apart_from_their_samples():
    """The mean noise is the mean squared distance between a sample's coefficients and those of its
    density: uniform points, whose only coefficient is the constant."""
    from bagbasis.bags import Bags, Box
    from bagbasis.embeddings import ProjectionSpec
    from bagbasis.evaluation.densities import _noise

    rng = np.random.default_rng(0)
    bags = Bags.from_list([rng.random((20, 2)) for _ in range(4000)])
    spec = ProjectionSpec("cosine", 4, None, box=Box.unit(2))
    a = np.empty((4000, 16))
    spec.embed(bags, a)
    distance = ((a - np.eye(16)[0]) ** 2).sum()
    assert _noise(spec, bags, a) == pytest.approx(distance, rel=0.03)


def test_refusals(store, model, tmp_path):
    """No responses at all, none in the subset, responses of another dimension, no holdout."""
    bare = BagStore.create(tmp_path / "b.zarr", 2).append(BAGS)
    with pytest.raises(DataError, match="responses have dimension None"):
        density_errors(model, bare)
    other = BagStore.create(tmp_path / "o.zarr", 2, response_dims=3).append(BAGS)
    with pytest.raises(DataError, match="responses have dimension 3, the model predicts"):
        density_errors(model, other)
    empty = BagStore.create(tmp_path / "e.zarr", 2, response_dims=2).append(BAGS)
    with pytest.raises(DataError, match="no bag with a response among the all bags"):
        density_errors(model, empty)
    whole = TripleBasisRegressor(
        ProjectionEmbedding(n_per_dim=2), RandomFourierFeatures(8), ProjectionEmbedding(n_per_dim=2)
    ).fit(store)
    with pytest.raises(ModelError, match="held no bags out"):
        density_errors(whole, store, subset="holdout")
