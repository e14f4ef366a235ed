"""`DoubleBasisClassifier`: one ridge per class on one-hot targets."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from bagbasis import (
    BagbasisWarning,
    Bags,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    MomentsEmbedding,
    ProjectionEmbedding,
    RandomFourierFeatures,
    evaluate,
    load_model,
)
from bagbasis.models import permutation_importance
from tests.models.splits import held_out
from tests.oracles.labelled import labelled_bags, stored

BAGS, Y = labelled_bags(200, most=150)
NEW, NEW_Y = labelled_bags(60, seed=1, most=150)
CODES = np.digitize(Y, [-0.3, 0.4])  # three classes
NAMES = np.array(["low", "middle", "upper"])


def bases(n_features=64):
    return ProjectionEmbedding(n_per_dim=4), RandomFourierFeatures(n_features=n_features)


def classifier(alpha=0.05, precision="float64", **params):
    return DoubleBasisClassifier(*bases(), alpha=alpha, precision=precision, **params)


@pytest.mark.parametrize("kind", [np.float64, np.float32, object], ids=["f8", "f4", "object"])
def test_numbers_in_memory_are_no_classes(kind):
    """As those of a store: each would be a class of its own. Whole numbers and text are classes."""
    y = Y.astype(kind)
    y[3] = np.nan
    with pytest.raises(DataError, match=r"y has 199 distinct values.*DoubleBasisRegressor"):
        classifier().fit(BAGS, y)
    with pytest.raises(DataError, match=r"12 distinct values that are not all whole.*or text"):
        classifier().fit(BAGS[:12], Y[:12].astype(kind))
    assert classifier().fit(BAGS, CODES.astype(kind)).classes_.tolist() == [0, 1, 2]


def test_fewer_than_two_bags_per_class_are_warned_of(tmp_path, warned):
    """As amounts with a unit, dates and ids have; two bags per class are not warned about."""
    texts = [f"{value:.3f} kg" for value in Y[:12]]
    few = r"y has 12 classes in 12 labelled bags, such as '.* kg'.*DoubleBasisRegressor"
    with pytest.warns(BagbasisWarning, match=few):
        model = classifier().fit(BAGS[:12], texts)
    assert len(model.classes_) == len(set(texts))
    store = stored(
        tmp_path / "s.zarr",
        BAGS[:12],
        {"mass": texts},
        ["mass"],
        class_names={"mass": sorted(texts)},
    )
    with pytest.warns(BagbasisWarning, match=few.replace("y has", "'mass' has")):
        classifier().fit(store)
    classifier().fit(BAGS[:12], [None, None, *texts[:5], *texts[:5]])
    classifier().fit(BAGS[:4], list("abcd"))
    assert not warned.text


@pytest.mark.parametrize("alpha", [0.05, 0.0, "gcv", "validation"])
def test_equals_one_fit_a_class(alpha):
    """Scores are those of a regressor on the one-hot columns, the class that of the largest."""
    model = classifier(alpha).fit(BAGS, CODES)
    one_hot = np.eye(3)[CODES]
    columns = [
        DoubleBasisRegressor(*bases(), alpha=model.alpha_, precision="float64")
        .fit(BAGS, one_hot[:, c])
        .predict(NEW)
        for c in range(3)
    ]
    scores = np.stack(columns, axis=1)
    np.testing.assert_array_equal(model.predict(NEW), scores.argmax(axis=1))
    clipped, n = np.maximum(scores, 0), len(CODES)  # a bag is added to each class
    if alpha == "validation":
        n = model.outcome_.probability_map.n_bags
    expected = (n * clipped / clipped.sum(axis=1, keepdims=True) + 1) / (n + 3)
    np.testing.assert_allclose(model.predict_proba(NEW), expected, atol=1e-6)
    np.testing.assert_array_equal(model.predict_log_proba(NEW), np.log(model.predict_proba(NEW)))
    assert model.coef_.shape == (3, 64)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (CODES, [0, 1, 2]),
        (CODES * 10 - 5, [-5, 5, 15]),
        (CODES * 0.5, [0.0, 0.5, 1.0]),
        (CODES > 0, [0, 1]),
        (NAMES[CODES], ["low", "middle", "upper"]),
        (NAMES[CODES].astype(object), ["low", "middle", "upper"]),
        (CODES.astype(object), [0, 1, 2]),
        (NAMES[CODES].tolist(), ["low", "middle", "upper"]),
    ],
)
def test_labels_come_back_as_they_were_given(labels, classes):
    """Numbers or text, sorted; predictions are labels of the same kind."""
    model = classifier().fit(BAGS, labels)
    assert model.classes_.tolist() == classes
    predicted = model.predict(BAGS)
    assert predicted.dtype == model.classes_.dtype
    assert np.mean(predicted == np.asarray(labels)) > 0.8


@pytest.mark.parametrize("missing", [None, np.nan, ""])
def test_missing_labels(missing):
    """None, NaN or empty text among the labels is a bag without a label, not a class."""
    labels = NAMES[CODES].astype(object)
    labels[::5] = missing
    model = classifier().fit(BAGS, labels)
    assert model.classes_.tolist() == NAMES.tolist()
    assert model.report_["n_bags_unlabelled"] == 40
    keep = np.arange(200) % 5 > 0
    codes = np.where(keep, CODES, np.nan)
    np.testing.assert_array_equal(model.coef_, classifier().fit(BAGS, codes).coef_)


def test_labels_of_two_kinds():
    """Text among numbers is an error, not a class of its own; so is anything else."""
    with pytest.raises(DataError, match="mixes text with other labels"):
        classifier().fit(BAGS, np.where(CODES == 0, "low", CODES.astype(object)))
    with pytest.raises(DataError, match="neither text nor a number"):
        classifier().fit(BAGS, np.array([(1, 2), *CODES[1:].tolist()], dtype=object))


def test_one_column():
    """A classifier has one target."""
    with pytest.raises(DataError, match=r"y has shape \(200, 1\); expected one class per bag"):
        classifier().fit(BAGS, CODES[:, None])


def test_from_a_store(tmp_path):
    """The names that a store has for its classes are the classes; else its numbers are."""
    named = {"class_names": {"level": NAMES.tolist()}}
    store = stored(tmp_path / "a.zarr", BAGS, {"level": NAMES[CODES]}, ["level"], **named)
    model = classifier().fit(store)
    assert model.classes_.tolist() == NAMES.tolist()
    assert model.target_names_ == ("level",)
    np.testing.assert_array_equal(model.predict(store), model.predict(BAGS))
    assert model.score(store) == model.score(BAGS, NAMES[CODES]) > 0.7
    np.testing.assert_allclose(model.coef_, classifier().fit(BAGS, CODES).coef_, rtol=0, atol=1e-9)
    two = stored(tmp_path / "b.zarr", BAGS, np.stack([Y, CODES], axis=1), ["y", "level"])
    assert classifier().fit(two, target="level").classes_.tolist() == [0, 1, 2]
    with pytest.raises(DataError, match="a classifier has one target"):
        classifier().fit(two, target=["y", "level"])


@pytest.mark.long
def test_another_store_numbers_its_classes_by_itself(tmp_path):
    """Labels are compared by name: a store without the first class, in another order, with more."""
    level = np.array([*NAMES, "top"])
    named = {"class_names": {"level": ["top", "upper", "low"]}}
    known = {"class_names": {"level": ["low", "middle", "upper"]}}
    few = np.flatnonzero(CODES != 1)
    codes = np.where(np.quantile(Y, 0.97) < Y, 3, CODES)
    bags = Bags.from_list([BAGS[i] for i in few])
    store = stored(tmp_path / "a.zarr", BAGS, {"level": NAMES[CODES]}, ["level"], **known)
    other = stored(tmp_path / "b.zarr", bags, {"level": level[codes[few]]}, ["level"], **named)
    for weights in (None, {"low": 2.0}, {"0": 2.0}):  # "0" as saved models of before have it
        model = classifier(class_weight=weights).fit(store)
    truth = level[codes[few]]
    assert model.score(other) == np.mean(model.predict(bags) == truth) > 0.7
    errors = evaluate(model, other, subset="all")
    assert 1 - errors.error == pytest.approx(model.score(other))
    per_class = errors.details.values(errors)["level"]["per_class"]
    assert {name: first["n"] for name, first in per_class.items()} == {
        name: int((truth == name).sum()) for name in ("low", "middle", "upper", "top")
    }
    assert permutation_importance(model, other, n_repeats=2).score == model.score(other)
    named = {"class_names": {"level": ["deep", "flat"]}}
    none = stored(
        tmp_path / "c.zarr",
        bags,
        {"level": np.array(["deep", "flat"])[few % 2]},
        ["level"],
        **named,
    )
    with pytest.raises(DataError, match=r"has the classes \['deep', 'flat'\], .* to the classes"):
        evaluate(model, none)


def test_classes_of_the_holdout_are_known(tmp_path):
    """A class that only held-out bags have is a class still; it is never scored."""
    held = held_out(0.1, 200)
    codes = CODES.copy()
    codes[np.flatnonzero(held)[:2]] = 7
    store = stored(tmp_path / "s.zarr", BAGS, codes.astype(float))
    model = classifier().fit(store, holdout=0.1)
    assert model.classes_.tolist() == [0, 1, 2, 7]
    assert 7 not in model.predict(BAGS)
    assert model.predict_proba(BAGS)[:, 3].max() < 1.01 / (~held).sum()


def test_too_few_and_too_many_classes(monkeypatch):
    """One class cannot be told apart; a real-valued target is not a class."""
    with pytest.raises(DataError, match="needs two classes, the labels have 1"):
        classifier().fit(BAGS, np.zeros(200))
    monkeypatch.setattr("bagbasis.models.outcomes.training_labels.MAX_CLASSES", 100)
    with pytest.raises(DataError, match="more than 100 classes: is the target a real number"):
        classifier().fit(BAGS, Y)


def test_booleans_stay_booleans(tmp_path):
    """Classes True and False are predicted as such, by a loaded model too, with bags unlabelled."""
    labels = np.array(CODES) > 0
    model = classifier().fit(BAGS, labels)
    assert model.classes_.tolist() == [False, True]
    assert model.predict(BAGS).dtype == bool
    assert model.score(BAGS, labels) == classifier().fit(BAGS, labels.astype(int)).score(
        BAGS, labels.astype(int)
    )
    model.save(tmp_path / "model.zarr")
    assert load_model(tmp_path / "model.zarr").predict(BAGS).dtype == bool
    some = [None, *labels[1:].tolist()]
    assert classifier().fit(BAGS, some).predict(BAGS).dtype == bool
    assert classifier().fit(BAGS, labels.astype(int)).predict(BAGS).dtype == np.int64


@pytest.mark.parametrize(
    ("fitted", "labels", "message"),
    [
        (["b", "a", "c"], [0, 1, 2], r"y has numbers, such as 0; .*\['a', 'b', 'c'\]"),
        ([0, 1, 2], ["0", "1", "2"], "y has texts, such as '0'"),
        ([False, True, True], ["no", "yes", "yes"], "y has texts, such as 'no'"),
        ([0, 1, 2], [0.4, 1.0, 2.0], "y has 0.4, which is not whole"),
    ],
)
def test_labels_of_another_kind_than_the_classes(fitted, labels, message):
    """Numbers were taken for positions of the sorted texts, and texts for unknown classes."""
    bags = [np.random.default_rng(i).normal(i % 3, 1, (9, 1)) for i in range(30)]
    model = DoubleBasisClassifier(MomentsEmbedding(), alpha=0.1).fit(bags, fitted * 10)
    for judge in (model.score, lambda x, y: evaluate(model, x, y)):
        with pytest.raises(DataError, match=message):
            judge(bags, labels * 10)


@pytest.mark.parametrize(
    ("fitted", "new", "named"),
    [(["no", "yes"], "Yes", ""), ([0, 1], 7, ", such as '7'")],
)
def test_classes_that_the_fit_did_not_have_are_warned_of(fitted, new, named, tmp_path):
    """A class spelled in another way was an error of the model, without a word."""
    bags = [np.random.default_rng(i).normal(i % 2, 1, (9, 1)) for i in range(40)]
    model = DoubleBasisClassifier(MomentsEmbedding(), alpha=0.1).fit(bags[:30], fitted * 15)
    labels = [new, new, *fitted * 4]
    known = re.escape(str([str(name) for name in fitted]))
    message = rf"2 of 10 bags have a class .* not fitted to{named}, and .* the model's, {known}"
    for judge in (model.score, lambda x, y: evaluate(model, x, y)):
        with pytest.warns(BagbasisWarning, match=message):
            judge(bags[30:], labels)
    with pytest.warns(BagbasisWarning, match=rf"make sets larger.* {re.escape(str(fitted))}"):
        model.conformalize(bags[30:], labels)
    with warnings.catch_warnings(action="error"):
        model.conformalize(bags[30:], fitted * 5).score(bags[30:], fitted * 5)


@pytest.mark.parametrize("classes", [[0, 1], [False, True], [0.5, 1.0]])
def test_weights_of_classes_by_equal_numbers(classes):
    """True, 1 and 1.0 are one key of a mapping, and one class."""
    bags = [np.random.default_rng(i).normal(i % 2, 1, (9, 1)) for i in range(30)]
    fits = [
        DoubleBasisClassifier(MomentsEmbedding(), alpha=0.1, class_weight=weights)
        .fit(bags, classes * 15)
        .predict_proba(bags)
        for weights in (None, {classes[1]: 5.0}, {1: 5.0}, {1.0: 5.0}, {True: 5.0})
    ]
    assert (fits[1] == fits[1:]).all()
    assert fits[1][:, 1].mean() > fits[0][:, 1].mean() + 0.01
