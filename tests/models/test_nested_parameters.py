"""Registered names instead of embeddings and random features, and parameters inside of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from bagbasis import (
    CoefficientPCA,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    HDDEmbedding,
    KernelSmoother,
    MomentsEmbedding,
    NystroemFeatures,
    ParameterError,
    PointTransformer,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
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


@pytest.mark.parametrize(
    ("kind", "key", "value", "default"),
    [
        (DoubleBasisRegressor, "embedding__n_per_dim", 3, ProjectionEmbedding),
        (DoubleBasisRegressor, "random_features__n_features", 64, RandomFourierFeatures),
        (DoubleBasisClassifier, "embedding__n_per_dim", 3, ProjectionEmbedding),
        (TripleBasisRegressor, "response_embedding__n_per_dim", 3, ProjectionEmbedding),
        (KernelSmoother, "embedding__n_per_dim", 3, ProjectionEmbedding),
        (CoefficientPCA, "embedding__n_per_dim", 3, ProjectionEmbedding),
        (PointTransformer, "embedding__n_per_dim", 3, ProjectionEmbedding),
        (PointTransformer, "transformer__with_mean", False, StandardScaler),
    ],
)
def test_of_the_default(kind, key, value, default):
    """The default is made, and its parameter set; a clone keeps it, the other defaults stay."""
    outer, inner = key.split("__")
    made = clone(kind().set_params(**{key: value}))
    assert type(getattr(made, outer)) is default
    assert getattr(getattr(made, outer), inner) == value
    rest = {name: first for name, first in made.get_params(deep=False).items() if name != outer}
    assert rest == {
        name: first for name, first in kind().get_params(deep=False).items() if name in rest
    }


def test_of_what_is_given():
    """An embedding that is there is changed; one that comes in the same call, too."""
    model = DoubleBasisRegressor(HDDEmbedding("tv")).set_params(embedding__n_per_dim=3)
    assert (model.embedding.distance, model.embedding.n_per_dim) == ("tv", 3)
    model.set_params(embedding=HDDEmbedding("js"), embedding__n_per_dim=4, alpha=1.0)
    assert (model.embedding.distance, model.embedding.n_per_dim, model.alpha) == ("js", 4, 1.0)
    model.set_params(embedding=None, embedding__n_per_dim=5)
    assert (type(model.embedding), model.embedding.n_per_dim) == (ProjectionEmbedding, 5)


def test_of_nothing():
    """False has no parameters, and a default knows its own alone."""
    with pytest.raises(ParameterError, match="random_features is False, without parameters"):
        DoubleBasisRegressor(random_features=False).set_params(random_features__seed=1)
    with pytest.raises(ValueError, match="n_per_dims"):
        DoubleBasisRegressor().set_params(embedding__n_per_dims=3)
