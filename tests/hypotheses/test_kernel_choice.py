"""Bandwidths chosen on held-out units: near the best, and the level holds."""

from __future__ import annotations

from dataclasses import replace
from pkgutil import resolve_name

import numpy as np
import pytest

from bagbasis.hypotheses import UnbiasedMMD, two_sample_test
from bagbasis.hypotheses.kernels.kernels import Kernel
from bagbasis.hypotheses.samples.samples import read_samples
from bagbasis.hypotheses.two_samples.comparison import TwoSamples
from bagbasis.hypotheses.two_samples.kernel_choice import KERNEL_CRITERIA, MEDIAN_FACTORS
from bagbasis.jobs.experiments.data.samples import blobs


@pytest.mark.long
@pytest.mark.parametrize("criterion", KERNEL_CRITERIA)
def test_no_difference_is_no_difference(criterion):
    """Rejections as often as α says, although the bandwidth was chosen."""
    rng = np.random.default_rng(1)
    p = np.array([
        two_sample_test(
            rng.standard_normal((60, 2)), rng.standard_normal((50, 2)), bandwidth=criterion,
            null="gamma", statistic="mmd_b", seed=seed,
        ).p_value
        for seed in range(40)
    ])  # fmt: skip
    assert (p <= 0.05).mean() <= 0.15
    assert 0.35 <= (p <= 0.5).mean() <= 0.7


@pytest.mark.long
def test_blobs_need_a_small_width():
    """Blobs that differ in shape: t and τ find a width of a blob, the median is that of the grid
    (000, §6.4.3); the split is reported."""
    rng = np.random.default_rng(2)
    X, Y = blobs(rng, 1200, 1.0), blobs(rng, 1200, 8.0)
    median = two_sample_test(X, Y, n_permutations=199)
    assert median.p_value > 0.05
    for criterion in ("t", "tau"):
        r = two_sample_test(X, Y, bandwidth=criterion, n_permutations=199)
        assert r.p_value <= 0.05
        assert r.details["tested_on"] == {"a": 600, "b": 600} == r.details["chosen_on"]
        assert len(r.details["criteria"]) == len(MEDIAN_FACTORS)
        best = r.details["bandwidths"][int(np.argmax(r.details["criteria"]))]
        assert best < 4
        assert f"{best:.4g}" in r.kernel


@pytest.mark.parametrize("criterion", KERNEL_CRITERIA)
def test_criteria(criterion, monkeypatch):
    """As a test of each candidate finds them, one after the other. No candidate has a null
    distribution that its criterion does not look at, and distances are computed once."""
    made, distances = [], []
    for name, values in (
        ("nulls.distributions._of_distribution", made),
        ("kernels.kernels.cdist", distances),
    ):
        place = f"bagbasis.hypotheses.{name}"
        real = resolve_name(place)
        monkeypatch.setattr(
            place, lambda *a, real=real, values=values: values.append(a) or real(*a)
        )
    rng = np.random.default_rng(4)
    X, Y = rng.standard_normal((60, 2)), 1.3 * rng.standard_normal((50, 2))
    arguments = {"bandwidth": criterion, "standardize": False}
    r = two_sample_test(X, Y, n_permutations=19, seed=5, **arguments)
    assert (len(made), len(distances)) == (0, 2)  # of the candidates, and of the test
    on = TwoSamples(*read_samples({"a": X, "b": Y}), "gamma", 200, 5).split(0.5)[0]
    null = "permutation" if criterion == "tau" else "gamma"
    for width, value in zip(r.details["bandwidths"], r.details["criteria"], strict=True):
        single = UnbiasedMMD().measure(replace(on, null=null), Kernel("gaussian", width))
        values = single.null.values
        expected = {
            "max_mmd": single.statistic,
            "t": single.statistic / single.standard_error,
            "tau": (single.statistic - np.quantile(values, 0.95)) / single.standard_error,
        }
        assert value == pytest.approx(expected[criterion], rel=0.01, abs=1e-6)


@pytest.mark.long
def test_few_rows_of_large_groups():
    """A group of very many rows chooses by some of them; one of few by all."""
    rng = np.random.default_rng(5)
    X, labels = rng.standard_normal((9000, 1)), np.arange(9000) // 1000
    labels[-8:] = np.arange(9, 17)
    r = two_sample_test(X, X + 0.1, bandwidth="t", groups=(labels, labels + 20), n_permutations=9)
    assert r.n_units == {"a": 8, "b": 8}
    assert all(8 <= n <= 1024 + 9 for n in r.details["chosen_on"].values())


def test_groups_stay_whole():
    """The halves are of units."""
    rng = np.random.default_rng(3)
    X, labels = rng.standard_normal((40, 2)), np.repeat(np.arange(10), 4)
    r = two_sample_test(X, X + 0.1, bandwidth="t", groups=(labels, labels + 10))
    assert (r.details["chosen_on"], r.n["a"], r.n_units["a"]) == ({"a": 20, "b": 20}, 20, 5)
