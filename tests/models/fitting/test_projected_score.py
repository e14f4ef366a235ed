"""alpha="projected": the penalty by the error of valid densities at held-out response points."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    BagStore,
    DataError,
    DoubleBasisRegressor,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
)
from tests.models.splits import held_out, validating
from tests.oracles import series

N, FRACTION = 120, 0.3
ALPHAS = [1e-4, 1e-2, 1.0, 30.0]
GRID = 64


def pairs(seed=0, n_dims=1):
    """Bags of a beta distribution, and their mirror images; one response of eight is missing."""
    rng = np.random.default_rng(seed)
    bags = [rng.beta(*rng.uniform(0.7, 5.0, 2), size=(40, n_dims)) for _ in range(N)]
    answers = [None if i % 8 == 3 else 1 - rng.permutation(b)[:25] for i, b in enumerate(bags)]
    return bags, answers


def model(alpha="projected", **params):
    return TripleBasisRegressor(
        ProjectionEmbedding(n_per_dim=5),
        RandomFourierFeatures(n_features=60, seed=1),
        response_embedding=ProjectionEmbedding(n_per_dim=7),
        alpha=alpha,
        validation_fraction=FRACTION,
        precision="float64",
        **params,
    )


def valid(values):
    """The nearest density on a grid, by bisection of its threshold."""
    lo, hi = values.min() - 2, values.max()
    for _ in range(200):
        c = (lo + hi) / 2
        lo, hi = (c, hi) if np.maximum(values - c, 0).mean() > 1 else (lo, c)
    return lo


def scores_by_loop(bags, answers, holdout=None):
    """Fitted without the held-out bags; ∫p² − 2/m Σ p(y) of each, point by point."""
    apart = validating(FRACTION, N)
    out = held_out(holdout, N) if holdout else np.zeros(N, dtype=bool)
    value = np.array([a is not None for a in answers]) & ~out
    # the same bases as a fit to all bags decides on
    features = model(1.0).fit(bags, answers).features_
    selected = [None if apart[i] or out[i] else a for i, a in enumerate(answers)]
    indices = series.index_set_by_loop(1, 7, None, "cosine")
    middles = (np.arange(256) + 0.5)[:, None] / 256
    functions = np.stack([series.product_function("cosine", a, middles) for a in indices])
    scores = []
    for alpha in ALPHAS:
        fitted = model(alpha).fit(bags, selected)
        assert fitted.features_ == features
        total = 0.0
        judges = np.flatnonzero(value & apart)
        for i in judges:
            series_values = fitted.predict([bags[i]])[0] @ functions
            c = valid(series_values)
            total += (np.maximum(series_values - c, 0) ** 2).mean()
            at = np.stack([series.product_function("cosine", a, answers[i]) for a in indices])
            total -= 2 * np.maximum(fitted.predict([bags[i]])[0] @ at - c, 0).mean()
        scores.append(total / len(judges))
    return np.array(scores)


def in_unit_box(bags, answers):
    """The box of the data is the unit interval, so that the oracle needs no scaling."""
    bags[0][:2, 0] = answers[0][:2, 0] = [0.0, 1.0]
    return bags, answers


@pytest.mark.long
def test_scores_are_those_of_the_definition():
    """Each penalty's score is that of a fit without the held-out bags, judged at their points."""
    bags, answers = in_unit_box(*pairs())
    fitted = model(alphas=ALPHAS).fit(bags, answers)
    expected = scores_by_loop(bags, answers)
    np.testing.assert_allclose(fitted.alpha_scores_, expected, rtol=1e-6)
    assert fitted.alpha_ == ALPHAS[int(expected.argmin())]
    final = model(fitted.alpha_).fit(bags, answers)
    np.testing.assert_allclose(fitted.coef_, final.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.long
def test_store_and_memory_agree(tmp_path):
    """From a store, whose held-out bags are read again, with a holdout that judges nothing."""
    bags, answers = in_unit_box(*pairs())
    store = BagStore.create(
        tmp_path / "s.zarr",
        1,
        target_names=[],
        box=[(0, 1)],
        response_dims=1,
        response_box=[(0, 1)],
        dtype=np.float64,
    )
    store.append(bags, responses=answers)
    inside, outside = (model(alphas=ALPHAS).fit(*case) for case in ((bags, answers), (store,)))
    np.testing.assert_allclose(outside.alpha_scores_, inside.alpha_scores_, rtol=1e-6)
    apart = model(alphas=ALPHAS).fit(store, holdout=0.4)
    saved = held_out(0.4, N)
    fewer = [None if out else a for out, a in zip(saved, answers, strict=True)]
    same = model(alphas=ALPHAS).fit(bags, fewer)
    np.testing.assert_allclose(apart.alpha_scores_, same.alpha_scores_, rtol=1e-6)


@pytest.mark.long
def test_no_worse_where_series_dip_below_zero():
    """Narrow responses: the penalty chosen predicts valid densities no worse than validation's."""
    rng = np.random.default_rng(3)
    centres = rng.uniform(0.2, 0.8, N)
    bags = [c + 0.05 * rng.normal(size=(30, 1)) for c in centres]
    answers = [1 - c + 0.03 * rng.normal(size=(30, 1)) for c in centres]
    errors = {}
    for alpha in ("projected", "validation"):
        fitted = model(alpha).fit(bags[:90], answers[:90])
        densities = fitted.densities(bags[90:], project=True)
        values = densities.on_grid()
        at = [densities[i].at(a).mean() for i, a in enumerate(answers[90:])]
        errors[alpha] = (values**2).mean() * densities.volume - 2 * np.mean(at)
    assert errors["projected"] <= 0.98 * errors["validation"]  # both are negative
    assert errors["projected"] < 0


@pytest.mark.long
def test_four_dimensions():
    """Where no grid is fine enough the integrals are those over quasi-random points."""
    bags, answers = pairs(n_dims=4)
    embedding = ProjectionEmbedding(max_norm=1.5)
    fitted = TripleBasisRegressor(
        embedding,
        RandomFourierFeatures(n_features=20),
        response_embedding=embedding,
        alpha="projected",
    )
    fitted.fit(bags, answers)
    assert np.isfinite(fitted.alpha_scores_).all()
    assert fitted.alpha_scores_.min() < -1  # the uniform density has -1


def test_refused():
    """Numbers have no densities; with no held-out response there is nothing to judge by."""
    bags, answers = pairs()
    with pytest.raises(ParameterError, match="alpha is 'projected'; expected"):
        DoubleBasisRegressor(alpha="projected").fit(bags, np.zeros(N))
    apart = validating(FRACTION, N)
    none = [None if out else a for out, a in zip(apart, answers, strict=True)]
    with pytest.raises(DataError, match="no bag with a response was held out"):
        model().fit(bags, none)
