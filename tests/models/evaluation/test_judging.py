"""`evaluate`: against a loop over bags, in one process and on a cluster."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    BagStore,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ModelError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    evaluate,
)
from bagbasis.data.labelled.inputs import with_targets
from bagbasis.models.judging import evaluate_together
from tests.models.splits import held_out
from tests.oracles import series
from tests.oracles.labelled import labelled_bags, stored
from tests.workers import two_workers

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
        RandomFourierFeatures(n_features=32),
        response_embedding=ProjectionEmbedding(n_per_dim=4),
        alpha=0.1,
        precision="float64",
    ).fit(store, holdout=0.4)


@pytest.mark.parametrize("subset", ["all", "holdout", "train"])
def test_against_a_loop(store, model, subset):
    """Each sum is that of the bags of the subset that have a response, one after the other."""
    out = held_out(0.4, N)
    keep = {"all": np.ones(N, dtype=bool), "holdout": out, "train": ~out}[subset]
    rows = [i for i in range(N) if keep[i] and RESPONSES[i] is not None]
    truth = project([RESPONSES[i] for i in rows])
    predicted = model.predict([BAGS[i] for i in rows])
    variance = 0.0
    for i, a in zip(rows, truth, strict=True):
        m = len(RESPONSES[i])
        if m > 1:
            squares = project([RESPONSES[i]], squared=True)[0]
            variance += (squares - a**2).sum() / (m - 1)
    errors = evaluate(model, store, subset=subset)
    assert errors.n == len(rows)
    assert errors.n_unlabelled == keep.sum() - len(rows)
    distances = {
        "mse": ((predicted - truth) ** 2).sum(axis=1),
        "average_mse": ((model.mean_coefficients_ - truth) ** 2).sum(axis=1),
    }
    spreads = {name: squares.std() / len(rows) ** 0.5 for name, squares in distances.items()}
    assert errors.spreads["densities"] == pytest.approx(spreads, rel=1e-6)
    expected = {
        **{name: squares.sum() for name, squares in distances.items()},
        "input_mse": ((project([BAGS[i] for i in rows]) - truth) ** 2).sum(),
        "noise_mse": variance,
    }
    values = errors.values()["densities"]
    for name, value in expected.items():
        assert values[name] == pytest.approx(value / len(rows), rel=1e-9), name
    assert values["r2"] == pytest.approx(1 - expected["mse"] / expected["average_mse"], rel=1e-9)
    assert errors.error == pytest.approx(values["mse"])
    assert errors.sample.index.tolist() == rows


@pytest.mark.long
def test_on_a_cluster(store, model):
    """Two workers sum the same, with progress by bags."""
    seen = []
    with two_workers():
        errors = evaluate(model, store, progress=lambda *done: seen.append(done))
    alone = evaluate(model, store)
    assert errors.n == alone.n
    assert errors.error == pytest.approx(alone.error, rel=1e-12)
    assert seen[-1] == (N, N)


def test_noise_is_what_true_densities_are_apart_from_their_samples():
    """The mean noise is the mean squared distance between a sample's coefficients and those of its
    density: uniform points, whose only coefficient is the constant."""
    from bagbasis import Bags, Box
    from bagbasis.embeddings import ProjectionSpec
    from bagbasis.models.outcomes.details import sampling_noise

    rng = np.random.default_rng(0)
    bags = Bags.from_list([rng.random((20, 2)) for _ in range(4000)])
    spec = ProjectionSpec("cosine", n_per_dim=4, max_norm=None, box=Box.unit(2))
    a = np.empty((4000, 16))
    spec.embed(bags, a)
    distance = ((a - np.eye(16)[0]) ** 2).sum()
    assert sampling_noise(spec, bags, a) == pytest.approx(distance, rel=0.03)


def test_refusals(store, model, tmp_path):
    """No responses at all, none in the subset, responses of another dimension, no holdout."""
    bare = BagStore.create(tmp_path / "b.zarr", 2).append(BAGS)
    with pytest.raises(DataError, match="responses have dimension None"):
        evaluate(model, bare)
    other = BagStore.create(tmp_path / "o.zarr", 2, response_dims=3).append(BAGS)
    with pytest.raises(DataError, match="responses have dimension 3, the model predicts"):
        evaluate(model, other)
    empty = BagStore.create(tmp_path / "e.zarr", 2, response_dims=2).append(BAGS)
    with pytest.raises(DataError, match="no labelled bag among the all bags"):
        evaluate(model, empty)
    whole = TripleBasisRegressor(
        ProjectionEmbedding(n_per_dim=2),
        RandomFourierFeatures(n_features=8),
        response_embedding=ProjectionEmbedding(n_per_dim=2),
    ).fit(store)
    with pytest.raises(ModelError, match="held no bags out"):
        evaluate(whole, store, subset="holdout")


@pytest.mark.long
def test_models_are_judged_together(tmp_path):
    """In one pass each has the error that it has alone; a class it does not know is an error."""
    y = np.arange(N) % 3
    whole = stored(tmp_path / "w.zarr", BAGS, y.astype(float), ["kind"])
    part = stored(tmp_path / "p.zarr", BAGS, np.where(y == 1, np.nan, y), ["kind"])
    models = [
        DoubleBasisClassifier(
            ProjectionEmbedding(n_per_dim=4), RandomFourierFeatures(n_features=32)
        ).fit(item)
        for item in (whole, part)
    ]
    together = evaluate_together(
        [item.model_ for item in models], models[0].outcome_.take_labels(whole)
    )
    for model, errors in zip(models, together, strict=True):
        wrong = np.mean(model.predict(BAGS) != y)
        assert errors.error == evaluate(model, whole).error == pytest.approx(wrong)
    assert together[1].values()["kind"]["per_class"]["1"]["n"] == (y == 1).sum()


def test_a_model_of_labels_in_memory(store):
    """It does not know a target's name; bags that carry their labels need none."""
    y = np.arange(float(N))
    model = DoubleBasisRegressor(
        ProjectionEmbedding(n_per_dim=4), RandomFourierFeatures(n_features=32), alpha=0.1
    ).fit(BAGS, y)
    with pytest.raises(DataError, match="fitted to labels in memory"):
        evaluate(model, store)
    errors = evaluate(model, with_targets(BAGS, y)[0])
    expected = np.sqrt(np.mean((model.predict(BAGS) - y) ** 2))
    assert errors.values()["y"]["rmse"] == pytest.approx(expected)
