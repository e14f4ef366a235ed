"""Lines of models: ranges of a store's bags, and models solved from sums."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    load_model,
)
from bagbasis.models import Checkpoints
from bagbasis.operations.retraining.sums import ModelSequence
from tests.oracles.labelled import labelled_bags

N = 150
BAGS, Y = labelled_bags(N, most=20)
LABELS = {
    "regression": np.where(np.arange(N) % 13 == 0, np.nan, Y),
    "classification": np.digitize(Y, [-0.3, 0.4]).astype(float),
    "densities": None,
}
ESTIMATORS = {
    "regression": DoubleBasisRegressor,
    "classification": DoubleBasisClassifier,
    "densities": TripleBasisRegressor,
}


def stored(url, task, bags):
    """These bags of the problem, in a store."""
    start, stop = bags
    dims = 2 if task == "densities" else None
    names = () if task == "densities" else ("y",)
    store = BagStore.create(url, 2, target_names=names, response_dims=dims, dtype=np.float64)
    responses = None if dims is None else [0.5 * bag for bag in BAGS[start:stop]]
    labels = None if dims else LABELS[task][start:stop]
    return store.append(BAGS[start:stop], labels, responses=responses)


def estimator(task, **params):
    """All that can be decided from the data is."""
    bases = ProjectionEmbedding(n_per_dim="auto"), RandomFourierFeatures(n_features=32)
    return ESTIMATORS[task](*bases, **{"precision": "float64", "alpha": "gcv", **params})


def targets(task):
    return {} if task == "densities" else {"target": "y"}


def sequence_of(store, task, bags, **params):
    return ModelSequence.begin(
        estimator(task, **params), store, bags, targets(task).get("target"), 0.0
    )


@pytest.mark.long
@pytest.mark.parametrize("task", ESTIMATORS)
@pytest.mark.parametrize("bags", [(0, N), (30, 90)])
def test_line_of_a_range_is_a_fit_to_its_bags(tmp_path, task, bags):
    """Features, classes, coefficients and counts are those of a fit to a store of these bags."""
    whole, part = stored(tmp_path / "all", task, (0, N)), stored(tmp_path / "part", task, bags)
    sequence = sequence_of(whole, task, bags)
    model = sequence.model(sequence.statistics(whole, bags), whole, bags)
    fit = estimator(task).fit(part, **targets(task))
    assert model.features_ == fit.features_
    np.testing.assert_allclose(model.coef_, fit.coef_, rtol=0, atol=1e-10 * abs(fit.coef_).max())
    same = set(fit.report_) - {"seconds", "n_passes", "n_bags_resumed", "data_url"}
    same.remove("data_digest")  # of the checksums of a store, not of a range of its bags
    assert {key: model.report_[key] for key in same} == {key: fit.report_[key] for key in same}
    for name in ("classes_", "target_names_", "outcome_"):
        if hasattr(fit, name):
            np.testing.assert_array_equal(getattr(model, name), getattr(fit, name))
    if task == "densities":
        np.testing.assert_allclose(model.mean_coefficients_, fit.mean_coefficients_, atol=1e-12)


@pytest.mark.parametrize("task", ESTIMATORS)
def test_line_of_a_model_is_the_line_it_came_from(tmp_path, task):
    """A saved and loaded model is enough to go on with: sums of parts add up to the whole."""
    store = stored(tmp_path / "bags.zarr", task, (0, N))
    sequence = sequence_of(store, task, (0, 100), alpha="validation")
    model = sequence.model(sequence.statistics(store, (0, 100)), store, (0, 100))
    model.save(tmp_path / "model.zarr")
    again = ModelSequence.of(load_model(tmp_path / "model.zarr"))
    assert again.features == sequence.features
    assert again.outcome == sequence.outcome
    whole = sequence.statistics(store, (20, N))
    parts = again.statistics(store, (0, N)) - again.statistics(store, (0, 20))
    assert parts.n_bags == whole.n_bags == N - 20
    for part in ("train", "validation"):
        for name in ("n", "sum_z", "gram", "sum_y", "cross", "sum_yy"):
            ours, theirs = (getattr(getattr(item, part), name) for item in (parts, whole))
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_checkpoints_of_a_range_are_its_own(tmp_path):
    """Sums of one range are never taken for another's; the same range goes on."""
    store = stored(tmp_path / "bags.zarr", "regression", (0, N))
    sequence, selected = sequence_of(store, "regression", (0, N)), Checkpoints(tmp_path / "kept")
    single = sequence.statistics(store, (0, 60), checkpoints=selected)
    other = sequence.statistics(store, (60, 120), checkpoints=selected)
    assert not np.array_equal(single.train.gram, other.train.gram)
    again = sequence.statistics(store, (0, 60), checkpoints=selected)
    np.testing.assert_array_equal(single.train.gram, again.train.gram)
    assert len(list((tmp_path / "kept").glob("fit-*"))) == 2
