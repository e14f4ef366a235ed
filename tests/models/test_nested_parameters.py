"""Parameters of the estimators inside of an estimator, also where None stands for the default."""

from __future__ import annotations

import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from bagbasis import (
    CoefficientPCA,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    HDDEmbedding,
    KernelSmoother,
    ParameterError,
    PointTransformer,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
)


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
