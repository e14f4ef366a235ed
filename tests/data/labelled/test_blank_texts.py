"""Empty text and blanks among labels are told of, and as groups refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bagbasis import (
    BagStore,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    MomentsEmbedding,
    StreamingRidge,
)
from bagbasis.core.arrays import as_array
from bagbasis.hypotheses import independence_test, two_sample_test
from tests.warned import texts_of

RNG = np.random.default_rng(0)
N = 12
BAGS = [RNG.normal(0, 1 + i, (9, 2)) for i in range(N)]
CLASSES = np.array(["a", "b"] * (N // 2), dtype=object)
NUMBERS = np.arange(N).astype(object)


def regressor():
    return DoubleBasisRegressor(MomentsEmbedding(), alpha=1.0)


def classifier():
    return DoubleBasisClassifier(MomentsEmbedding(), alpha=1.0)


def with_text(labels, text):
    changed = labels.copy()
    changed[[3, 5]] = text
    return changed


def as_frame(labels):
    points = pd.DataFrame(np.concatenate(BAGS), columns=["u", "v"])
    return points.assign(id=np.repeat(range(N), 9), y=np.repeat(labels, 9)).groupby("id")


FORMS = {
    "array": lambda y: (BAGS, y),
    "list": lambda y: (BAGS, y.tolist()),
    "text array": lambda y: (BAGS, y.astype(str)),
    "StringDType": lambda y: (BAGS, y.astype(np.dtypes.StringDType())),
    "bytes": lambda y: (BAGS, y.astype("S1")),
    "Series": lambda y: (BAGS, pd.Series(y)),
    "string": lambda y: (BAGS, pd.Series(y, dtype="string")),
    "category": lambda y: (BAGS, pd.Series(y, dtype="category")),
    "groupby": lambda y: (as_frame(y), None),
}


@pytest.mark.parametrize("form", FORMS)
def test_empty_texts_are_no_label_and_told_of(form):
    X, y = FORMS[form](with_text(CLASSES, ""))
    labels = {"target": "y"} if y is None else {"y": y}
    model, texts = texts_of(lambda: classifier().fit(X, **labels))
    assert model.classes_.tolist() == ["a", "b"]
    assert model.report_["n_bags_unlabelled"] == 2
    assert len(texts) == 1
    assert "y: 2 of 12 labels are empty text, first that of bag 3" in texts[0]


@pytest.mark.parametrize("blanks", [" ", "\t", "\u00a0"])
def test_blanks_are_a_class_and_told_of(blanks):
    model, texts = texts_of(lambda: classifier().fit(BAGS, with_text(CLASSES, blanks)))
    assert blanks in model.classes_
    assert len(texts) == 1
    assert "2 of 12 labels are blanks, first that of bag 3, and are a class" in texts[0]


@pytest.mark.parametrize("form", ["array", "Series", "groupby"])
def test_empty_texts_among_numbers(form):
    X, y = FORMS[form](with_text(NUMBERS, ""))
    labels = {"target": "y"} if y is None else {"y": y}
    model, texts = texts_of(lambda: regressor().fit(X, **labels))
    assert model.report_["n_bags_unlabelled"] == 2
    assert "2 of 12 labels are empty text" in "".join(texts)
    with pytest.raises(DataError, match="y has dtype object; expected numbers"):
        regressor().fit(BAGS, with_text(NUMBERS, " "))


def test_stores_name_the_target(tmp_path):
    store = BagStore.create(
        tmp_path / "s.zarr", 2, target_names=["c", "x"], class_names={"c": ["a", "b"]}
    )
    value = {"c": with_text(CLASSES, ""), "x": with_text(NUMBERS, "")}
    _, texts = texts_of(lambda: store.append(BAGS, value))
    assert [text.split(":")[0] for text in texts] == ["target 'c'", "target 'x'"]
    assert np.isnan(store.targets()[[3, 5]]).all()
    # a class that the store names is that class
    named = BagStore.create(
        tmp_path / "n.zarr", 2, target_names=["c"], class_names={"c": ["", "a", "b"]}
    )
    _, texts = texts_of(lambda: named.append(BAGS, {"c": with_text(CLASSES, "")}))
    assert texts == []
    assert named.targets()[3, 0] == 0


def test_groups_without_a_name_are_refused():
    groups = with_text(np.array([f"g{i // 2}" for i in range(N)], dtype=object), "")
    for case in (groups, groups.astype(str), pd.Series(groups)):
        with pytest.raises(DataError, match="groups: bag 3 has none"):
            regressor().fit(BAGS, NUMBERS.astype(float), groups=case)
    with pytest.raises(DataError, match="2 of 12 rows have no group, such as row 3"):
        StreamingRidge("folds").partial_fit(np.ones((N, 1)), np.ones(N), groups=groups)
    x = np.arange(12.0)
    with pytest.raises(DataError, match=r"missing \(empty text\) for 2 points"):
        independence_test(x, x[::-1], within=groups)
    with pytest.raises(DataError, match=r"missing \(empty text\) for 2 units"):
        two_sample_test(x, x + 1, groups=(groups, np.arange(12)))


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA, pd.NaT, float("nan")])
def test_missing_labels_in_lists_of_texts_are_none(missing):
    """NumPy makes the text "nan" of NaN among texts: it was a class of its own."""
    labels = [missing if i % 3 == 0 else "ab"[i % 2] for i in range(N)]
    model = classifier().fit(BAGS, labels)
    assert model.classes_.tolist() == ["a", "b"]
    assert model.report_["n_bags_unlabelled"] == 4


@pytest.mark.parametrize("other", [1, 1.5, True])
def test_texts_beside_other_labels_in_lists_are_refused(other):
    """1 was the class "1"; groups of both kinds stay apart."""
    with pytest.raises(DataError, match="y mixes text with other labels"):
        classifier().fit(BAGS, ["1", other, "a"] * 4)
    assert as_array("groups", ["1", other, "a"]).tolist() == ["1", other, "a"]


@pytest.mark.parametrize("dtype", [None, np.float32])
def test_an_array_is_not_copied(dtype):
    values = np.ones(3, np.float32)
    assert as_array("y", values, dtype) is values
    assert as_array("y", values, np.float64).dtype == np.float64


@pytest.mark.parametrize(
    "names",
    [("a", "a "), ("a", "\u00a0a"), ("a b", "a  b"), ("\u00e9", "e\u0301"), ("Yes", "yes ")],
)
def test_classes_that_look_alike_are_told_of(names, tmp_path):
    """Blanks at an end, two within, accents that are letters of their own; in stores, too."""
    labels = [*names, "z"] * 4
    store = BagStore.create(
        tmp_path / "s", 2, target_names=["t"], class_names={"t": sorted({*labels})}
    )
    store.append(BAGS, {"t": labels})
    for X, arguments in ((BAGS, {"y": labels}), (store, {"target": "t"})):
        model, texts = texts_of(lambda X=X, inputs=arguments: classifier().fit(X, **inputs))
        assert len(model.classes_) == 3
        assert sum("differ only in blanks, in the case or code" in t for t in texts) == 1
    assert texts_of(lambda: classifier().fit(BAGS, ["a b", "ab", "b"] * 4))[1] == []


def test_a_label_that_ends_with_nul_is_refused():
    with pytest.raises(DataError, match="ends with NUL"):
        classifier().fit(BAGS, ["a\0", "a", "b"] * 4)
