"""The sentence on a model: its error with the digits it has, next to its rivals."""

import numpy as np
import pytest

from bagbasis import DoubleBasisClassifier, DoubleBasisRegressor, evaluate
from bagbasis.models.verdict import (
    RIVALS,
    share_error,
    targets_in_words,
    verdict,
    verdict_of,
)
from tests.models.evaluation.judged import class_errors
from tests.shown import rounded, with_error

RNG = np.random.default_rng(0)
BAGS = [RNG.normal(size=(8, 1)) * scale for scale in RNG.uniform(0.5, 2, 60)]
Y = np.array([bag.std() for bag in BAGS])


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (1.50412, 0.0712, "1.504 ± 0.071"),
        (15040.0, 712.0, "15,040 ± 710"),
        (0.00123, 0.00004, "0.001230 ± 0.000040"),
        (1.3262, 0.0996, "1.33 ± 0.10"),
        (2.0, None, "2.00"),
        (123.456, 0.0, "123"),
        (3.2e-7, None, "3.2e-07"),
        (-2e-16, 0.013, "0.000 ± 0.013"),
        (0.5, 2e-18, "0.500"),
        (0.5, float("nan"), "0.500"),
    ],
)
def test_no_more_digits_than_the_error_allows(value, spread, text):
    """Two digits of the standard error; three of a number without one, or with rounding alone."""
    assert with_error(value, spread) == text


def test_an_accuracy_of_few_bags_is_not_certain():
    """If all bags are right, as of two more of each kind; rivals have the digits of the model."""
    assert share_error(0.75, 48) == pytest.approx(0.0625)
    for share in (0.0, 1.0):
        assert share_error(share, 22) == pytest.approx((24 / 26 * 2 / 26 / 26) ** 0.5)
    errors = class_errors((0.0, 1.0), ("a", "b"), np.tile([0.0, 1.0], 11), np.tile([0.0, 1.0], 11))
    message = "accuracy 100.0 % ± 5.2 % on 22 bags. For comparison: the most frequent class 50.0 %."
    assert message in errors.verdict()
    many = verdict("y", "error rate", "9 bags", [("the model", 0.4), ("a forest", 0.45)], 0.16)
    assert "accuracy 60 % ± 16 % on 9 bags. For comparison: a forest 55 %." in many


def test_a_name_with_a_comma_is_quoted():
    """Two targets are not taken for three."""
    assert targets_in_words(["grade, final", "severity %"]) == '"grade, final", severity %'


def test_the_best_rival_stands_first():
    """With percent, and a word where the difference is within two standard errors."""
    rivals = [("the best constant", 2.831), ("a forest", 1.766), ("ridge", 1.55)]
    message = verdict("y", "RMSE", "291 held-out bags", [("the model", 1.504), *rivals], 0.07)
    assert message == (
        "Predicting y: RMSE 1.504 ± 0.070 on 291 held-out bags. That is 3 % below ridge (1.550, "
        "within two standard errors), 15 % below a forest (1.766) and 47 % below the best constant "
        "(2.831)."
    )
    worse = verdict("y", "RMSE", "9 bags", [("the model", 2.0), ("the best constant", 1.0)])
    assert "That is 2.0 times the error of the best constant (1.00)." in worse


@pytest.mark.parametrize(
    ("rival", "message"),
    [(0.8, "25 % above ridge"), (0.3, "3.3 times the error of ridge"), (0.02, "50 times the error"),
     (1e-9, "over 1,000 times the error")],
)  # fmt: skip
def test_a_much_larger_error_is_told_in_times(rival, message):
    assert message in verdict("y", "RMSE", "9 bags", [("the model", 1.0), ("ridge", rival)])


def test_what_was_judged_is_said_as_it_was():
    """Bags held out, or cross-validation: never both."""
    judged = {"n": 50, "error": 0.5, "constant_error": 1.0, "means_error": 0.8}
    held_out = verdict_of("y", judged | {"measure": "RMSE on bags held out", "standard_error": 0.1})
    assert held_out.startswith("Predicting y: RMSE 0.50 ± 0.10 on 50 held-out bags.")
    measure = "error by cross-validation, relative to the best constant's"
    folds = verdict_of("y", judged | {"measure": measure})
    assert folds.startswith(
        "Predicting y: error by cross-validation 0.500 times the best constant's on 50 bags."
    )
    assert "held" not in folds
    assert f"38 % below {RIVALS['means_error']} (0.800)" in folds


def test_errors_have_a_standard_error_and_a_verdict():
    """That of the mean of squares for numbers, the binomial one for classes."""
    model = DoubleBasisRegressor("moments", alpha=1e-2).fit(BAGS, Y)
    errors = evaluate(model, BAGS, Y, subset="all")
    squares = (model.predict(BAGS) - Y) ** 2
    expected = squares.std() / 60**0.5 / (2 * squares.mean() ** 0.5)
    assert errors.standard_error == pytest.approx(expected, rel=1e-6)
    assert rounded(errors.error, errors.standard_error) in errors.verdict()
    classes = DoubleBasisClassifier("moments", alpha=1e-2).fit(BAGS, Y > 1)
    errors = evaluate(classes, BAGS, Y > 1, subset="all")
    assert errors.standard_error == pytest.approx((errors.error * (1 - errors.error) / 60) ** 0.5)
    assert "accuracy" in errors.verdict()
    weighted = evaluate(model, BAGS, Y, subset="all", sample_weight=np.linspace(1, 2, 60))
    assert weighted.standard_error is None
