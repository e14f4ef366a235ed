"""Targets have the names of the labels: of a Series, of a table's columns, else "y"."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bagbasis import (
    BagStore,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    KernelSmoother,
    MomentsEmbedding,
    cross_val_score,
    evaluate,
    tune,
)
from bagbasis.ingest import ingest_frame
from bagbasis.models import Search, explain, load_model

RNG = np.random.default_rng(0)
SPREAD = RNG.uniform(0.5, 3, 40)
BAGS = [RNG.normal(0, s, (20, 2)) for s in SPREAD]
BOTH = pd.DataFrame({"spread": SPREAD, "square": SPREAD**2})
GRADE = pd.Series(np.where(SPREAD > 2, "wide", np.where(SPREAD > 1, "mid", "low")), name="grade")


def fitted(y):
    return DoubleBasisRegressor("moments", alpha=1e-3).fit(BAGS, y)


@pytest.mark.parametrize(
    ("y", "names"),
    [
        (pd.Series(SPREAD, name="spread"), ("spread",)),
        (pl.Series("spread", SPREAD), ("spread",)),
        (BOTH[["spread"]], ("spread",)),
        (BOTH, ("spread", "square")),
        (pl.DataFrame(BOTH), ("spread", "square")),
        (pl.DataFrame(BOTH).to_arrow(), ("spread", "square")),
    ],
)
def test_names_of_the_labels(y, names, tmp_path):
    """In errors, in the summary, in explanations, and in a saved model."""
    model = fitted(y)
    assert model.target_names_ == names
    assert f"({', '.join(names)})" in str(model.summary())
    assert tuple(evaluate(model, BAGS, y, subset="all").values()) == names
    assert explain(model, BAGS[0]).targets == names
    model.save(tmp_path / "m.zarr")
    assert load_model(tmp_path / "m.zarr").target_names_ == names


@pytest.mark.parametrize(
    ("y", "called"),
    [
        (SPREAD, ["y"]),
        (SPREAD.tolist(), ["y"]),
        (pd.Series(SPREAD), ["y"]),
        (pd.Series(SPREAD, name=0), ["y"]),
        (pl.Series(SPREAD), ["y"]),
        (BOTH.to_numpy(), ["target 1", "target 2"]),
        (pd.DataFrame(BOTH.to_numpy()), ["target 1", "target 2"]),
        (BOTH.set_axis(["a", "a"], axis=1), ["target 1", "target 2"]),
    ],
)
def test_labels_without_names(y, called):
    """One is y; columns that are counted, or of one name, have none."""
    model = fitted(y)
    assert model.target_names_ == ()
    assert list(evaluate(model, BAGS, y, subset="all").values()) == called
    assert explain(model, BAGS[0]).targets == tuple(called)


def test_classes_have_the_name_of_their_series():
    """As text and as numbers; the errors are those of labels without a name."""
    for labels in (GRADE, (GRADE == "wide").astype(int)):
        model = DoubleBasisClassifier("moments", alpha=1e-3).fit(BAGS, labels)
        assert model.target_names_ == ("grade",)
        named = evaluate(model, BAGS, labels, subset="all").values()["grade"]
        plain = DoubleBasisClassifier("moments", alpha=1e-3).fit(BAGS, labels.to_numpy())
        assert evaluate(plain, BAGS, labels, subset="all").values()["y"] == named


def stored(folder, grades):
    rows = [pd.DataFrame(bag, columns=["a", "b"]).assign(id=i) for i, bag in enumerate(BAGS)]
    frame = pd.concat(rows)
    frame["grade"] = frame["id"].map(grades)
    return ingest_frame(
        frame, folder / "s.zarr", id_column="id", coordinates=["a", "b"], targets=["grade"]
    )


def test_a_store_has_classes_in_another_order(tmp_path):
    """A model of a Series finds the target of a store by name, and its classes by theirs."""
    model = DoubleBasisClassifier("moments", alpha=1e-3).fit(BAGS, GRADE)
    expected = evaluate(model, BAGS, GRADE, subset="all").values()["grade"]
    names = {"grade": ["wide", "low", "mid"]}
    store = BagStore.create(
        tmp_path / "own.zarr",
        n_dims=2,
        target_names=["grade"],
        class_names=names,
        box=[(-20, 20)] * 2,
    )
    store.append(BAGS, targets={"grade": GRADE.tolist()})
    values = evaluate(model, store, subset="all").values()["grade"]
    assert values.pop("log_loss") == pytest.approx(expected.pop("log_loss"), rel=1e-5)
    assert values == expected


WIDE = (SPREAD > 2).astype(float)


@pytest.mark.parametrize(
    ("kind", "labels", "others", "theirs"),
    [
        (DoubleBasisClassifier, GRADE, WIDE, "numbers"),
        (DoubleBasisClassifier, WIDE, GRADE, "the classes"),
        (DoubleBasisRegressor, WIDE, GRADE, "the classes"),
    ],
)
@pytest.mark.parametrize("in_memory", [True, False])
def test_a_store_of_numbers_is_no_store_of_texts(kind, labels, others, theirs, in_memory, tmp_path):
    """Codes of text classes would be taken for numbers, or numbers for codes."""
    model, y = kind("moments", alpha=1e-3), pd.Series(labels, name="grade")
    (tmp_path / "fitted").mkdir()
    fitted_to = stored(tmp_path / "fitted", dict(enumerate(labels)))
    model = model.fit(BAGS, y) if in_memory else model.fit(fitted_to, target="grade")
    assert evaluate(model, fitted_to, subset="all")
    with pytest.raises(DataError, match=rf"target 'grade' has {theirs}.* was fitted to"):
        evaluate(model, stored(tmp_path, dict(enumerate(others))))


def test_columns_of_labels_are_found_by_name():
    """In another order they give the same errors; other names are refused."""
    model = fitted(BOTH)
    expected = evaluate(model, BAGS, BOTH, subset="all").values()
    assert evaluate(model, BAGS, BOTH[["square", "spread"]], subset="all").values() == expected
    assert evaluate(model, BAGS, BOTH.to_numpy(), subset="all").values() == expected
    message = re.escape("y has the columns ['a', 'square'], the model was fitted to ['spread', ")
    with pytest.raises(DataError, match=message):
        evaluate(model, BAGS, BOTH.rename(columns={"spread": "a"}))


def test_names_change_no_number():
    """Scores by folds, a search and a smoother are those of the same labels without names."""
    named = pd.Series(SPREAD, name="spread")
    model = DoubleBasisRegressor("moments", alpha=1e-3)
    scores = [cross_val_score(model, BAGS, y, cv=3) for y in (named, SPREAD)]
    np.testing.assert_array_equal(*scores)
    predictions = [KernelSmoother("moments").fit(BAGS, y).predict(BAGS[:3]) for y in (named, BOTH)]
    np.testing.assert_allclose(predictions[0], predictions[1][:, 0], rtol=0.2)
    search = Search([MomentsEmbedding()], choose=True)
    tuning = tune(model, [bag[:, :1] for bag in BAGS], named, search=search)
    assert tuning.model.target_names_ == ("spread",)
