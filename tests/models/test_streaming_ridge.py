"""Ridge of rows in batches: scikit-learn's of all rows, whatever the batches."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold

from bagbasis import StreamingRidge
from bagbasis.errors import DataError

RNG = np.random.default_rng(0)
X = RNG.normal(2, 1, (301, 17))
Y = X @ RNG.normal(size=(17, 2)) + RNG.normal(size=(301, 2))


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("y", [Y, Y[:, 0]])
def test_equals_ridge_in_any_batches(alpha, y):
    """Coefficients, intercepts and predictions; and any other penalty afterwards."""
    ours = StreamingRidge(alpha)
    for rows in np.split(np.arange(301), [1, 40, 41, 200]):
        ours.partial_fit(X[rows], y[rows])
    for one in (alpha, 7.0):
        truth = Ridge(one).fit(X, y)
        ours.solve(one)
        np.testing.assert_allclose(ours.coef_, truth.coef_, rtol=0, atol=1e-8)
        np.testing.assert_allclose(ours.intercept_, truth.intercept_, rtol=0, atol=1e-8)
        np.testing.assert_allclose(ours.predict(X), truth.predict(X), rtol=0, atol=1e-8)


def test_the_penalty_of_folds_is_that_of_folds_by_hand():
    """Groups stay together over batches; the least error over the folds by scikit-learn."""
    groups = np.arange(301) // 10
    alphas = [0.1, 10.0, 1000.0]
    ours = StreamingRidge("folds", alphas, n_folds=3)
    for rows in np.split(np.arange(301), [105]):
        ours.partial_fit(X[rows], Y[rows], groups[rows])
    folds = ours._folds_of(groups, 301, 0)
    errors = []
    for alpha in alphas:
        found = 0.0
        for train, held in GroupKFold(3).split(X, groups=folds):
            found += ((Ridge(alpha).fit(X[train], Y[train]).predict(X[held]) - Y[held]) ** 2).sum()
        errors.append(found / 2)
        total = sum(ours.folds_[1:], ours.folds_[0])
        assert ours._fold_error(total, alpha) == pytest.approx(found / 2, rel=1e-9)
    assert ours.alpha_ == alphas[int(np.argmin(errors))]
    assert StreamingRidge("gcv").fit(X, Y).score(X, Y) > 0.9


def test_rows_that_cannot_be_used():
    """Shapes and numbers are refused before a row is counted."""
    ours = StreamingRidge().fit(X, Y)
    for bad in ((X[:3], Y[:2]), (X[:, :3], Y), (np.full((2, 17), np.nan), Y[:2])):
        with pytest.raises(DataError):
            ours.partial_fit(*bad)
    assert sum(one.n for one in ours.folds_) == 301
    for rows, why in ((X[0], "Expected 2D array"), (X[:, :3], "expecting 17 features")):
        with pytest.raises(DataError, match=why):
            ours.predict(rows)


def test_what_cannot_be_learnt_from_or_predicted():
    """No rows, rows of one fold, other features than before, and NaN: each is said."""
    x, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20.0)
    model = StreamingRidge().fit(x, y)
    with pytest.raises(DataError, match="0 sample"):
        StreamingRidge().fit(x[:0], y[:0])
    with pytest.raises(DataError, match="two folds"):
        StreamingRidge("folds").fit(x[:1], y[:1])
    with pytest.raises(DataError, match="expecting 3 features"):
        model.partial_fit(x[:, :2], y)
    with pytest.raises(DataError, match="y has 2 targets; there were 1"):
        model.partial_fit(x, np.column_stack([y, y]))
    with pytest.raises(DataError, match="NaN"):
        model.predict(np.full((1, 3), np.nan))
