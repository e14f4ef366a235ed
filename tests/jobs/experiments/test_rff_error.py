"""000, §3.5 at small scale: paired features have less error than phase features."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler

from bagbasis import RandomFourierFeatures
from bagbasis.jobs.experiments.rff_error import (
    RADII,
    RADIUS,
    expected_squares,
    grid,
    paired_errors,
    phase_errors,
)
from bagbasis.jobs.experiments.rff_error_report import AT_RADIUS_3, FORMS, columns_of, mean_square
from bagbasis.jobs.experiments.timing import exponent
from tests.jobs.experiments.running import results_of, small_run
from tests.jobs.running import assert_picture

LARGEST = {100: 0.154, 1000: 0.0493}  # E max error of paired features, measured independently


@pytest.fixture(scope="module")
def out_dir(tmp_path_factory):
    """What the command leaves behind at small scale."""
    return small_run("rff-error", tmp_path_factory.mktemp("rff-error"))


@pytest.fixture(scope="module")
def columns(out_dir):
    """Errors over D by form."""
    _, results = results_of(out_dir)
    return {form: columns_of(results, form) for form in FORMS}


def test_paired_features_have_less_error(columns):
    """At every D, in the largest error and in the mean of squares. Over seeds 0 to 3 the largest
    ratios are .79 and .81."""
    paired, phase = columns["paired"], columns["phase"]
    assert (paired["largest"] < 0.87 * phase["largest"]).all()
    assert mean_square(paired) < 0.87 * mean_square(phase)


def test_constants_of_the_paper(columns):
    """D · E‖f‖² is .66 and .83, and the largest error falls as D^(-1/2). Over seeds 0 to 3 the
    largest departures are .015 and .009 of the squares, .007 of the exponents."""
    for form, printed in {"paired": 0.66, "phase": 0.83}.items():
        assert mean_square(columns[form]) == pytest.approx(printed, abs=0.04)
        assert expected_squares()[form] == pytest.approx(printed, abs=5e-4)
        slope = exponent(columns[form]["n_features"], columns[form]["largest"])
        assert slope == pytest.approx(-0.5, abs=0.03)
    largest = dict(zip(columns["paired"]["n_features"], columns["paired"]["largest"], strict=True))
    for n_features, error in LARGEST.items():
        assert largest[n_features] == pytest.approx(error, rel=0.08)


@pytest.mark.parametrize("form", FORMS)
def test_short_cuts_are_the_errors_of_all_pairs(form):
    """Largest errors and mean squares without an n × n matrix are those of the whole matrix."""
    points = grid().points
    if form == "paired":
        features = RandomFourierFeatures(60, scale=1.0, seed=3)
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
    assert RADII[AT_RADIUS_3] == RADIUS
    assert found.square == pytest.approx((f[np.ix_(inside, inside)] ** 2).mean(), abs=1e-6)


def test_table_and_pictures(out_dir):
    """The paper's constants stand beside ours, and both pictures are drawn."""
    report, results = results_of(out_dir)
    [table] = report["tables"]
    assert len(table["rows"]) == len(results)
    assert {row[5] for row in table["rows"]} == {0.66}
    assert {row[7] for row in table["rows"]} == {0.83}
    assert "less error at every D" in table["remarks"][-1]
    assert report["pictures"] == ["features.png", "radius.png"]
    for name in report["pictures"]:
        assert_picture(out_dir / name)
