"""Networks of bags: order, masks, leave-one-out terms, and what they learn."""

from __future__ import annotations

import warnings

import dask.array as da
import jax
import numpy as np
import pytest

from bagbasis import BagbasisError, BagbasisWarning, Bags, BagStore, evaluate
from bagbasis.neural import BagDensity, DeepSetsClassifier, DeepSetsRegressor, load_network
from bagbasis.neural.deep_sets import DeepSet
from bagbasis.neural.examples import labelled_examples
from tests.oracles.labelled import stored
from tests.oracles.planned import Reals
from tests.warned import texts_of

SMALL = {"n_hidden": 16, "n_pooled": 8, "batch_size": 8}
DENSE = {"n_hidden": 32, "n_pooled": 16, "n_condition": 8, "batch_size": 8, "n_components": 3,
         "conditional": "multi_ind", "transformation": "none", "linear": False,
         "validate_every": 100, "decay_steps": 300}  # fmt: skip


def shifted(n, d=2, seed=0, size=20):
    """Bags of normal points whose means differ, and the means."""
    rng = np.random.default_rng(seed)
    means = rng.normal(0, 2, (n, d))
    return [
        m + 0.5 * rng.standard_normal((size + int(i % 3), d)) for i, m in enumerate(means)
    ], means


@pytest.mark.long
def test_deep_sets_by_definition():
    """The mean over points that are there, in any order; without each point as if it were away."""
    network = DeepSet(2, 5, 6, 3, jax.random.key(0))
    points = np.random.default_rng(0).standard_normal((7, 2)).astype(np.float32)
    mask = np.array([1, 1, 1, 1, 1, 0, 0], np.float32)
    whole = network(points, mask)
    rows = np.array([network.of_point(p) for p in points[:5]])
    np.testing.assert_allclose(whole, network.of_mean(rows.mean(axis=0)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(network(points[[3, 1, 0, 4, 2]], np.ones(5)), whole, rtol=1e-5)
    remaining = network.without_each(points, mask)
    for j in range(5):
        others = np.delete(np.arange(5), j)
        np.testing.assert_allclose(
            remaining[j], network(points[others], np.ones(4)), rtol=1e-4, atol=1e-5
        )


@pytest.mark.long
def test_regressor_and_classifier(tmp_path):
    """The spread of a bag as a number and as a class; bags of many sizes; from a store, too."""
    rng = np.random.default_rng(0)
    spread = rng.uniform(0.5, 2, 240)
    bags = [
        s * rng.standard_normal((int(m), 2))
        for s, m in zip(spread, rng.integers(20, 40, 240), strict=True)
    ]
    arguments = {**SMALL, "learning_rate": 0.01, "n_steps": 150}
    model = DeepSetsRegressor(**arguments).fit(bags[:200], spread[:200])
    assert model.score(bags[200:], spread[200:]) > 0.7
    classes = np.where(spread > 1.2, "wide", "narrow")
    judge = DeepSetsClassifier(**arguments).fit(bags[:200], classes[:200])
    assert judge.score(bags[200:], classes[200:]) > 0.8
    store = BagStore.create(tmp_path / "a.zarr", n_dims=2, target_names=["s"], box=[(-9, 9)] * 2)
    store.append(Bags.from_list(bags[:60]), targets={"s": spread[:60]})
    stored = DeepSetsRegressor(**{**arguments, "n_steps": 10}).fit(store, target="s")
    assert stored.predict(store).shape == (60,)
    for item in (model, judge):
        item.save(tmp_path / "one.npz")
        np.testing.assert_array_equal(
            load_network(tmp_path / "one.npz").predict(bags), item.predict(bags)
        )


@pytest.mark.parametrize("kind", [DeepSetsRegressor, DeepSetsClassifier])
def test_predictions_of_a_store_are_lazy_and_missing_for_removed_bags(kind, tmp_path):
    bags, means = shifted(40)
    y = means[:, 0]
    if kind is DeepSetsClassifier:
        y = np.where(y > 0, "right", "left")
    model = kind(**SMALL, n_steps=3).fit(bags, y)
    store = BagStore.create(tmp_path / "a.zarr", n_dims=2).append(bags).remove([3, 38])
    present = np.delete(np.arange(40), [3, 38])
    names = ["predict"] if kind is DeepSetsRegressor else ["predict", "predict_proba"]
    for name in names:
        expected, lazy = getattr(model, name)(bags), getattr(model, name)(store)
        assert isinstance(lazy, da.Array)
        rows = lazy.compute()
        if rows.dtype.kind == "f":
            np.testing.assert_allclose(rows[present], expected[present], rtol=1e-5)
            assert np.isnan(rows[[3, 38]]).all()
        else:
            np.testing.assert_array_equal(rows[present], expected[present])
    with pytest.raises(BagbasisError, match="bags have dimension 3, the model 2"):
        model.predict(BagStore.create(tmp_path / "b.zarr", n_dims=3).append([np.ones((2, 3))]))


def test_bags_removed_from_a_store_have_no_density(tmp_path):
    bags, _ = shifted(20)
    density = BagDensity(**{**DENSE, "validate_every": 1}, n_steps=2).fit(bags)
    store = BagStore.create(tmp_path / "a.zarr", n_dims=2).append(bags).remove([3])
    for rows in (density.embed(store), density.log_density(store, np.zeros((1, 2)))):
        np.testing.assert_array_equal(np.isnan(rows).all(axis=1), np.arange(20) == 3)
    with pytest.raises(BagbasisError, match="bag 3 was removed from the store"):
        density.sample(store, 2)


@pytest.fixture(scope="module")
def following():
    """The density of points of bags, learnt from 200 of them."""
    return BagDensity(**DENSE, learning_rate=0.01, n_steps=700).fit(shifted(250)[0][:200])


@pytest.mark.long
def test_bag_density_follows_the_bag(following, tmp_path):
    """Log density of points given the others, near that of the truth; samples lie at the bag."""
    model, (bags, means) = following, shifted(250)
    truth = -np.log(2 * np.pi * 0.25) - 1
    pooled = np.concatenate(bags[:200])
    marginal = -0.5 * np.linalg.slogdet(2 * np.pi * np.e * np.cov(pooled.T))[1]
    result = model.score(bags[200:])
    assert truth - 0.5 < result < truth + 0.1
    assert result > marginal + 1
    drawn = model.sample(bags[200:204], 200, seed=1)
    np.testing.assert_allclose(drawn.means, means[200:204], atol=0.6)
    logs = model.log_density(bags[200:202], means[200:202])
    assert logs[0, 0] > logs[0, 1]
    model.save(tmp_path / "bag.npz")
    loaded = load_network(tmp_path / "bag.npz")
    np.testing.assert_array_equal(
        loaded.log_density(bags[:2], means[:2]), model.log_density(bags[:2], means[:2])
    )


@pytest.mark.long
def test_leave_one_out_terms_by_hand(following):
    """Each point of a bag, scored given the embedding of the others."""
    bags, _ = shifted(12, size=5)
    terms = []
    for bag in bags:
        others = [np.delete(bag, j, axis=0) for j in range(len(bag))]
        rows = [following.log_density([o], x[None])[0, 0] for o, x in zip(others, bag, strict=True)]
        terms.append(np.mean(rows))
    assert following.score(bags) == pytest.approx(np.mean(terms), rel=1e-4)


@pytest.mark.long
def test_densities_of_responses():
    """Responses about the mean of the bag times −1; bags without one are left out."""
    bags, means = shifted(200, seed=1)
    rng = np.random.default_rng(2)
    responses = [-m + 0.3 * rng.standard_normal((10, 2)) for m in means]
    value = [None if i == 3 else r for i, r in enumerate(responses)]
    model = BagDensity(response=True, **DENSE, learning_rate=0.01, n_steps=400).fit(
        bags[:160], value[:160]
    )
    truth = -np.log(2 * np.pi * 0.09) - 1
    assert model.score(bags[160:], responses[160:]) > truth - 1
    by_hand = [
        model.log_density([b], r).mean()
        for b, r in zip(bags[160:165], responses[160:165], strict=True)
    ]
    assert model.score(bags[160:165], responses[160:165]) == pytest.approx(
        np.mean(by_hand), rel=1e-5
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BagDensity().fit([np.ones((1, 2))] * 4), "two points"),
        (lambda: BagDensity().fit([np.ones((2, 2))] * 4, [np.ones((2, 2))] * 4), "response=True"),
        (lambda: BagDensity().sample([np.ones((1, 2))], 2), "call fit first"),
        (
            lambda: DeepSetsRegressor().fit([np.ones((2, 2))] * 4, [1.0] * 3),
            "y has 3 values for 4 bags",
        ),
        (lambda: DeepSetsClassifier().fit([np.ones((2, 2))] * 4, [1] * 4), "needs two classes"),
    ],
)
def test_refusals(call, message):
    """Each says what is wrong."""
    with pytest.raises(BagbasisError, match=message):
        call()


@pytest.mark.parametrize(
    ("y", "match"),
    [([1.0, 2.0], "fitted to 2 labelled bags"), ([3.0, 3.0, np.nan, 3.0], "alike in the 3 bags")],
)
def test_labels_that_nothing_can_be_learnt_from_are_warned_of(y, match):
    """As those of the other estimators are; this is where each network takes its labels."""
    bags = [np.full((2, 1), float(i)) for i in range(len(y))]
    with pytest.warns(BagbasisWarning, match=match):
        labelled_examples(Reals, bags, y, None, 0.0, 8, 0.0, 0)


def test_bags_far_from_those_of_the_fit_are_warned_of_once(tmp_path):
    """In memory, of a store, in an evaluation, and after loading; labels have any unit."""
    bags, means = shifted(40)
    y = 1e200 * means[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DeepSetsRegressor(**SMALL, n_steps=4, validate_every=4).fit(bags, y)
        assert np.isfinite(model.predict(bags)).all()
    far = [bag + 1e4 for bag in bags]
    store = stored(tmp_path / "far.zarr", far, y)
    model.save(tmp_path / "model.npz")
    loaded = load_network(tmp_path / "model.npz")
    for call in (
        lambda: model.predict(far * 7),
        lambda: model.predict(store).compute(),
        lambda: evaluate(model, far, y),
        lambda: loaded.predict(far),
    ):
        _, [text] = texts_of(call, "outside the box of the training points")
        assert "bag 2: 22 of 22" in text
