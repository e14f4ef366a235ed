"""Registered names instead of embeddings and random features, as configs have them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from bagbasis import (
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    HDDEmbedding,
    KernelSmoother,
    MomentsEmbedding,
    NystroemFeatures,
    load_model,
)
from bagbasis.embeddings import EMBEDDINGS, RANDOM_FEATURES
from bagbasis.embeddings.random_features.registered import named_features
from bagbasis.embeddings.registered import named_embedding
from bagbasis.jobs.configs.sections import NAMED

RNG = np.random.default_rng(2)
BAGS = [0.3 + 0.4 * RNG.random((9, 2)) for _ in range(24)]
Y = np.array([bag.mean() for bag in BAGS])


def test_names_are_those_of_configs():
    """Every registered one, each distance of HDD, and what configs make of them."""
    assert {*EMBEDDINGS, *EMBEDDINGS.short_names} == set(NAMED)
    for name, section in NAMED.items():
        kind, params = EMBEDDINGS[section["name"]], {**section}
        del params["name"]
        made = named_embedding(name)
        assert type(made) is kind
        assert made.get_params() == kind(**params).get_params()
    for name, kind in RANDOM_FEATURES.items():
        assert type(named_features(name)) is kind


def test_models_of_names(tmp_path):
    """They are those of the embeddings named; parameters, clones and saved models keep names."""
    value = DoubleBasisRegressor("js", "nystroem", alpha=1e-3)
    spelled = DoubleBasisRegressor(HDDEmbedding("js"), NystroemFeatures(), alpha=1e-3)
    with pytest.warns(UserWarning, match="landmarks"):
        value, spelled = clone(value).fit(BAGS, Y), spelled.fit(BAGS, Y)
    assert (value.embedding, value.random_features) == ("js", "nystroem")
    np.testing.assert_array_equal(value.predict(BAGS), spelled.predict(BAGS))
    value.save(tmp_path / "m.zarr")
    again = load_model(tmp_path / "m.zarr")
    assert (again.embedding, again.random_features) == ("js", "nystroem")
    np.testing.assert_array_equal(again.predict(BAGS), value.predict(BAGS))


def test_smoother_and_classifier():
    """They take names, too."""
    smoothed = KernelSmoother("moments", bandwidth=0.5).fit(BAGS, Y).predict(BAGS)
    spelled = KernelSmoother(MomentsEmbedding(), bandwidth=0.5).fit(BAGS, Y).predict(BAGS)
    np.testing.assert_array_equal(smoothed, spelled)
    model = DoubleBasisClassifier("moments", False).fit(BAGS, np.median(Y) < Y)
    assert model.features_.embedding == MomentsEmbedding().fit(BAGS).spec_
