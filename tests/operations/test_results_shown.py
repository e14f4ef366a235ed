"""What notebooks and `print` show of drift, registries, models and rounds: words, few digits."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bagbasis import DoubleBasisRegressor
from bagbasis.operations import DriftDetector, Registry, Retraining, drift_test, retrain
from tests.oracles.labelled import labelled_bags, stored
from tests.shown import with_error

RNG = np.random.default_rng(0)
OLD, NEW = ([RNG.normal(m, 1, (12, 2)) for _ in range(40)] for m in (0.0, 1.0))
BAGS, Y = labelled_bags(60, most=20)


def assert_readable(*texts):
    """No number has more than four significant digits after the point."""
    for text in texts:
        assert not re.search(r"\d\.\d{5,}", text), text
        assert len(text.splitlines()) < 40


@pytest.mark.parametrize("new", [NEW, OLD[::-1]], ids=["drift", "none"])
def test_drift(new):
    """The conclusion comes first, with the coordinates that differ."""
    result = drift_test(OLD, new, n_permutations=99)
    prediction = DriftDetector(n_permutations=99).fit(OLD).predict(new)
    actual = new is NEW
    begin = "Drift: the new data differ" if actual else "No drift was detected"
    for item in (result, prediction):
        assert str(item).startswith(begin)
        assert begin in item._repr_html_()
        assert_readable(str(item), item._repr_html_())
    assert ("coordinate 0 (mean +" in str(result)) == actual


def test_a_registry_and_its_models(tmp_path):
    """A row for each model; a registry that is not there yet is empty."""
    registry = Registry(tmp_path / "models")
    assert "<table>" in registry._repr_html_()
    model = DoubleBasisRegressor("moments", alpha=0.1).fit(BAGS, Y)
    name = registry.register(model)
    registry.promote(name)
    html = registry._repr_html_()
    assert name in html
    assert "champion" in html
    assert "60" in html
    [record] = registry.list()
    for text in (html, record._repr_html_(), model.model_._repr_html_()):
        assert "DoubleBasisRegressor" in text or "RidgeModel" in text
        assert_readable(text)


def test_a_round(tmp_path):
    """The decision, and the errors that it was made by."""
    stored(tmp_path / "s.zarr", BAGS, Y, ["y"])
    estimator = DoubleBasisRegressor("moments", alpha=1e-3)
    spec = Retraining(
        str(tmp_path / "s.zarr"), str(tmp_path / "m"), estimator=estimator, target="y"
    )
    result = retrain(spec)
    assert "decision: promoted" in str(result)
    error, spread = result.report["error"], result.report["standard_error"]
    assert f"new model {with_error(error, spread)}" in str(result)
    assert_readable(str(result), result._repr_html_())
    again = retrain(spec)
    assert "decision: nothing" in str(again)
    assert "reason" in again._repr_html_()
