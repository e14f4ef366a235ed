"""Features whose whitening is put off to the sums: what is made of them is that of whole ones."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import DoubleBasisRegressor, NystroemFeatures, ProjectionEmbedding
from bagbasis.embeddings import NystroemSpec
from bagbasis.embeddings.random_features.completion import COMPLETE
from bagbasis.models.ridge.sums import StatisticsBuilder
from tests.oracles.labelled import labelled_bags

RNG = np.random.default_rng(0)
ROWS = np.cos(RNG.standard_normal((900, 8)) @ RNG.standard_normal((8, 20)))
FEATURES = NystroemFeatures(n_features=320)


@pytest.fixture(scope="module")
def made():
    """Return the completion, features begun and features whole, in double."""
    spec = FEATURES.fit(ROWS).spec_
    begun, whole = (np.empty((len(ROWS), spec.n_features)) for _ in range(2))
    spec.begin(ROWS, begun)
    spec.transform(ROWS, whole)
    assert 0 < spec.completion.first <= 80
    return spec.completion, begun, whole


def test_float32_sums_are_as_exact_as_those_of_whole_features():
    """The kernel values' rounding is most of it; products of values alone would be far off."""
    spec = FEATURES.fit(ROWS).spec_
    truth = FEATURES.transform(ROWS)
    truth = truth.T @ truth

    def error(write, completion):
        z = np.empty((len(ROWS), spec.n_features), np.float32)
        write(ROWS.astype(np.float32), z)
        builder = StatisticsBuilder(spec.n_features, 1)
        builder.add(z, np.zeros((len(z), 1)))
        upper = np.triu(builder.finish().completed(completion).centred_gram())
        upper += np.outer(z0 := completion.sums(z.sum(axis=0, dtype=float)), z0) / len(z)
        return np.abs(np.triu(upper - truth)).max()

    assert error(spec.begin, spec.completion) < 1.5 * error(spec.transform, COMPLETE)


@pytest.mark.parametrize(("n_features", "n_varied"), [(100, 8), (300, 3)])
def test_where_nothing_is_put_off(n_features, n_varied):
    """Few landmarks are not completed, nor a kernel whose remainder is small or nearly constant."""
    rng = np.random.default_rng(1)
    rows = np.cos(rng.standard_normal((900, n_varied)) @ rng.standard_normal((n_varied, 20)))
    spec = NystroemFeatures(n_features=n_features).fit(rows).spec_
    begun, whole = (np.empty((9, n_features)) for _ in range(2))
    spec.begin(rows[:9], begun)
    spec.transform(rows[:9], whole)
    assert not spec.completion
    np.testing.assert_array_equal(begun, whole)


@pytest.mark.long
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"baseline": "linear"},
        {"alpha": "validation", "solver": "cholesky"},
        {"alpha": 1.0, "solver": "cg"},
        {"alpha": "validation", "alphas": [1.0, 10.0], "solver": "cg"},
    ],
)
def test_every_fit_is_that_of_whole_features(params, monkeypatch):
    """Whichever way it is solved."""
    bags, _ = labelled_bags(900, most=12)
    y = np.array([bag[:, 0].mean() for bag in bags])
    second = NystroemFeatures(n_features=256, scale_multiplier=2)
    model = DoubleBasisRegressor(
        ProjectionEmbedding(n_per_dim=4), second, precision="float64", **params
    )
    put_off = model.fit(bags, y)
    assert put_off.features_.completion
    predicted = put_off.predict(bags)
    monkeypatch.setattr(NystroemSpec, "completion", COMPLETE)
    whole = model.fit(bags, y)
    assert not whole.features_.completion
    np.testing.assert_allclose(predicted, whole.predict(bags), atol=1e-6)
