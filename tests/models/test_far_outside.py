"""Bags far outside of what a model was fitted to are named in one warning of each call."""

from __future__ import annotations

import dask
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from bagbasis import (
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    KernelSmoother,
    MeanMapEmbedding,
    MomentsEmbedding,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    evaluate,
)
from bagbasis.models import explain, iter_predictions, write_predictions
from bagbasis.models.predictions import features as prediction_features
from tests.passes import pass_limits
from tests.warned import texts_of
from tests.workers import two_workers

N = 60
RNG = np.random.default_rng(0)
SPREADS = RNG.uniform(0.5, 3, N)
BAGS = [RNG.normal([0, 5], [s, 1], (40, 2)) for s in SPREADS]
FAR = RNG.normal([900, 5], 1, (40, 2))
HALF = np.r_[BAGS[1][:20], FAR[:20]]
MIXED = [*BAGS[:3], FAR, HALF]


def heard(call):
    """Return what a call gives, and its warnings of points outside."""
    return texts_of(call, "outside the box")


SMALL = ProjectionEmbedding(n_per_dim=4)


def model(embedding=SMALL, **parameters):
    return DoubleBasisRegressor(embedding, RandomFourierFeatures(n_features=64), **parameters)


@pytest.fixture(scope="module")
def fitted():
    return model().fit(BAGS, SPREADS, holdout=0.2)


def test_the_bags_their_points_and_the_effect_are_named(fitted):
    _, texts = heard(lambda: fitted.predict(MIXED))
    assert len(texts) == 1
    assert "2 of 5 bags have 60 of 80 points outside" in texts[0]
    assert "bag 3: 40 of 40, bag 4: 20 of 40" in texts[0]
    assert "may be wrong" in texts[0]
    [text] = heard(lambda: fitted.predict([HALF, *[FAR] * 9]))[1]
    assert "10 of 10 bags have 380 of 400 points outside" in text
    assert "bag 1: 40 of 40, bag 2: 40 of 40, bag 3: 40 of 40, and 7 more" in text


@pytest.mark.parametrize("embedding", [SMALL, MomentsEmbedding(standardize=True)])
def test_values_in_a_smaller_unit_are_told_of(embedding, tmp_path):
    """Metres instead of millimetres lie inside a box around 0: the coordinate is named."""
    fitted = model(embedding).fit(BAGS, SPREADS)
    small = [bag * [1e-3, 1] for bag in BAGS]
    store = BagStore.create(tmp_path / "s.zarr", 2)
    store = store.append(small[:30]).append(small[30:])
    for bags in (small, store):
        [text] = texts_of(lambda bags=bags: np.asarray(fitted.predict(bags)), "times smaller")[1]
        assert "values of coordinate 0 are over 300 times smaller" in text
    for bags in (BAGS, small[:9], [bag * [0, 1] for bag in BAGS], [bag * [0.1, 1] for bag in BAGS]):
        assert not texts_of(lambda bags=bags: fitted.predict(bags), "times smaller")[1]
    mixed = store.append(BAGS[:10])
    with pass_limits(task_seconds=1e-9):
        assert not texts_of(lambda: np.asarray(fitted.predict(mixed)), "times smaller")[1]


CALLS = {
    "predict": lambda m, bags, y: m.predict(bags),
    "predict_interval": lambda m, bags, y: m.predict_interval(bags, coverage=0.5),
    "score": lambda m, bags, y: m.score(bags, y),
    "evaluate": lambda m, bags, y: evaluate(m, bags, y),
}


@pytest.mark.parametrize("call", CALLS)
def test_each_call_tells_once_and_only_of_far_bags(fitted, call):
    y = SPREADS[:5]
    _, texts = heard(lambda: CALLS[call](fitted, MIXED, y))
    assert len(texts) == 1
    assert "bag 3" in texts[0]
    _, texts = heard(lambda: CALLS[call](fitted, BAGS[:20], SPREADS[:20]))
    assert texts == []


@pytest.mark.parametrize("call", CALLS)
def test_bags_of_a_store_are_named_by_their_ids(fitted, call, tmp_path):
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"])
    store.append(MIXED, {"y": SPREADS[:5]}, ids=["a", "b", "c", "far", "half"])
    y = SPREADS[:5]

    def run():
        result = CALLS[call](fitted, store, y)
        parts = result if isinstance(result, tuple) else (result,)
        return [part.compute() if hasattr(part, "compute") else part for part in parts]

    _, texts = heard(run)
    assert len(texts) == 1  # the two ends of an interval are two arrays: each warned
    assert "s.zarr: 2 of 5 bags" in texts[0]
    assert "bag 'far': 40 of 40, bag 'half': 20 of 40" in texts[0]


def test_a_classifier_tells_of_probabilities():
    classes = np.where(SPREADS > 1.7, "wide", "narrow")
    fitted = DoubleBasisClassifier(SMALL).fit(BAGS, classes)
    for call in (fitted.predict, fitted.predict_proba, fitted.decision_function):
        _, texts = heard(lambda call=call: call(MIXED))
        assert len(texts) == 1


@pytest.mark.parametrize("kind", [MomentsEmbedding, MeanMapEmbedding, ProjectionEmbedding])
def test_embeddings_that_drop_say_so(kind):
    fitted = model(kind(out_of_box="drop")).fit(BAGS, SPREADS)
    _, texts = heard(lambda: fitted.predict([*BAGS[:3], HALF]))
    assert len(texts) == 1
    assert "are left out" in texts[0]


def test_a_single_point_outside_and_small_shares_are_not_told_of(fitted):
    outlier = BAGS[0].copy()
    outlier[0] = 900
    assert heard(lambda: fitted.predict([outlier]))[1] == []
    assert len(heard(lambda: fitted.predict([FAR[:1]]))[1]) == 1


def test_a_tenth_outside_is_told_of_where_hardly_any_point_was_outside():
    """Five times the fraction of the fit, but never less than a twentieth, is usual."""
    box = ProjectionEmbedding(n_per_dim=4, box=[(-12, 12), (0, 10)])
    inside = [np.clip(bag, [-11, 1], [11, 9]) for bag in BAGS]
    inside[0][0] = 900
    tenth = inside[1].copy()
    tenth[:5] = 900
    fitted = model(box).fit(inside, SPREADS)
    assert fitted.report_["n_points_outside_box"] == 1
    assert len(heard(lambda: fitted.predict([tenth]))[1]) == 1


def test_extremes_of_similar_bags_are_not_told_of(fitted):
    """A few bags of a fold reach a little beyond the others; a far bag, or many, are told of."""
    side = np.diff(fitted.model_.features.embedding.box.bounds)[0, 0]
    near, beyond = (RNG.normal([k * side, 5], 0.1, (40, 2)) for k in (0.6, 1.2))
    assert heard(lambda: fitted.predict([*BAGS, near]))[1] == []
    assert "1 of 61 bags has" in heard(lambda: fitted.predict([*BAGS, beyond]))[1][0]
    assert "3 of 7 bags have" in heard(lambda: fitted.predict([*BAGS[:4], *[near] * 3]))[1][0]


def test_scikit_learns_folds_of_similar_bags_tell_nothing():
    rng = np.random.default_rng(1)
    bags = [rng.normal(mean, 1, (7, 4)) for mean in rng.normal(0, 1, (120, 1))]
    y = [bag.mean() for bag in bags]
    search = GridSearchCV(DoubleBasisRegressor("moments", alpha=1.0), {"alpha": [0.1, 1.0]}, cv=3)
    assert heard(lambda: search.fit(bags, y))[1] == []


def test_fits_say_nothing_of_single_bags():
    _, texts = heard(lambda: model(uncertainty=True).fit([*BAGS, FAR[:1]], [*SPREADS, 1.0]))
    assert texts == []


def test_a_smoother_and_densities_tell_once():
    smoother = KernelSmoother(SMALL).fit(BAGS, SPREADS)
    assert len(heard(lambda: smoother.predict(MIXED))[1]) == 1
    assert len(heard(lambda: smoother.score(MIXED, SPREADS[:5]))[1]) == 1
    densities = TripleBasisRegressor(SMALL, response_embedding=SMALL).fit(BAGS, BAGS)
    assert len(heard(lambda: densities.predict(MIXED))[1]) == 1
    assert len(heard(lambda: densities.predict_density(MIXED, grid=4))[1]) == 1


def test_parts_of_a_call_that_are_computed_apart_warn_once(tmp_path):
    """Means and their deviations, too; another call warns again, and so do other bags."""
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"]).append(
        [*BAGS[:2], FAR, HALF]
    )
    fitted = model(uncertainty=True).fit(BAGS, SPREADS)

    def parts():
        return fitted.predict(store, return_std=True)

    assert len(heard(lambda: [part.compute() for part in parts()])[1]) == 1
    mean, std = parts()
    assert len(heard(mean.compute)[1]) == 1
    assert heard(std.compute)[1] == []
    assert len(heard(lambda: [part.compute() for part in parts()])[1]) == 1


@pytest.mark.long
@pytest.mark.parametrize("scheduler", ["threads", "synchronous", "two workers"])
def test_blocks_of_a_lazy_array_are_told_of_together(fitted, tmp_path, monkeypatch, scheduler):
    """One warning of the whole call has their number: neither one for each block, nor lines in the
    workers' logs that the caller does not see."""
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"]).append(
        [*BAGS[:6], *[FAR] * 3, HALF]
    )
    cut = [(i, i + 2) for i in range(0, 10, 2)]
    monkeypatch.setattr(prediction_features, "prediction_ranges", lambda *_: cut)
    lazy = fitted.predict(store)  # made before there is a cluster
    assert lazy.numblocks == (5,)
    with two_workers() if scheduler == "two workers" else dask.config.set(scheduler=scheduler):
        both = fitted.predict_interval(store, coverage=0.5)
        for call in (
            lazy.compute,
            fitted.predict(store).mean().compute,
            lambda: dask.compute(lazy, lazy + 1),
            lambda: dask.persist(fitted.predict(store) + 1)[0].compute(),
            lambda: dask.compute(*both),
        ):
            [text] = heard(call)[1]
            assert "4 of 10 bags have 140 of 160 points outside" in text
            assert "bag 6: 40 of 40" in text
            assert "and 1 more" in text
        assert "2 of 4 bags have 80 of 80" in heard(lazy[4:8].compute)[1][0]
        assert heard(lazy[:4].compute)[1] == []
        assert len(heard(lambda: fitted.score(store, np.arange(10)))[1]) == 1


def test_a_computation_that_fails_leaves_no_warning_behind(fitted, tmp_path):
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"]).append([*BAGS[:2], FAR])

    def fail(block):
        raise ZeroDivisionError

    def run():
        with pytest.raises(ZeroDivisionError):
            fitted.predict(store).map_blocks(fail, dtype=float).compute()

    assert len(heard(run)[1]) == 1
    near = BagStore.create(tmp_path / "n.zarr", 2, target_names=["y"]).append(BAGS[:2])
    assert heard(fitted.predict(near).compute)[1] == []


@pytest.mark.parametrize("format", ["zarr", "csv"])
def test_written_predictions_tell_once(fitted, tmp_path, format):
    store = BagStore.create(tmp_path / "s.zarr", 2).append(MIXED)
    _, texts = heard(lambda: write_predictions(fitted, store, tmp_path / f"p.{format}"))
    assert len(texts) == 1
    assert "bag 3: 40 of 40" in texts[0]
    assert len(heard(lambda: list(iter_predictions(fitted, store)))[1]) == 1


def test_an_explanation_tells_once_of_its_bag(fitted):
    """Not of each copy of the bag that lacks a point or is moved."""
    [text] = heard(lambda: explain(fitted, FAR, max_points=4))[1]
    assert "1 of 1 bags has 40 of 40 points outside" in text


def test_a_smoother_tells_of_a_store(tmp_path):
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"]).append(
        MIXED, {"y": SPREADS[:5]}
    )
    smoother = KernelSmoother(SMALL).fit(BAGS, SPREADS)
    _, texts = heard(lambda: smoother.predict(store).compute())
    assert len(texts) == 1
    assert "bag 3: 40 of 40" in texts[0]
