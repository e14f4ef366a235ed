"""Predicting a store lazily or block by block; features for any other library."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from bagbasis import (
    BagStore,
    DataError,
    DoubleBasisClassifier,
    ModelError,
    ParameterError,
    ProjectionEmbedding,
    features,
)
from bagbasis.models import iter_predictions, write_predictions
from tests.models.predicting import (
    BAGS,
    CODES,
    FITS,
    N,
    Y,
    bases,
    classifier,
    fitted,
    regressor,
)
from tests.models.splits import held_out
from tests.oracles.labelled import features_by_loop, stored
from tests.passes import pass_limits

pytestmark = pytest.mark.usefixtures("many_blocks")


@pytest.mark.long
@pytest.mark.parametrize("name", FITS)
def test_lazy_predictions(store, name):
    """A store's predictions are a dask.array of known shape, dtype and chunks; nothing is read
    before it is computed, and its values are those of the bags in memory."""
    model = fitted(name)
    lazy = model.predict(store)
    expected = model.predict(BAGS)
    assert lazy.shape == expected.shape
    assert lazy.dtype == expected.dtype
    assert 5 <= len(lazy.chunks[0]) <= 7
    values = lazy.compute()
    if values.dtype.kind == "f":
        np.testing.assert_allclose(values, expected, atol=1e-12)
    else:
        np.testing.assert_array_equal(values, expected)
    assert values.dtype == expected.dtype
    if isinstance(model, DoubleBasisClassifier):
        shares = model.predict_proba(store)
        assert shares.shape == (N, 3)
        np.testing.assert_allclose(shares.compute(), model.predict_proba(BAGS), atol=1e-12)


def test_arrays_that_a_model_predicts():
    """A classifier has probabilities, and other words are refused by name."""
    model = fitted("classes")
    probabilities = model.model_.predict(BAGS, "probabilities")
    np.testing.assert_array_equal(probabilities, model.predict_proba(BAGS))
    for name, array in (("classes", "scores"), ("one target", "probabilities")):
        with pytest.raises(ParameterError, match=array):
            fitted(name).model_.predict(BAGS, array)


def test_lazy_predictions_of_no_bags(tmp_path):
    """An empty store has predictions of length zero."""
    empty = BagStore.create(tmp_path / "s.zarr", 2)
    for name in FITS:
        model = fitted(name)
        assert model.predict(empty).compute().shape == ((0, 2) if name == "two targets" else (0,))
    assert fitted("classes").predict_proba(empty).shape == (0, 3)


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_features(store, dtype):
    """features() gives z of every bag, or the embeddings alone, in chunks of bags, for any
    other library."""
    model = fitted("one target")
    first, second = model.features_.embedding, model.features_.second
    embedding, random_features = bases()
    z = features(store, embedding, random_features, dtype=dtype)
    a = features(store, embedding, dtype=dtype)
    assert z.shape == (N, 32)
    assert a.shape == (N, 16)
    assert z.dtype == a.dtype == dtype
    atol = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(z.compute(), features_by_loop(model, BAGS), atol=atol)
    embedding.fit(BAGS)
    np.testing.assert_allclose(a.compute(), embedding.set_params(dtype=dtype).transform(BAGS))
    random_features.fit(embedding.set_params(dtype="float64").transform(BAGS))
    assert (embedding.spec_, random_features.spec_) == (first, second)
    again = features(store, embedding, random_features, dtype=dtype)
    np.testing.assert_array_equal(again.compute(), z.compute())


def test_chunks_of_features_fit_in_memory(store):
    """Blocks of wide rows are cut by their bytes too."""
    with pass_limits(block_bytes=5 * 32 * 4):
        assert features(store, *bases()).chunks[0] == (5,) * 14


def test_features_of_no_bags(tmp_path):
    """A width cannot be measured on nothing: the error says so; embeddings need none."""
    empty = BagStore.create(tmp_path / "s.zarr", 2)
    assert features(empty, ProjectionEmbedding(n_per_dim=3)).compute().shape == (0, 9)
    with pytest.raises(DataError, match="no bags"):
        features(empty, *bases())


@pytest.mark.long
@pytest.mark.parametrize("kind", [regressor, classifier])
def test_subsets(store, kind):
    """ "holdout" are the bags that the fit left out, "train" the others, "all" both; rows say
    which bag a prediction is of."""
    held = held_out(0.3, N)
    y = Y if kind is regressor else CODES
    model = kind().fit(BAGS, y, holdout=0.3)
    expected = model.predict(BAGS)
    for subset, members in (("holdout", held), ("train", ~held), ("all", np.full(N, True))):
        seen = []
        blocks = list(
            iter_predictions(
                model,
                store,
                subset=subset,
                progress=lambda done, total, seen=seen: seen.append(done),
            )
        )
        rows = np.concatenate([block.rows for block in blocks])
        assert rows.tolist() == np.flatnonzero(members).tolist()
        values = np.concatenate([block.prediction for block in blocks])
        np.testing.assert_allclose(values, expected[members], atol=1e-12)
        assert seen[-1] == N
        if kind is classifier:
            shares = np.concatenate([block.probabilities for block in blocks])
            np.testing.assert_allclose(shares, model.predict_proba(BAGS)[members], atol=1e-12)


def test_blocks_without_members_are_left_out(store):
    """A block none of whose bags is in the subset is not yielded."""
    model = regressor().fit(BAGS, Y, holdout=0.02)
    blocks = list(iter_predictions(model, store, subset="holdout"))
    held = held_out(0.02, N)
    assert sum(len(block.rows) for block in blocks) == held.sum()
    assert all(len(block.rows) for block in blocks)


def test_wrong_requests(store, tmp_path):
    """A holdout that was not, another dimension, no fit."""
    model = fitted("one target")
    write = partial(write_predictions, url=tmp_path / "p")
    with pytest.raises(ModelError, match="held no bags out"):
        next(iter_predictions(model, store, subset="holdout"))
    with pytest.raises(ModelError, match="not fitted"):
        write(regressor(), store)
    flat = stored(tmp_path / "flat.zarr", [bag[:, :1] for bag in BAGS], None)
    for attempt in (lambda: write(model, flat), lambda: next(iter_predictions(model, flat))):
        with pytest.raises(ModelError, match=r"dimension 2, .*flat\.zarr holds dimension 1"):
            attempt()
    assert not (tmp_path / "p").exists()
