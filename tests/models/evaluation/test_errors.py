"""Errors of parts add up to those of scikit-learn on everything; what is shown of them."""

from __future__ import annotations

import operator
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from sklearn.metrics import (
    confusion_matrix,
    mean_absolute_error,
    precision_recall_fscore_support,
    r2_score,
    root_mean_squared_error,
)

from bagbasis.models.errors import SAMPLE_SIZE, ErrorSample
from tests.models.evaluation.judged import class_errors, real_errors

CUTS = [[], [1], [0, 500, 500], [3, 4, 999]]


def parts(cuts, *arrays):
    return [np.split(array, cuts) for array in arrays]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_errors_of_numbers(cuts, offset):
    """Any parts, empty ones too, and far from zero, give the errors of the whole."""
    rng = np.random.default_rng(0)
    true = rng.normal(size=(1000, 2)) + offset
    predicted = true + rng.normal(size=(1000, 2)) * [1, 3]
    blocks = zip(*parts(cuts, true, predicted), [0, *cuts], strict=True)
    errors = reduce(operator.add, [real_errors(*block) for block in blocks])
    assert errors.n == 1000
    assert list(errors.values()) == ["y1", "y2"]
    for j, result in enumerate(errors.values().values()):
        y, f = true[:, j], predicted[:, j]
        assert result["n"] == 1000
        assert result["rmse"] == pytest.approx(root_mean_squared_error(y, f), rel=1e-9)
        assert result["mae"] == pytest.approx(mean_absolute_error(y, f), rel=1e-9)
        assert result["r2"] == pytest.approx(r2_score(y, f), rel=1e-6)
        assert result["constant_rmse"] == pytest.approx(y.std(), rel=1e-9)
        assert result["bias"] == pytest.approx((f - y).mean(), abs=1e-7)
        spreads = errors.spreads[f"y{j + 1}"]
        squares = (f - y) ** 2
        of_rmse = squares.std() / (2 * np.sqrt(squares.mean() * 1000))
        assert spreads["rmse"] == pytest.approx(of_rmse, rel=1e-6)
        assert spreads["mae"] == pytest.approx(np.abs(f - y).std() / np.sqrt(1000), rel=1e-6)
        assert spreads["bias"] == pytest.approx((f - y).std() / np.sqrt(1000), rel=1e-6)
        alone = real_errors(true[:, [j]], predicted[:, [j]])
        assert alone.standard_error == pytest.approx(of_rmse, rel=1e-6)
    squares = ((predicted - true) ** 2).mean(axis=0)
    assert errors.error == pytest.approx(np.sqrt(np.mean(squares / true.var(axis=0))), rel=1e-9)
    losses = ((predicted - true) ** 2 / true.var(axis=0)).mean(axis=1)
    of_error = losses.std() / (2 * np.sqrt(losses.mean() * 1000))
    assert errors.standard_error == pytest.approx(of_error, rel=1e-6)
    assert errors.measure == "RMSE in standard deviations of the targets"
    np.testing.assert_array_equal(errors.sample.true, true)
    np.testing.assert_array_equal(errors.sample.predicted, predicted)


@pytest.mark.parametrize("value", [1.0, 0.1, -1e8 / 3])
def test_r2_of_equal_targets(value):
    """It is 0 unless they are predicted exactly, and rounding makes no variance."""
    parts = [real_errors(np.full((n, 1), value), np.zeros((n, 1))) for n in (5, 777, 1, 90)]
    errors = reduce(operator.add, parts)
    assert errors.values()["y1"]["r2"] == 0
    exact = real_errors(np.full((9, 1), value), np.full((9, 1), value))
    assert exact.values()["y1"]["r2"] == exact.score == 1
    assert errors.values()["y1"]["constant_rmse"] == 0
    assert errors.error == pytest.approx(abs(value))
    assert errors.measure == "RMSE"


@pytest.mark.parametrize("cuts", CUTS)
def test_errors_of_classes(cuts):
    """Confusion, precision, recall and F1: codes with gaps, a class that nobody predicts, and one
    that the model does not know."""
    rng = np.random.default_rng(1)
    known, codes = (0.0, 2.0, 3.0), np.array([0.0, 2.0, 3.0, 7.0])
    true, predicted = codes[rng.integers(0, 4, 1000)], codes[rng.integers(0, 2, 1000)]
    names = ("a", "b", "c", "d")
    actual = [
        class_errors(known, names, *part)
        for part in zip(*parts(cuts, true, predicted), strict=True)
    ]
    errors = reduce(operator.add, actual)
    result = errors.values()["kind"]
    assert result["confusion"] == confusion_matrix(true, predicted).tolist()
    assert result["accuracy"] == pytest.approx((true == predicted).mean())
    assert errors.error == pytest.approx((true != predicted).mean())
    assert list(result["per_class"]) == ["a", "c", "d", "7"]
    expected = precision_recall_fscore_support(true, predicted, zero_division=0)
    got = [list(values.values()) for values in result["per_class"].values()]
    np.testing.assert_allclose(np.array(got).T, expected)


def test_sample_is_bounded_uniform_and_in_order():
    """Many bags leave a sample of the wanted size, in order, from all of them, however cut."""

    def sampled(n_parts):
        index = np.arange(3 * SAMPLE_SIZE)
        blocks = [
            ErrorSample(part, part[:, None], -part[:, None]) for part in np.split(index, n_parts)
        ]
        return reduce(operator.add, blocks)

    sample = sampled(20)
    assert len(sample.index) == SAMPLE_SIZE
    assert (np.diff(sample.index) > 0).all()
    np.testing.assert_array_equal(sample.true[:, 0], sample.index)
    np.testing.assert_array_equal(sample.predicted[:, 0], -sample.index)
    tenths = np.histogram(sample.index, bins=10)[0]
    np.testing.assert_allclose(tenths, SAMPLE_SIZE / 10, rtol=0.05)
    np.testing.assert_array_equal(sampled(3).index, sample.index)


RNG = np.random.default_rng(0)
TRUE = RNG.normal(size=(300, 2))


def test_errors_are_shown_in_a_line_and_a_table():
    """With the numbers of each target; no arrays of bags."""
    errors = real_errors(TRUE, TRUE + 0.5)
    for text in (repr(errors), errors._repr_html_()):
        assert "rmse 0.500, mae 0.500, bias 0.500, r2" in text
        assert "300" in text
        assert "y2" in text
        assert "array(" not in text
        assert len(text) < 1000
    assert "\n" not in repr(errors)


@pytest.mark.parametrize("k", [1, 2])
def test_the_standard_error_is_the_spread_over_samples(k):
    """Take 300 samples of 100 bags, for one target and for several of unlike units."""
    rng, result, message = np.random.default_rng(3), [], []
    for _ in range(300):
        true = rng.normal(size=(100, k)) * [1.0, 1000.0][:k]
        errors = real_errors(true, true + rng.normal(size=(100, k)) * [0.5, 300.0][:k])
        result.append(errors.error)
        message.append(errors.standard_error)
    # the variances of the labels, which move with the sample, are not in it
    assert np.mean(message) == pytest.approx(np.std(result), rel=0.1 if k == 1 else 0.35)
    assert replace(errors, weights=50.0).standard_error is None
    assert replace(errors, weights=50.0).spreads == {}


def test_errors_of_classes_are_shown():
    """The accuracy with its standard error, in the digits that it allows."""
    labels = np.array([0.0, 1.0, 1.0, 1.0])
    errors = class_errors((0.0, 1.0), ("a", "b"), labels, np.array([0.0, 1.0, 1.0, 0.0]))
    measures = "accuracy 0.75 ± 0.22, balanced_accuracy 0.83, log_loss 9.0, auc 0.83"
    assert repr(errors) == f"Errors(4 bags, subset='all'; kind: {measures})"
