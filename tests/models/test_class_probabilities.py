"""Probabilities of classes: calibrated by folds, in the order of the scores, never 0 or 1."""

import numpy as np
import pytest

from bagbasis import (
    BagStore,
    DoubleBasisClassifier,
    RandomFourierFeatures,
    load_model,
)
from bagbasis.core.saved import read_saved
from bagbasis.models.outcomes.class_probabilities import ProbabilityMap, positive_shares


def drawn(n, seed, n_points=12):
    """Bags of three classes that differ in spread."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 3, n)
    return [rng.normal(0, 1 + 0.5 * c, (n_points, 2)) for c in classes], classes


BAGS, CLASSES = drawn(120, 0)
NEW, TRUE = drawn(600, 1)


def log_loss(probabilities, classes):
    return -np.log(probabilities[np.arange(len(classes)), classes]).mean()


def fitted(alpha="auto", n_features=64, **parameters):
    second = RandomFourierFeatures(n_features=n_features, seed=2)
    return DoubleBasisClassifier("moments", second, alpha=alpha, **parameters)


@pytest.mark.parametrize("n_features", [32, 256])
def test_log_loss_is_less_than_that_of_clipped_scores(n_features):
    """From rows that are kept, and from sums and a pass over the bags."""
    model = fitted(n_features=n_features).fit(BAGS, CLASSES)
    probabilities = model.predict_proba(NEW)
    clipped = positive_shares(model.model_.decision_rows(as_list(NEW)))
    clipped = (len(BAGS) * clipped + 1) / (len(BAGS) + 3)
    assert log_loss(probabilities, TRUE) < log_loss(clipped, TRUE)
    assert log_loss(probabilities, TRUE) < 0.95 * np.log(3)


def as_list(bags):
    from bagbasis import Bags

    return Bags.from_list(bags)


@pytest.mark.parametrize("alpha", ["auto", "folds", "gcv", "validation", 1e-9, 0.0, 1e6])
@pytest.mark.parametrize("n", [6, 40, 120])
def test_no_probability_is_0_or_1_and_all_are_in_the_order_of_the_scores(alpha, n):
    model = fitted(alpha).fit(BAGS[:n], CLASSES[:n])
    probabilities = model.predict_proba(NEW)
    assert ((probabilities > 0) & (probabilities < 1)).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    best = np.take_along_axis(
        probabilities, np.searchsorted(model.classes_, model.predict(NEW))[:, None], axis=1
    )
    assert (best[:, 0] >= probabilities.max(axis=1) - 1e-12).all()


def test_classes_and_scores_are_those_of_the_ridge():
    """Calibration changes neither."""
    default, value = fitted().fit(BAGS, CLASSES), fitted("folds").fit(BAGS, CLASSES)
    np.testing.assert_array_equal(default.decision_function(NEW), value.decision_function(NEW))
    scores = default.decision_function(NEW)
    np.testing.assert_array_equal(default.predict(NEW), scores.argmax(axis=1))


@pytest.mark.long
def test_a_store_gives_the_same_as_memory(tmp_path):
    store = BagStore.create(str(tmp_path / "s.zarr"), n_dims=2, target_names=["c"])
    store.append(BAGS, targets={"c": CLASSES.astype(float)})
    for n_features in (32, 256):
        of_store = fitted(n_features=n_features).fit(store)
        of_bags = fitted(n_features=n_features).fit(BAGS, CLASSES)
        np.testing.assert_allclose(
            of_store.predict_proba(NEW), of_bags.predict_proba(NEW), atol=1e-3
        )


def test_the_map_is_saved_and_models_without_one_clip(tmp_path):
    model = fitted().fit(BAGS, CLASSES)
    model.save(str(tmp_path / "m.zarr"))
    loaded = load_model(str(tmp_path / "m.zarr"))
    np.testing.assert_array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))
    values = model.outcome_.to_dict()
    del values["probabilities"]
    old = type(model.outcome_).from_dict(values, (), 3)
    predicted = old.predict(np.array([[0.5, 1.0, -0.2], [-3.0, -1.0, -2.0], [0.0, 0.0, 0.0]]))
    third = [1 / 3] * 3  # where no class has a positive score
    np.testing.assert_allclose(predicted.probabilities, [[1 / 3, 2 / 3, 0], third, third])
    assert predicted.values.tolist() == [1, 1, 0]


def test_weights_and_groups_count():
    weights = np.where(CLASSES == 0, 5.0, 1.0)
    plain = fitted().fit(BAGS, CLASSES).predict_proba(NEW).mean(axis=0)
    heavy = fitted().fit(BAGS, CLASSES, sample_weight=weights).predict_proba(NEW).mean(axis=0)
    assert heavy[0] > plain[0]
    grouped = fitted().fit(BAGS, CLASSES, groups=np.arange(len(BAGS)) // 4)
    assert grouped.outcome_.probability_map.sharpness is not None


@pytest.mark.long
def test_trees_have_a_map_of_their_own():
    model = fitted(head="trees").fit(BAGS, CLASSES)
    known = model.report_["head"]["probabilities"]
    assert {*known} == {"ridge", "trees", "stack"}
    assert model.outcome_.probability_map == read_saved(ProbabilityMap, known["trees"])
    assert (model.predict_proba(NEW) > 0).all()


@pytest.mark.parametrize("k", [2, 5, 40])
def test_maps_of_separable_and_of_useless_scores(k):
    rng = np.random.default_rng(k)
    classes = np.arange(200) % k
    targets = np.eye(k)[classes]
    sure = ProbabilityMap.fitted(targets + 0.01 * rng.standard_normal((200, k)), targets)
    assert log_loss(sure(targets), classes) < 0.02 * k
    noise = rng.standard_normal((200, k)) / k
    useless = ProbabilityMap.fitted(noise, targets)
    assert log_loss(useless(noise), classes) < np.log(k) + 0.05
    assert ProbabilityMap.fitted(np.empty((0, k)), np.empty((0, k))).sharpness is None


@pytest.mark.parametrize("sharpness", [0.5, 2.0, 32.0])
@pytest.mark.parametrize("power", [0.25, 1.0, 64.0])
def test_a_map_is_found_again(sharpness, power):
    """From exact probabilities, also at the ends of what is tried; bags without a weight or without
    a class do not count."""
    scores = np.random.default_rng(3).uniform(-0.3, 0.9, (500, 3))
    truth = ProbabilityMap(500.0, sharpness, power, 0.5)
    targets = truth(scores)
    softplus = np.log1p(np.exp(sharpness * scores)) ** power
    shares = softplus / softplus.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(targets, (500 * shares + 0.5 / 3) / 500.5)
    assert ProbabilityMap.fitted(scores, targets) == truth
    more = np.vstack([scores, -scores, scores[:100]])
    others = np.vstack([targets, targets, 0 * targets[:100]])
    weights = np.repeat([2.0, 0.0, 1.0], [500, 500, 100])
    assert ProbabilityMap.fitted(more, others, weights) == truth
