"""What a person sees of errors: a line, and a small table in a notebook."""

from dataclasses import replace

import numpy as np
import pytest

from tests.models.evaluation.judged import class_errors, real_errors

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
