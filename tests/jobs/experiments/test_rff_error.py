"""000, §3.5 at small scale: paired features have less error than phase features."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler

from bagbasis import RandomFourierFeatures
from bagbasis.jobs.experiments.kernels.rff_error import (
    FORMS,
    RADII,
    RADIUS,
    by_features,
    expected_squares,
    grid,
    mean_square,
    paired_errors,
    phase_errors,
)
from bagbasis.jobs.experiments.kit.timing import exponent
from tests.jobs.experiments.contract import Contract

LARGEST = {100: 0.154, 1000: 0.0493}  # E max error of paired features, measured independently


class TestFeatureError(Contract):
    name = "rff-error"
    sizes: ClassVar = {"n_features": [100, 500, 1000], "n_repeats": 100}

    @pytest.fixture(scope="class")
    @classmethod
    def rows(cls, results):
        """Errors over D."""
        return by_features(results)

    def test_paired_features_have_less_error(self, rows):
        """At every D, in the largest error and in the mean of squares. Over seeds 0 to 3 the
        largest ratios are .79 and .81."""
        assert rows["ratio"].max() < 0.87
        assert mean_square(rows, "paired") < 0.87 * mean_square(rows, "phase")

    def test_constants_of_the_paper(self, rows):
        """D · E‖f‖² is .66 and .83, and the largest error falls as D^(-1/2). Over seeds 0 to 3 the
        largest departures are .015 and .009 of the squares, .007 of the exponents."""
        for form, printed in {"paired": 0.66, "phase": 0.83}.items():
            assert mean_square(rows, form) == pytest.approx(printed, abs=0.04)
            assert expected_squares()[form] == pytest.approx(printed, abs=5e-4)
            slope = exponent(rows["n_features"], rows[f"{form}.most"])
            assert slope == pytest.approx(-0.5, abs=0.03)
        at = rows.set_index("n_features")["paired.most"]
        for n_features, error in LARGEST.items():
            assert at[n_features] == pytest.approx(error, rel=0.08)

    def test_table(self, report):
        """The paper's constants stand beside ours."""
        [table] = report["tables"]
        assert {(row[5], row[7]) for row in table["rows"]} == {(0.66, 0.83)}
        assert "less error at every D" in table["remarks"][-1]


@pytest.mark.parametrize("form", FORMS)
def test_short_cuts_are_the_errors_of_all_pairs(form):
    """Largest errors and mean squares without an n × n matrix are those of the whole matrix."""
    points = grid().points
    if form == "paired":
        features = RandomFourierFeatures(n_features=60, scale=1.0, seed=3)
        found = paired_errors(60, 3)
    else:
        features = RBFSampler(gamma=0.5, n_components=60, random_state=3)
        found = phase_errors(60, 3)
    z = features.fit_transform(points[:, None])
    f = z @ z.T - np.exp(-0.5 * (points[:, None] - points) ** 2)
    for radius, largest in zip(RADII, found.largest, strict=True):
        inside = np.abs(points) <= radius
        assert largest == pytest.approx(np.abs(f[np.ix_(inside, inside)]).max(), abs=1e-5)
    inside = np.abs(points) <= RADIUS
    assert found.square == pytest.approx((f[np.ix_(inside, inside)] ** 2).mean(), abs=1e-6)
