"""Mistakes that newcomers make: each message says what is wrong and what to write instead."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from bagbasis import (
    BagbasisError,
    BagbasisWarning,
    Bags,
    BagStore,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    MomentsEmbedding,
    cross_val_score,
    evaluate,
)
from bagbasis.core import Fraction, FractionOrZero, OneOf
from bagbasis.core.errors import closest
from bagbasis.hypotheses import fit_test, two_sample_test
from bagbasis.ingest import ingest_frame
from bagbasis.models import explain
from bagbasis.operations import DriftDetector

RNG = np.random.default_rng(5)
BAGS = [RNG.normal(size=(6, 2)) for _ in range(24)]
Y = RNG.normal(size=24)
FRAME = pd.DataFrame({"id": np.repeat([0, 1], 3), "x": [1.0, 2, 3, 4, 5, 6], "word": "t"})


def regressor(**parameters):
    return DoubleBasisRegressor("moments", alpha=1e-3, **parameters)


def fit(bags=BAGS, y=Y, kind=DoubleBasisRegressor):
    return kind("moments", alpha=1e-3).fit(bags, y)


def fit_with(**parameters):
    return DoubleBasisRegressor("moments", **parameters).fit(BAGS, Y)


def ingest(frame=FRAME, **options):
    return ingest_frame(frame, "s", **({"id_column": "id", "coordinates": ["x"]} | options))


MISTAKES = {
    "a point that is not finite": (
        lambda: fit([*BAGS[:3], np.full((2, 2), np.nan), *BAGS[4:]]),
        *("bag 3, row 0: coordinate 0 is nan", "remove the point or the bag"),
    ),
    "one array": (lambda: fit(BAGS[0]), "for a single bag pass [bag]"),
    "sparse matrices": (lambda: fit([csr_matrix(bag) for bag in BAGS]), "pass its .toarray()"),
    "short labels": (lambda: fit(y=Y[:-1]), "y has 23 values for 24 bags"),
    "short rows of labels": (lambda: fit(y=np.ones((23, 2))), "y has shape (23, 2) for 24 bags"),
    "empty bag": (lambda: fit([*BAGS[:-1], np.ones((0, 2))]), "bag 23 is empty", "leave it out"),
    "wide bag": (
        lambda: fit([*BAGS[:-1], np.ones((2, 3))]),
        *("bag 23 has dimension 3", "all bags need the same number of columns"),
    ),
    "other coordinates than fitted": (
        lambda: fit().predict([bag[:, :1] for bag in BAGS]),
        "the model was fitted on bags of dimension 2, these have 1",
    ),
    "a parameter by another name": (
        lambda: regressor(aplha=1),
        "DoubleBasisRegressor() got an unexpected keyword argument 'aplha' (did you mean 'alpha'?)",
    ),
    "a seed of scikit-learn": (lambda: regressor(random_state=0), "a seed is a parameter of"),
    "cores of scikit-learn": (lambda: regressor(n_jobs=2), "the cores of this machine are used"),
    "an argument by another name": (
        lambda: regressor().fit(BAGS, Y, hold_out=0.1),
        "fit() got an unexpected keyword argument 'hold_out' (did you mean 'holdout'?)",
    ),
    "an argument by position": (
        lambda: regressor().fit(BAGS, Y, 0.1),
        *("fit() takes at most 2 positional arguments (X, y)", "by keyword"),
    ),
    "a class instead of an instance": (
        lambda: DoubleBasisRegressor(MomentsEmbedding).fit(BAGS, Y),
        "(did you mean MomentsEmbedding()?)",
    ),
    "a number as text": (lambda: fit_with(alpha="0.1"), "alpha is '0.1' (did you mean 0.1?)"),
    "a percentage as text": (
        lambda: regressor().fit(BAGS, Y, holdout="10%"),
        "holdout is '10%' (did you mean 0.1?)",
    ),
    "dates as labels": (
        lambda: fit(y=pd.date_range("2020", periods=24)),
        "expected numbers, such as the days since a date",
    ),
    "bags before the model": (
        lambda: evaluate(BAGS, fit(), Y),
        *("model is [", "expected a fitted estimator, before the bags"),
    ),
    "a path for a model": (
        lambda: evaluate("m.zarr", BAGS, Y),
        *("model is 'm.zarr'", "load_model(url) reads a saved model"),
    ),
    "several bags to explain": (
        lambda: explain(fit(), BAGS),
        "bag is several bags; explain one at a time, such as explain(model, X[0])",
    ),
    "an estimator's class": (
        lambda: cross_val_score(DoubleBasisRegressor, BAGS, Y),
        "(did you mean DoubleBasisRegressor()?)",
    ),
    "folds without bags": (
        lambda: cross_val_score(regressor(), BAGS, Y, cv=90),
        *("has no labelled bag", "take fewer folds (cv=)"),
    ),
    "a target that a frame lacks": (
        lambda: ingest(targets=["z"]),
        "table of points: no column 'z'; there are ['id', 'x', 'word']",
    ),
    "penalty": (lambda: DoubleBasisRegressor(alpha="gvc").fit(BAGS, Y), "(did you mean 'gcv'?)"),
    "embedding": (
        lambda: DoubleBasisRegressor("momets").fit(BAGS, Y),
        *("embedding is 'momets' (did you mean 'moments'?)", "'mean_map'"),
    ),
    "embedding of too many functions": (
        lambda: DoubleBasisRegressor("projection").fit(RNG.normal(size=(24, 6, 8)), Y),
        *("the index set in 8 dimensions has more than", "use marginals=1 or 2"),
    ),
    "no labels": (lambda: evaluate(fit(), BAGS), "y is missing"),
    "coverage of few bags": (
        lambda: regressor().fit(BAGS, Y, holdout=0.1).predict_interval(BAGS, coverage=0.99),
        *("takes 99 held-out bags", "there are 2: at most 0.667"),
    ),
    "text in a table of rows": (
        lambda: DriftDetector().fit(pd.DataFrame({"a": [1.0, 2.0] * 20, "b": ["u", "v"] * 20})),
        *("column 'b' holds str, not numbers", "leave it out, or encode it"),
    ),
    "text as targets": (lambda: fit(y=["a", "b"] * 12), "for classes use DoubleBasisClassifier"),
    "text and holes as targets": (
        lambda: fit(y=["a", None] * 12),
        "for classes use DoubleBasisClassifier",
    ),
    "fractions as classes": (
        lambda: fit(kind=DoubleBasisClassifier),
        *("24 distinct values", "use DoubleBasisRegressor", "encode the classes as integers"),
    ),
    "intervals without calibration": (
        lambda: fit().predict_interval(BAGS),
        *("no calibration data", "holdout=0.1", "model.conformalize(X, y, cv=10)"),
    ),
    "deviations without a posterior": (
        lambda: fit().predict(BAGS, return_std=True),
        "fit it with uncertainty=True",
    ),
    "a percentage": (
        lambda: regressor().fit(BAGS, Y, holdout=0.3).predict_interval(BAGS, coverage=80),
        "(did you mean 0.8?)",
    ),
    "statistic": (
        lambda: two_sample_test(BAGS[:12], BAGS[12:], statistic="mmd"),
        *("(did you mean 'mmd_u'?)", "an instance of a statistic such as"),
    ),
    "score": (
        lambda: fit_test(BAGS[0], "normal"),
        "MixtureScore(mean, covariance) for a normal distribution",
    ),
    "id of another case": (lambda: ingest(id_column="ID"), "no column 'ID' (did you mean 'id'?)"),
    "text coordinate": (
        lambda: ingest(coordinates=["word"]),
        "coordinates={'word': 'CAST(word AS DOUBLE)'}",
    ),
    "target that differs": (
        lambda: ingest(FRAME.assign(y=[1.0, 2.0] * 3), targets=["y"]),
        "set target_rules={'y': 'mean'}",
    ),
    "class that differs": (
        lambda: ingest(FRAME.assign(y=["a", "b"] * 3), targets=["y"]),
        "set target_rules={'y': 'last'}",
    ),
    "text column": (
        lambda: Bags.from_frame(FRAME, id_column="id"),
        *("column 'word' has", "coordinates=[...] or groupby(...)[[...]]"),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_to_write_instead(mistake, tmp_path, monkeypatch):
    """The message names the argument and what to write in its place."""
    monkeypatch.chdir(tmp_path)
    call, *parts = MISTAKES[mistake]
    with pytest.raises((BagbasisError, TypeError)) as refusal:
        call()
    for part in parts:
        assert part in str(refusal.value)


def outside(bags=BAGS):
    """Append points far outside the box that a store was given."""
    BagStore.create("s.zarr", n_dims=2, box=[(0, 0.1)] * 2).append(bags)


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (outside, "appended points lie outside the store's box"),
        (lambda: fit(BAGS[:2], Y[:2]), "2 labelled bags, from which nothing can be learnt"),
        (lambda: fit(y=np.ones(24)), "all labels of y are alike"),
    ],
)
def test_nonsense_is_told(call, part, tmp_path, monkeypatch):
    """What can be computed, and hardly be meant, is warned of."""
    monkeypatch.chdir(tmp_path)
    with pytest.warns(BagbasisWarning, match=part):
        call()


def test_a_file_is_no_store(tmp_path):
    """Nothing of Zarr stands in the message for a file."""
    (tmp_path / "notes").write_text("x")
    advice = "bags ingest makes a store of tables and files"
    with pytest.raises(BagbasisError, match=f"notes: not a bag store; {advice}$"):
        BagStore.open(tmp_path / "notes")


@pytest.mark.parametrize("path", ["rows.csv", Path("rows.csv")])
@pytest.mark.parametrize("arguments", [{}, {"target": "y"}, {"y": [1.0, 2.0]}])
def test_a_path_is_not_bags(path, arguments):
    """What opens it is named, whatever else was passed."""
    with pytest.raises(DataError, match=r"rows\.csv.*BagStore\.open\(url\).*groupby\(id\)"):
        DoubleBasisRegressor().fit(path, **arguments)


@pytest.mark.parametrize(
    ("name", "names", "hint"),
    [
        ("ID", ["id", "x"], "'id'"),
        ("spread", ["Spread"], "'Spread'"),
        ("x", ["X", "x1"], "'X'"),
        ("zz", ["id"], ""),
    ],
)
def test_suggestions_do_not_depend_on_case(name, names, hint):
    """The nearest name is suggested as it is written."""
    assert closest(name, names) == (f" (did you mean {hint}?)" if hint else "")


@pytest.mark.parametrize(
    ("constraint", "value", "hint"),
    [
        (Fraction, 90, "(did you mean 0.9?)"),
        (Fraction, 97.5, "(did you mean 0.975?)"),
        (FractionOrZero | OneOf("auto"), 20, "(did you mean 0.2?)"),
        (Fraction, 100, ""),
        (Fraction, -5, ""),
        (Fraction, 250, ""),
    ],
)
def test_percentages_are_told(constraint, value, hint):
    """A fraction is suggested where the value is a percentage of one."""
    with pytest.raises(BagbasisError) as refusal:
        constraint.check("coverage", value)
    assert re.findall(r"\(did .*?\)", str(refusal.value)) == ([hint] if hint else [])
