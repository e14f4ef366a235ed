"""Errors added up block by block equal those of scikit-learn on everything at once."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import (
    confusion_matrix,
    mean_absolute_error,
    precision_recall_fscore_support,
    r2_score,
    root_mean_squared_error,
)

from bagbasis.jobs.metrics import ClassErrors, RegressionErrors, Sample

CUTS = [[], [1], [0, 500, 500], [3, 4, 999]]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_regression_errors(cuts, offset):
    """Any blocks, empty ones too, and far from zero, give the errors of the whole."""
    rng = np.random.default_rng(0)
    true = rng.normal(size=1000) + offset
    predicted = true + rng.normal(size=1000)
    errors = RegressionErrors()
    for a, b in zip(np.split(true, cuts), np.split(predicted, cuts), strict=True):
        errors.add(a, b)
    result = errors.result()
    assert result["n"] == 1000
    assert result["rmse"] == pytest.approx(root_mean_squared_error(true, predicted), rel=1e-9)
    assert result["mae"] == pytest.approx(mean_absolute_error(true, predicted), rel=1e-9)
    assert result["r2"] == pytest.approx(r2_score(true, predicted), rel=1e-6)
    assert result["constant_rmse"] == pytest.approx(true.std(), rel=1e-9)
    assert result["bias"] == pytest.approx((predicted - true).mean(), abs=1e-7)
    np.testing.assert_array_equal(errors.pairs(), np.column_stack([true, predicted]))


def test_r2_of_equal_targets_is_not_a_number():
    """Where all targets are equal there is no share of variance."""
    errors = RegressionErrors()
    errors.add(np.ones(5), np.zeros(5))
    assert errors.result()["r2"] is None
    assert errors.result()["constant_rmse"] == 0


@pytest.mark.parametrize("cuts", CUTS)
def test_class_errors(cuts):
    """Confusion, precision, recall and F1, with a class nobody predicts and codes with gaps."""
    rng = np.random.default_rng(1)
    codes = np.array([0.0, 2.0, 3.0, 7.0])
    true, predicted = codes[rng.integers(0, 4, 1000)], codes[rng.integers(0, 3, 1000)]
    errors = ClassErrors(codes, ["a", "b", "c", "d"])
    for a, b in zip(np.split(true, cuts), np.split(predicted, cuts), strict=True):
        errors.add(a, b)
    result = errors.result()
    assert result["confusion"] == confusion_matrix(true, predicted).tolist()
    assert result["accuracy"] == pytest.approx((true == predicted).mean())
    expected = precision_recall_fscore_support(true, predicted, zero_division=0)
    got = [list(values.values()) for values in result["per_class"].values()]
    np.testing.assert_allclose(np.array(got).T, expected)


def test_sample_is_bounded_uniform_and_in_order():
    """A long stream leaves a sample of the wanted size, in order, from all of its parts."""
    sample = Sample(1000, 1)
    for start in range(0, 50_000, 500):
        sample.add(np.arange(start, start + 500, dtype=float)[:, None])
    rows = sample.rows()[:, 0]
    assert len(rows) == 1000
    assert (np.diff(rows) > 0).all()
    tenths = np.histogram(rows, bins=10, range=(0, 50_000))[0]
    assert tenths.min() > 60
    assert tenths.max() < 140
