"""What a person sees of errors: a line, and a small table in a notebook."""

import numpy as np

from tests.models.evaluation.judged import class_errors, real_errors

RNG = np.random.default_rng(0)
TRUE = RNG.normal(size=(300, 2))


def test_errors_are_shown_in_a_line_and_a_table():
    """With the numbers of each target; no arrays of bags."""
    errors = real_errors(TRUE, TRUE + 0.5)
    for text in (repr(errors), errors._repr_html_()):
        assert "rmse 0.5, mae 0.5, bias 0.5" in text
        assert "300" in text
        assert "y2" in text
        assert "array(" not in text
        assert len(text) < 1000
    assert "\n" not in repr(errors)


def test_errors_of_classes_are_shown():
    """The accuracy; confusions are in `values`."""
    labels = np.array([0.0, 1.0, 1.0, 1.0])
    errors = class_errors((0.0, 1.0), ("a", "b"), labels, np.array([0.0, 1.0, 1.0, 0.0]))
    measures = "accuracy 0.75, balanced_accuracy 0.8333, log_loss 9.011, auc 0.8333"
    assert repr(errors) == f"Errors(4 bags, subset='all'; kind: {measures})"
