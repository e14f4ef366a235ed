"""`tune` of bags in memory gives what it gives for a store of the same bags."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    MomentsEmbedding,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    tune,
)
from bagbasis.models import Search

N = 120
SEARCH = Search(
    [ProjectionEmbedding(n_per_dim=5), MomentsEmbedding()],
    scale_multipliers=(0.7, 1.4),
    first_bags=N,
)


@pytest.fixture(scope="module")
def spreads():
    return np.random.default_rng(0).uniform(0.5, 2.0, N)


@pytest.fixture(scope="module")
def bags(spreads):
    rng = np.random.default_rng(1)
    drawn = [rng.normal(0, s, (rng.integers(8, 20), 2)) for s in spreads]
    return Bags.from_list(drawn, dtype=np.float32)  # as a store holds them


def stored(path, bags, targets, **options):
    store = BagStore.create(
        path / "bags.zarr", n_dims=bags.n_dims, target_names=list(targets), **options
    )
    store.append(bags, targets=targets)
    return store


def regressor():
    return DoubleBasisRegressor(
        random_features=RandomFourierFeatures(n_features=64), validation_fraction=0.3
    )


def same(in_memory, of_store, bags):
    """The same candidates and scores, and the same predictions to rounding."""
    assert in_memory.winner == of_store.winner
    assert len(in_memory.candidates) == len(of_store.candidates)
    np.testing.assert_allclose(
        in_memory.model.predict(bags), of_store.model.predict(bags), rtol=1e-6, atol=1e-9
    )


@pytest.mark.long
@pytest.mark.parametrize("search", [None, SEARCH])
def test_numbers(tmp_path, bags, spreads, search):
    """Few bags by the choice of the default, and candidates of one's own by rungs."""
    if search is None:
        bags, spreads = Bags.from_list([bag[:, :1] for bag in bags[:60]]), spreads[:60]
    store = stored(tmp_path, bags, {"y": spreads})
    base = DoubleBasisRegressor() if search is None else regressor()
    ours = tune(base, bags, spreads, search=search, holdout=0.2)
    theirs = tune(base, store, search=search, target="y", holdout=0.2)
    same(ours, theirs, bags)
    for key in ("n", "error", "constant_error", "means_error", "forest_error"):
        assert ours.judged[key] == pytest.approx(theirs.judged[key], rel=1e-6)


@pytest.mark.long
def test_classes_weights_and_groups(tmp_path, bags, spreads):
    """Text for classes, an array of weights, one of groups; weights are those of the store."""
    labels = np.where(spreads > 1, "wide", "narrow")
    weights = np.random.default_rng(2).uniform(0.5, 2, N)
    groups = np.arange(N) // 3
    options = {"class_names": {"y": ["narrow", "wide"]}}
    columns = {"y": (labels == "wide").astype(float), "w": weights, "g": groups.astype(float)}
    store = stored(tmp_path, bags, columns, **options)
    base = DoubleBasisClassifier(
        random_features=RandomFourierFeatures(n_features=64), validation_fraction=0.3
    )
    ours = tune(base, bags, labels, search=SEARCH, sample_weight=weights, groups=groups)
    theirs = tune(base, store, search=SEARCH, target="y", sample_weight="w", groups="g")
    assert ours.winner == theirs.winner
    assert list(ours.model.classes_) == ["narrow", "wide"]
    assert (ours.model.predict(bags) == theirs.model.predict(bags)).all()


@pytest.mark.long
def test_a_groupby(bags, spreads):
    """The label's column of the frame is left out of the points."""
    frame = pd.DataFrame(bags.points, columns=["u", "v"])
    frame["id"] = np.repeat(np.arange(N), bags.sizes)
    frame["y"] = spreads[frame["id"]]
    tuned = tune(regressor(), frame.groupby("id"), search=SEARCH, target="y")
    plain = tune(regressor(), bags, spreads, search=SEARCH)
    same(tuned, plain, bags)


def test_densities(bags, spreads):
    """Responses are labels like others."""
    rng = np.random.default_rng(3)
    responses = [rng.normal(0, s, (30, 1)) for s in spreads]
    base = TripleBasisRegressor(
        response_embedding=ProjectionEmbedding(n_per_dim=4),
        random_features=RandomFourierFeatures(n_features=64),
        validation_fraction=0.3,
    )
    tuned = tune(base, bags, responses, search=SEARCH)
    assert tuned.model.predict(bags).shape == (N, 4)


def test_nothing_is_left_behind(tmp_path, monkeypatch, bags, spreads):
    """The temporary folder is gone; one of one's own keeps the winner's rows if asked."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tune(regressor(), bags, spreads, search=SEARCH)
    assert list(tmp_path.iterdir()) == []
    selected = tmp_path / "kept"
    tune(regressor(), bags, spreads, search=SEARCH, checkpoints=selected, keep_cache=True)
    assert len(list(Path(selected).iterdir())) == 3, "its rows, the targets, and the scores"
    with pytest.raises(ParameterError, match="keep_cache of bags in memory: give checkpoints"):
        tune(regressor(), bags, spreads, search=SEARCH, keep_cache=True)


def test_records_are_of_these_labels(tmp_path, bags, spreads):
    """Scores are read again for the same bags and labels, and not for others."""
    checkpoints = tmp_path / "state"
    first = tune(regressor(), bags, spreads, search=SEARCH, checkpoints=checkpoints)
    again = tune(regressor(), bags, spreads, search=SEARCH, checkpoints=checkpoints)
    assert again.scores == first.scores  # with their seconds
    other = tune(regressor(), bags, 2 * spreads, search=SEARCH, checkpoints=checkpoints)
    assert other.scores != first.scores


def test_what_was_kept_by_another_hash_is_computed_again(tmp_path, monkeypatch, bags, spreads):
    """Rows and scores that were kept with an earlier hash of the bags are not found, and go."""
    arguments = {"search": SEARCH, "checkpoints": tmp_path / "state", "keep_cache": True}
    with monkeypatch.context() as patched:
        patched.setattr("bagbasis.models.tuning.cache.digest_of_bags", lambda bags: "earlier")
        first = tune(regressor(), bags, spreads, **arguments)
    before = {path.name for path in (tmp_path / "state").glob("*.zarr")}
    again = tune(regressor(), bags, spreads, **arguments)
    after = {path.name for path in (tmp_path / "state").glob("*.zarr")}
    assert len(before) == len(after) == 2
    assert not before & after
    same(again, first, bags)


def test_the_order_of_before_is_refused(tmp_path, bags, spreads):
    """`tune(store, estimator, search)` was the order; the message has the one of today."""
    store = stored(tmp_path, bags, {"y": spreads})
    with pytest.raises(ParameterError, match=r"the estimator first.*tune\(estimator, X, y"):
        tune(store, regressor(), SEARCH)
