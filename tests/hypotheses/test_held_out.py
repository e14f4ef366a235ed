"""Locations of ME and SCF that are learnt on one part of the units, and tested on the other."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.hypotheses import MeanEmbeddings, SmoothedCharacteristicFunctions, two_sample_test
from bagbasis.hypotheses.kernels.kernels import Kernel
from bagbasis.hypotheses.nulls.draws import USES, generator_of
from bagbasis.hypotheses.samples.held_out import split_units
from bagbasis.hypotheses.two_samples.hotelling import hotelling_slopes
from bagbasis.hypotheses.two_samples.location_features import KernelsAt, SmoothedWaves
from tests.hypotheses.test_location_statistics import differences
from tests.oracles.hypotheses import hotelling_by_loop

KINDS = [MeanEmbeddings, SmoothedCharacteristicFunctions]
MAPS = {
    "me": lambda v, width: KernelsAt(Kernel("gaussian", width), v),
    "scf": lambda v, width: SmoothedWaves(v, width, np.array([0.2, -0.1]), 1.6),
}


@pytest.mark.parametrize("name", MAPS)
def test_gradient(name, monkeypatch):
    """The criterion is Hotelling's T² but for its ridge; its gradient by central differences."""
    monkeypatch.setattr("bagbasis.hypotheses.two_samples.hotelling.LEARNING_RIDGE", 0.0)
    rng = np.random.default_rng(0)
    X, Y, theta = rng.normal(size=(30, 2)), rng.normal(size=(25, 2)) + 0.4, rng.normal(size=7)

    def parts(theta):
        features = MAPS[name](theta[:6].reshape(3, 2), float(np.exp(theta[6])))
        return features, hotelling_slopes(features(X), features(Y))

    features, (value, of_x, of_y) = parts(theta)
    assert value == pytest.approx(hotelling_by_loop(features(X), features(Y)))
    values = features.gradient(X, of_x) + features.gradient(Y, of_y)
    expected = differences(lambda at: parts(at)[1][0], theta)
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_learnt_locations_find_more(kind):
    """One of five coordinates has another variance; the split is reported, and the test is of the
    rows that are left: over seeds 1 to 5 the effect is 1.6 to 2.7 times as large for it."""
    rng, effects = np.random.default_rng(1), np.zeros(2)
    for seed in range(2):
        X, Y = rng.standard_normal((2000, 5)), rng.standard_normal((1600, 5))
        Y[:, 0] *= 1.6
        for i, learn in enumerate((0.0, 0.5)):
            r = two_sample_test(
                X, Y, statistic=kind(n_locations=2, learn=learn), null="chi_square", seed=seed
            )
            effects[i] += r.effect
    assert effects[1] > 1.3 * effects[0] > 0
    assert r.details["learnt_on"] == r.details["tested_on"] == {"a": 1000, "b": 800} == r.n
    again = two_sample_test(
        X, Y, statistic=kind(n_locations=2, learn=0.5), null="chi_square", seed=1
    )
    assert (again.statistic, again.details) == (r.statistic, r.details)


def test_locations_are_where_the_difference_is():
    """A few points are elsewhere."""
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((2, 1000, 2))
    Y[:100] = [2.0, 0.0] + 0.2 * Y[:100]
    r = two_sample_test(X, Y, statistic=MeanEmbeddings(n_locations=1, learn=0.5), seed=6)
    assert r.p_value < 0.01
    assert np.hypot(*(np.array(r.details["locations"][0]) - [2.0, 0.0])) < 0.4


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_levels(kind):
    """Rejections as often as α says, although the locations were learnt; groups stay whole."""
    rng = np.random.default_rng(2)
    p = np.array([
        two_sample_test(
            rng.standard_normal((120, 2)), rng.standard_normal((100, 2)), seed=seed,
            statistic=kind(n_locations=2, learn=0.4), null="chi_square",
        ).p_value
        for seed in range(60)
    ])  # fmt: skip
    for alpha in (0.05, 0.5):
        assert (p <= alpha).mean() == pytest.approx(alpha, abs=4 * (alpha / len(p)) ** 0.5)
    rows, labels = rng.standard_normal((80, 2)), np.repeat(np.arange(20), 4)
    r = two_sample_test(
        rows, rows + 1, statistic=kind(n_locations=1, learn=0.5), groups=(labels, labels + 20)
    )
    assert (r.n["a"], r.n_units["a"]) == (40, 10)


X, Y = np.random.default_rng(0).random((2, 9, 2))


def test_a_split_and_what_is_drawn_after_it_are_of_two_streams():
    """FSSD draws its locations, and NFSIC its rows, from the seed's plain stream."""
    units = np.arange(1000)
    tested = set(split_units(units, 0.5, seed=7)[1].tolist())
    for other in (np.random.default_rng(7), generator_of(7, "locations")):
        repeated = np.flatnonzero(other.permutation(1000) >= 500)
        assert 200 < len(tested.intersection(repeated.tolist())) < 300
    assert len(set(USES.values())) == len(USES) - 1  # locations and orders: no test draws both
